//! What made the guest leave, one file a kind.

mod apic;
mod control_registers;
mod cpuid;
mod debug_registers;
mod exceptions;
mod halt;
mod msr;
mod x2apic;

use super::guest::Guest;
use super::{events, nested_guest, nested_paging, pm_timer, processors, retire, step};
use emulated_pmu::vmcb::exit;

pub use apic::is_access as is_apic_access;
pub use control_registers::{features, is_write as is_control_write};
pub use cpuid::overlaid;
pub use exceptions::software_interrupt;

/// Handles the exit that just happened.
pub fn handle(guest: &mut Guest) {
    if nested_guest::leave::takes(guest) {
        return;
    }
    match guest.vmcb.exit_code {
        exit::CPUID => cpuid::handle(guest),
        exit::PORT => pm_timer::handle(guest),
        exit::MSR if guest.vmcb.exit_info_1 == 0 => msr::read(guest),
        exit::MSR => msr::write(guest),
        exit::RDPMC => rdpmc(guest),
        exit::PAUSE => pause(guest),
        exit::HLT => halt::handle(guest, 1),
        exit::MWAIT => halt::wait_for_write(guest),
        exit::NMI => events::take_nmi(guest),
        exit::INTR => events::take_interrupt(guest),
        exit::IRET => step::instruction(guest),
        exit::INT_N => exceptions::software_interrupt(guest),
        code @ exit::EXCEPTION..=exit::LAST_EXCEPTION => {
            exceptions::handle(guest, (code - exit::EXCEPTION) as u8);
        }
        exit::NESTED_PAGE_FAULT if apic::is_access(guest) => apic::handle(guest),
        exit::NESTED_PAGE_FAULT => {
            nested_paging::fault(guest);
        }
        exit::READ_DR0..=exit::LAST_DR => debug_registers::handle(guest),
        exit::ICEBP => exceptions::debug_instruction(guest),
        // The watched page may be elsewhere in another address space.
        exit::WRITE_CR3 => {
            step::step(guest);
            nested_paging::recheck(guest);
        }
        exit::READ_CR0..exit::WRITE_CR0 | exit::RDTSC | exit::RDTSCP => {
            nested_guest::leave::let_through(guest);
        }
        exit::WRITE_CR0 | exit::WRITE_CR4 => control_registers::write(guest),
        exit::VMRUN..=exit::SKINIT | exit::INVLPGA => nested_guest::handle(guest),
        exit::VIRTUAL_IRQ => nested_guest::merge::take_virtual_interrupt(guest),
        exit::SHUTDOWN => shutdown(guest),
        exit::INVALID if control_registers::is_write(guest) => events::general_protection(guest, 0),
        code => panic!(
            "exit {code:#x} ({:#x}, {:#x}) at {:#x}",
            guest.vmcb.exit_info_1, guest.vmcb.exit_info_2, guest.vmcb.rip
        ),
    }
}

/// PAUSE, while another processor runs: a loop that waits for it.
fn pause(guest: &mut Guest) {
    let Some(instruction) = guest.instruction() else { return };
    retire::plain(guest, None);
    guest.skip(instruction.len() as u64);
    processors::turns::give_way();
}

fn rdpmc(guest: &mut Guest) {
    const CR4_PCE: u64 = 1 << 8;
    const BYTES: u64 = 2;
    let pce = guest.vmcb.cr4 & CR4_PCE != 0;
    // Read before it is counted: it reads what the instructions in front of it have left.
    match guest.counting.peek().rdpmc_at(guest.registers.rcx as u32, guest.vmcb.cpl, pce) {
        Ok(value) => {
            retire::plain(guest, None);
            guest.set_edx_eax(value);
            guest.skip(BYTES);
        }
        Err(_) => events::general_protection(guest, 0),
    }
}

/// A triple fault: the machine resets, as it would have without us, unless it is a nested guest's.
pub fn shutdown(guest: &mut Guest) {
    if nested_guest::leave::takes_shutdown(guest) {
        return;
    }
    super::debug::line(format_args!("the guest shut down at {:#x}", guest.vmcb.rip));
    super::port::reset();
    panic!("the machine did not reset")
}
