//! Counting more than fits at once: the fewest passes, with groups kept whole and correlates in
//! each.
//!
//! [`plan`] tries in turn what is exact and quick (`spread`), what is quick (`greedy`) and what is
//! exact (`exact`), and says with the plan how many passes there must be at least:
//! [`Plan::is_optimal`] if that is how many there are.

mod bound;
mod colour;
mod exact;
mod flow;
mod greedy;
mod problem;
mod spread;

use crate::assign::demand::Demand;
use crate::assign::{Assignment, Conflict, assign_demands};
use crate::encode::Encoded;
use crate::set::EventSet;
use alloc::vec::Vec;
use exact::Outcome;
use problem::Problem;
use thiserror::Error;

/// How hard to look for a better plan than the quick one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Sets of requests that are tried at most; each takes a few microseconds.
    pub sets: u32,
}

impl Default for Effort {
    /// A tenth of a second at most.
    fn default() -> Self {
        Self { sets: 20_000 }
    }
}

/// What is counted in which pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The passes.
    pub passes: Vec<Pass>,
    /// No plan has fewer passes than this.
    pub lower_bound: usize,
    /// Items that fit into no pass, and why.
    pub refused: Vec<Refused>,
}

impl Plan {
    /// Whether it is certain that there is no plan with fewer passes.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.passes.len() == self.lower_bound
    }

    /// The pass in which a request of the set is counted; for a correlate the first one.
    #[must_use]
    pub fn pass_of(&self, request: usize) -> Option<usize> {
        self.passes.iter().position(|pass| pass.requests.contains(&request))
    }
}

/// Requests that are counted at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Their numbers in the set; the correlates come last.
    pub requests: Vec<usize>,
    /// Where they are counted, in the same order.
    pub assignment: Assignment,
}

/// An item that cannot be counted, even in a pass of its own.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{conflict}")]
pub struct Refused {
    /// Its number in the set's items.
    pub item: usize,
    /// Which of its requests conflict, with each other or with the correlates.
    pub conflict: Conflict,
}

/// No plan at all: the correlates alone do not fit into one pass.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("they must be counted in every pass, but {0}")]
pub struct CorrelatesConflict(pub Conflict);

/// Spreads a set over passes.
///
/// # Errors
/// [`CorrelatesConflict`] if the correlates by themselves cannot be counted at the same time. Items
/// that do not fit are not error: they are in [`Plan::refused`], and the rest is planned.
pub fn plan(set: &EventSet, effort: Effort) -> Result<Plan, CorrelatesConflict> {
    let problem = Problem {
        demands: set.requests.iter().map(Demand::new).collect(),
        items: set.items.clone(),
        correlates: set.correlates.clone(),
    };
    assign_numbers(set, &problem, &problem.numbers(&[])).map_err(CorrelatesConflict)?;
    let mut possible = Vec::new();
    let mut refused = Vec::new();
    for item in 0..problem.items.len() {
        if problem.fits(&[item]) {
            possible.push(item);
        } else if let Err(conflict) = assign_numbers(set, &problem, &problem.numbers(&[item])) {
            refused.push(Refused { item, conflict });
        }
    }
    let problem = Problem {
        items: possible.iter().map(|item| problem.items[*item].clone()).collect(),
        ..problem
    };
    let (passes, lower_bound) = fewest(&problem, effort);
    let passes = passes
        .iter()
        .map(|items| {
            let requests = problem.numbers(items);
            // Every pass has been found to fit.
            let assignment = assign_numbers(set, &problem, &requests).unwrap_or_default();
            Pass { requests, assignment }
        })
        .collect();
    Ok(Plan { passes, lower_bound, refused })
}

fn assign_numbers(
    set: &EventSet,
    problem: &Problem,
    numbers: &[usize],
) -> Result<Assignment, Conflict> {
    let requests: Vec<&Encoded> = numbers.iter().map(|number| &set.requests[*number]).collect();
    let demands: Vec<&Demand> = numbers.iter().map(|number| &problem.demands[*number]).collect();
    assign_demands(&requests, &demands).map_err(|mut conflict| {
        // The conflict counts within the pass; the set has its own numbers.
        conflict.requests.iter_mut().for_each(|(number, _)| *number = numbers[*number]);
        conflict
    })
}

/// The fewest passes found, as lists of items, and how many there must be at least.
fn fewest(problem: &Problem, effort: Effort) -> (Vec<Vec<usize>>, usize) {
    let mut lower_bound = bound::lower_bound(problem);
    let mut best = spread::spread(problem);
    if best.as_ref().is_none_or(|passes| passes.len() > lower_bound) {
        let greedy = greedy::first_fit(problem);
        if best.as_ref().is_none_or(|passes| greedy.len() < passes.len()) {
            best = Some(greedy);
        }
    }
    let mut best = best.unwrap_or_default();
    let mut budget = effort.sets;
    while best.len() > lower_bound {
        match exact::search(problem, lower_bound, &mut budget) {
            Outcome::Found(passes) => best = passes,
            Outcome::Impossible => lower_bound += 1,
            Outcome::Unknown => break,
        }
    }
    (best, lower_bound)
}

#[cfg(test)]
mod tests;
