//! The guest's writes to control registers that VMRUN would refuse.
//!
//! Writes to CR0 and CR4 are intercepted. Writes to CR3 are not, as kernels write it at each switch of address spaces; QEMU
//! leaves the guest at a MOV whose value has reserved bits, with the exit code of a guest that VMRUN refuses.

use crate::payload::guest::Guest;
use crate::payload::plugin::Plugin;
use crate::payload::{events, nested_paging, retire, step};
use emulated_pmu::control::{Features, Register as Written, only_flags};
use iced_x86::{Instruction, Mnemonic, Register};
use pmu_model::Ring;

/// An intercepted write to CR0 or CR4.
pub(super) fn write(guest: &mut Guest) {
    if is_refused(guest) {
        return events::general_protection(guest, 0);
    }
    if !written_here(guest) {
        step::control_write(guest);
    }
    nested_paging::recheck(guest);
}

/// Does the write without a guest run of its own, where VMRUN takes the new value over with all that follows from it. That is
/// quicker by two exits: UEFI firmware writes CR4 twice and CR0 once in each of its interrupts. False, and nothing is done, where
/// the plugin has to see the instruction, or where it changes the mode.
fn written_here(guest: &mut Guest) -> bool {
    let sees = guest.needs.stepping() || guest.needs.occurrences.has_occurrences();
    // It keeps where pages lie for as long as it has the caches' mode, and such a write may be the guest's way to forget that.
    let keeps = guest.plugin.as_ref().is_some_and(Plugin::keeps_translations);
    if sees || keeps || guest.needs.branch_trap || guest.svm.runs_nested() {
        return false;
    }
    let Some(instruction) = guest.instruction() else { return false };
    let value = guest.register(instruction.op1_register());
    match written(&instruction) {
        Some(Written::Cr0) if only_flags(guest.vmcb.cr0, value) => guest.vmcb.cr0 = value,
        Some(Written::Cr4) => guest.vmcb.cr4 = value,
        _ => return false,
    }
    retire::plain(guest, None);
    guest.skip(instruction.len() as u64);
    true
}

/// Whether an exit with the code of a state that VMRUN refuses was made by a MOV to a control register.
pub fn is_write(guest: &Guest) -> bool {
    guest.instruction().is_some_and(|instruction| written(&instruction).is_some())
}

fn is_refused(guest: &mut Guest) -> bool {
    let Some(instruction) = guest.instruction() else { return false };
    // LMSW and CLTS can do nothing that VMRUN refuses.
    let Some(register) = written(&instruction) else { return false };
    let value = guest.register(instruction.op1_register());
    let features = features(guest);
    guest.ring() == Ring::User || guest.control().write(register, value, &features).is_err()
}

fn written(instruction: &Instruction) -> Option<Written> {
    match (instruction.mnemonic(), instruction.op0_register()) {
        (Mnemonic::Mov, Register::CR0) => Some(Written::Cr0),
        (Mnemonic::Mov, Register::CR3) => Some(Written::Cr3),
        (Mnemonic::Mov, Register::CR4) => Some(Written::Cr4),
        _ => None,
    }
}

/// What the guest's CPUID says.
pub fn features(guest: &mut Guest) -> Features {
    let mut leaf = |number| super::cpuid::overlaid(guest, number, 0);
    let seven = leaf(7);
    Features::new(leaf(1).ecx, (seven.ebx, seven.ecx), leaf(0x8000_0008).eax)
}
