//! Counters of the uncore, which a package has once for all its cores: the client's clock and arbiter, the server's caching agents, memory
//! channels, links, PCIe and power control.
//!
//! Their registers are MSRs, in the configuration space of PCI functions, or in memory. What they count is of the whole package: of all
//! processors, of devices and graphics. No CPUID reports them, so they are known by model, or the package lists them, and each unit is
//! tried.

pub mod discovery;
mod layout;
mod packages;
mod refusal;
mod register;
mod rounds;
mod units;

pub use refusal::{NoUncore, Refusal};
pub use register::Register;
pub use rounds::Placed;

use super::access::{Registers, leaves};
use crate::cpu::{Identity, Vendor};
use alloc::vec::Vec;
use layout::{Kind, Place};
use units::Pair;

/// A kind of part of the uncore.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// The client's clock.
    Clock,
    /// The client's arbiter.
    Arbiter,
    /// The server's caching agents.
    Caching,
    /// The server's memory channels, or the client's memory controllers.
    Memory,
    /// Links to other packages: QPI or UPI.
    Link,
    /// PCIe: IIO.
    Io,
    /// What keeps PCIe coherent: IRP.
    Coherence,
    /// Between the mesh and memory: M2M.
    Mesh,
    /// Power control: PCU.
    Power,
}

/// An event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// Where it is counted.
    pub unit: Unit,
    /// The bits of the control, without the enable.
    pub select: u64,
    /// The filters, the second one from bit 32 on.
    pub filter: u64,
    /// Only in the first unit.
    pub first: bool,
}

/// What is written to a counter to see whether it is one.
const PATTERN: u64 = 0x5_a5a5_a5a5;
/// How often a clock is read that should move. A read takes a hundred cycles.
const READS: u32 = 1000;

/// The counters of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Uncore {
    model: u32,
    kinds: &'static [Kind],
}

impl Uncore {
    /// What is known of the processor. Nothing is read or written yet.
    ///
    /// # Errors
    /// Nothing is known.
    pub fn find(registers: &dyn Registers) -> Result<Self, NoUncore> {
        let identity = Identity::read(&leaves(registers));
        if identity.vendor != Vendor::Intel {
            return Err(NoUncore::OtherMaker);
        }
        let (family, model) = (identity.family, identity.model);
        let kinds = if family == 6 { layout::of(model) } else { &[] };
        match kinds.is_empty() {
            true => Err(NoUncore::Unknown { family, model }),
            false => Ok(Self { model, kinds }),
        }
    }

    /// Whether some of the counters are of PCI functions, or found by them.
    #[must_use]
    pub fn is_in_devices(&self) -> bool {
        self.kinds.iter().any(|kind| !matches!(kind.place, Place::Msrs(_)))
    }

    const fn model(&self) -> u32 {
        self.model
    }

    fn kind(&self, unit: Unit) -> Option<&'static Kind> {
        self.kinds.iter().find(|kind| kind.unit == unit)
    }

    /// Programs a round and starts it.
    ///
    /// # Errors
    /// The number of an event in the round, and why it is not counted. Everything is as before then.
    pub fn program(
        round: &[Placed],
        registers: &mut dyn Registers,
    ) -> Result<Running, (usize, Refusal)> {
        let mut running = Running::default();
        for (number, placed) in round.iter().enumerate() {
            if let Err(refusal) = running.start(placed, registers) {
                running.release(registers);
                return Err((number, refusal));
            }
        }
        Ok(running)
    }
}

/// One event that is counted.
#[derive(Clone, Debug)]
struct Count {
    /// Its counters.
    counters: Vec<Register>,
    /// The bits that they have.
    mask: u64,
    /// What they read when the run began.
    before: Vec<u64>,
}

/// Counters that run, and what their registers were before.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// Registers with the values that they had, in the order in which they were written.
    found: Vec<(Register, u64)>,
    controls: Vec<Register>,
    counted: Vec<Count>,
    counts: Vec<u64>,
}

impl Running {
    fn write(
        &mut self,
        register: Register,
        value: u64,
        registers: &mut dyn Registers,
    ) -> Result<(), Refusal> {
        if self.found.iter().all(|(known, _)| *known != register) {
            let found = register.read(registers).ok_or(Refusal::Absent(register))?;
            self.found.push((register, found));
        }
        match register.write(value, registers) {
            true => Ok(()),
            false => Err(Refusal::Faults(register, value)),
        }
    }

    fn start(&mut self, placed: &Placed, registers: &mut dyn Registers) -> Result<(), Refusal> {
        let Placed { event, kind, .. } = *placed;
        let (mut counters, mut mask, mut why) = (Vec::new(), 0, None);
        if let Some((register, value)) = placed.global(registers)? {
            // Once: the client's memory controllers reset all counters with it.
            if self.found.iter().all(|(known, _)| *known != register) {
                self.write(register, value, registers)?;
            }
        }
        for pair in placed.pairs(registers)? {
            // Each is tried. The numbers of MSRs that there are follow each other; others are where they were found, and what does
            // not answer, as a channel without memory may do, counts nothing.
            if let Err(refusal) = self.unit(kind, &pair, registers) {
                why.get_or_insert(refusal);
                match kind.place {
                    Place::Msrs(_) => break,
                    _ => continue,
                }
            }
            for (&filter, shift) in kind.filters.iter().zip([0, 32]) {
                if event.filter != 0 {
                    let value = event.filter >> shift & u64::from(u32::MAX);
                    self.write(Register::Msr(pair.base + filter), value, registers)?;
                }
            }
            let (enable, filter) = kind.thread;
            let thread = if event.filter & filter != 0 { enable } else { 0 };
            let select = event.select & kind.select | thread | kind.enable;
            self.write(pair.control, select, registers)?;
            counters.push(pair.counter);
            mask = pair.mask();
            if event.first {
                break;
            }
        }
        if let (true, Some(why)) = (counters.is_empty(), why) {
            return Err(why);
        }
        if kind.unit == Unit::Clock {
            moves(counters[0], registers)?;
        }
        let before = Vec::with_capacity(counters.len());
        self.counted.push(Count { counters, mask, before });
        self.counts.push(0);
        Ok(())
    }

    /// Stops a counter of a unit, and sees whether it is one.
    fn unit(
        &mut self,
        kind: &Kind,
        pair: &Pair,
        registers: &mut dyn Registers,
    ) -> Result<(), Refusal> {
        if let Some(own) = pair.own {
            // Neither frozen nor reset.
            self.write(own, 0, registers)?;
        }
        self.write(pair.control, 0, registers)?;
        self.controls.push(pair.control);
        if kind.unit == Unit::Clock {
            // It may be read-only.
            return Ok(());
        }
        let counter = pair.counter;
        let absent = Refusal::Absent(counter);
        let other = (counter.read(registers).ok_or(absent)? ^ PATTERN) & pair.mask();
        self.write(counter, other, registers)?;
        match counter.read(registers) == Some(other) {
            true => Ok(()),
            false => Err(absent),
        }
    }

    /// A run begins.
    pub fn begin(&mut self, registers: &mut dyn Registers) {
        for count in &mut self.counted {
            count.before.clear();
            let now = count.counters.iter().map(|one| one.read(registers).unwrap_or_default());
            count.before.extend(now);
        }
    }

    /// A run has ended.
    pub fn end(&mut self, registers: &mut dyn Registers) {
        for (count, sum) in self.counted.iter().zip(&mut self.counts) {
            let moved = count.counters.iter().zip(&count.before).map(|(one, before)| {
                // A counter starts over at 0 at most once in a run: 44 bits last an hour.
                one.read(registers).unwrap_or_default().wrapping_sub(*before) & count.mask
            });
            *sum = moved.sum();
        }
    }

    /// What the last run counted of each event, in the round's order: the sum of all units.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many units count each event, and the first counter.
    pub fn places(&self) -> impl Iterator<Item = (u32, Register)> {
        self.counted.iter().map(|count| (count.counters.len() as u32, count.counters[0]))
    }

    /// Puts back what was found.
    pub fn release(self, registers: &mut dyn Registers) {
        for control in self.controls {
            // What cannot be written was not written.
            let _ = control.write(0, registers);
        }
        for (register, found) in self.found.into_iter().rev() {
            let _ = register.write(found, registers);
        }
    }
}

/// Sees that a counter moves by itself.
fn moves(counter: Register, registers: &mut dyn Registers) -> Result<(), Refusal> {
    let mut read = || counter.read(registers).ok_or(Refusal::Absent(counter));
    let first = read()?;
    for _ in 0..READS {
        if read()? != first {
            return Ok(());
        }
    }
    Err(Refusal::Still(counter))
}

#[cfg(test)]
mod tests;
