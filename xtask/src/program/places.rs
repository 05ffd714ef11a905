//! Function, file and line of addresses in compiled code.
//!
//! The report names a program by its key, and `cache` keeps the linked file under it: so a report that comes from a stick is
//! named like one of QEMU, on the machine where its image was made.

use super::cache;
use crate::disassembly::unhex;
use crate::symbols::{Frame, Symbols};
use iced_x86::{Code, Decoder, DecoderOptions, Register};
use protocol::program::ProgramKey;
use protocol::record::{Fault, TaskResult};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// The part of a fault that came in compiled code.
const PROGRAM: &str = "program";

/// The names of programs, read when they are first wanted.
pub struct Names {
    find: fn(u64) -> Option<PathBuf>,
    /// `None`: the linked file is not here.
    known: HashMap<ProgramKey, Option<Symbols>>,
}

impl Default for Names {
    fn default() -> Self {
        Self::found_by(cache::find)
    }
}

impl Names {
    /// With another way to find the linked file of a program by its key.
    pub(crate) fn found_by(find: fn(u64) -> Option<PathBuf>) -> Self {
        Self { find, known: HashMap::new() }
    }

    /// What is at `address` of a program.
    pub fn at(&mut self, program: ProgramKey, address: u64) -> Option<Frame> {
        self.symbols(program)?.at(address.wrapping_sub(program.bias.0))
    }

    /// The linked file of a program.
    pub fn symbols(&mut self, program: ProgramKey) -> Option<&Symbols> {
        let find = self.find;
        let read = || find(program.key.0).map(|path| Symbols::of(&path));
        self.known.entry(program).or_insert_with(read).as_ref()
    }

    /// Keys of the programs that were requested and are not here.
    pub(crate) fn missing(&self) -> BTreeSet<u64> {
        let missing = self.known.iter().filter(|(_, symbols)| symbols.is_none());
        missing.map(|(program, _)| program.key.0).collect()
    }

    /// Names where a fault came, and what it requested. Returns a text for people.
    pub(crate) fn fault(&mut self, fault: &mut Fault) -> Option<String> {
        let program = fault.program.filter(|_| fault.part == PROGRAM)?;
        let frame = self.at(program, fault.registers.rip.0)?;
        let function = frame.function?;
        let mut text = format!(": in `{function}`");
        if let Some(location) = &frame.location {
            text += &format!(", {location}");
        }
        text.extend(asked(fault).map(|what| format!("; {what}")));
        (fault.function, fault.location) = (Some(function), frame.location);
        Some(text)
    }

    /// Names where faults of tasks came.
    pub(crate) fn tasks(&mut self, results: &mut [TaskResult]) {
        for fault in results.iter_mut().filter_map(|result| result.fault.as_mut()) {
            self.fault(fault);
        }
    }
}

/// What a program requested that nobody gives it here. Before the boot only code is looked through that is reached by addresses
/// in the program: what is computed shows at its fault.
fn asked(fault: &Fault) -> Option<String> {
    if fault.vector >= 32 {
        // In ring 0 the interrupt comes through, and its instruction is over.
        return Some(system_call(&format!("int {:#x}", fault.vector)));
    }
    let bytes = unhex(fault.bytes.as_deref()?)?;
    let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    let call = match instruction.code() {
        Code::Syscall => "syscall".to_string(),
        Code::Sysenter => "sysenter".to_string(),
        Code::Int_imm8 => format!("int {:#x}", instruction.immediate8()),
        Code::Ud2 => return Some("it aborted there (ud2)".to_string()),
        _ if instruction.segment_prefix() == Register::FS => {
            return Some("thread-local storage, which does not exist".to_string());
        }
        _ => return None,
    };
    Some(system_call(&call))
}

fn system_call(instruction: &str) -> String {
    format!("{instruction} is a system call, and there is no operating system")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What computed code requests is not found before the boot; its fault says so.
    #[test]
    fn a_fault_says_what_the_program_asked_for_that_nobody_gives_it() {
        let of = |bytes: &str| {
            asked(&Fault { bytes: Some(bytes.into()), ..Fault::default() }).unwrap_or_default()
        };
        for (bytes, expected) in [
            ("0f05c3", "syscall is a system call, and there is no operating system"),
            ("cd80c3", "int 0x80 is a system call"),
            ("0f34", "sysenter is a system call"),
            ("0f0bc3", "it aborted there (ud2)"),
            ("64488b042500000000", "thread-local storage, which does not exist"),
        ] {
            assert!(of(bytes).starts_with(expected), "{bytes}: {}", of(bytes));
        }
        let through = Fault { vector: 0x80, bytes: Some("c3".into()), ..Fault::default() };
        assert!(asked(&through).unwrap().starts_with("int 0x80 is a system call"));
        assert_eq!([of("488b00"), of("zz"), of("")], ["", "", ""]);
    }
}
