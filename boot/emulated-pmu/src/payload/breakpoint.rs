//! The processor's debug registers: for each guest run the guest's breakpoints, and the hypervisor's own in addition to them. The guest
//! itself gets at them only to read them, while there is no breakpoint ([`show`]); its other accesses are intercepted.

use super::guest::Guest;
use core::arch::asm;
use emulated_pmu::debug_registers::{COUNT, DR6_IDLE, DR7_ONE, Placed, Which};

/// What was written to DR0 to DR3 last.
static mut LOADED: Option<[u64; COUNT]> = None;
/// Intercepts of reads: the lower half, by number.
const READS: u32 = 0xffff;

/// Places the guest's `which`, and breakpoints on the instructions at `own`. `None`, and nothing is changed, if they are
/// too many.
pub fn arm(guest: &mut Guest, own: &[u64], which: Which) -> Option<Placed> {
    // The usual case, in every exit: it must be quick, as it takes the guest's time.
    if own.is_empty() && !guest.debug.is_active() {
        (guest.vmcb.dr7, guest.vmcb.dr6) = (DR7_ONE, DR6_IDLE);
        return Some(Placed::default());
    }
    let placed = guest.debug.place(own, which)?;
    write(placed.addresses);
    guest.vmcb.dr7 = DR7_ONE | placed.dr7;
    guest.vmcb.dr6 = DR6_IDLE;
    Some(placed)
}

/// For a guest run without any breakpoints: the processor's registers are the guest's own, which it may read.
pub fn show(guest: &mut Guest) {
    let own = core::array::from_fn(|number| guest.debug.read(number));
    // SAFETY: one processor, which runs the hypervisor now.
    if unsafe { LOADED } != Some(own) {
        write(own);
    }
    // Its own single steps are the processor's matter.
    (guest.vmcb.dr6, guest.vmcb.dr7) = (guest.debug.read(6), guest.debug.read(7));
    guest.vmcb.dr_intercepts &= !READS;
}

/// Places the guest's `which` alone, for which there is always room.
pub fn arm_guests(guest: &mut Guest, which: Which) -> Placed {
    arm(guest, &[], which).unwrap_or_default()
}

/// The stay is over: notes in [`Guest::happened`] what the guest's own breakpoints and steps have to say of it. Returns
/// whether it ended at one of the hypervisor's.
pub fn happened(guest: &mut Guest, placed: &Placed) -> bool {
    let happened = placed.happened(guest.vmcb.dr6);
    guest.happened = happened.bits;
    happened.own
}

/// DR0 to DR3.
pub fn read() -> [u64; COUNT] {
    let (a, b, c, d): (u64, u64, u64, u64);
    // SAFETY: reads registers; at VMRUN and #VMEXIT these four stay as they are.
    unsafe {
        asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3", out(reg) a, out(reg) b, out(reg) c, out(reg) d);
    }
    [a, b, c, d]
}

fn write(addresses: [u64; COUNT]) {
    // SAFETY: one processor, which runs the hypervisor now.
    unsafe { LOADED = Some(addresses) };
    let [a, b, c, d] = addresses;
    // SAFETY: the hypervisor's DR7 enables none of them.
    unsafe {
        asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}", in(reg) a, in(reg) b, in(reg) c, in(reg) d);
    }
}
