//! Freezing on a PMI: set, overflow, look.

use super::{INSTRUCTIONS, TrialMachine, try_gate, window};
use crate::pmu::capabilities::{Capabilities, Counter, Fault, FreezeKind, Unfrozen};
use crate::pmu::driver::{Driver, PmuError};
use crate::pmu::numbers::DEBUGCTL;
use crate::pmu::registers::{DebugCtl, GlobalStatus};
use crate::pmu::stop_on_overflow::{Stop, StopOnOverflow};
use crate::pmu::workload::Ring0Code;

const TURNS: u64 = 400;
/// Instructions up to the PMI.
const PERIOD: u64 = 100;
/// Most instructions that a processor counts from the overflow to the freeze: its skid.
const LATE: u64 = 250;

/// Lets one counter overflow with the freeze on, and looks at where another one stopped. If that is not at the overflow, the
/// freeze is given up: handlers then stop the counters themselves.
pub(super) fn counters(machine: &mut dyn TrialMachine, has: &mut Capabilities) {
    if has.freeze == FreezeKind::None {
        return;
    }
    if let Err(why) = tried(machine, has) {
        let _ = Driver::new(has.clone()).reset(machine);
        has.freeze = FreezeKind::None;
        has.faults.push(Fault::Freeze(why));
    }
}

fn tried(machine: &mut dyn TrialMachine, has: &Capabilities) -> Result<(), Unfrozen> {
    let refused = |error: PmuError| match error {
        PmuError::Freeze { .. } => Unfrozen::DoesNotHold,
        other => Unfrozen::Refused(other),
    };
    let clock = has.generals().find(|&counter| has.overflows(counter));
    let clock = clock.ok_or(Unfrozen::Untried)?;
    let witness = has.generals().find(|&counter| counter != clock);
    let fixed = Some(Counter::Fixed(0)).filter(|&counter| has.has(counter));
    let witness = witness.or(fixed).ok_or(Unfrozen::Untried)?;
    let mut driver = Driver::new(has.clone());
    driver.reset(machine).map_err(refused)?;
    driver.program(machine, clock, &INSTRUCTIONS.with_interrupt()).map_err(refused)?;
    driver.program(machine, witness, &INSTRUCTIONS).map_err(refused)?;
    try_gate(machine, &driver).map_err(refused)?;
    let mut on_overflow =
        StopOnOverflow::new(&driver, machine, clock, Stop::Freeze).map_err(refused)?;
    let held = DebugCtl::from_bits_retain(machine.rdmsr(DEBUGCTL).unwrap_or(0));
    if !held.contains(DebugCtl::FREEZE_PERFMON_ON_PMI) {
        return Err(Unfrozen::DoesNotHold);
    }
    driver.write(machine, witness, 0).map_err(refused)?;
    on_overflow.set(&driver, machine, PERIOD).map_err(refused)?;
    machine.run_until(&on_overflow, TURNS);
    let seen = driver.read(machine, witness).map_err(refused)?;
    let stated = window::overhead(on_overflow.gate().on().len() as u64)
        .and(Ring0Code::Loop.counts(TURNS))
        .instructions;
    let status = driver.status(machine).map_err(refused)?;
    at_the_overflow(seen, stated)?;
    let streamlined = has.freeze == FreezeKind::Streamlined;
    if streamlined && !status.contains(GlobalStatus::COUNTERS_FROZEN) {
        return Err(Unfrozen::NoStatus);
    }
    goes_on(machine, has, &driver, &on_overflow, witness, status)
}

/// Whether a witness that saw so many instructions stood still from the overflow on, where the code has `stated`.
fn at_the_overflow(seen: u64, stated: u64) -> Result<(), Unfrozen> {
    let period = PERIOD;
    if seen + LATE / 2 >= stated {
        return Err(Unfrozen::Ignored { seen, period });
    }
    if seen > PERIOD + LATE {
        return Err(Unfrozen::Late { seen, period });
    }
    // The clock may stop short of what it counted by its own skid, never the witness.
    if seen + 1 < PERIOD {
        return Err(Unfrozen::Early { seen, period });
    }
    Ok(())
}

/// Ends the freeze as handlers do, and lets the loop run again.
fn goes_on(
    machine: &mut dyn TrialMachine,
    has: &Capabilities,
    driver: &Driver,
    on_overflow: &StopOnOverflow,
    witness: Counter,
    status: GlobalStatus,
) -> Result<(), Unfrozen> {
    driver.acknowledge(machine, status).map_err(Unfrozen::Refused)?;
    driver.no_freeze(machine).map_err(Unfrozen::Refused)?;
    driver.write(machine, witness, 0).map_err(Unfrozen::Refused)?;
    machine.run(on_overflow.gate(), TURNS);
    let seen = driver.read(machine, witness).map_err(Unfrozen::Refused)?;
    let stated = window::overhead(on_overflow.gate().on().len() as u64)
        .and(Ring0Code::Loop.counts(TURNS))
        .instructions;
    match has.has(witness) {
        true => all_of_it(seen, stated),
        false => Err(Unfrozen::Stuck { seen, stated }),
    }
}

/// Whether the counters continued, as near as any may be to what the code has.
fn all_of_it(seen: u64, stated: u64) -> Result<(), Unfrozen> {
    match seen.abs_diff(stated) <= stated / 8 + LATE {
        true => Ok(()),
        false => Err(Unfrozen::Stuck { seen, stated }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period of 100, 250 for a skid: from 99 to 350 instructions, of a loop that has 2,000.
    #[test]
    fn t7_a_freeze_is_believed_between_these_counts() {
        let period = PERIOD;
        for seen in [99, 100, 101, 350] {
            assert_eq!(at_the_overflow(seen, 2_000), Ok(()), "{seen}");
        }
        for seen in [0, 1, 98] {
            assert_eq!(at_the_overflow(seen, 2_000), Err(Unfrozen::Early { seen, period }));
        }
        for seen in [351, 1_874] {
            assert_eq!(at_the_overflow(seen, 2_000), Err(Unfrozen::Late { seen, period }));
        }
        for seen in [1_875, 2_000, 9_000] {
            assert_eq!(at_the_overflow(seen, 2_000), Err(Unfrozen::Ignored { seen, period }));
        }
        // What continued: an eighth and a skid off at most.
        for seen in [1_500, 2_000, 2_500] {
            assert_eq!(all_of_it(seen, 2_000), Ok(()), "{seen}");
        }
        for seen in [0, 1_499, 2_501] {
            assert_eq!(all_of_it(seen, 2_000), Err(Unfrozen::Stuck { seen, stated: 2_000 }));
        }
    }
}
