//! What the announced PMU really does, tried once before anything is measured.
//!
//! CPUID is a promise, and registers that hold values are no proof: there are hypervisors and emulators whose counters
//! stand still, whose freeze bits do nothing or raise #GP, whose status bits never clear. So each counter counts a loop
//! whose instructions are known, each event that a loop can raise is counted once, each counter overflows once, and once
//! the counters are to freeze. What fails is given up, with the reason ([`Fault`]), and everything behind this goes
//! without it.
//!
//! | window | turns of `dec; jnz` | what is tried |
//! | --- | --- | --- |
//! | `count` | 1,000 | every counter, general-purpose ones with instructions |
//! | `count` | 1,000 and 16 | cycles, reference cycles, slots; branches |
//! | `overflow` | 400 | every counter's status bit: set, and cleared |
//! | `freeze` | 400, and again to see them go on | freezing on a PMI |

mod count;
mod freeze;
mod overflow;

use super::access::Registers;
use super::capabilities::{Capabilities, Counter, Fault, Wrong};
use super::driver::{Driver, Gate, PmuError, Selection};
use super::probe::Missing;
use super::until::{self, Until};
use super::workload::{Counts, Piece};
use super::{Machine, window};
use alloc::vec::Vec;

/// A machine on which a PMU is tried.
pub trait Bench: Registers {
    /// Runs [`Piece::Loop`] with so many turns while `gate` is open, as [`window`] does. Interrupts are off, and LVTPC is
    /// masked.
    fn run(&mut self, gate: &Gate, turns: u64);

    /// The same while the interrupt of `until` may come.
    fn run_until(&mut self, until: &Until, turns: u64);
}

impl Bench for Machine {
    fn run(&mut self, gate: &Gate, turns: u64) {
        // SAFETY: ring 0; the gate is a driver's, which has made these writes before; the piece takes its turns in RDI.
        unsafe { window::run(gate, Piece::Loop.address(), [turns, 0]) };
    }

    fn run_until(&mut self, until: &Until, turns: u64) {
        // SAFETY: ring 0, interrupt table loaded, and nobody else uses the PMU (`Machine::new`).
        unsafe {
            until::install(until);
            until::allow();
            window::run(until.gate(), Piece::Loop.address(), [turns, 0]);
            until::uninstall();
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
pub fn run(announced: &Capabilities, bench: &mut dyn Bench) -> Result<Capabilities, Missing> {
    let mut has = announced.clone();
    present(bench, &mut has);
    count::counters(bench, &mut has);
    if has.general == 0 {
        return Err(nothing(&has));
    }
    rdpmc(bench, &mut has);
    count::events(bench, &mut has);
    overflow::each(bench, &mut has);
    freeze::counters(bench, &mut has);
    // What never lets go of a freeze has taken all counters with it.
    if has.faults.iter().any(|fault| matches!(fault, Fault::Freeze(_))) {
        count::counters(bench, &mut has);
        if has.general == 0 {
            return Err(nothing(&has));
        }
    }
    let _ = Driver::new(has.clone()).reset(bench);
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
fn present(bench: &mut dyn Bench, has: &mut Capabilities) {
    let driver = Driver::new(has.clone());
    for counter in has.counters().collect::<Vec<_>>() {
        if let Err(why) = holds(bench, &driver, counter) {
            has.give_up(counter, why);
        }
    }
}

fn holds(bench: &mut dyn Bench, driver: &Driver, counter: Counter) -> Result<(), Wrong> {
    if let Counter::General(n) = counter {
        let select = driver.layout().select(n);
        bench.rdmsr(select).map_err(|_| Wrong::Refused(PmuError::Read(select)))?;
        let refused = Wrong::Refused(PmuError::Write { msr: select, value: 0 });
        bench.wrmsr(select, 0).map_err(|_| refused)?;
    }
    for written in PATTERNS {
        driver.write(bench, counter, written).map_err(Wrong::Refused)?;
        let found = driver.read(bench, counter).map_err(Wrong::Refused)?;
        if found != written {
            return Err(Wrong::DoesNotHold { written, found });
        }
    }
    Ok(())
}

/// What counters, each with its event and from 0, count of a loop with so many turns; and what the loop has.
fn window(
    bench: &mut dyn Bench,
    has: &Capabilities,
    counters: &[(Counter, Selection)],
    turns: u64,
) -> Result<(Vec<u64>, Counts), PmuError> {
    let mut driver = Driver::new(has.clone());
    driver.reset(bench)?;
    for (counter, selection) in counters {
        driver.program(bench, *counter, selection)?;
    }
    try_gate(bench, &driver)?;
    for &(counter, _) in counters {
        driver.write(bench, counter, 0)?;
    }
    let gate = driver.gate();
    bench.run(&gate, turns);
    let mut seen = Vec::with_capacity(counters.len());
    for &(counter, _) in counters {
        seen.push(driver.read(bench, counter)?);
    }
    Ok((seen, window::overhead(gate.on().len() as u64).and(Piece::Loop.counts(turns))))
}

/// Makes the gate's writes once where an exception does no harm: around the loop nothing catches one.
fn try_gate(bench: &mut dyn Bench, driver: &Driver) -> Result<(), PmuError> {
    driver.start(bench)?;
    driver.stop(bench)
}

/// RDPMC has to read what RDMSR does, of every counter, with what it holds now.
fn rdpmc(bench: &mut dyn Bench, has: &mut Capabilities) {
    let driver = Driver::new(has.clone());
    for counter in has.counters().collect::<Vec<_>>() {
        let by_rdmsr = driver.read(bench, counter).unwrap_or(0);
        let by_rdpmc = driver.rdpmc(bench, counter).unwrap_or(!by_rdmsr);
        if by_rdpmc != by_rdmsr {
            has.faults.push(Fault::Rdpmc { counter, by_rdpmc, by_rdmsr });
            return;
        }
    }
}
