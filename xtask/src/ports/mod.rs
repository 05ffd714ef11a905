//! On which ports the micro-operations of an instruction can run, found from measurements.
//!
//! The idea is that of A. Abel and J. Reineke, "uops.info" (ASPLOS 2019): instructions of one micro-operation keep the ports of a set
//! busy, and what an instruction among them still adds to these ports has nowhere else to go. Sets are looked at from the smallest
//! one on, and what was found in a subset is taken off. With events of the ports ([`by_events`]) the events say which ports a set has
//! and what is added. Without ([`by_throughput`]) cycles state how many ports it has, and how many micro-operations more fit; the
//! sets then have names of their own, as nothing tells the ports' numbers.
//!
//! A set of ports that no instruction has by itself is taken for the smallest one around it that an instruction has, unless that is
//! contradicted: [`bottleneck`] finds where the instruction alone would be quicker, and two sets that share ports are blocked together, as
//! one micro-operation on these shows in both.

mod events;
mod render;
mod throughput;

pub use events::by_events;
pub use render::{Found, SetOfPorts};
pub use throughput::by_throughput;

use thiserror::Error;

/// Blocking instructions in front of one that is looked at. With a set of four ports they take four cycles, in which another port
/// takes four micro-operations: no instruction with more in addition to the set can be told.
pub const BLOCKING: u32 = 16;

/// How far from a whole number a number of micro-operations may be.
const WHOLE: f64 = 0.3;
/// The same of a number of ports, which is the reciprocal of a throughput.
const WHOLE_PORTS: f64 = 0.2;
/// A port that takes less than this part of an instruction takes none of it.
const USED: f64 = 0.04;
/// Cycles that an instruction may take longer than its ports explain.
const SLACK: f64 = 0.25;

/// What was counted for each repetition of some instructions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Core cycles.
    pub cycles: f64,
    /// Micro-operations of each port that has an event; of none, if there are no such events.
    pub ports: Vec<f64>,
    /// All micro-operations, if they are counted.
    pub uops: Option<f64>,
}

impl Figures {
    /// Of so many repetitions.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        let count = f64::from(count);
        Self {
            cycles: self.cycles * count,
            ports: self.ports.into_iter().map(|ports| ports * count).collect(),
            uops: self.uops.map(|uops| uops * count),
        }
    }
}

/// So many of each of these forms, by their indices, in this order.
pub type Mix = [(usize, u32)];

/// Which micro-operations there are: how many for each set of ports, sets as bits.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Usage(pub Vec<(u32, u32)>);

/// Why an instruction's ports are not told.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Untold {
    /// Something of it was not measured.
    #[error("{0} was not measured")]
    NotMeasured(String),
    /// Not a whole number.
    #[error("{what} would be {value:.2}, which is not an integer")]
    NotWhole {
        /// Of what.
        what: String,
        /// Of them.
        value: f64,
    },
    /// Some of it is on ports that cannot be blocked.
    #[error(
        "only {found} of its {all} micro-operations run on a set of ports that an instruction has by itself"
    )]
    Remainder {
        /// Told.
        found: u32,
        /// All of them.
        all: u32,
    },
    /// It has more elsewhere than the blocking instructions leave time for.
    #[error("its {all} micro-operations are too many for {BLOCKING} blocking instructions")]
    TooMany {
        /// All of them.
        all: u32,
    },
    /// One micro-operation may have been counted twice.
    #[error(
        "its micro-operations on two sets of ports may be one on their common ports; no measured instruction decides that"
    )]
    Overlap,
    /// Alone it is slower than that.
    #[error(
        "alone it takes {measured:.2} cycles of its busiest port, but the ports found explain {explained:.2}"
    )]
    Slower {
        /// What was measured.
        measured: f64,
        /// By the ports.
        explained: f64,
    },
    /// Nothing can be told by cycles.
    #[error("{0}")]
    NoMethod(&'static str),
}

/// The cycles that micro-operations take at least: the most that any set of ports has to do alone, by its ports. A scheduler that
/// knows all of them comes to it (Hall's theorem).
#[must_use]
pub fn bottleneck(usage: &Usage) -> f64 {
    let all = usage.0.iter().fold(0, |all, (_, ports)| all | ports);
    let mut most = 0.0f64;
    // All subsets of the ports.
    let mut subset = all;
    while subset != 0 {
        let own: u32 = usage.0.iter().filter(|one| one.1 & !subset == 0).map(|one| one.0).sum();
        most = most.max(f64::from(own) / f64::from(subset.count_ones()));
        subset = (subset - 1) & all;
    }
    most
}

/// A number of things, if it is near enough to a whole one.
fn whole(value: f64, within: f64, what: &str) -> Result<u32, Untold> {
    let nearest = value.round();
    if (value - nearest).abs() > within || nearest < 0.0 {
        return Err(Untold::NotWhole { what: what.to_string(), value });
    }
    Ok(nearest as u32)
}

#[cfg(test)]
mod tests;
