//! The machine code of a job's items, for whoever reads the report.

use super::super::Packed;
use crate::disassembly::hex;
use crate::symbols::Symbols;
use protocol::bits::Bits;
use protocol::hex::Hex;
use protocol::job::workload::Workload;
use protocol::job::{Item, Setup, Snippet};
use serde::{Deserialize, Serialize};

/// Bytes of one part that are kept.
const MAX_BYTES: usize = 4096;

/// A piece of an item's code.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AboutCode {
    /// Which: `body`, `init`, …, `function NAME`; of tasks with the task's name in front.
    pub part: String,
    /// The address of its first byte; 0 for what is position independent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub address: Hex,
    /// 32 or 64.
    pub bits: u8,
    /// The code, hexadecimal.
    pub bytes: String,
    /// There is more of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(address: &Hex) -> bool {
    address.0 == 0
}

fn part(all: &mut Vec<AboutCode>, name: String, address: u64, bits: Bits, code: &[u8]) {
    if code.is_empty() {
        return;
    }
    let kept = &code[..code.len().min(MAX_BYTES)];
    let (address, bits, cut) = (Hex(address), bits.number(), kept.len() < code.len());
    all.push(AboutCode { part: name, address, bits, bytes: hex(kept), cut });
}

impl Packed {
    /// The code of an item, its parts in the order in which they run.
    pub(super) fn code_of(&self, item: &Item) -> Vec<AboutCode> {
        let mut all = Vec::new();
        if let Some(snippet) = item.part().snippet() {
            self.snippet(&mut all, snippet);
        }
        if let Some(workload) = item.part().workload() {
            self.workload(&mut all, workload);
        }
        all
    }

    fn snippet(&self, all: &mut Vec<AboutCode>, one: &Snippet) {
        let Setup { one_time_init, late_init, bits, call, .. } = &one.setup;
        if let Some(call) = call {
            self.function(all, call.program, call.function);
            return;
        }
        for (name, code) in [
            ("one-time-init", one_time_init),
            ("init", &one.init),
            ("late-init", late_init),
            ("body", &one.body),
        ] {
            part(all, name.to_string(), 0, *bits, code);
        }
    }

    fn workload(&self, all: &mut Vec<AboutCode>, workload: &Workload) {
        for task in &workload.tasks {
            for (name, code) in [("init", &task.init), ("body", &task.body)] {
                part(all, format!("{}, {name}", task.name), 0, task.bits, code);
            }
        }
    }

    /// The function of a program, as its symbol has it.
    fn function(&self, all: &mut Vec<AboutCode>, program: u16, address: u64) {
        let Some(linked) = self.programs.get(usize::from(program)) else { return };
        let symbols = Symbols::of(&linked.path);
        let Some(code) = symbols.function(address.wrapping_sub(linked.bias)) else { return };
        let name = symbols.at(code.start).and_then(|frame| frame.function);
        let name = name.unwrap_or_else(|| "function".to_string());
        part(all, name, code.start.wrapping_add(linked.bias), Bits::SixtyFour, &code.bytes);
    }
}
