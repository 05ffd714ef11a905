//! RDMSR and WRMSR of the registers that the permission map names.

use super::x2apic;
use crate::payload::guest::{Guest, SCE};
use crate::payload::svm::{EFER, SVME, VM_CR, VM_HSAVE_PA};
use crate::payload::system_call::SYSENTER_CS;
use crate::payload::{clock, events, ibs, nested_guest, port, retire, statistics};
use pmu_model::{Ring, Silence, msr};

/// Reserved bits of EFER that QEMU's processors do not have: everything but SCE, LME, LMA, NXE, FFXSR and, hidden, SVME.
const EFER_BITS: u64 = 1 | 1 << 8 | 1 << 10 | 1 << 11 | 1 << 14;

/// PERFEVTSEL.EN.
const ENABLE: u64 = 1 << 22;

pub(super) fn read(guest: &mut Guest) {
    let number = guest.registers.rcx as u32;
    statistics::note(|seen| seen.register(number, false));
    ibs::on_read_msr(guest, number);
    let value = match number {
        _ if guest.x2apic.has(number) => x2apic::read(guest, number),
        EFER => {
            let own = u64::from(guest.sce) | guest.svm.svme();
            Some(guest.vmcb.efer & !(SVME | SCE) | own)
        }
        // SAFETY: every x86-64 processor has it, and the guest's value is in it.
        SYSENTER_CS => Some(unsafe { port::read_msr(SYSENTER_CS) }),
        VM_CR => nested_guest::read_vm_cr(guest),
        VM_HSAVE_PA => nested_guest::read_save_area(guest),
        _ => {
            // The registers of energy and the uncore's clock go by the clock.
            guest.counting.pmu().set_time(clock::now());
            guest.counting.pmu().read_msr(number).ok()
        }
    };
    match value {
        Some(value) => {
            retire::plain(guest, None);
            guest.set_edx_eax(value);
            guest.skip(2);
        }
        None => events::general_protection(guest, 0),
    }
}

pub(super) fn write(guest: &mut Guest) {
    let (number, value) = (guest.registers.rcx as u32, guest.edx_eax());
    statistics::note(|seen| seen.register(number, true));
    if guest.x2apic.has(number) {
        return x2apic::write(guest, number, value);
    }
    if !is_allowed(guest, number, value) {
        return events::general_protection(guest, 0);
    }
    // Counted with the registers as they were: the write that switches off is counted, the one that switches on is not.
    retire::plain(guest, None);
    match number {
        EFER => write_efer(guest, value),
        // SAFETY: every x86-64 processor has it, and takes any value; the hypervisor does not use it.
        SYSENTER_CS => unsafe { port::write_msr(SYSENTER_CS, value) },
        VM_CR => nested_guest::write_vm_cr(guest, value),
        VM_HSAVE_PA => nested_guest::write_save_area(guest, value),
        _ => write_pmu(guest, number, value),
    }
    guest.skip(2);
}

/// Whether the write does not fault: one that does is not counted, and nothing must change before that is known.
fn is_allowed(guest: &mut Guest, number: u32, value: u64) -> bool {
    if guest.ring() == Ring::User {
        return false;
    }
    match number {
        EFER => {
            let svme = if nested_guest::may_enable(guest) { SVME } else { 0 };
            value & !(EFER_BITS | svme) == 0 && !guest.control().refuses_efer(value)
        }
        VM_CR => nested_guest::may_write_vm_cr(guest, value),
        VM_HSAVE_PA => nested_guest::may_write_save_area(guest, value),
        _ => !guest.counting.peek().refuses(number, value),
    }
}

fn write_efer(guest: &mut Guest, value: u64) {
    const LMA: u64 = 1 << 10;
    guest.sce = value & SCE != 0;
    guest.vmcb.efer = value & !LMA | guest.vmcb.efer & LMA | SVME;
    nested_guest::enable(guest, value & SVME != 0);
}

fn write_pmu(guest: &mut Guest, number: u32, value: u64) {
    // The uncore's clock goes by the clock, too.
    guest.counting.pmu().set_time(clock::now());
    let Ok(effects) = guest.counting.pmu().write_msr(number, value) else { return };
    guest.needs = effects.needs;
    if let Some(forward) = effects.forward {
        forward_to_processor(number, forward);
    }
    if effects.replan {
        name_unknown_events(guest);
        name_stepped_events(guest);
    }
}

/// Says what counts nothing, once for each event select.
fn name_unknown_events(guest: &mut Guest) {
    for unknown in guest.counting.peek().unknown_events() {
        let said = guest.said.contains(&unknown.selector.0);
        if said || unknown.selector.0 & ENABLE == 0 {
            continue;
        }
        guest.said.rotate_right(1);
        guest.said[0] = unknown.selector.0;
        crate::payload::debug::line(format_args!(
            "counter {} counts nothing: event select {:#x} is {}",
            unknown.counter,
            unknown.selector.0,
            match unknown.why {
                Silence::Unknown => "unknown",
                Silence::WrongCounter => "not for this counter",
                Silence::Never => "one that never happens in this machine",
                Silence::Alone => "one that counts only while event 03/82 is counted",
            }
        ));
    }
}

/// Says what is stepped although there is a plugin, once for each set of counters.
fn name_stepped_events(guest: &mut Guest) {
    let counters = guest.needs.unspread;
    if guest.plugin.is_some() && counters != 0 && !guest.said_stepped.contains(&counters) {
        guest.said_stepped.rotate_right(1);
        guest.said_stepped[0] = counters;
        crate::payload::debug::line(format_args!(
            "the guest is stepped, because of counters {counters:#x}: their thresholds need each instruction"
        ));
    }
}

/// Bits of a shared register that are the processor's own.
fn forward_to_processor(number: u32, value: u64) {
    if matches!(number, msr::MISC_ENABLE | msr::AMD_HWCR) {
        // SAFETY: the registers exist, the model left only bits that the guest may set.
        unsafe { port::write_msr(number, value) };
    }
}
