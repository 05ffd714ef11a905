//! What made the guest leave, one file a kind.

mod cpuid;
mod interrupts;
mod msr;

use super::guest::Guest;
use super::run::{count_one, general_protection, invalid_opcode};
use super::vmcb::exit;

/// Handles the exit that just happened.
pub fn handle(guest: &mut Guest) {
    match guest.vmcb.exit_code {
        exit::CPUID => cpuid::handle(guest),
        exit::MSR if guest.vmcb.exit_info_1 == 0 => msr::read(guest),
        exit::MSR => msr::write(guest),
        exit::RDPMC => rdpmc(guest),
        exit::HLT => interrupts::halt(guest),
        exit::NMI => interrupts::nmi(guest),
        exit::INTR => {}
        exit::IRET => interrupts::end_of_nmi(guest),
        code if code == exit::EXCEPTION + 6 => invalid_opcode(guest),
        exit::VMRUN..=exit::SKINIT => invalid_opcode(guest),
        exit::SHUTDOWN => shutdown(guest),
        code => panic!(
            "exit {code:#x} ({:#x}, {:#x}) at {:#x}",
            guest.vmcb.exit_info_1, guest.vmcb.exit_info_2, guest.vmcb.rip
        ),
    }
}

fn rdpmc(guest: &mut Guest) {
    const CR4_PCE: u64 = 1 << 8;
    count_one(guest);
    let pce = guest.vmcb.cr4 & CR4_PCE != 0;
    match guest.pmu.rdpmc_at(guest.registers.rcx as u32, guest.vmcb.cpl, pce) {
        Ok(value) => {
            guest.set_edx_eax(value);
            guest.skip(2);
        }
        Err(_) => general_protection(guest),
    }
}

/// A triple fault: the machine resets, as it would have without us.
fn shutdown(guest: &mut Guest) -> ! {
    super::debug::line(format_args!("the guest shut down at {:#x}", guest.vmcb.rip));
    // SAFETY: the keyboard controller's command to pulse the reset line.
    unsafe { super::port::write_byte(0x64, 0xfe) };
    panic!("the machine did not reset")
}
