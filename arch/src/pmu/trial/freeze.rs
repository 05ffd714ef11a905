//! Freezing on a PMI: set, overflow, look.

use super::{Bench, INSTRUCTIONS, try_gate, window};
use crate::pmu::capabilities::{Capabilities, Counter, Fault, FreezeKind, Unfrozen};
use crate::pmu::driver::{Driver, PmuError};
use crate::pmu::numbers::DEBUGCTL;
use crate::pmu::registers::{DebugCtl, GlobalStatus};
use crate::pmu::until::{Stop, Until};
use crate::pmu::workload::Piece;

const TURNS: u64 = 400;
/// Instructions up to the PMI.
const PERIOD: u64 = 100;
/// Most instructions that a processor counts from the overflow to the freeze: its skid.
const LATE: u64 = 250;

/// Lets one counter overflow with the freeze on, and looks at where another one stopped. If that is not at the overflow, the
/// freeze is given up: handlers then stop the counters themselves.
pub(super) fn counters(bench: &mut dyn Bench, has: &mut Capabilities) {
    if has.freeze == FreezeKind::None {
        return;
    }
    if let Err(why) = tried(bench, has) {
        let _ = Driver::new(has.clone()).reset(bench);
        has.freeze = FreezeKind::None;
        has.faults.push(Fault::Freeze(why));
    }
}

fn tried(bench: &mut dyn Bench, has: &Capabilities) -> Result<(), Unfrozen> {
    let refused = |error: PmuError| Unfrozen::Refused(error);
    let clock = has.generals().find(|&counter| has.overflows(counter));
    let clock = clock.ok_or(Unfrozen::Untried)?;
    let witness = has.generals().find(|&counter| counter != clock);
    let fixed = Some(Counter::Fixed(0)).filter(|&counter| has.has(counter));
    let witness = witness.or(fixed).ok_or(Unfrozen::Untried)?;
    let mut driver = Driver::new(has.clone());
    driver.reset(bench).map_err(refused)?;
    driver.program(bench, clock, &INSTRUCTIONS.with_interrupt()).map_err(refused)?;
    driver.program(bench, witness, &INSTRUCTIONS).map_err(refused)?;
    try_gate(bench, &driver).map_err(refused)?;
    let mut until = Until::new(&driver, bench, clock, Stop::Freeze).map_err(refused)?;
    let held = DebugCtl::from_bits_retain(bench.rdmsr(DEBUGCTL).unwrap_or(0));
    if !held.contains(DebugCtl::FREEZE_PERFMON_ON_PMI) {
        return Err(Unfrozen::DoesNotHold);
    }
    driver.write(bench, witness, 0).map_err(refused)?;
    until.set(&driver, bench, PERIOD).map_err(refused)?;
    bench.run_until(&until, TURNS);
    let seen = driver.read(bench, witness).map_err(refused)?;
    let stated = window::overhead(until.gate().on().len() as u64)
        .and(Piece::Loop.counts(TURNS))
        .instructions;
    let status = driver.status(bench).map_err(refused)?;
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
    let streamlined = has.freeze == FreezeKind::Streamlined;
    if streamlined && !status.contains(GlobalStatus::COUNTERS_FROZEN) {
        return Err(Unfrozen::NoStatus);
    }
    goes_on(bench, has, &driver, &until, witness, status)
}

/// Ends the freeze as handlers do, and lets the loop run again.
fn goes_on(
    bench: &mut dyn Bench,
    has: &Capabilities,
    driver: &Driver,
    until: &Until,
    witness: Counter,
    status: GlobalStatus,
) -> Result<(), Unfrozen> {
    driver.acknowledge(bench, status).map_err(Unfrozen::Refused)?;
    driver.no_freeze(bench).map_err(Unfrozen::Refused)?;
    driver.write(bench, witness, 0).map_err(Unfrozen::Refused)?;
    bench.run(until.gate(), TURNS);
    let seen = driver.read(bench, witness).map_err(Unfrozen::Refused)?;
    let stated = window::overhead(until.gate().on().len() as u64)
        .and(Piece::Loop.counts(TURNS))
        .instructions;
    match seen.abs_diff(stated) <= stated / 8 + LATE && has.has(witness) {
        true => Ok(()),
        false => Err(Unfrozen::Stuck { seen, stated }),
    }
}
