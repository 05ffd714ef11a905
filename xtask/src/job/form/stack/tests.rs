//! The generated code, assembled, decoded, and followed on a model of the x87 stack.

use super::*;
use crate::job::assemble::{Part, Source, Syntax, assemble};
use crate::job::form::catalog::{self, Entry};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};
use protocol::bits::Bits;

/// Registers by their own number, with the top.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Model {
    top: i32,
    full: [bool; 8],
}

impl Model {
    fn at(&mut self, index: i32) -> &mut bool {
        &mut self.full[(self.top + index).rem_euclid(8) as usize]
    }

    fn execute(&mut self, instruction: &Instruction, text: &str) {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let frees = instruction.mnemonic() == Mnemonic::Ffree;
        for index in 0..instruction.op_count() {
            let register = instruction.op_register(index);
            let reads = !matches!(info.op_access(index), OpAccess::Write | OpAccess::None);
            if register.is_st() && reads && !frees {
                assert!(*self.at(register.number() as i32), "{text}: {register:?} is empty");
            }
        }
        if frees {
            *self.at(instruction.op0_register().number() as i32) = false;
        }
        let info = instruction.fpu_stack_increment_info();
        let turns = matches!(instruction.mnemonic(), Mnemonic::Fincstp | Mnemonic::Fdecstp);
        if !info.writes_top() || turns {
            self.top += if info.writes_top() { info.increment() } else { 0 };
            return;
        }
        for _ in 0..info.increment() {
            assert!(*self.at(0), "{text}: nothing to pop");
            *self.at(0) = false;
            self.top += 1;
        }
        for _ in info.increment()..0 {
            self.top -= 1;
            assert!(!*self.at(0), "{text}: no room for a push");
            *self.at(0) = true;
        }
        self.top = self.top.rem_euclid(8);
    }
}

fn moving() -> Vec<Entry> {
    let moves = |entry: &Entry| {
        let mut instruction = Instruction::default();
        instruction.set_code(entry.code);
        instruction.fpu_stack_increment_info().writes_top()
    };
    catalog::all().into_iter().filter(moves).collect()
}

/// Three copies of each body: nothing is pushed onto a full register or popped from an empty one, and the stack is as it
/// was.
#[test]
fn d2_pushes_and_pops_are_balanced() {
    let made: Vec<Made> = moving().iter().flat_map(|entry| catalog::measure(entry).made).collect();
    let source = |text| {
        let (part, syntax, bits) = (Part::Body, Syntax::Intel, Bits::SixtyFour);
        Source { part, text, syntax, bits, symbols: &[] }
    };
    let texts: Vec<_> = made.iter().map(|one| source(one.body.as_str())).collect();
    let codes = assemble(&texts).unwrap_or_else(|error| panic!("{error:?}"));
    let mut seen = std::collections::BTreeSet::new();
    for (one, code) in made.iter().zip(codes) {
        let text = format!("{}\n{}", one.case, one.body);
        let mut model = Model { top: 0, full: [false; 8] };
        for _ in 0..one.init.lines().filter(|line| *line == "fld1").count() {
            model.top -= 1;
            *model.at(0) = true;
        }
        model.top = model.top.rem_euclid(8);
        let start = model;
        let code = code.repeat(3);
        for instruction in Decoder::new(64, &code, DecoderOptions::NONE) {
            model.execute(&instruction, &text);
        }
        model.top = model.top.rem_euclid(8);
        let turned = ["fincstp", "fdecstp", "fninit", "finit"].contains(&one.case.form.as_str());
        assert!(turned || model == start, "{text}");
        seen.insert(one.case.form.clone());
    }
    assert!(seen.len() > 45, "{} {seen:?}", seen.len());
}

#[test]
fn d2_what_stands_beside_a_push_or_a_pop_is_named() {
    let all = catalog::all();
    let of = |name: &str| catalog::measure(all.iter().find(|entry| entry.name == name).unwrap());
    let names = |name: &str| -> Vec<String> {
        of(name).made.iter().map(|made| made.case.to_string()).collect()
    };
    assert_eq!(names("fld1"), ["throughput: fld1 (8 apart; with ffree st + fincstp)"]);
    assert_eq!(
        names("fld m64"),
        [
            "latency: fld m64 (memory -> st0; back: fstp m64)",
            "throughput: fld m64 (8 apart; with ffree st + fincstp)"
        ]
    );
    assert_eq!(
        names("faddp st, st0"),
        [
            "latency: faddp st, st0 (1 -> 1; breaking st0)",
            "throughput: faddp st, st0 (6 apart; with fld1)"
        ]
    );
    assert_eq!(names("fucompp"), ["throughput: fucompp (8 apart; with fld1 + fld1)"]);
    assert_eq!(names("fincstp"), ["throughput: fincstp (8 apart)"]);
    assert_eq!(
        names("fxch st0, st"),
        ["latency: fxch st0, st (st0 -> 2)", "throughput: fxch st0, st (7 apart)"]
    );
    // Each needs the last one's result, so there is no throughput.
    let missing = of("fxtract").missing;
    assert!(missing.iter().any(|one| one.reason.contains("left on the x87 stack")), "{missing:?}");
    // A number that is none would be slower.
    let stored = |name: &str, low: &str, high: &str| {
        let stores = format!("mov dword ptr [rcx], {low}\nmov dword ptr [rcx + 4], {high}\n");
        let init = &of(name).made[0].init;
        // Both where nothing writes to and where the operands are.
        assert_eq!(init.matches(&stores).count(), 2, "{name}: {init}");
    };
    stored("fld m64", "0x0", "0x3ff00000");
    stored("fadd m32", "0x3f800000", "0x3f800000");
    stored("fild m64", "0x1", "0x0");
}
