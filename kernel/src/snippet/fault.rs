//! Explaining an exception in terms of the snippet: which part, which copy, which instruction.

use super::{Emitted, Phase};
use alloc::format;
use alloc::string::{String, ToString};
use arch::call::{Cause, Trap};
use arch::trap::TrapFrame;
use core::ops::Range;
use protocol::bits::Bits;
use protocol::hex::Hex;
use protocol::job::Snippet;
use protocol::program::{Head, MESSAGE_BYTES, Segment};
use protocol::record::{Fault, Registers};

/// Longest x86 instruction (SDM vol. 2, 2.3.11).
const MAX_INSTRUCTION_BYTES: usize = 15;

/// In place of a mnemonic, for a run that took too long.
pub const TIME_LIMIT: &str = "time limit";

/// The trap in the report's form, without its place in the snippet.
#[must_use]
pub fn unknown(trap: &Trap) -> Fault {
    Fault {
        vector: trap.frame.vector as u8,
        mnemonic: match trap.cause {
            // No exception, but an INT that nobody answers.
            Cause::Exception if trap.frame.vector >= 32 => format!("INT {:#x}", trap.frame.vector),
            Cause::Exception => trap.frame.exception().mnemonic().to_string(),
            Cause::TimeLimit => TIME_LIMIT.to_string(),
        },
        error_code: trap.frame.error().map(Hex),
        part: "outside".to_string(),
        offset: None,
        copy: None,
        bytes: None,
        registers: registers(&trap.frame, trap.cr2),
        bits: bits_of(&trap.frame),
        ..Fault::default()
    }
}

/// Puts the trap into the report's form.
#[must_use]
pub fn explain(trap: &Trap, emitted: &Emitted, phase: Phase, snippet: &Snippet) -> Fault {
    let rip = trap.frame.rip;
    let mut fault = unknown(trap);
    let inside = |range: &Range<u64>| range.contains(&rip);
    let code = if inside(&emitted.init) {
        fault.offset = Some(rip - emitted.init.start);
        let (part, code) = match phase {
            Phase::Once => ("one-time-init", &snippet.setup.one_time_init),
            Phase::Measured => ("init", &snippet.init),
        };
        fault.part = part.to_string();
        code
    } else if inside(&emitted.late_init) {
        fault.part = "late-init".to_string();
        fault.offset = Some(rip - emitted.late_init.start);
        &snippet.setup.late_init
    } else if let (true, Some(call)) = (inside(&emitted.teardown), &snippet.setup.call) {
        fault.part = "teardown".to_string();
        fault.offset = Some(rip - emitted.teardown.start);
        &call.teardown
    } else if inside(&emitted.body) {
        let at = rip - emitted.body.start;
        fault.part = "body".to_string();
        fault.offset = Some(at % emitted.copy_bytes);
        fault.copy = Some(at / emitted.copy_bytes);
        if snippet.setup.call.is_some() {
            fault.part = "call".to_string();
            return fault;
        }
        &snippet.body
    } else {
        return fault;
    };
    let from = fault.offset.map_or(0, |offset| offset as usize);
    fault.bytes = Some(instruction(code, from));
    fault
}

/// The instruction at `from` and what follows, at most [`MAX_INSTRUCTION_BYTES`], in hexadecimal digits.
pub(crate) fn instruction(code: &[u8], from: usize) -> String {
    let to = code.len().min(from + MAX_INSTRUCTION_BYTES);
    hexadecimal(&code[from..to])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One sentence for people about a run that took longer than `limit_ms` milliseconds.
#[must_use]
pub fn time_limit(fault: &Fault, limit_ms: u32) -> String {
    format!("the snippet ran into its time limit of {limit_ms} ms {}", place(fault))
}

fn place(fault: &Fault) -> String {
    match (fault.offset, fault.copy) {
        _ if fault.part == PROGRAM => format!("in its program, at {}", fault.registers.rip),
        _ if fault.part == "call" => "in the call".to_string(),
        (Some(offset), Some(copy)) => format!("at byte {offset} of the body, copy {copy}"),
        (Some(offset), None) => format!("at byte {offset} of the {}", fault.part),
        _ => format!("outside the snippet, at {}", fault.registers.rip),
    }
}

/// One sentence for people.
#[must_use]
pub fn sentence(fault: &Fault) -> String {
    let place = place(fault);
    let detail = match fault.vector {
        14 => format!(", address {}", fault.registers.cr2),
        _ => String::new(),
    };
    let error = fault.error_code.map_or(String::new(), |code| format!(", error code {code}"));
    let overrun = if fault.overrun { ": its stack has overrun" } else { "" };
    let message = fault.message.as_ref().map_or(String::new(), |text| format!(": {text}"));
    format!("the snippet raised {} {place}{detail}{error}{overrun}{message}", fault.mnemonic)
}

/// The part that compiled code is.
pub const PROGRAM: &str = "program";

/// Bytes below a stack that belong to nothing: a frame that is laid out beyond them at one go would not be noticed.
const GUARD_BYTES: u64 = 1 << 20;

/// Completes the fault of an item that uses a program: where in it, what it left to be told, whether the stack, whose
/// lowest address is `stack`, has overrun. `read` gives bytes of the program, as far as it has them.
pub fn of_program<'a>(
    fault: &mut Fault,
    head: &Head,
    stack: u64,
    read: impl Fn(u64, u64) -> Option<&'a [u8]>,
) {
    let rip = fault.registers.rip.0;
    let is_code = |segment: &&Segment| segment.execute && segment.range().contains(&rip);
    if let Some(code) = head.segments.iter().find(is_code) {
        let left = code.range().end - rip;
        (fault.part, fault.program) = (PROGRAM.to_string(), Some(head.name()));
        fault.bytes = read(rip, left.min(MAX_INSTRUCTION_BYTES as u64)).map(hexadecimal);
    }
    // SDM vol. 3, 6.15: of all exceptions only #PF says an address.
    let below = stack.checked_sub(fault.registers.cr2.0);
    fault.overrun =
        fault.vector == 14 && below.is_some_and(|below| (1..=GUARD_BYTES).contains(&below));
    fault.message = head.message.and_then(|at| message(read(at, MESSAGE_BYTES)?));
}

/// The text in a program's message: a length, then bytes. `None`: it left none.
fn message(bytes: &[u8]) -> Option<String> {
    let (length, text) = bytes.split_first_chunk()?;
    let length = u64::from_le_bytes(*length).min(text.len() as u64) as usize;
    (length > 0).then(|| String::from_utf8_lossy(&text[..length]).into_owned())
}

/// Width of the interrupted code, 64 or 32.
pub(crate) fn bits_of(frame: &TrapFrame) -> u8 {
    bits(frame).number()
}

/// The same as a type.
#[must_use]
pub fn bits(frame: &TrapFrame) -> Bits {
    if arch::descriptors::is_compatibility(frame.cs) {
        Bits::Compatibility
    } else {
        Bits::SixtyFour
    }
}

/// The register file in the report's form.
#[must_use]
pub fn registers(f: &TrapFrame, cr2: u64) -> Registers {
    Registers {
        rax: Hex(f.rax),
        rbx: Hex(f.rbx),
        rcx: Hex(f.rcx),
        rdx: Hex(f.rdx),
        rsi: Hex(f.rsi),
        rdi: Hex(f.rdi),
        rbp: Hex(f.rbp),
        rsp: Hex(f.rsp),
        r8: Hex(f.r8),
        r9: Hex(f.r9),
        r10: Hex(f.r10),
        r11: Hex(f.r11),
        r12: Hex(f.r12),
        r13: Hex(f.r13),
        r14: Hex(f.r14),
        r15: Hex(f.r15),
        rip: Hex(f.rip),
        rflags: Hex(f.rflags),
        cr2: Hex(cr2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::job::{Difference, LoopCounter, Setup};
    use std::borrow::Cow;

    fn trap(rip: u64) -> Trap {
        let frame = TrapFrame { rip, vector: 14, error_code: 2, ..TrapFrame::default() };
        Trap { frame, cr2: 0x123, cause: Cause::Exception }
    }

    fn snippet() -> Snippet<'static> {
        Snippet {
            name: Cow::Borrowed("x"),
            init: Cow::Borrowed(&[1, 2]),
            body: Cow::Borrowed(&[0x10, 0x11, 0x12, 0x13]),
            unroll: 3,
            loop_count: 0,
            loop_counter: LoopCounter::R15,
            extended_state: false,
            warmup: 0,
            runs: 1,
            difference: Difference::Double,
            values: false,
            events: vec![],
            setup: Setup {
                one_time_init: Cow::Borrowed(&[3, 4]),
                late_init: Cow::Borrowed(&[5, 6]),
                ..Setup::default()
            },
        }
    }

    fn explained(rip: u64) -> Fault {
        explained_in(Phase::Measured, rip)
    }

    fn explained_in(phase: Phase, rip: u64) -> Fault {
        let snippet = snippet();
        let emitted = Emitted {
            function: 1000..2000,
            exit: 1900,
            init: 1100..1102,
            late_init: 1150..1152,
            body: 1200..1212,
            copy_bytes: 4,
            teardown: 0..0,
            closed: 0..0,
            landings: None,
        };
        explain(&trap(rip), &emitted, phase, &snippet)
    }

    #[test]
    fn a_fault_in_the_body_names_copy_and_offset() {
        let fault = explained(1206);
        assert_eq!((fault.part.as_str(), fault.copy, fault.offset), ("body", Some(1), Some(2)));
        assert_eq!(fault.bytes.as_deref(), Some("1213"));
        assert_eq!(
            sentence(&fault),
            "the snippet raised #PF at byte 2 of the body, copy 1, address 0x123, error code 0x2"
        );
    }

    #[test]
    fn x1_a_time_limit_is_told_from_an_nmi() {
        let explained = |cause| {
            let frame = TrapFrame { rip: 0xdead, vector: 2, ..TrapFrame::default() };
            let emitted = Emitted::default();
            let (init, body) = (Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..]));
            let snippet = Snippet { init, body, ..snippet() };
            explain(&Trap { frame, cr2: 0, cause }, &emitted, Phase::Measured, &snippet)
        };
        assert_eq!(explained(Cause::Exception).mnemonic, "NMI");
        let fault = explained(Cause::TimeLimit);
        assert_eq!(fault.mnemonic, TIME_LIMIT);
        let text = "the snippet ran into its time limit of 50 ms outside the snippet, at 0xdead";
        assert_eq!(time_limit(&fault, 50), text);
    }

    #[test]
    fn a_fault_in_a_program_has_its_code_its_message_and_the_stacks_end() {
        let code = Segment { address: 0x1000, bytes: 4, memory: 4, execute: true, write: false };
        let head = Head { segments: vec![code], message: Some(0x2000), key: 7, ..Head::default() };
        let left = [&8u64.to_le_bytes()[..], b"gone: 7?", &[0; 504]].concat();
        let read = |at, count: u64| match at {
            0x1002 => Some(&[0x0f, 0x0b][..count as usize]),
            0x2000 => Some(&left[..count as usize]),
            _ => None,
        };
        let of = |rip, cr2, vector| {
            let frame = TrapFrame { rip, vector, ..TrapFrame::default() };
            let mut fault = unknown(&Trap { frame, cr2, cause: Cause::Exception });
            of_program(&mut fault, &head, 0x8000, read);
            fault
        };
        let fault = of(0x1002, 0x7ff8, 14);
        assert_eq!((&*fault.part, fault.bytes.as_deref()), ("program", Some("0f0b")));
        let text = "the snippet raised #PF in its program, at 0x1002, address 0x7ff8, error code 0x0: its stack has overrun: gone: 7?";
        assert_eq!(sentence(&fault), text);
        let overruns = |cr2, vector| of(0x1002, cr2, vector).overrun;
        assert!(overruns(0x7fff, 14) && !overruns(0x8000, 14) && !overruns(0x7ff8, 13));
        assert_eq!(fault.program.map(|program| program.key), Some(Hex(7)));
        let outside = of(0x1004, 0, 6);
        assert_eq!((&*outside.part, outside.program), ("outside", None));
        assert_eq!(message(&[0; 520]), None);
        assert_eq!(message(&[0xff; 520]).map(|text| text.chars().count()), Some(512));
    }

    #[test]
    fn a_fault_in_init_and_one_elsewhere() {
        let fault = explained(1101);
        assert_eq!((fault.part.as_str(), fault.offset, fault.copy), ("init", Some(1), None));
        let fault = explained(1150);
        assert_eq!((fault.part.as_str(), fault.bytes.as_deref()), ("late-init", Some("0506")));
        let fault = explained_in(Phase::Once, 1101);
        assert_eq!((fault.part.as_str(), fault.bytes.as_deref()), ("one-time-init", Some("04")));
        let fault = explained(0xdead);
        assert_eq!(
            (fault.part.as_str(), fault.offset, fault.bytes.clone()),
            ("outside", None, None)
        );
        assert!(sentence(&fault).contains("outside the snippet, at 0xdead"));
    }
}
