//! What the announced PMU really does, tried once before anything is measured.
//!
//! CPUID is a promise, and registers that hold values are not proof: there are hypervisors and emulators whose counters
//! stand still, whose freeze bits do nothing or raise #GP, whose status bits never clear. So each counter counts a loop
//! whose instructions are known, each event that a loop can raise is counted once, each counter overflows once, and once
//! the counters are to freeze. What fails is given up, with the reason ([`Fault`]), and everything after this goes
//! without it.
//!
//! | window | turns of `dec; jnz` | what is tried |
//! | --- | --- | --- |
//! | `count` | 1,000 | every counter, general-purpose ones with instructions |
//! | `count` | 1,000 and 16 | cycles, reference cycles, slots; branches |
//! | `overflow` | 400 | every counter's status bit: set, and cleared |
//! | `freeze` | 400, and again to see them continue | freezing on a PMI |

mod count;
mod freeze;
mod overflow;

use super::access::Registers;
use super::capabilities::{Capabilities, Counter, Fault, Wrong};
use super::driver::{Driver, Gate, PmuError, Selection};
use super::probe::Missing;
use super::stop_on_overflow::{self, StopOnOverflow};
use super::workload::{Counts, Ring0Code};
use super::{Machine, window};
use alloc::vec::Vec;

/// A machine on which a PMU is tried.
pub trait TrialMachine: Registers {
    /// Runs [`Ring0Code::Loop`] with so many turns while `gate` is open, as [`window`] does. Interrupts are off, and LVTPC is
    /// masked.
    fn run(&mut self, gate: &Gate, turns: u64);

    /// The same while the interrupt of `until` may come.
    fn run_until(&mut self, on_overflow: &StopOnOverflow, turns: u64);
}

impl TrialMachine for Machine {
    fn run(&mut self, gate: &Gate, turns: u64) {
        // SAFETY: ring 0; the gate is a driver's, which has made these writes before; the piece takes its turns in RDI.
        unsafe { window::run(gate, Ring0Code::Loop.address(), [turns, 0]) };
    }

    fn run_until(&mut self, on_overflow: &StopOnOverflow, turns: u64) {
        // SAFETY: ring 0, interrupt table loaded, and nobody else uses the PMU (`Machine::new`).
        unsafe {
            stop_on_overflow::install(on_overflow);
            stop_on_overflow::allow();
            window::run(on_overflow.gate(), Ring0Code::Loop.address(), [turns, 0]);
            stop_on_overflow::uninstall();
        }
    }
}

/// Retired instructions, everywhere.
const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);

/// How often something is tried before it is given up: a system management interrupt, or whatever a hypervisor does in
/// between, may come into one attempt.
const ATTEMPTS: u32 = 3;

/// Tries the PMU that [`super::find`] found. Returns what of it can be used; [`Capabilities::faults`] says what cannot.
/// Leaves everything stopped, and LVTPC masked.
///
/// # Errors
/// No counter counts.
pub fn run(
    announced: &Capabilities,
    machine: &mut dyn TrialMachine,
) -> Result<Capabilities, Missing> {
    let mut has = announced.clone();
    present(machine, &mut has);
    count::counters(machine, &mut has);
    if has.general == 0 {
        return Err(nothing(&has));
    }
    rdpmc(machine, &mut has);
    count::events(machine, &mut has);
    overflow::each(machine, &mut has);
    freeze::counters(machine, &mut has);
    // What never lets go of a freeze has taken all counters with it.
    if has.faults.iter().any(|fault| matches!(fault, Fault::Freeze(_))) {
        count::counters(machine, &mut has);
        if has.general == 0 {
            return Err(nothing(&has));
        }
    }
    let _ = Driver::new(has.clone()).reset(machine);
    Ok(has)
}

/// Why no counter is left.
fn nothing(has: &Capabilities) -> Missing {
    let first = has.faults.iter().find_map(|fault| match *fault {
        Fault::Counter { counter: counter @ Counter::General(_), why } => Some((counter, why)),
        _ => None,
    });
    match first {
        Some((counter, why)) => Missing::Unreliable { counter, why },
        None => Missing::NotAnnounced,
    }
}

impl Capabilities {
    /// Gives a counter up.
    fn give_up(&mut self, counter: Counter, why: Wrong) {
        match counter {
            Counter::General(n) => self.general &= !(1 << n),
            Counter::Fixed(n) => self.fixed &= !(1 << n),
        }
        self.faults.push(Fault::Counter { counter, why });
    }
}

/// Bits below 31, so that a legacy write's sign extension does not change them; then none.
const PATTERNS: [u64; 2] = [0x2a5a_5a5a, 0];

/// Every counter has to take 0 in its event select, and to hold what is written to it.
fn present(machine: &mut dyn TrialMachine, has: &mut Capabilities) {
    let driver = Driver::new(has.clone());
    for counter in has.counters().collect::<Vec<_>>() {
        if let Err(why) = holds(machine, &driver, counter) {
            has.give_up(counter, why);
        }
    }
}

fn holds(machine: &mut dyn TrialMachine, driver: &Driver, counter: Counter) -> Result<(), Wrong> {
    if let Counter::General(n) = counter {
        let select = driver.layout().select(n);
        machine.rdmsr(select).map_err(|_| Wrong::Refused(PmuError::Read(select)))?;
        let refused = Wrong::Refused(PmuError::Write { msr: select, value: 0 });
        machine.wrmsr(select, 0).map_err(|_| refused)?;
    }
    for written in PATTERNS {
        driver.write(machine, counter, written).map_err(Wrong::Refused)?;
        let found = driver.read(machine, counter).map_err(Wrong::Refused)?;
        if found != written {
            return Err(Wrong::DoesNotHold { written, found });
        }
    }
    Ok(())
}

/// What counters, each with its event and from 0, count of a loop with so many turns; and what the loop has.
fn window(
    machine: &mut dyn TrialMachine,
    has: &Capabilities,
    counters: &[(Counter, Selection)],
    turns: u64,
) -> Result<(Vec<u64>, Counts), PmuError> {
    let mut driver = Driver::new(has.clone());
    driver.reset(machine)?;
    for (counter, selection) in counters {
        driver.program(machine, *counter, selection)?;
    }
    try_gate(machine, &driver)?;
    for &(counter, _) in counters {
        driver.write(machine, counter, 0)?;
    }
    let gate = driver.gate();
    machine.run(&gate, turns);
    let mut seen = Vec::with_capacity(counters.len());
    for &(counter, _) in counters {
        seen.push(driver.read(machine, counter)?);
    }
    Ok((seen, window::overhead(gate.on().len() as u64).and(Ring0Code::Loop.counts(turns))))
}

/// Makes the gate's writes once where an exception does no harm: around the loop nothing catches one.
fn try_gate(machine: &mut dyn TrialMachine, driver: &Driver) -> Result<(), PmuError> {
    driver.start(machine)?;
    driver.stop(machine)
}

/// RDPMC has to read what RDMSR does, of every counter, with what it holds now.
fn rdpmc(machine: &mut dyn TrialMachine, has: &mut Capabilities) {
    let driver = Driver::new(has.clone());
    for counter in has.counters().collect::<Vec<_>>() {
        let by_rdmsr = driver.read(machine, counter).unwrap_or(0);
        let by_rdpmc = driver.rdpmc(machine, counter).unwrap_or(!by_rdmsr);
        if by_rdpmc != by_rdmsr {
            has.faults.push(Fault::Rdpmc { counter, by_rdpmc, by_rdmsr });
            return;
        }
    }
}
