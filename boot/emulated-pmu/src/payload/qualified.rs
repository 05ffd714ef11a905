//! What passes the qualifiers, of what the hypervisor itself sees.

use super::guest::Guest;
use emulated_pmu::step::{self, Kind};
use iced_x86::Instruction;
use pmu_model::Delta;

/// Whether counters are qualified, and an instruction holds the checks that do not depend on its accesses.
pub fn takes(guest: &Guest, instruction: &Instruction) -> bool {
    guest.needs.qualified
        && guest.counting.qualifiers().takes(instruction.ip(), instruction.mnemonic() as u16)
}

/// Whether an instruction passes whose accesses are not looked at: one that is emulated.
pub fn passes_alone(guest: &Guest, instruction: &Instruction) -> bool {
    takes(guest, instruction) && !guest.counting.qualifiers().checks_data()
}

/// A repeated string instruction is done: it passes if one of its accesses did.
pub fn end_string(guest: &mut Guest, instruction: &Instruction, takes: bool, passed: &mut Delta) {
    if !matches!(step::kind(instruction), Kind::Repeated(_)) {
        return;
    }
    let touched = core::mem::take(&mut guest.string_touched);
    let by_data = guest.counting.qualifiers().checks_data();
    passed.instructions = (takes && (touched || !by_data)).into();
}
