//! Exact search for fewer passes: every way to put items into so many passes, the hardest items
//! first, until one works, all have failed, or the budget is used up.

use super::problem::Problem;
use alloc::vec::Vec;

/// Longer lists are not searched: each item is a step deeper into the stack, and the budget would
/// not suffice in any case.
const MOST_ITEMS: usize = 128;

/// What the search found.
pub(super) enum Outcome {
    /// A plan with so many passes.
    Found(Vec<Vec<usize>>),
    /// There is none.
    Impossible,
    /// The budget did not suffice to tell.
    Unknown,
}

/// Looks for a plan with at most `count` passes. `budget` counts the sets of requests tried, over
/// all calls.
pub(super) fn search(problem: &Problem, count: usize, budget: &mut u32) -> Outcome {
    if problem.items.len() > MOST_ITEMS {
        return Outcome::Unknown;
    }
    let order = problem.hardest_first();
    let mut search = Search { problem, count, budget, passes: Vec::new(), chosen: Vec::new() };
    match search.place(&order) {
        Some(true) => Outcome::Found(search.passes),
        Some(false) => Outcome::Impossible,
        None => Outcome::Unknown,
    }
}

struct Search<'p> {
    problem: &'p Problem,
    count: usize,
    budget: &'p mut u32,
    passes: Vec<Vec<usize>>,
    /// The pass of each item placed so far.
    chosen: Vec<usize>,
}

impl Search<'_> {
    /// Whether the items of `rest` can be placed; `None` when the budget is used up.
    fn place(&mut self, rest: &[usize]) -> Option<bool> {
        let Some((item, rest_behind)) = rest.split_first() else {
            return Some(true);
        };
        // Equal items are interchangeable: they go into passes in rising order.
        let placed = self.chosen.len();
        let first = match placed.checked_sub(1) {
            Some(before) if self.is_like_before(*item) => self.chosen[before],
            _ => 0,
        };
        // Empty passes are interchangeable: at most one new one is opened.
        let last = (self.passes.len() + 1).min(self.count);
        for pass in first..last {
            *self.budget = self.budget.checked_sub(1)?;
            if pass == self.passes.len() {
                self.passes.push(Vec::new());
            }
            self.passes[pass].push(*item);
            self.chosen.push(pass);
            if self.problem.fits(&self.passes[pass]) && self.place(rest_behind)? {
                return Some(true);
            }
            self.chosen.pop();
            self.passes[pass].pop();
            if self.passes[pass].is_empty() {
                self.passes.pop();
            }
        }
        Some(false)
    }

    fn is_like_before(&self, item: usize) -> bool {
        let before = self.chosen.last().and_then(|pass| self.passes[*pass].last());
        before.is_some_and(|before| self.problem.same(*before, item))
    }
}
