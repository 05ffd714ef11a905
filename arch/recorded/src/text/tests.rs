use super::*;
use proptest::prelude::*;

/// A Kaby Lake's first leaves, as each form has them.
const DASHED: &str = "\
------[ Logical CPU #0 ]------
CPUID 00000000: 00000016-756E6547-6C65746E-49656E69 [GenuineIntel]
CPUID 00000001: 000906E9-00100800-4FFAEBBF-BFEBFBFF
CPUID 00000004: 1C004121-01C0003F-0000003F-00000000 [SL 00]
CPUID 00000004: 1C004122-01C0003F-0000003F-00000000 [SL 01]
MSR 0000001B: 0000-0000-FEE0-0900
";
const NAMED: &str = "\
CPU 0:
   0x00000000 0x00: eax=0x00000016 ebx=0x756e6547 ecx=0x6c65746e edx=0x49656e69
   0x00000001 0x00: eax=0x000906e9 ebx=0x00100800 ecx=0x4ffaebbf edx=0xbfebfbff
   0x00000004 0x00: eax=0x1c004121 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000
   0x00000004 0x01: eax=0x1c004122 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000
";
const SEPARATED: &str = "\
leaf,subleaf,eax,ebx,ecx,edx
00000000,0,00000016,756e6547,6c65746e,49656e69
00000001,0,000906e9,00100800,4ffaebbf,bfebfbff
00000004,0,1c004121,01c0003f,0000003f,00000000
00000004,1,1c004122,01c0003f,0000003f,00000000
";

#[test]
fn the_three_forms_say_the_same() {
    let all = parse(DASHED).unwrap();
    assert_eq!((all.len(), all[0].all().count()), (1, 4));
    assert_eq!(all[0].recorded(4, 1), Some([0x1c00_4122, 0x01c0_003f, 0x3f, 0]));
    assert_eq!(parse(NAMED).unwrap(), all);
    assert_eq!(parse(SEPARATED).unwrap(), all);
    // Older ones count the sub-leaves by repeating the leaf.
    let old = DASHED.replace(" [SL 00]", "").replace(" [SL 01]", "");
    assert_eq!(parse(&old).unwrap(), all);
}

#[test]
fn leaf_0_begins_the_next_processor() {
    let second = NAMED.replace("0x000906e9", "0x000906ea").replace("CPU 0", "CPU 1");
    let all = parse(&format!("{NAMED}{second}")).unwrap();
    let signatures: Vec<u32> = all.iter().map(|one| one.answer(1, 0)[0]).collect();
    assert_eq!(signatures, [0x906e9, 0x906ea]);
}

#[test]
fn what_is_no_recording_says_why_and_where() {
    let twice = format!("{SEPARATED}00000001,0,000906ea,00000000,00000000,00000000\n");
    let often = format!("{DASHED}{}", "CPUID 00000009: 0-0-0-0\n".repeat(65));
    let cases = [
        ("", "it has no line of CPUID"),
        ("vendor_id : GenuineIntel\n", "it has no line of CPUID"),
        ("CPUID 00000001: 0-0-0-0", "line 1: leaf 0x1 comes before leaf 0"),
        ("CPUID 00000000: 0-0-0-0", "processor 0 of it has no leaf 0x1"),
        ("CPUID 00000000: 0-0-0", "line 1: it has 3 registers"),
        ("CPUID 00000000: 0-0-0-0x", "line 1: the edx is \"0x\"; it must be 1 to 8"),
        ("CPUID 000000000: 0-0-0-0", "line 1: the leaf is \"000000000\""),
        ("CPUID 00000004: 0-0-0-0 [SL zz]", "line 1: the sub-leaf is \"zz\""),
        ("0x0 0x0: eax=0x1 eby=0x1 ecx=0x0 edx=0x0", "`ebx=0x...` is expected"),
        ("0x0 0x0: eax=0x1 ebx=0x1 ecx=0x0 edx=0x0 more", "\"more\" follows the registers"),
        ("0x0 0x0: eax=0x1 ebx=0x1", "it has 2 registers"),
        ("0,x,0,0,0,0", "the sub-leaf is \"x\""),
        ("0,0,0,0,0,0,0", "it has 5 registers"),
        (&twice, "line 6: leaf 0x1 sub-leaf 0x0 was answered before, differently"),
        (&often, "leaf 0x9 comes more than 64 times"),
    ];
    for (text, part) in cases {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    // Nothing of the file's can reach a terminal as it is.
    let control = parse("CPUID 00000000: \x1b[31m-0-0-0").unwrap_err().to_string();
    assert!(!control.contains('\x1b'), "{control:?}");
}

#[test]
fn a_text_without_end_is_refused() {
    let error = parse(&"\n".repeat(MOST_LINES + 1)).unwrap_err();
    assert_eq!(error, TextError::Long { most: MOST_LINES });
}

fn dashed(rows: &[(u32, u32, [u32; 4])]) -> String {
    rows.iter()
        .map(|(leaf, subleaf, [a, b, c, d])| {
            format!("CPUID {leaf:08X}: {a:08X}-{b:08X}-{c:08X}-{d:08X} [SL {subleaf:02X}]\n")
        })
        .collect()
}

fn named(rows: &[(u32, u32, [u32; 4])]) -> String {
    rows.iter()
        .map(|(leaf, subleaf, [a, b, c, d])| {
            format!(
                "   {leaf:#010x} {subleaf:#04x}: eax={a:#010x} ebx={b:#010x} ecx={c:#010x} edx={d:#010x}\n"
            )
        })
        .collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(rest in prop::collection::btree_map((1..40_u32, 0..70_u32), any::<[u32; 4]>(), 0..40)) {
        let mut rows = vec![(0, 0, [1, 2, 3, 4]), (1, 0, [5; 4])];
        rows.extend(rest.into_iter().filter(|(key, _)| *key != (1, 0)).map(|((l, s), r)| (l, s, r)));
        let mut leaves = Leaves::new();
        for &(leaf, subleaf, registers) in &rows {
            leaves.add(leaf, subleaf, registers).unwrap();
        }
        prop_assert_eq!(parse(&dashed(&rows)).unwrap(), vec![leaves.clone()]);
        prop_assert_eq!(parse(&named(&rows)).unwrap(), vec![leaves]);
    }

    #[test]
    fn no_text_makes_it_panic(text in "([ -~]{0,60}\n){0,4}|(CPUID |0x)[0-9a-fx:, =\\-\\[\\]SLé]{0,60}") {
        let _ = parse(&text);
    }
}
