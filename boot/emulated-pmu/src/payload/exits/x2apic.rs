//! RDMSR and WRMSR of the local APIC's registers in x2APIC mode: see [`emulated_pmu::x2apic`].

use crate::payload::guest::Guest;
use crate::payload::{events, lapic, port, retire};
use emulated_pmu::x2apic::{BASE, COMMAND, ID, LOGICAL, Write, X2Apic};
use pmu_model::Ring;

/// What the guest reads; `None`: #GP.
pub(super) fn read(guest: &mut Guest, number: u32) -> Option<u64> {
    if guest.ring() == Ring::User {
        return None;
    }
    if number == BASE {
        return Some(guest.x2apic.base(lapic::base()));
    }
    let offset = guest.x2apic.read(number)?;
    // The logical id follows from the other one.
    let at = if offset == LOGICAL { ID } else { offset };
    let low = guest.extended_apic.read(at, || lapic::read_as_guest(at));
    let high = if offset == COMMAND { lapic::destination() } else { 0 };
    Some(X2Apic::value(offset, low, high))
}

/// A write of the guest's.
pub(super) fn write(guest: &mut Guest, number: u32, value: u64) {
    let done = match guest.ring() {
        Ring::User => None,
        _ if number == BASE => write_base(guest, value),
        _ => write_register(guest, number, value),
    };
    match done {
        Some(()) => {
            retire::plain(guest, None);
            guest.skip(2);
        }
        None => events::general_protection(guest, 0),
    }
}

fn write_base(guest: &mut Guest, value: u64) -> Option<()> {
    let old = lapic::base();
    let new = guest.x2apic.set_base(old, value)?;
    if new != old {
        // SAFETY: every x86-64 processor has the register; the guest could have written the same to it.
        unsafe { port::write_msr(BASE, new) };
    }
    Some(())
}

fn write_register(guest: &mut Guest, number: u32, value: u64) -> Option<()> {
    match guest.x2apic.write(number, value)? {
        Write::Command(destination, command) => {
            lapic::write_as_guest(lapic::COMMAND_HIGH, destination);
            lapic::write_as_guest(lapic::COMMAND, command);
        }
        Write::Page(offset, value) if guest.extended_apic.write(offset, value) => {}
        Write::Page(offset, value) => lapic::write_as_guest(offset, value),
    }
    Some(())
}
