//! The generated code, assembled and executed on a model of flags, RCX and the stack.

use super::*;
use crate::job::assemble::{Part, Source, Syntax, assemble};
use crate::job::form::catalog::{self, Entry};
use iced_x86::{Decoder, DecoderOptions, OpKind, Register};
use protocol::bits::Bits;

fn branches(bits: Bits) -> Vec<Entry> {
    let is = |entry: &Entry| entry.effects().is_ok_and(|effects| effects.branch);
    catalog::in_code_of(bits).into_iter().filter(is).collect()
}

/// Flags after a comparison of R8 = 0, R9 = 1 and R10 = 0x8000_0000, or of what 32-bit code has for them, worked out by arithmetic.
fn compared(instruction: &Instruction) -> [bool; 5] {
    let value = |register| match register {
        Register::R8D | Register::ESI => 0_u32,
        Register::R9D | Register::EDI => 1,
        Register::R10D | Register::EBP => 0x8000_0000,
        other => panic!("{other:?}"),
    };
    let (one, other) = (value(instruction.op0_register()), value(instruction.op1_register()));
    let (result, carry) = one.overflowing_sub(other);
    let overflow = (one as i32).overflowing_sub(other as i32).1;
    let parity = (result as u8).count_ones().is_multiple_of(2);
    [result == 0, parity, carry, overflow, (result as i32) < 0]
}

/// How often the form's instructions were executed, and how often taken, in one body.
fn execute(
    made: &Made,
    (code, bits): (&[u8], Bits),
    is_form: impl Fn(&Instruction) -> bool,
) -> (u32, u32) {
    let text = format!("{}\n{}", made.case, made.body);
    let mut flags = [false; 5];
    let count = made.init.lines().find_map(|line| line.strip_prefix("mov ecx, ")).unwrap();
    let mut rcx: u64 = count.parse().unwrap();
    let (mut stack, mut pointer, mut memory) = (Vec::new(), 0, 0);
    let (mut at, mut executed, mut taken, mut steps) = (0, 0, 0, 0);
    while (at as usize) < code.len() {
        let bits = bits.number().into();
        let one = Decoder::with_ip(bits, &code[at as usize..], at, DecoderOptions::NONE).decode();
        let next = one.next_ip();
        steps += 1;
        assert!(steps < 200, "{text}");
        let indirect = |pointer, memory| match one.op0_kind() {
            OpKind::Register => pointer,
            OpKind::Memory => memory,
            _ => one.near_branch_target(),
        };
        let mut to = next;
        match one.mnemonic() {
            Mnemonic::Cmp => flags = compared(&one),
            Mnemonic::Lea => pointer = one.memory_displacement64(),
            Mnemonic::Mov if one.op0_kind() == OpKind::Memory => memory = pointer,
            Mnemonic::Mov => rcx = one.immediate64(),
            Mnemonic::Call => {
                stack.push(next);
                to = indirect(pointer, memory);
            }
            Mnemonic::Ret => to = stack.pop().unwrap_or_else(|| panic!("{text}")),
            Mnemonic::Jmp => to = indirect(pointer, memory),
            Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Jcxz if rcx == 0 => {
                to = one.near_branch_target();
            }
            Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Jcxz => {}
            Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => rcx -= 1,
            _ => {}
        }
        let counts = !matches!(one.mnemonic(), Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne)
            || rcx != 0;
        let jumps = match one.flow_control() {
            FlowControl::ConditionalBranch
                if matches!(one.mnemonic(), Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Jcxz) =>
            {
                rcx == 0
            }
            FlowControl::ConditionalBranch => counts && holds(one.condition_code(), flags),
            FlowControl::Next => false,
            _ => true,
        };
        if is_form(&one) {
            executed += 1;
            taken += u32::from(jumps);
        }
        // Taken or not, a branch to the next instruction comes there.
        assert!(
            one.flow_control() != FlowControl::ConditionalBranch
                || one.near_branch_target() == next,
            "{text}"
        );
        at = to;
    }
    assert!(stack.is_empty() && at as usize == code.len(), "{text}");
    (executed, taken)
}

/// Each is executed as often as the case says, all of them taken or none, the stack is as before, and the end is reached.
fn go_where_their_form_says(bits: Bits) {
    let entries = branches(bits);
    let made: Vec<(Code, Made)> = entries
        .iter()
        .flat_map(|entry| catalog::measure(entry).made.into_iter().map(|made| (entry.code, made)))
        .collect();
    // 16 conditions in two widths, both ways, and what there is besides.
    assert!(made.len() > 70, "{}", made.len());
    let source = |text| {
        let (part, syntax) = (Part::Body, Syntax::Intel);
        Source { part, text, syntax, bits, symbols: &[] }
    };
    let texts: Vec<_> = made.iter().map(|(_, one)| source(one.body.as_str())).collect();
    let codes = assemble(&texts).unwrap_or_else(|error| panic!("{error:?}"));
    for ((code, one), bytes) in made.iter().zip(codes) {
        // The jump beside a call is `jmp rel8`, too, but never beside a form of its own.
        let (executed, taken) =
            execute(one, (&bytes, bits), |instruction| instruction.code() == *code);
        assert_eq!(executed, one.case.copies(), "{}", one.case);
        let never = one.case.form.contains("{not-taken}");
        assert_eq!(taken, if never { 0 } else { executed }, "{}\n{}", one.case, one.body);
    }
}

#[test]
fn d2_branches_go_where_their_form_says_and_come_to_the_end() {
    go_where_their_form_says(Bits::SixtyFour);
}

#[test]
fn d2_branches_of_32_bit_code_go_where_their_form_says_and_come_to_the_end() {
    go_where_their_form_says(Bits::Compatibility);
}

#[test]
fn d2_branches_are_named_with_what_stands_beside_them() {
    let entries = branches(Bits::SixtyFour);
    let names = |name: &str| -> Vec<String> {
        let entry =
            entries.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("{name}"));
        catalog::measure(entry).made.iter().map(|made| made.case.to_string()).collect()
    };
    for (form, rest) in [
        ("je rel8 {taken}", "; breaking flags"),
        ("jg rel32 {not-taken}", "; breaking flags"),
        ("jmp rel8", ""),
        ("jmp rel32", ""),
        ("jmp r64", "; with lea r64, m"),
        ("jmp m64", "; with lea r64, m + mov m64, r64"),
        ("call rel32", "; with ret + jmp rel8"),
        ("call r64", "; with lea r64, m + ret + jmp rel8"),
        ("ret", "; with call rel32 + jmp rel8"),
        ("jrcxz rel8 {taken}", ""),
        ("loop rel8 {taken}", "; with mov r32, imm32"),
    ] {
        assert_eq!(names(form), [format!("throughput: {form} (16 apart{rest})")]);
    }
    for text in ["je rel8 {taken}", "jmp rel32", "call rel32"] {
        let form: Form = text.parse().unwrap();
        assert_eq!((form.to_string().as_str(), form.encoding.is_some()), (text, true));
    }
    for (text, part) in [
        ("je rel8", "`rel8`, which is a branch that is {taken} or {not-taken}"),
        ("jmp rel8 {taken}", "which is no target of this instruction"),
        ("add rel8", "which is no target of this instruction"),
    ] {
        let error = text.parse::<Form>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
