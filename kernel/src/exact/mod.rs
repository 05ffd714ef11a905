//! Exact mode: counting what a snippet executes by stepping through it.
//!
//! No counter is involved, so the counts are right on every machine and under every hypervisor, and they can be
//! qualified in ways that no x86 counter offers ([`filter`]). [`tracker`] follows the steps, [`tally`] adds up, and
//! `report` makes the record, with a comparison with the PMU if requested. As in every measurement, two sizes of the code
//! are run and subtracted.
//!
//! What the snippet can tell: the TSC runs on while it is stopped; DR6 does not keep its own debug exceptions. What is
//! approximate: a gather counts as one access, and a masked access as made; a conditional branch to the next instruction
//! counts as not taken.

pub mod filter;
mod refusal;
mod report;
pub mod tally;
pub mod tracker;

pub use filter::Qualifier;
pub use refusal::{Refusal, Site};
pub use report::measure;
pub use tally::Tally;
pub use tracker::{Processor, Tracker};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use iced_x86::Mnemonic;
use protocol::job::Snippet;
use protocol::job::exact::Filter;
use protocol::record::Fault;

/// A machine that can step through emitted code.
pub trait Stepper {
    /// Emits `copies` copies of the snippet and steps through them once, in a clean state, over `limit` instructions at
    /// most.
    ///
    /// # Errors
    /// Why there are no counts.
    fn step(
        &mut self,
        snippet: &Snippet,
        copies: u64,
        filter: &Filter,
        limit: u64,
    ) -> Result<Tally, Unstepped>;

    /// Bytes of the program that was stepped through, at most `count`.
    fn code(&self, address: u64, count: u64) -> Vec<u8> {
        let _ = (address, count);
        Vec::new()
    }

    /// The event that counts all branches, in the syntax of the crate `events`.
    fn branches(&self) -> &'static str;
}

/// Why a snippet was not stepped to its end.
#[derive(Debug)]
pub enum Unstepped {
    /// It raised an exception.
    Fault(alloc::boxed::Box<Fault>),
    /// Exact mode cannot.
    Refused(Refusal),
}

/// A mnemonic as assemblers write it.
#[must_use]
pub fn name(mnemonic: Mnemonic) -> String {
    format!("{mnemonic:?}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
