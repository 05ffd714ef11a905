//! The generated 32-bit code, assembled, decoded and followed.

use super::*;
use crate::job::file;
use crate::job::form::tests::{chains_lead_back, expanded, none_waits};
use crate::job::form::{catalog, expand};
use iced_x86::{CodeSize, Decoder, DecoderOptions, EncodingKind};
use std::collections::BTreeSet;

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

/// What is measured of each form of a job, by the name.
fn names(text: &str) -> Vec<String> {
    let file = file::parse(text, "x.toml").unwrap();
    let file = expand(&file).unwrap_or_else(|error| panic!("{error}"));
    file.snippets.iter().map(|one| one.name.clone()).collect()
}

fn message(text: &str) -> String {
    let done = file::parse(text, "x.toml").and_then(|file| expand(&file).map(|_| ()));
    done.unwrap_err().to_string()
}

#[test]
fn n3_a_form_of_32_bit_code_is_marked_and_reads_back() {
    for text in ["imul r32, r32 [32-bit]", "je rel8 {taken} [32-bit]", "jcxz rel8 {taken} [32-bit]"]
    {
        let form: Form = text.parse().unwrap();
        assert_eq!((form.bits, form.to_string()), (Bits::Compatibility, text.to_string()));
        assert_eq!(form.in_code_of(Bits::SixtyFour).unwrap(), form);
    }
    let wide: Form = "je rel8 {taken}".parse().unwrap();
    assert_eq!(wide.bits, Bits::SixtyFour);
    let in_32_bit = wide.in_code_of(Bits::Compatibility).unwrap();
    assert_eq!(in_32_bit.to_string(), "je rel8 {taken} [32-bit]");
    assert_ne!(in_32_bit.encoding, wide.encoding);
}

/// The width comes from the item, from what holds for all items, from the command line, or from the form.
#[test]
fn n3_forms_are_of_the_code_that_their_item_asks_for() {
    let expected = [
        "latency: imul r32, r32 [32-bit] (1 -> 1)",
        "latency: imul r32, r32 [32-bit] (2 -> 1; back: movsx r32, r16 [32-bit]; breaking 1)",
        "throughput: imul r32, r32 [32-bit] (5 apart)",
        "latency: movsx r32, r16 [32-bit] (2 -> 1)",
    ];
    for text in [
        "[[characterise]]\nforms = ['imul r32, r32']\nbits = 32",
        "[defaults]\nbits = 32\n[[characterise]]\nforms = ['imul r32, r32']",
        "[[characterise]]\nforms = ['imul r32, r32 [32-bit]']",
        "[[snippet]]\nlatency = 'imul r32, r32'\nthroughput = 'imul r32, r32'\nbits = 32",
    ] {
        assert_eq!(names(text), expected, "{text}");
        let file = file::parse(text, "x.toml").unwrap();
        let made = expand(&file).unwrap();
        let bits = |one: &crate::job::file::SnippetFile| one.options.bits;
        assert!(made.snippets.iter().all(|one| bits(one) == Bits::Compatibility), "{text}");
    }
    // Both in one job: what leads back is of the same code.
    let text = "[[characterise]]\nforms = ['imul r32, r32', 'imul r32, r32 [32-bit]']";
    let file = file::parse(text, "x.toml").unwrap();
    for one in &expand(&file).unwrap().snippets {
        let in_32_bit = one.options.bits == Bits::Compatibility;
        assert_eq!(one.name.contains(SUFFIX), in_32_bit, "{}", one.name);
        assert_eq!(one.asm.contains("esi"), in_32_bit, "{}\n{}", one.name, one.asm);
    }
    assert_eq!(names(text).len(), 8);
}

#[test]
fn n3_what_32_bit_code_does_not_have_is_refused_with_the_reason() {
    for (form, part) in [
        ("imul r64, r64", "which has no 64-bit general registers"),
        ("movq xmm, r64", "has `r64`"),
        ("add rax, imm32", "has `rax`"),
        ("tdpbssd tmm, tmm, tmm", "which has no AMX"),
        ("mov r32, cr8", "no register of 32-bit code"),
        ("rdfsbase r32", "64-bit mode"),
        ("movsxd r32, r32", "the assembler refuses the form `movsxd r32, r32 [32-bit]`"),
        ("jrcxz rel8 {taken}", "no target of this instruction"),
        ("jmp r32", "no address relative to EIP"),
        ("call m32", "no address relative to EIP"),
        ("mov cr3, r32", "it would cut the register to 32 bits"),
        ("mov dr0, r32", "it would cut the register to 32 bits"),
        ("lgdt m", "it would cut the table's address to 32 bits"),
        ("popad", "it overwrites EBX, which points to memory"),
        ("les r32, m", "it works on a segment register"),
        ("into", "it leaves the straight line"),
        ("xchg r8, r8", "no register is left for a second one"),
    ] {
        for text in [
            format!("[[snippet]]\nthroughput = \"{form}\"\nbits = 32"),
            format!("[[snippet]]\nthroughput = \"{form} [32-bit]\""),
        ] {
            let seen = message(&text);
            let place = seen.contains("x.toml:1:1") || seen.contains("line 2");
            assert!(seen.contains(part) && place, "{text}: {seen}");
        }
    }
    let seen = message("[[snippet]]\nthroughput = 'jcxz rel8 {taken}'");
    assert!(seen.contains("a target of 32-bit code"), "{seen}");
    let seen = message("[[characterise]]\nforms = ['inc r32']\nbits = 32\nports = true");
    assert!(seen.contains("ports = true") && seen.contains("too few registers"), "{seen}");
    let seen = message("[[snippet]]\nthroughput = 'cli'\nbits = 32\nmachine = { ring = 3 }");
    assert!(seen.contains("it needs ring 0"), "{seen}");
}

/// What 64-bit code has in these places does not occur: registers with a number, and 64-bit ones.
#[test]
fn n3_no_register_of_64_bit_code_stands_in_32_bit_code() {
    let more =
        ["rdmsr", "wrmsr", "invpcid r32, m128", "lldt m16", "fld m64", "bound r32, m", "ret"];
    let branches = ["jg rel32 {not-taken}", "loop rel8 {taken}", "vpgatherdq ymm, vm32x, ymm"];
    let forms: Vec<String> = marked_all(&[&FORMS[..], &more, &branches].concat());
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    for one in &expanded_snippets(&forms) {
        let text = format!("{}\n{}", one.init, one.asm);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let wide = |word: &&str| {
            let number = word.trim_start_matches('r').trim_end_matches(['d', 'w', 'b']);
            let old = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "rip"];
            let bytes = ["spl", "bpl", "sil", "dil"];
            word.starts_with('r') && number.parse::<u8>().is_ok()
                || old.contains(word)
                || bytes.contains(word)
        };
        let found: Vec<&str> = words.filter(wide).collect();
        assert!(found.is_empty(), "{}: {found:?}\n{text}", one.name);
    }
}

fn expanded_snippets(forms: &[&str]) -> Vec<crate::job::file::SnippetFile> {
    let quoted: Vec<String> = forms.iter().map(|form| format!("{form:?}")).collect();
    let text = format!("[[characterise]]\nforms = [{}]", quoted.join(", "));
    let file = file::parse(&text, "x.toml").unwrap();
    expand(&file).unwrap_or_else(|error| panic!("{error}")).snippets.clone()
}

/// The figure is of the instruction that the form is, wherever it stands, and that instruction is the one of 32-bit code.
#[test]
fn n3_the_code_of_each_form_decodes_as_32_bit_code() {
    let forms = marked_all(&FORMS);
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    for (case, _, code) in expanded(&forms) {
        let decoder = Decoder::new(32, &code, DecoderOptions::NONE);
        let all: Vec<Instruction> = decoder.into_iter().collect();
        assert!(all.iter().all(|one| one.code_size() == CodeSize::Code32), "{case}");
        assert!(all.iter().all(|one| !one.is_invalid()), "{case}");
        let mnemonic = case.form.split(' ').next().unwrap_or_default();
        let is = |one: &&Instruction| {
            format!("{:?}", one.mnemonic()).to_lowercase().starts_with(mnemonic)
        };
        let count = all.iter().filter(is).count();
        // CMOVC is CMOVB, SETC is SETB.
        let other_name = ["cmovc", "setc"].contains(&mnemonic);
        assert!(other_name || count >= case.copies() as usize, "{case}: {count}");
    }
}

#[test]
fn d2_every_encoding_of_32_bit_code_is_measured_or_refused_with_a_reason() {
    let all = catalog::in_code_of(Bits::Compatibility);
    let codes: BTreeSet<Code> = all.iter().map(|entry| entry.code).collect();
    let wanted = Code::values().filter(|code| {
        let op = code.op_code();
        op.is_instruction() && op.mode32() && op.encoding() != EncodingKind::MVEX
    });
    assert_eq!(codes, wanted.collect());
    let (mut measured, mut items, mut names) = (0, 0, BTreeSet::new());
    for entry in &all {
        let of = catalog::measure(entry);
        items += of.made.len();
        measured += usize::from(!of.made.is_empty());
        match of.missing.first() {
            Some(missing) => assert!(!missing.reason.is_empty(), "{}", entry.name),
            None => assert!(!of.made.is_empty(), "{}", entry.name),
        }
        if entry.form.is_ok() {
            assert!(entry.name.ends_with(SUFFIX), "{}", entry.name);
            assert!(names.insert(entry.name.clone()), "{}", entry.name);
        }
        for made in of.made {
            let name = made.case.to_string();
            assert_eq!(name.parse(), Ok(made.case.clone()), "{name}");
            assert!(name.len() <= protocol::job::limits::MAX_NAME_BYTES, "{name}");
            let lines = made.body.lines().filter(|line| line.starts_with(".byte"));
            let own = lines.filter(|line| decoded(line, entry.code).code() == entry.code);
            assert!(own.count() > 0, "{name}\n{}", made.body);
        }
    }
    assert!(measured > 15_800 && all.len() - measured < 600, "{measured} of {}", all.len());
    assert!(items < protocol::job::limits::MAX_ITEMS, "{items}");
    let guide = include_str!("../../../../../docs/guide/forms.md");
    let hundreds = |count: usize| {
        let rounded = (count + 50) / 100 * 100;
        format!("{},{:03}", rounded / 1000, rounded % 1000)
    };
    let text = format!("{} of {}", hundreds(measured), hundreds(all.len()));
    assert!(guide.contains(&text), "{text}");
}

fn decoded(line: &str, code: Code) -> Instruction {
    let bytes = line.trim_start_matches(".byte").split(',');
    let byte = |text: &str| u8::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
    let bytes: Vec<u8> = bytes.map(byte).collect();
    let options = code.op_code().decoder_option() | DecoderOptions::NONE;
    Decoder::new(32, &bytes, options).decode()
}

#[test]
fn d2_a_job_takes_all_forms_of_32_bit_code() {
    let text = "[[characterise]]\nall = true\nbits = 32\nextensions = ['BMI2']";
    let file = file::parse(text, "x.toml").unwrap();
    let snippets = &expand(&file).unwrap().snippets;
    let is = |name: &str| snippets.iter().any(|one| one.name == name);
    assert!(is("throughput: pdep r32, r32, r32 [32-bit] (4 apart)"), "{:?}", snippets.len());
    assert!(snippets.iter().all(|one| one.name.contains(SUFFIX)));
    assert!(snippets.iter().all(|one| one.options.bits == Bits::Compatibility));
    // Nothing of ring 0 in ring 3.
    let count = |ring: &str| {
        let text = format!("{text}\n[defaults]\nbits = 32\nmachine = {{ ring = {ring} }}");
        let text = text.replace("BMI2", "MSR");
        expand(&file::parse(&text, "x.toml").unwrap()).unwrap().snippets.len()
    };
    assert_eq!((count("0"), count("3")), (2, 0));
}
