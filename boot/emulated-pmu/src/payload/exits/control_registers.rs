//! The guest's writes to control registers that VMRUN would refuse.
//!
//! Writes to CR0 and CR4 are intercepted. Writes to CR3 are not, as kernels write it at each switch of address spaces; QEMU
//! leaves the guest at a MOV whose value has reserved bits, with the exit code of a guest that VMRUN refuses.

use crate::payload::guest::Guest;
use crate::payload::{events, nested_paging, step};
use emulated_pmu::control::{Features, Register as Written};
use iced_x86::{Instruction, Mnemonic, Register};
use pmu_model::Ring;

/// An intercepted write to CR0 or CR4.
pub(super) fn write(guest: &mut Guest) {
    if is_refused(guest) {
        return events::general_protection(guest, 0);
    }
    step::control_write(guest);
    nested_paging::recheck(guest);
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
