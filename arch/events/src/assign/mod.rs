//! Which request is counted by which counter.
//!
//! [`assign`] is exact: it finds a place for all requests at the same time whenever there is one.
//! Counters are matched by augmenting paths; the few MSR values, AMD's counter pairs and requests
//! that must be alone are searched around that. What does not fit is refused with the smallest set
//! of requests that conflict; [`crate::passes`] spreads it over several passes instead.

mod conflict;
pub(crate) mod demand;
pub(crate) mod matching;
mod registers;
pub(crate) mod solve;

pub use conflict::{CONFLICT_BUDGET, Conflict, Reason};
pub use registers::{Registers, registers};

use crate::encode::{Counters, Encoded};
use crate::msr::MsrValue;
use alloc::vec::Vec;
use core::fmt;
use demand::{Demand, FIXED_AT, METRICS_BEHIND};
use solve::{Solution, solve};

/// A counter of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// A general-purpose counter.
    General(u8),
    /// A fixed counter.
    Fixed(u8),
    /// A field of MSR_PERF_METRICS.
    Metric(u8),
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::General(index) => write!(f, "counter {index}"),
            Self::Fixed(index) => write!(f, "fixed counter {index}"),
            Self::Metric(index) => write!(f, "field {index} of PERF_METRICS"),
        }
    }
}

/// The counter with this number in a set of units.
fn counter(unit: u8) -> Counter {
    match unit.checked_sub(FIXED_AT as u8) {
        Some(index) if index >= METRICS_BEHIND => Counter::Metric(index - METRICS_BEHIND),
        Some(index) => Counter::Fixed(index),
        None => Counter::General(unit),
    }
}

/// Where one request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The counter.
    pub counter: Counter,
    /// Which of the request's choices it is.
    pub choice: usize,
}

/// Where all requests of a set are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// One for each request, in their order.
    pub places: Vec<Place>,
    /// What the extra MSRs must hold meanwhile.
    pub msrs: Vec<MsrValue>,
}

/// Finds a counter for each request, all at the same time.
///
/// # Errors
/// [`Conflict`]: there is no such assignment, and these requests are why.
pub fn assign(requests: &[Encoded]) -> Result<Assignment, Conflict> {
    let demands: Vec<Demand> = requests.iter().map(Demand::new).collect();
    let all: Vec<&Demand> = demands.iter().collect();
    let requests: Vec<&Encoded> = requests.iter().collect();
    assign_demands(&requests, &all)
}

/// The same for requests whose demands are there already.
pub(crate) fn assign_demands(
    requests: &[&Encoded],
    demands: &[&Demand],
) -> Result<Assignment, Conflict> {
    match solve(demands) {
        Some(solution) => Ok(to_assignment(requests, solution)),
        None => Err(conflict::find(demands, |index| requests[index].text.clone())),
    }
}

fn to_assignment(requests: &[&Encoded], solution: Solution) -> Assignment {
    let places = requests
        .iter()
        .zip(&solution.units)
        .map(|(request, unit)| {
            let counter = counter(*unit);
            let fits = |choice: &crate::encode::Choice| {
                let held = choice.msr.is_none_or(|msr| solution.msrs.contains(&msr));
                held && match (choice.counters, counter) {
                    (Counters::General { counters, .. }, Counter::General(index)) => {
                        counters >> index & 1 == 1
                    }
                    (Counters::Fixed { index, .. }, Counter::Fixed(other)) => index == other,
                    (Counters::Metric { field, .. }, Counter::Metric(other)) => field == other,
                    _ => false,
                }
            };
            Place { counter, choice: request.choices.iter().position(fits).unwrap_or(0) }
        })
        .collect();
    Assignment { places, msrs: solution.msrs }
}

#[cfg(test)]
pub(crate) mod brute;
#[cfg(test)]
mod tests;
