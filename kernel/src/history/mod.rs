//! History mode: in which cycles of a snippet events happen.
//!
//! The snippet runs again and again, and all counters stop when one of them, the clock, has counted k events (see
//! [`arch::pmu::stop_on_overflow`]). What was counted at k minus what was counted at the k before is what happened between.
//!
//! Where the snippet begins is found with a second counter that is in every pass, the *witness*, which counts
//! instructions. Between the switch that starts the counters and the snippet stands code whose last instruction is an
//! LFENCE, after which nothing starts before it has retired. So the snippet begins with the clock's event at which the
//! witness has seen just that code. How many instructions that are is measured with an empty body: all that it counts,
//! but those of the switch after it. The same difference with the body states where the snippet ends. This takes the
//! WRMSR that starts the counters as not counted, and the one that stops them as counted; not checked on silicon.
//!
//! `plan` finds counters, `bench` makes single runs, `begin` finds where the snippet begins, [`measure()`] puts the rows
//! together.

mod begin;
mod measure;
mod plan;
mod programmed_pass;

pub use measure::measure;

use crate::sampling::Sampler;
use crate::snippet::measure::Runner;
use alloc::boxed::Box;
use arch::call::Trap;
use arch::pmu::Gate;
use arch::pmu::stop_on_overflow::StopOnOverflow;
use protocol::job::Snippet;

/// A machine whose counters can be stopped by one of them. The firmware's is the real one; tests bring the register-level
/// model.
pub trait Historian: Runner + Sampler {
    /// Emits `copies` copies of the snippet with this gate around them and makes them ready to run.
    fn load_within(&mut self, snippet: &Snippet, copies: u64, gate: &Gate);

    /// Takes the interrupt of the clock.
    fn arm(&mut self, on_overflow: &StopOnOverflow);

    /// Runs what was loaded once, in a clean state. What the counters start from was written before, and they are read
    /// afterwards.
    ///
    /// # Errors
    /// The exception that ended it.
    fn run_armed(&mut self) -> Result<(), Box<Trap>>;

    /// How often the interrupt has come.
    fn interrupts(&self) -> u64;

    /// The instruction that the last one came in front of.
    fn interrupted(&self) -> u64;

    /// Gives it back.
    fn disarm(&mut self);

    /// System management interrupts so far, and how often a run with one is repeated.
    fn smis(&self) -> (u64, u32);
}

#[cfg(test)]
mod tests;
