//! The guest while nothing is counted.

use super::guest::Guest;
use super::vmcb::Intercepts;
use super::{events, exits, nested};

/// Intercepted at all times: what makes the PMU, and what a guest that is told there is no SVM must not use.
pub const ALWAYS: Intercepts = Intercepts::CPUID
    .union(Intercepts::MSR)
    .union(Intercepts::RDPMC)
    .union(Intercepts::NMI)
    .union(Intercepts::SHUTDOWN)
    .union(Intercepts::VMRUN)
    .union(Intercepts::VMMCALL)
    .union(Intercepts::VMLOAD)
    .union(Intercepts::VMSAVE)
    .union(Intercepts::STGI)
    .union(Intercepts::CLGI)
    .union(Intercepts::SKINIT);

/// Runs the guest until something of the above happens.
pub fn stay(guest: &mut Guest) {
    events::choose(guest);
    guest.vmcb.set_intercepts(ALWAYS | end_of_nmi(guest));
    guest.vmcb.exceptions = 0;
    guest.withhold_system_calls(false);
    nested::idle(guest);
    guest.enter(0);
    exits::handle(guest);
}

/// While an NMI is being handled, its IRET has to be seen.
pub fn end_of_nmi(guest: &Guest) -> Intercepts {
    if guest.nmi_blocked { Intercepts::IRET } else { Intercepts::empty() }
}
