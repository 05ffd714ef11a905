//! First fit, the hardest items first: what groups and pairs get when exact planning is too long.

use super::problem::Problem;
use crate::assign::demand::FIXED_UNITS;
use alloc::vec;
use alloc::vec::Vec;

/// Passes as lists of items. Every item fits into a pass by itself.
pub(super) fn first_fit(problem: &Problem) -> Vec<Vec<usize>> {
    let mut passes: Vec<Filling> = Vec::new();
    let empty = Filling::new(problem);
    for item in problem.hardest_first() {
        let found = passes.iter_mut().any(|pass| pass.try_add(problem, item));
        if !found {
            let mut pass = empty.clone();
            pass.add(problem, item);
            passes.push(pass);
        }
    }
    passes.into_iter().map(|pass| pass.items).collect()
}

/// A pass, with what is needed to say no quickly.
#[derive(Clone)]
struct Filling {
    items: Vec<usize>,
    /// The units that each demand of it can have; a pair counts twice.
    units: Vec<u64>,
    alone: bool,
}

impl Filling {
    fn new(problem: &Problem) -> Self {
        let mut pass = Self {
            items: vec![],
            units: vec![],
            alone: false,
        };
        pass.add_demands(problem, &problem.correlates);
        pass
    }

    fn add_demands(&mut self, problem: &Problem, numbers: &[usize]) {
        for number in numbers {
            let demand = &problem.demands[*number];
            self.units.push(demand.units);
            if demand.merge {
                self.units.push(demand.units << 1);
            }
            self.alone |= demand.alone;
        }
    }

    fn add(&mut self, problem: &Problem, item: usize) {
        self.items.push(item);
        self.add_demands(problem, &problem.items[item]);
    }

    fn try_add(&mut self, problem: &Problem, item: usize) -> bool {
        if self.is_hopeless(problem, item) {
            return false;
        }
        self.items.push(item);
        let fits = problem.fits(&self.items);
        self.items.pop();
        if fits {
            self.add(problem, item);
        }
        fits
    }

    /// Hall's condition for the units of each new demand: those that can go nowhere else are too many.
    fn is_hopeless(&self, problem: &Problem, item: usize) -> bool {
        problem.items[item].iter().any(|number| {
            let demand = &problem.demands[*number];
            let mut units = demand.units;
            if self.alone {
                units &= FIXED_UNITS;
            }
            let inside = self
                .units
                .iter()
                .filter(|other| **other & !units == 0)
                .count();
            self.alone && demand.alone || inside >= units.count_ones() as usize
        })
    }
}
