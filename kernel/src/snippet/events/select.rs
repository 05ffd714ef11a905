//! One way to count an event, in the driver's terms.

use arch::msr::Msr;
use arch::pmu::{Rings, Selection};
use events::encode::{Choice, Counters};
use events::register::EventSelect;

/// What the driver is to program, and whether the next counter takes AMD's merge event.
pub(super) fn selection(choice: &Choice) -> Result<(Selection, bool), &'static str> {
    let extra = choice.msr.map(|msr| (Msr(msr.address), msr.value));
    match choice.counters {
        Counters::General { select, merge, .. } => {
            programmable(&select)?;
            let selection = Selection {
                rings: rings(select.kernel, select.user),
                edge: select.edge,
                invert: select.invert,
                equal: select.equal,
                cmask: select.cmask,
                any_thread: select.any_thread,
                extra,
                ..Selection::of(select.event, select.wide_umask())
            };
            Ok((selection, merge))
        }
        Counters::Fixed { control, .. } | Counters::Metric { control, .. } => {
            let selection = Selection {
                rings: rings(control.kernel, control.user),
                any_thread: control.any_thread,
                extra,
                ..Selection::of(0, 0)
            };
            Ok((selection, false))
        }
    }
}

fn rings(kernel: bool, user: bool) -> Rings {
    let mut rings = Rings::empty();
    rings.set(Rings::KERNEL, kernel);
    rings.set(Rings::USER, user);
    rings
}

/// Function words can set any bit of the register. These are not for counting.
fn programmable(select: &EventSelect) -> Result<(), &'static str> {
    for (set, reason) in [
        (!select.enable, "the function word has no EN bit, so the counter would not count"),
        (select.interrupt, "the interrupt bit is for sampling, not for counting"),
        (select.pin_control, "pin control is not programmed: processors from Haswell on refuse it"),
        (
            select.in_tx || select.in_tx_checkpointed,
            "transaction qualifiers are not programmed: barecount does not switch TSX on",
        ),
        (
            select.adaptive_record || select.log_in_branches,
            "bits 34 and 35 are for PEBS and branch records, which are not used for counting",
        ),
        (select.rdpmc_user_disable, "bit 37 (RDPMC_USR_DISABLE) is not for counting"),
        (
            select.guest_only || select.host_only,
            "guest-only and host-only are not programmed: barecount runs no guest",
        ),
    ] {
        if set {
            return Err(reason);
        }
    }
    Ok(())
}
