//! Counters of the uncore, which a package has once for all its cores: the client's clock and arbiter, the server's caching agents.
//!
//! Only those with control by MSR: memory controllers, links and PCIe are in PCI space. What they count is of the whole package: of all
//! processors, of devices and graphics. No CPUID reports them, so they are known by model, and each unit is tried.

mod layout;
mod rounds;

pub use rounds::Placed;

use super::access::{Registers, leaves};
use crate::cpu::{Identity, Vendor};
use crate::msr::Msr;
use alloc::vec::Vec;
use layout::Kind;
use thiserror::Error;

/// A kind of part of the uncore.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// The client's clock.
    Clock,
    /// The client's arbiter.
    Arbiter,
    /// The server's caching agents.
    Caching,
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

/// Why there is none of the uncore's counters.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NoUncore {
    /// The maker is not Intel.
    #[error("only counters of the uncore of Intel's processors are known")]
    OtherMaker,
    /// Nothing is known of the model, or its counters are in PCI space.
    #[error(
        "no counters of the uncore with control by MSR are known of family {family:#x}, model {model:#x}"
    )]
    Unknown {
        /// Its family.
        family: u32,
        /// Its model.
        model: u32,
    },
    /// Nothing counts them here.
    #[error(
        "counters of the uncore are read around [[snippet]], [[processors]], [[count]] and [[run]] only"
    )]
    NotHere,
}

/// Why an event of the uncore is not counted.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    /// The model has no such unit.
    #[error("model {0:#x} has no such unit with control by MSR")]
    NoUnit(u32),
    /// The control has no such bits.
    #[error("its control has no bits {0:#x}")]
    Bits(u64),
    /// The unit has no filter.
    #[error("the unit has no filter")]
    NoFilter,
    /// A register does not hold what is written to it.
    #[error(
        "no unit answers: MSR {0:#x} does not hold what is written to it, as under a hypervisor"
    )]
    Absent(u32),
    /// A counter that should move does not.
    #[error("the clock does not move: MSR {0:#x}")]
    Still(u32),
    /// A write raises #GP.
    #[error("MSR {0:#x} does not take {1:#x}")]
    Faults(u32, u64),
}

/// PERFEVTSEL.EN of all of them.
const ENABLE: u64 = 1 << 22;
/// Enables the filter by thread of Haswell's CBo, and the bits of that filter (Linux, `SNBEP_CBO_PMON_CTL_TID_EN`).
const BY_THREAD: (u64, u64) = (1 << 19, 0x3f);
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
    counters: Vec<Msr>,
    /// The bits that they have.
    mask: u64,
    /// What they read when the run began.
    before: Vec<u64>,
}

/// Counters that run, and what their registers were before.
#[derive(Clone, Debug, Default)]
pub struct Running {
    /// Registers with the values that they had, in the order in which they were written.
    found: Vec<(Msr, u64)>,
    controls: Vec<Msr>,
    counted: Vec<Count>,
    counts: Vec<u64>,
}

impl Running {
    fn write(
        &mut self,
        number: u32,
        value: u64,
        registers: &mut dyn Registers,
    ) -> Result<(), Refusal> {
        let msr = Msr(number);
        if self.found.iter().all(|(known, _)| *known != msr) {
            let found = registers.rdmsr(msr).map_err(|_| Refusal::Absent(number))?;
            self.found.push((msr, found));
        }
        registers.wrmsr(msr, value).map_err(|_| Refusal::Faults(number, value))
    }

    fn start(&mut self, placed: &Placed, registers: &mut dyn Registers) -> Result<(), Refusal> {
        let Placed { event, counter: place, kind } = *placed;
        let mask = (1 << kind.width) - 1;
        let mut counters = Vec::new();
        if let Some((number, value)) = kind.global {
            self.write(number, value, registers)?;
        }
        for base in kind.bases() {
            let [control, counter] =
                [kind.control, kind.counter].map(|offset| base + offset + u32::from(place));
            // Each is tried; the numbers of those that there are follow each other.
            if let Err(refusal) = self.unit(kind, [base, control, counter], registers) {
                match counters.is_empty() {
                    true => return Err(refusal),
                    false => break,
                }
            }
            for (&filter, shift) in kind.filters.iter().zip([0, 32]) {
                if event.filter != 0 {
                    let value = event.filter >> shift & u64::from(u32::MAX);
                    self.write(base + filter, value, registers)?;
                }
            }
            let thread = if event.filter & BY_THREAD.1 != 0 && kind.filters.len() > 1 {
                BY_THREAD.0
            } else {
                0
            };
            let select = event.select & kind.select | thread | ENABLE;
            self.write(control, select, registers)?;
            counters.push(Msr(counter));
            if event.first {
                break;
            }
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
        [base, control, counter]: [u32; 3],
        registers: &mut dyn Registers,
    ) -> Result<(), Refusal> {
        if let Some(own) = kind.own {
            // Neither frozen nor reset.
            self.write(base + own, 0, registers)?;
        }
        self.write(control, 0, registers)?;
        self.controls.push(Msr(control));
        if kind.unit == Unit::Clock {
            // It may be read-only.
            return Ok(());
        }
        let read = |registers: &mut dyn Registers| {
            registers.rdmsr(Msr(counter)).map_err(|_| Refusal::Absent(counter))
        };
        let other = (read(registers)? ^ PATTERN) & ((1 << kind.width) - 1);
        self.write(counter, other, registers)?;
        match read(registers)? == other {
            true => Ok(()),
            false => Err(Refusal::Absent(counter)),
        }
    }

    /// A run begins.
    pub fn begin(&mut self, registers: &mut dyn Registers) {
        for count in &mut self.counted {
            count.before.clear();
            let now = count.counters.iter().map(|msr| registers.rdmsr(*msr).unwrap_or_default());
            count.before.extend(now);
        }
    }

    /// A run has ended.
    pub fn end(&mut self, registers: &mut dyn Registers) {
        for (count, sum) in self.counted.iter().zip(&mut self.counts) {
            let moved = count.counters.iter().zip(&count.before).map(|(msr, before)| {
                // A counter starts over at 0 at most once in a run: 44 bits last an hour.
                registers.rdmsr(*msr).unwrap_or_default().wrapping_sub(*before) & count.mask
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
    pub fn places(&self) -> impl Iterator<Item = (u32, Msr)> {
        self.counted.iter().map(|count| (count.counters.len() as u32, count.counters[0]))
    }

    /// Puts back what was found.
    pub fn release(self, registers: &mut dyn Registers) {
        for control in self.controls {
            // What cannot be written was not written.
            let _ = registers.wrmsr(control, 0);
        }
        for (msr, found) in self.found.into_iter().rev() {
            let _ = registers.wrmsr(msr, found);
        }
    }
}

/// Sees that a counter moves by itself.
fn moves(counter: Msr, registers: &mut dyn Registers) -> Result<(), Refusal> {
    let mut read = || registers.rdmsr(counter).map_err(|_| Refusal::Absent(counter.0));
    let first = read()?;
    for _ in 0..READS {
        if read()? != first {
            return Ok(());
        }
    }
    Err(Refusal::Still(counter.0))
}

#[cfg(test)]
mod tests;
