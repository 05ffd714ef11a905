use super::*;
use crate::cli::Shard;
use crate::job::form::case::Kind;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::{BTreeMap, BTreeSet};

/// How many forms there are is iced-x86's matter; that few are refused is ours.
#[test]
fn d2_every_encoding_of_64_bit_code_is_measured_or_refused_with_a_reason() {
    let all = all();
    let codes: BTreeSet<Code> = all.iter().map(|entry| entry.code).collect();
    let wanted = Code::values().filter(|code| {
        let op = code.op_code();
        op.is_instruction() && op.mode64() && op.encoding() != EncodingKind::MVEX
    });
    assert_eq!(codes, wanted.collect());
    assert!(all.len() > 16_800, "{}", all.len());
    let (mut measured, mut items, mut refused) = (0, 0, BTreeMap::<String, usize>::new());
    for entry in &all {
        let of = measure(entry);
        items += of.made.len();
        match (of.made.is_empty(), of.missing.first()) {
            (true, missing) => {
                let reason = &missing.unwrap().reason;
                assert!(!reason.is_empty(), "{}", entry.name);
                *refused.entry(reason.clone()).or_default() += 1;
            }
            (false, _) => measured += 1,
        }
    }
    let few: usize = refused.values().sum();
    assert!(measured > 16_400 && few < 500, "{measured} {refused:#?}");
    // They fit into one job, without their ports.
    assert!(items < protocol::job::limits::MAX_ITEMS, "{items}");
    assert_eq!(measured + few, all.len());
    guide_says(measured, all.len());
}

/// The guide rounds to hundreds.
fn guide_says(measured: usize, whole: usize) {
    let guide = include_str!("../../../../../docs/guide/forms.md");
    let hundreds = |count: usize| {
        let rounded = (count + 50) / 100 * 100;
        format!("{},{:03}", rounded / 1000, rounded % 1000)
    };
    let text = format!("{} of {}", hundreds(measured), hundreds(whole));
    assert!(guide.contains(&text), "{text}");
}

#[test]
fn names_are_names_of_one_form_and_of_items() {
    let all = all();
    let measured = all.iter().filter(|entry| entry.form.is_ok());
    let mut names = BTreeSet::new();
    for entry in measured {
        assert!(names.insert(entry.name.clone()), "{}", entry.name);
        for made in measure(entry).made {
            let name = made.case.to_string();
            assert_eq!(name.parse(), Ok(made.case.clone()), "{name}");
            assert_eq!(made.case.form, entry.name);
            assert!(name.len() <= protocol::job::limits::MAX_NAME_BYTES, "{name}");
        }
    }
}

/// The first line of each body is the instruction: its bytes are of the very encoding, with no two operands in one
/// register that have to differ.
#[test]
fn d2_each_form_is_measured_in_its_own_encoding() {
    for entry in all() {
        for made in measure(&entry).made {
            let lines = made.body.lines().filter(|line| line.starts_with(".byte"));
            let decoded = lines.map(|line| {
                let bytes = line.trim_start_matches(".byte").split(',');
                let byte = |text: &str| {
                    u8::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap()
                };
                let bytes: Vec<u8> = bytes.map(byte).collect();
                let decoded = Decoder::with_ip(64, &bytes, 0, options(entry.code)).decode();
                (bytes, decoded)
            });
            // A return stands after its call.
            let mut own = decoded.filter(|(_, decoded)| decoded.code() == entry.code);
            let (bytes, decoded) = own.next().unwrap_or_else(|| panic!("{}", made.case));
            assert_eq!(decoded.len(), bytes.len(), "{}", entry.name);
            assert_eq!(decoded.has_lock_prefix(), entry.is_locked(), "{}", entry.name);
        }
    }
}

/// Some encodings mean other instructions on other processors.
fn options(code: Code) -> u32 {
    code.op_code().decoder_option() | DecoderOptions::NONE
}

#[test]
fn shards_and_extensions_divide_the_catalog() {
    let whole = all().len();
    let of = |index, count| {
        let selection = Selection { shard: Shard { index, count }, ..Selection::default() };
        selection.of(all()).unwrap()
    };
    let mut names: Vec<String> =
        (0..7).flat_map(|index| of(index, 7)).map(|entry| entry.name).collect();
    assert_eq!(names.len(), whole);
    assert!((0..7).all(|index| of(index, 7).len().abs_diff(whole / 7) <= 1));
    names.sort_unstable();
    let mut expected: Vec<String> = all().into_iter().map(|entry| entry.name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    let named = |names: &[&str]| {
        let extensions = names.iter().map(ToString::to_string).collect();
        Selection { extensions, ..Selection::default() }.of(all())
    };
    let bmi = named(&["bmi1", "BMI2"]).unwrap();
    assert!(bmi.iter().any(|entry| entry.name == "andn r64, r64, r64"));
    assert!(bmi.iter().all(|entry| entry.extension().contains("BMI")));
    let error = named(&["AVX2", "AVX3"]).unwrap_err();
    assert!(error.contains("`AVX3`") && error.contains("`AVX"), "{error}");
}

#[test]
fn d2_what_depends_on_nothing_has_a_chain_of_one_register() {
    let all = all();
    let of = |name: &str| {
        let entry = all.iter().find(|entry| entry.name == name).unwrap();
        measure(entry).made.into_iter().find(|made| made.case.kind == Kind::SameRegister)
    };
    let body = |name: &str| of(name).map(|made| made.body);
    // XOR R8, R8, with nothing that writes R8 anew.
    assert_eq!(body("xor r64, r64").unwrap(), ".byte 0x4d, 0x31, 0xc0");
    assert_eq!(body("vpxor ymm, ymm, ymm").unwrap(), ".byte 0xc5, 0xf5, 0xef, 0xc9");
    assert_eq!(body("not r64"), None);
    assert_eq!(body("xor r64, m64"), None);
    // The flags that it also waits for are written anew.
    assert_eq!(body("sbb r64, r64").unwrap().lines().count(), 2);
}

#[test]
fn d2_the_x87_stack_stays_where_it_is() {
    let all = all();
    let of = |name: &str| measure(all.iter().find(|entry| entry.name == name).unwrap());
    let names = |name: &str| -> Vec<String> {
        of(name).made.iter().map(|made| made.case.to_string()).collect()
    };
    assert_eq!(names("fsqrt"), ["latency: fsqrt (st0 -> st0)"]);
    assert_eq!(
        names("fadd st, st0"),
        ["latency: fadd st, st0 (1 -> 1)", "throughput: fadd st, st0 (7 apart)"]
    );
    let made = of("fadd st0, st").made;
    assert!(made[0].init.contains("fninit\nfld1\n") && made[0].body == ".byte 0xd8, 0xc1");
}
