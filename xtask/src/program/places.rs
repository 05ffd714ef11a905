//! Function, file and line of addresses in compiled code, put into a report.
//!
//! The report names a program by its key, and `cache` keeps the linked file under it: so a report that comes from a stick is
//! named like one of QEMU, on the machine where its image was made.

use super::cache;
use crate::collect::Report;
use crate::disassembly::unhex;
use crate::kinds;
use crate::symbols::{Frame, Symbols};
use iced_x86::{Code, Decoder, DecoderOptions, Register};
use protocol::record::{Fault, ProgramKey, Record, TaskResult};
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
        Self { find: cache::find, known: HashMap::new() }
    }
}

impl Names {
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
    fn missing(&self) -> BTreeSet<u64> {
        let missing = self.known.iter().filter(|(_, symbols)| symbols.is_none());
        missing.map(|(program, _)| program.key.0).collect()
    }

    /// Names where a fault came, and what it requested. Returns a text for people.
    fn fault(&mut self, fault: &mut Fault) -> Option<String> {
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

    fn record(&mut self, record: &mut Record) {
        match record {
            Record::Error(error) => {
                let named = error.fault.as_mut().and_then(|fault| self.fault(fault));
                error.text.extend(named);
            }
            record => {
                if let Some(result) = kinds::shown_mut(record) {
                    result.name_places(self);
                }
            }
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

/// Names what `report` says of places in compiled code. Returns what is to be said if it cannot.
pub fn name(report: &mut Report) -> Option<String> {
    name_with(&mut Names::default(), report)
}

fn name_with(names: &mut Names, report: &mut Report) -> Option<String> {
    report.records.iter_mut().for_each(|numbered| names.record(&mut numbered.record));
    let missing = names.missing();
    let keys: Vec<String> = missing.iter().map(|key| format!("{key:016x}")).collect();
    (!keys.is_empty()).then(|| {
        format!(
            "addresses in compiled code have no names: the linked file of {} is not in the build folder; `image` or `run` of \
             the same job and files puts it there",
            keys.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
