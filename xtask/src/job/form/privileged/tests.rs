//! The generated code of forms of ring 0, assembled and decoded.

use super::*;
use crate::job::assemble::{Part, Source, Syntax, assemble};
use crate::job::file;
use crate::job::form::catalog::{self, Entry};
use crate::job::form::expand;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use protocol::bits::Bits;
use std::collections::BTreeSet;

fn entries() -> Vec<Entry> {
    let is = |entry: &Entry| entry.effects().is_ok_and(|effects| effects.undone.is_some());
    catalog::all().into_iter().filter(is).collect()
}

fn decoded(texts: &[&str]) -> Vec<Vec<Instruction>> {
    let source = |text| {
        let (part, syntax, bits) = (Part::Body, Syntax::Intel, Bits::SixtyFour);
        Source { part, text, syntax, bits, symbols: &[] }
    };
    let sources: Vec<_> = texts.iter().map(|text| source(*text)).collect();
    let codes = assemble(&sources).unwrap_or_else(|error| panic!("{error:?}"));
    let decode =
        |code: &Vec<u8>| Decoder::new(64, code, DecoderOptions::NONE).into_iter().collect();
    codes.iter().map(decode).collect()
}

/// What is written was read from the same register before, by the init code.
#[test]
fn d2_privileged_forms_write_what_they_read() {
    let made: Vec<(Code, Made)> = entries()
        .iter()
        .flat_map(|entry| catalog::measure(entry).made.into_iter().map(|made| (entry.code, made)))
        .collect();
    let texts: Vec<&str> =
        made.iter().flat_map(|(_, one)| [one.init.as_str(), one.body.as_str()]).collect();
    let all = decoded(&texts);
    let mut seen = BTreeSet::new();
    for ((code, one), parts) in made.iter().zip(all.chunks(2)) {
        let (init, body) = (&parts[0], &parts[1]);
        let own: Vec<_> = body.iter().filter(|instruction| instruction.code() == *code).collect();
        assert_eq!(own.len(), 8, "{}\n{}", one.case, one.body);
        let first = own[0];
        let reads = |mnemonic| init.iter().any(|instruction| instruction.mnemonic() == mnemonic);
        let name = &one.case;
        match first.mnemonic() {
            Mnemonic::Mov if !first.op0_register().is_gpr() => {
                let read = init.last().unwrap();
                assert_eq!(read.op1_register(), first.op0_register(), "{name}");
                assert_eq!(read.op0_register(), first.op1_register(), "{name}");
            }
            Mnemonic::Wrmsr => {
                assert!(reads(Mnemonic::Rdmsr), "{name}");
                assert_eq!(init[0].immediate32(), 0xc000_0102, "{name}");
            }
            Mnemonic::Xsetbv => assert!(reads(Mnemonic::Xgetbv), "{name}"),
            Mnemonic::Wrfsbase => assert!(reads(Mnemonic::Rdfsbase), "{name}"),
            Mnemonic::Wrgsbase => assert!(reads(Mnemonic::Rdgsbase), "{name}"),
            Mnemonic::Lgdt => assert!(reads(Mnemonic::Sgdt), "{name}"),
            Mnemonic::Lidt => assert!(reads(Mnemonic::Sidt), "{name}"),
            Mnemonic::Lldt => assert!(reads(Mnemonic::Sldt), "{name}"),
            Mnemonic::Lmsw => assert!(reads(Mnemonic::Smsw), "{name}"),
            // Interrupts are enabled for no instruction but CLI: STI holds them back that long.
            Mnemonic::Sti => {
                let pairs = body.chunks(2).all(|pair| pair[1].mnemonic() == Mnemonic::Cli);
                assert!(pairs, "{name}");
            }
            Mnemonic::Swapgs => assert!(reads(Mnemonic::Rdmsr) && reads(Mnemonic::Wrmsr), "{name}"),
            Mnemonic::Invlpg => assert_eq!(first.memory_base(), Register::R14, "{name}"),
            _ => {}
        }
        seen.insert(one.case.form.clone());
    }
    for form in ["mov cr3, r64", "mov r64, dr7", "wrmsr", "sti", "swapgs", "lidt m", "wrgsbase r64"]
    {
        assert!(seen.contains(form), "{form}: {seen:?}");
    }
    // It would cut a base address.
    assert!(!seen.contains("wrfsbase r32"));
}

#[test]
fn d2_privileged_forms_are_refused_in_ring_3_and_each_says_what_it_does() {
    let job = |form: &str| {
        let text = format!("[[snippet]]\nthroughput = {form:?}\nmachine = {{ ring = 3 }}");
        file::parse(&text, "x.toml").and_then(|file| expand(&file).map(|_| ()))
    };
    for form in ["mov cr3, r64", "rdmsr", "sti"] {
        let error = job(form).unwrap_err().to_string();
        assert!(error.contains("it needs ring 0"), "{form}: {error}");
    }
    job("inc r64").unwrap();
    let text = "[[characterise]]\nall = true\nextensions = ['MSR']\n";
    let count = |text: &str| {
        let file = file::parse(text, "x.toml").unwrap();
        expand(&file).unwrap().snippets.len()
    };
    assert_eq!(count(text), 2);
    assert_eq!(count(&format!("[defaults]\nmachine = {{ ring = 3 }}\n{text}")), 0);
    let guide = include_str!("../../../../../docs/guide/forms.md");
    for does in all() {
        assert!(guide.contains(does), "{does}");
    }
}
