//! RDMSR and WRMSR of the registers that the permission map names.

use crate::payload::guest::Guest;
use crate::payload::port;
use crate::payload::run::{count_one, general_protection};
use crate::payload::svm::{EFER, SVME, VM_CR, VM_HSAVE_PA};
use pmu_model::{MsrError, msr};

/// Reserved bits of EFER that QEMU's processors do not have: everything but SCE, LME, LMA, NXE, FFXSR and, hidden, SVME.
const EFER_BITS: u64 = 1 | 1 << 8 | 1 << 10 | 1 << 11 | 1 << 14;

pub(super) fn read(guest: &mut Guest) {
    count_one(guest);
    let number = guest.registers.rcx as u32;
    let value = match number {
        EFER => Some(guest.vmcb.efer & !SVME),
        VM_CR | VM_HSAVE_PA => None,
        _ => guest.pmu.read_msr(number).ok(),
    };
    match value {
        Some(value) => {
            guest.set_edx_eax(value);
            guest.skip(2);
        }
        None => general_protection(guest),
    }
}

pub(super) fn write(guest: &mut Guest) {
    // Counted with the registers as they were: the write that switches off is counted, the one that switches on is not.
    count_one(guest);
    let (number, value) = (guest.registers.rcx as u32, guest.edx_eax());
    let done = match number {
        EFER => write_efer(guest, value),
        VM_CR | VM_HSAVE_PA => false,
        _ => write_pmu(guest, number, value),
    };
    if done { guest.skip(2) } else { general_protection(guest) }
}

fn write_efer(guest: &mut Guest, value: u64) -> bool {
    const LMA: u64 = 1 << 10;
    if value & !EFER_BITS != 0 {
        return false;
    }
    guest.vmcb.efer = value & !LMA | guest.vmcb.efer & LMA | SVME;
    true
}

fn write_pmu(guest: &mut Guest, number: u32, value: u64) -> bool {
    match guest.pmu.write_msr(number, value) {
        Ok(effects) => {
            if let Some(forward) = effects.forward {
                forward_to_processor(number, forward);
            }
            for unknown in effects.replan.then(|| guest.pmu.unknown_events()).into_iter().flatten()
            {
                crate::payload::debug::line(format_args!(
                    "counter {} counts nothing: event select {:#x} is {}",
                    unknown.counter,
                    unknown.selector.0,
                    if unknown.wrong_counter { "not for this counter" } else { "unknown" }
                ));
            }
            true
        }
        Err(MsrError::NotMine { .. }) => true,
        Err(MsrError::GeneralProtection(_)) => false,
    }
}

/// Bits of a shared register that are the processor's own.
fn forward_to_processor(number: u32, value: u64) {
    if matches!(number, msr::MISC_ENABLE | msr::AMD_HWCR) {
        // SAFETY: the registers exist, the model left only bits that the guest may set.
        unsafe { port::write_msr(number, value) };
    }
}
