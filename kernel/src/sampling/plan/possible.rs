//! Whether a counter can be set back by a period.

use super::{Armed, MIN_PERIOD};
use crate::sampling::{Sampler, ibs};
use alloc::format;
use alloc::string::{String, ToString};
use arch::pmu::errata::Limit;
use arch::pmu::{Capabilities, Fault, Rings};

/// The longest way to an overflow that 32 bits tell, sign-extended (Linux, `ARCH_PEBS_RELOAD`).
const LONGEST_RELOAD: u64 = 1 << 31;

/// What an erratum says about the counter's distance from its overflow, if it does not work.
pub(super) fn limit(has: &Capabilities, one: &Armed) -> Option<(&'static str, Limit)> {
    let event = (one.selection.event, one.selection.umask);
    has.errata.iter().find_map(|row| Some((row.id, row.spoils_period(event, one.distance())?)))
}

/// Whether no erratum of the processor is about such a period. The emulated PMU has none.
pub(super) fn within_errata(has: &Capabilities, one: &Armed) -> Result<(), String> {
    let Some((id, Limit { least, step, .. })) = limit(has, one) else { return Ok(()) };
    let more = u64::from(one.selection.precise);
    let steps = if step > 1 { format!(", in steps of {step}") } else { String::new() };
    Err(format!(
        "a period of {} does not work on this processor ({id}): of this event at least {}{steps}",
        one.period,
        least + more
    ))
}

/// Whether the counter can be set back by the period, and anything is left to run in it.
pub(super) fn possible(machine: &mut impl Sampler, one: &Armed) -> Result<(), String> {
    let emulated = machine.has_emulated_pmu();
    let mut pmu = machine.pmu()?;
    if let Some(ibs_event) = one.ibs {
        let entry = ibs::possible(&mut pmu, ibs_event, one.period)?;
        return ibs::has_entry(machine, entry);
    }
    if one.period < MIN_PERIOD && one.selection.rings.contains(Rings::KERNEL) {
        return Err(format!(
            "a period of {} is too short: the handler's own end would fill it; in ring 0 at least {MIN_PERIOD} are needed",
            one.period
        ));
    }
    let has = pmu.driver.capabilities();
    if !emulated {
        within_errata(has, one)?;
    }
    if one.selection.interrupt && !has.overflows(one.counter) {
        let known = has.faults.iter().find(
            |fault| matches!(fault, Fault::Overflow { counter, .. } if *counter == one.counter),
        );
        return Err(known.map_or_else(
            || format!("{} cannot interrupt at its overflow", one.counter),
            ToString::to_string,
        ));
    }
    let least = 1 + u64::from(one.selection.precise);
    if one.period < least {
        return Err(format!("a period of {} is too short: at least {least} is needed", one.period));
    }
    if one.selection.precise && has.architectural_pebs.is_some() && one.distance() > LONGEST_RELOAD
    {
        return Err(format!(
            "a period of {} is too long: what a counter goes on from behind a record of architectural PEBS has 32 bits, so {} is the longest",
            one.period,
            LONGEST_RELOAD + 1
        ));
    }
    pmu.driver.preset(one.counter, one.distance()).map(|_| ()).map_err(|error| error.to_string())
}
