//! The guest while nothing is counted.

use super::guest::Guest;
use super::plugin::Plugin;
use super::{breakpoint, bulk, events, exits, nested_paging, processors};
use emulated_pmu::debug_registers::Which;
use emulated_pmu::vmcb::Intercepts;

/// #DB among the exceptions.
pub const DEBUG: u32 = 1 << 1;

/// Intercepted at all times: what makes the PMU, and what a guest that is told there is no SVM must not use.
pub const ALWAYS: Intercepts = Intercepts::CPUID
    .union(Intercepts::MSR)
    .union(Intercepts::RDPMC)
    .union(Intercepts::PORT)
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
pub fn enter(guest: &mut Guest) {
    events::choose(guest);
    events::leave_for_interrupts(guest);
    guest.vmcb.set_intercepts(ALWAYS | returns(guest));
    if guest.timer.is_watched() {
        guest.vmcb.add_intercepts(Intercepts::INTR);
    }
    if processors::are_shared() {
        // Others have their turn meanwhile.
        guest.vmcb.add_intercepts(Intercepts::HLT | Intercepts::MWAIT | yields());
    }
    guest.vmcb.exceptions = 0;
    bulk::rewind_if_undelivered(guest);
    guest.withhold_system_calls(false);
    nested_paging::idle(guest);
    let placed = breakpoint::arm_guests(guest, Which::All);
    let alarm = bulk::alarm(guest, None);
    if guest.debug.is_active() {
        guest.vmcb.exceptions |= DEBUG;
        bulk::careful(guest);
        guest.enter(alarm);
        events::stop_alarm(guest);
        breakpoint::happened(guest, &placed);
        if bulk::is_debug_behind_ss(guest) {
            return events::debug_behind_ss(guest);
        }
    } else {
        guest.vmcb.exceptions &= !DEBUG;
        breakpoint::show(guest);
        guest.enter(alarm);
        events::stop_alarm(guest);
        guest.debug.set_status(guest.vmcb.dr6);
    }
    exits::handle(guest);
}

/// Who waits for another processor in a loop lets it have its turn.
pub fn yields() -> Intercepts {
    let others = processors::turns::others_run();
    if others { Intercepts::PAUSE } else { Intercepts::empty() }
}

/// While an NMI is being handled, its IRET must be seen: at once if another one waits, otherwise at the next exit, where the plugin
/// reports it. Also while a frame leads past a breakpoint of the hypervisor's.
pub fn returns(guest: &Guest) -> Intercepts {
    let reported =
        guest.plugin.as_ref().is_some_and(Plugin::sees_returns) && !guest.svm.runs_nested();
    let ends_nmi = guest.nmi_blocked && (guest.nmi_pending || !reported);
    if ends_nmi || guest.returns.are_awaited() { Intercepts::IRET } else { Intercepts::empty() }
}
