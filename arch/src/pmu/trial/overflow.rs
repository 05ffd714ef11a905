//! The status bits that overflows leave.

use super::{INSTRUCTIONS, TrialMachine, try_gate};
use crate::pmu::capabilities::{Capabilities, Counter, Fault, STUCK};
use crate::pmu::driver::{Driver, PmuError, Selection};
use crate::pmu::registers::GlobalStatus;
use alloc::vec::Vec;

const TURNS: u64 = 400;
/// Events up to the overflow: fewer than any clock ticks in the loop.
const PERIOD: u64 = 8;

/// Every counter overflows once, with LVTPC masked. Its bit of the status must be set then, and to be clear once it has
/// been acknowledged: what samples by it would never come to an end, or never begin. Without a status register there is
/// nothing to see.
pub(super) fn each(machine: &mut dyn TrialMachine, has: &mut Capabilities) {
    if !has.has_global() {
        return;
    }
    let counters: Vec<Counter> = has.generals().chain(has.certain_fixeds()).collect();
    let found = seen(machine, has, &counters);
    for counter in counters {
        let why = match found {
            Ok([set, _]) if set & counter.bit() == 0 => "the status does not show its overflow",
            Ok([_, left]) if left & counter.bit() != 0 => STUCK,
            Ok(_) => continue,
            Err(_) => "a register refused the value that this needs",
        };
        has.no_overflow |= counter.bit();
        has.faults.push(Fault::Overflow { counter, why });
    }
}

/// The status after the overflows, and after its being acknowledged.
fn seen(
    machine: &mut dyn TrialMachine,
    has: &Capabilities,
    counters: &[Counter],
) -> Result<[u64; 2], PmuError> {
    let mut driver = Driver::new(has.clone());
    driver.reset(machine)?;
    for &counter in counters {
        let event = match counter {
            Counter::General(_) => INSTRUCTIONS,
            Counter::Fixed(_) => Selection::of(0, 0),
        };
        driver.program(machine, counter, &event.with_interrupt())?;
    }
    try_gate(machine, &driver)?;
    let status = driver.status(machine)?;
    driver.acknowledge(machine, status)?;
    for &counter in counters {
        driver.write(machine, counter, driver.preset(counter, PERIOD)?)?;
    }
    machine.run(&driver.gate(), TURNS);
    let set = driver.status(machine)?;
    driver.acknowledge(machine, set)?;
    let left = driver.status(machine)?;
    Ok([set, left].map(GlobalStatus::counters))
}
