//! Sampling a workload: where it is each time a counter has counted so many events, or a time has passed.
//!
//! [`plan`] finds a counter for each event, all at once, and a period for each rate. [`Session`] programs them and makes
//! the control block that the interrupt's handler works with (`arch::pmu::pmi`); it starts again with one call.
//! [`measure()`] runs the workload of a job and turns what the handler left into records, [`mod@account`] makes sure that
//! every overflow is in them. A single task of ring 0 is called; several, or one of ring 3, run under the scheduler
//! (`crate::tasks`), and the counters stand while it works. [`capability`] says what the PMU can tell at all.
//!
//! Each processor that runs a task has a session of its own, armed on it (`parts`), and handlers that touch its control block
//! alone. [`whole::together`] makes one result of them.

pub mod account;
mod branches;
mod capability;
mod groups;
mod ibs;
mod log;
mod measure;
mod memory;
mod only;
mod parts;
mod plan;
mod precise;
mod session;
mod shares;
mod vectors;
pub mod whole;

pub use capability::capability;
pub use groups::Besides;
pub use measure::measure;
pub use plan::{Armed, plan};
pub use session::Session;

use crate::events::Known;
use crate::snippet::measure::Unmeasured;
use crate::tasks::Summary;
use alloc::string::String;
use alloc::vec::Vec;
use arch::pmu::pmi::{ControlBlock, Delivery, Interval};
use arch::pmu::{Driver, Gate, Registers};
use core::ops::Range;
use protocol::job::sampling::Sampling;
use protocol::job::workload::Task;
use protocol::record::CodePlace;

/// The PMU of a machine, in its parts.
pub struct Pmu<'a> {
    /// Its registers.
    pub registers: &'a mut dyn Registers,
    /// Its driver.
    pub driver: &'a mut Driver,
    /// What names are resolved with.
    pub known: &'a Known<'static>,
}

/// How tasks ran under the scheduler.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// Each task's end, and the switches.
    pub summary: Summary,
    /// Where their code lay.
    pub places: Vec<CodePlace>,
    /// TSC ticks that all took, with the scheduler.
    pub ticks: u64,
}

/// A machine that can be sampled. The firmware's is the real one; tests bring the register-level model.
pub trait Sampler {
    /// The PMU.
    ///
    /// # Errors
    /// There is none, for this reason.
    fn pmu(&mut self) -> Result<Pmu<'_>, String>;

    /// Takes the processors of these numbers into use. `counts`: they are to have the PMU that the boot processor has.
    ///
    /// # Errors
    /// Why that cannot be, in a sentence: one is not there, has no PMU, or another one.
    fn gather(&mut self, cpus: &[u16], counts: bool) -> Result<(), String>;

    /// Calls `work` on a processor, with its PMU.
    ///
    /// # Errors
    /// It has none, for this reason.
    fn on(
        &mut self,
        cpu: u16,
        work: &mut dyn FnMut(&mut dyn Registers, &mut Driver),
    ) -> Result<(), String>;

    /// Makes a task of ring 0 ready to run, whose body runs while `gate` is open. Also returns the code in which it is closed
    /// again.
    fn load_task(&mut self, task: &Task, gate: &Gate) -> (CodePlace, Range<u64>);

    /// Runs it once, with interrupts on if they are to come as vectors, and returns the TSC ticks that it took.
    ///
    /// # Errors
    /// The exception that ended it.
    fn run_task(&mut self, task: &Task, interrupts: bool) -> Result<u64, Unmeasured>;

    /// Runs the item's tasks under the schedulers. The gate of the block that was delivered to a processor is open while a
    /// task runs there, and the block knows which. `interval`: TSC ticks from one sample by time to the next, if there are such.
    ///
    /// # Errors
    /// Why they cannot be run, in a sentence.
    fn run_tasks(&mut self, item: &Sampling, interval: Option<u64>) -> Result<Scheduled, String>;

    /// Lets PMIs come on a processor, with a copy of `block`, and ticks of the timer that samples a task that is called.
    fn deliver(
        &mut self,
        cpu: u16,
        block: &ControlBlock,
        delivery: Delivery,
        timer: Option<Interval>,
    );

    /// Lets none come there any more, and makes `block` what the handler left.
    fn withdraw(&mut self, cpu: u16, block: &mut ControlBlock);

    /// Rates of the TSC and of the local APIC's timer, in Hz.
    fn clocks(&self) -> [u64; 2];

    /// The machine code of what was run last at an address, 15 bytes at most; empty if it lies elsewhere.
    fn code(&mut self, address: u64) -> Vec<u8>;

    /// What RSP, RBP, RDI, RSI and R14 hold when a task starts: the one of this number of those that a scheduler ran, or the one that
    /// was called.
    fn pointers(&self, task: Option<usize>) -> [u64; 5];

    /// Whether the local APIC has this entry of AMD's extended local vector table.
    fn has_extended_lvt(&mut self, entry: u8) -> bool;

    /// Whether the PMU is barecount's emulated one.
    fn has_emulated_pmu(&self) -> bool;
}

/// What else is read around a workload that is sampled.
pub trait Around<M> {
    /// The workload is about to run: its counters are programmed, and no interrupt comes yet.
    fn begin(&mut self, machine: &mut M);
    /// It has ended, and no interrupt comes any more.
    fn end(&mut self, machine: &mut M);
}

/// Nothing.
impl<M> Around<M> for () {
    fn begin(&mut self, _: &mut M) {}
    fn end(&mut self, _: &mut M) {}
}

#[cfg(test)]
mod tests;
