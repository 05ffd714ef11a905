//! The generated 32-bit code, assembled, decoded and followed.

use super::*;
use crate::job::file;
use crate::job::form::catalog;
use crate::job::form::expand;
use crate::job::form::tests::{chains_lead_back, expanded, none_waits};
use iced_x86::{CodeSize, Decoder, DecoderOptions};

const FORMS: [&str; 56] = [
    "add r32, r32",
    "add r8, r8",
    "add r16, r16",
    "adc r32, r32",
    "inc r32",
    "imul r32, r32",
    "imul r32, r32, imm8",
    "mul r32",
    "mul r8",
    "div r32",
    "idiv r8",
    "shl r32, cl",
    "shl r8, imm8",
    "lea r32, m",
    "mov r32, r32",
    "mov r32, m32",
    "mov m32, r32",
    "mov r8, imm8",
    "movzx r32, r8",
    "movsx r32, r16",
    "movzx r32, m8",
    "popcnt r32, r32",
    "cmovc r32, r32",
    "setc r8",
    "cmp r8, r8",
    "test r32, r32",
    "bswap r32",
    "add r32, m32",
    "xchg r32, r32",
    "cmpxchg r32, r32",
    "cmpxchg8b m64",
    "cdq",
    "aaa",
    "aas",
    "aam imm8",
    "aad imm8",
    "daa",
    "das",
    "lahf",
    "arpl r16, r16",
    "mulx r32, r32, r32",
    "addps xmm, xmm",
    "sqrtsd xmm, xmm",
    "pshufd xmm, xmm, imm8",
    "addps xmm, m128",
    "movd xmm, r32",
    "movd r32, xmm",
    "cvtsi2sd xmm, r32",
    "cvttsd2si r32, xmm",
    "vfmadd231ps ymm, ymm, ymm",
    "blendvps xmm, xmm, xmm0",
    "paddb mm, mm",
    "vpaddd zmm {k}, zmm, zmm",
    "vgatherdps xmm, vm32x, xmm",
    "kmovw k, r32",
    "pmovmskb r32, mm",
];

fn marked_all(forms: &[&str]) -> Vec<String> {
    forms.iter().map(|form| format!("{form} {SUFFIX}")).collect()
}

#[test]
fn n3_chains_of_32_bit_code_lead_from_their_destination_to_their_source() {
    let forms = marked_all(&FORMS);
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    let pairs = chains_lead_back(&forms);
    assert!(pairs > 90, "{pairs}");
}

#[test]
fn n3_instructions_of_32_bit_code_wait_for_none_of_the_others() {
    let forms = marked_all(&FORMS);
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    none_waits(&forms, 2);
}

#[test]
fn tmp_catalog() {
    let all = catalog::in_code_of(Bits::Compatibility);
    let mut reasons = std::collections::BTreeMap::<String, Vec<String>>::new();
    let mut measured = 0;
    let mut long = 0;
    for entry in &all {
        let of = catalog::measure(entry);
        if of.made.is_empty() {
            reasons.entry(of.missing[0].reason.clone()).or_default().push(entry.name.clone());
        } else {
            measured += 1;
        }
        for made in of.made {
            long = long.max(made.case.to_string().len());
        }
    }
    println!("{} {measured} longest {long} of {}", all.len(), protocol::limits::MAX_NAME_BYTES);
    for (reason, names) in reasons {
        println!(
            "{:5} {reason}: {}",
            names.len(),
            names.join(" | ").chars().take(500).collect::<String>()
        );
    }
    for entry in &all {
        if entry.code.op_code().mode64() {
            continue;
        }
        let of = catalog::measure(entry);
        if let Some(last) = of.made.last() {
            println!("{} | {}", last.case, last.body.lines().next().unwrap());
        }
    }
}
