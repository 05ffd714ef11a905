//! The bytes of forms with masks, broadcasts and rounding, decoded again.

use super::*;
use crate::job::form::catalog::{self, Entry};
use crate::job::form::{Form, case};
use iced_x86::{Decoder, DecoderOptions, EncodingKind, InstructionInfoFactory, OpAccess};
use std::collections::BTreeSet;

fn decoded(line: &str) -> Instruction {
    let bytes = line.trim_start_matches(".byte").split(',');
    let byte = |text: &str| u8::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
    Decoder::new(64, &bytes.map(byte).collect::<Vec<_>>(), DecoderOptions::NONE).decode()
}

fn of_evex() -> Vec<Entry> {
    let is = |entry: &Entry| entry.code.op_code().encoding() == EncodingKind::EVEX;
    catalog::all().into_iter().filter(is).collect()
}

/// What a form says in braces is what the processor decodes, and nothing else.
#[test]
fn d2_masks_broadcasts_and_rounding_are_those_that_are_decoded() {
    let mut seen = BTreeSet::new();
    for entry in of_evex() {
        for made in catalog::measure(&entry).made {
            let line = made.body.lines().find(|line| line.starts_with(".byte")).unwrap();
            let (one, name) = (decoded(line), &entry.name);
            assert_eq!(one.has_op_mask(), name.contains("{k}"), "{name}: {line}");
            assert_eq!(one.zeroing_masking(), name.contains("{z}"), "{name}: {line}");
            let count = name.split("{1to").nth(1).and_then(|rest| rest.split('}').next());
            assert_eq!(one.is_broadcast(), count.is_some(), "{name}: {line}");
            if let Some(count) = count {
                let size = one.memory_size();
                let count: usize = count.parse().unwrap();
                // What is converted or multiplied may have another width than the result, but never more elements.
                assert_eq!(size.element_count(), 1, "{name}");
                assert!([2, 4, 8, 16, 32].contains(&count), "{name}");
                let whole = entry.code.op_code().memory_size().size();
                assert_eq!(count * size.element_size(), whole, "{name}");
            }
            let rounds = one.rounding_control() == RoundingControl::RoundToNearest;
            assert_eq!(rounds, name.contains("{rn-sae}"), "{name}: {line}");
            // Rounding of one instruction suppresses its exceptions; the decoder tells the one or the other.
            assert_eq!(one.suppress_all_exceptions() && !rounds, name.contains("{sae}"), "{name}");
            seen.insert((one.has_op_mask(), one.zeroing_masking(), one.is_broadcast(), rounds));
        }
    }
    // No mask, merging, zeroing; each plain, with a broadcast, and with rounding.
    assert_eq!(seen.len(), 9, "{seen:?}");
}

/// Every combination that an encoding has is a form of the catalog, once.
#[test]
fn d2_each_encoding_has_a_form_for_each_mask_broadcast_and_rounding() {
    let names: BTreeSet<String> = of_evex().into_iter().map(|entry| entry.name).collect();
    let vaddpd = |rest: &str| names.contains(&format!("vaddpd {rest}"));
    for mask in ["", " {k}", " {k}{z}"] {
        assert!(vaddpd(&format!("zmm{mask}, zmm, zmm")), "{mask}");
        assert!(vaddpd(&format!("zmm{mask}, zmm, m512")), "{mask}");
        assert!(vaddpd(&format!("zmm{mask}, zmm, m64 {{1to8}}")), "{mask}");
        assert!(vaddpd(&format!("xmm{mask}, xmm, m64 {{1to2}}")), "{mask}");
        assert!(vaddpd(&format!("zmm{mask}, zmm, zmm, {{rn-sae}}")), "{mask}");
    }
    assert!(!vaddpd("zmm, zmm, m512, {rn-sae}") && !vaddpd("ymm, ymm, ymm, {rn-sae}"));
    assert!(names.contains("vcmpps k {k}, zmm, zmm, {sae}, imm8"));
    // Memory keeps what the mask leaves out, and so does a mask that is written.
    assert!(names.contains("vmovups m512 {k}, zmm") && !names.contains("vmovups m512 {k}{z}, zmm"));
    assert!(!names.iter().any(|name| name.contains("vcmpps k {k}{z}")));
    let counted = |part: &str| names.iter().filter(|name| name.contains(part)).count();
    assert!(counted("{z}") > 2_500, "{}", counted("{z}"));
    assert!(counted("{1to") > 2_000, "{}", counted("{1to"));
    assert!(counted("-sae}") > 500, "{}", counted("-sae}"));
}

/// A mask is a source. The register that it merges into is one, too; that which it zeroes is not.
#[test]
fn d2_the_mask_is_a_source_and_merging_reads_the_destination() {
    let all = catalog::all();
    let pairs = |name: &str| -> Vec<(String, String)> {
        let entry = all.iter().find(|entry| entry.name == name).unwrap();
        let made = catalog::measure(entry).made.into_iter();
        made.filter_map(|made| match made.case.kind {
            case::Kind::Latency { from, to, .. } => Some((from, to)),
            _ => None,
        })
        .collect()
    };
    let to_1 = |from: &[&str]| -> Vec<(String, String)> {
        from.iter().map(|from| ((*from).to_string(), "1".to_string())).collect()
    };
    assert_eq!(pairs("vpaddd zmm {k}, zmm, zmm"), to_1(&["1", "2", "3", "mask"]));
    assert_eq!(pairs("vpaddd zmm {k}{z}, zmm, zmm"), to_1(&["2", "3", "mask"]));
    assert_eq!(
        pairs("vpaddd zmm {k}{z}, zmm, m32 {1to16}"),
        to_1(&["2", "mask", "address", "memory"])
    );
    // In the chain through the mask the destination is written anew, and no other register is the mask.
    let entry = all.iter().find(|entry| entry.name == "vpaddd zmm {k}, zmm, zmm").unwrap();
    let made = catalog::measure(entry).made;
    let made = made.iter().find(|made| made.case.to_string().contains("(mask -> 1")).unwrap();
    let text = "latency: vpaddd zmm {k}, zmm, zmm (mask -> 1; back: vmovq r64, xmm + kmovw k, r32; breaking 1)";
    assert_eq!(made.case.to_string(), text);
    let one = decoded(made.body.lines().next().unwrap());
    assert!(
        made.body
            .lines()
            .nth(2)
            .unwrap()
            .starts_with(&format!("kmovw {:?}", one.op_mask()).to_lowercase())
    );
    let mut factory = InstructionInfoFactory::new();
    let access = factory.info(&one).op0_access();
    assert_eq!(access, OpAccess::ReadCondWrite);
}

#[test]
fn d2_braces_at_a_wrong_place_are_named() {
    for (text, part) in [
        ("vaddpd zmm, zmm {k}, zmm", "`{k}`, which is none of {k} and {k}{z} at the first operand"),
        ("vaddpd zmm {z}, zmm, zmm", "`{z}`"),
        ("vaddpd zmm, zmm, m64 {1to3}", "`{1to3}`"),
        ("vaddpd zmm, zmm, zmm {1to8}", "no memory operand whose size is known"),
        ("vaddpd zmm, zmm, m {1to8}", "no memory operand whose size is known"),
        ("vaddpd zmm, zmm, zmm, {er}", "`{er}`"),
    ] {
        let error = text.parse::<Form>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in [
        "vaddpd zmm {k}{z}, zmm, m64 {1to8}",
        "vcmpps k {k}, zmm, zmm, {sae}, imm8",
        "vaddps zmm {k}, zmm, zmm, {rz-sae}",
    ] {
        assert_eq!(text.parse::<Form>().unwrap().to_string(), text);
    }
}
