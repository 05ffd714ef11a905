//! First fit, the hardest items first: what groups and pairs get when exact planning is too long.

use super::problem::Problem;
use crate::assign::demand::FIXED_UNITS;
use alloc::vec;
use alloc::vec::Vec;

/// Passes as lists of items. Every item fits into a pass by itself.
pub(super) fn first_fit(problem: &Problem) -> Vec<Vec<usize>> {
    let mut passes: Vec<Filling> = Vec::new();
    let msrs = problem.msr_values();
    let empty = Filling::new(problem, &msrs);
    for item in problem.hardest_first() {
        let found = passes.iter_mut().any(|pass| pass.try_add(problem, &msrs, item));
        if !found {
            let mut pass = empty.clone();
            pass.add(problem, &msrs, item);
            passes.push(pass);
        }
    }
    passes.into_iter().map(|pass| pass.items).collect()
}

/// A pass, with what is needed to say no quickly.
#[derive(Clone)]
pub(super) struct Filling {
    items: Vec<usize>,
    /// The units that each demand of it can have; a pair counts twice.
    units: Vec<u64>,
    alone: bool,
    /// MSRs and their values, as [`Problem::msr_values`] has them, each once.
    msrs: Vec<(u64, u64)>,
}

impl Filling {
    pub(super) fn new(problem: &Problem, msrs: &[Option<(u64, u64)>]) -> Self {
        let mut pass = Self { items: vec![], units: vec![], alone: false, msrs: vec![] };
        pass.add_demands(problem, msrs, &problem.correlates);
        pass
    }

    fn add_demands(&mut self, problem: &Problem, msrs: &[Option<(u64, u64)>], numbers: &[usize]) {
        for number in numbers {
            let demand = &problem.demands[*number];
            self.units.push(demand.units);
            if demand.merge {
                self.units.push(demand.units << 1);
            }
            self.alone |= demand.alone;
            self.msrs.extend(msrs[*number].filter(|msr| !self.msrs.contains(msr)));
        }
    }

    pub(super) fn add(&mut self, problem: &Problem, msrs: &[Option<(u64, u64)>], item: usize) {
        self.items.push(item);
        self.add_demands(problem, msrs, &problem.items[item]);
    }

    fn try_add(&mut self, problem: &Problem, msrs: &[Option<(u64, u64)>], item: usize) -> bool {
        if self.is_hopeless(problem, item) || self.lacks_msrs(problem, msrs, item) {
            return false;
        }
        self.items.push(item);
        let fits = problem.fits(&self.items);
        self.items.pop();
        if fits {
            self.add(problem, msrs, item);
        }
        fits
    }

    /// Whether MSRs that an item needs are taken by as many other values as there are MSRs.
    pub(super) fn lacks_msrs(
        &self,
        problem: &Problem,
        msrs: &[Option<(u64, u64)>],
        item: usize,
    ) -> bool {
        let needed = problem.items[item].iter().filter_map(|number| msrs[*number]);
        needed.into_iter().any(|(wanted, value)| {
            let competes = |(held, other): &(u64, u64)| held & !wanted == 0 && *other != value;
            let others = self.msrs.iter().enumerate().filter(|(at, msr)| {
                let before = &self.msrs[..*at];
                competes(msr) && !before.iter().any(|other| competes(other) && other.1 == msr.1)
            });
            others.count() >= wanted.count_ones() as usize
        })
    }

    /// Hall's condition for the units of each new demand: those that can go nowhere else are too
    /// many.
    pub(super) fn is_hopeless(&self, problem: &Problem, item: usize) -> bool {
        problem.items[item].iter().any(|number| {
            let demand = &problem.demands[*number];
            let mut units = demand.units;
            if self.alone {
                units &= FIXED_UNITS;
            }
            let inside = self.units.iter().filter(|other| **other & !units == 0).count();
            inside >= units.count_ones() as usize
        })
    }
}
