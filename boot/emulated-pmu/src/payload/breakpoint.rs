//! A stop at an address of the guest, by debug register. The guest's own debug registers are put back afterwards.

use super::guest::Guest;
use core::arch::asm;

/// DR7: local enable of each breakpoint; all conditions and lengths zero: on execution.
const ENABLES: [u64; 4] = [1, 4, 0x10, 0x40];
/// DR7's bit that is always 1.
pub const DR7_ONE: u64 = 0x400;
/// DR6 bit 14: single step.
pub const SINGLE_STEP: u64 = 1 << 14;
/// DR6 as it is when nothing happened.
pub const DR6_IDLE: u64 = 0xffff_0ff0;

/// What the guest had.
pub struct Saved {
    addresses: [u64; 4],
    dr6: u64,
    dr7: u64,
}

/// Puts `addresses` into the debug registers. The guest must not get at them before [`restore`].
pub fn set(guest: &mut Guest, addresses: &[u64]) -> Saved {
    let saved = Saved { addresses: read(), dr6: guest.vmcb.dr6, dr7: guest.vmcb.dr7 };
    let mut own = [0; 4];
    own[..addresses.len()].copy_from_slice(addresses);
    write(own);
    guest.vmcb.dr7 = DR7_ONE | ENABLES[..addresses.len()].iter().sum::<u64>();
    guest.vmcb.dr6 = DR6_IDLE;
    saved
}

/// Gives the guest its debug registers back. Returns whether one of the addresses was hit.
pub fn restore(guest: &mut Guest, saved: Saved) -> bool {
    const HITS: u64 = 0xf;
    let happened = guest.vmcb.dr6;
    write(saved.addresses);
    // A single step is the guest's own.
    guest.vmcb.dr6 = saved.dr6 | happened & SINGLE_STEP;
    guest.vmcb.dr7 = saved.dr7;
    happened & HITS != 0
}

fn read() -> [u64; 4] {
    let (a, b, c, d): (u64, u64, u64, u64);
    // SAFETY: reads registers; at VMRUN and #VMEXIT these four stay as they are.
    unsafe {
        asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3", out(reg) a, out(reg) b, out(reg) c, out(reg) d);
    }
    [a, b, c, d]
}

fn write([a, b, c, d]: [u64; 4]) {
    // SAFETY: the hypervisor's DR7 enables none of them.
    unsafe {
        asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}", in(reg) a, in(reg) b, in(reg) c, in(reg) d);
    }
}
