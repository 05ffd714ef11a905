//! Fewer passes than this are impossible, whatever the plan.

use super::flow::{Growing, Units};
use super::problem::Problem;
use crate::assign::demand::{Demand, FIXED_UNITS};
use alloc::vec::Vec;

/// Items among which pairs that exclude each other are looked for.
const MOST_PAIRED: usize = 40;

/// A lower bound for the number of passes.
pub(super) fn lower_bound(problem: &Problem) -> usize {
    if problem.items.is_empty() {
        return 0;
    }
    relaxed(problem).max(exclusive(problem))
}

/// Every request that must be alone takes a pass's general-purpose counters; the rest flows to what
/// remains, and needs so many passes as the MSRs have to change their values. Groups may be torn
/// apart here, and the two counters of a pair need not be neighbours: both only lower the bound.
fn relaxed(problem: &Problem) -> usize {
    let members = || problem.items.iter().flatten().map(|number| &problem.demands[*number]);
    let alone = members().filter(|demand| demand.alone).count() as u32;
    let values = values_per_msr(members().filter(|demand| !demand.alone));
    let every = problem.demands.iter().fold(0, |units, demand| units | wide(demand, true));
    // A fixed counter also counts in passes that one request has for itself.
    let beside = |units: Units| {
        let fixed = (units as u64 & FIXED_UNITS) >> crate::assign::demand::FIXED_AT;
        units | Units::from(fixed) << super::flow::BESIDE_ALONE
    };
    let mut growing = Growing::new(every, beside(every) & !every, alone, values);
    for number in &problem.correlates {
        growing.add_everywhere(wide(&problem.demands[*number], false));
    }
    for demand in members().filter(|demand| !demand.alone) {
        growing.add(beside(wide(demand, false)));
        if demand.merge {
            growing.add(wide(demand, false) << 1);
        }
    }
    // Requests that are counted together with ones that are alone need those passes anyway.
    ((growing.passes + alone) as usize).max(1)
}

fn wide(demand: &Demand, with_pairs: bool) -> Units {
    let units = Units::from(demand.units);
    if demand.merge && with_pairs { units | units << 1 } else { units }
}

/// How many passes the MSRs need: for each set of MSRs, the number of values that nothing else can
/// hold, divided by the size of the set, rounded up.
fn values_per_msr<'d>(demands: impl Iterator<Item = &'d Demand>) -> u32 {
    let mut wanted: Vec<(Vec<u32>, u64)> = Vec::new();
    for demand in demands {
        let mut addresses: Vec<u32> =
            demand.ways.iter().filter_map(|way| way.msr).map(|msr| msr.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let value = demand.ways[0].msr.map_or(0, |msr| msr.value);
        let same = |way: &crate::assign::demand::Way| way.msr.is_some_and(|msr| msr.value == value);
        if !addresses.is_empty() && demand.ways.iter().all(same) {
            wanted.push((addresses, value));
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    let mut sets: Vec<&Vec<u32>> = wanted.iter().map(|(set, _)| set).collect();
    sets.dedup();
    let passes = sets.iter().map(|set| {
        let inside = wanted.iter().filter(|(other, _)| other.iter().all(|msr| set.contains(msr)));
        let mut values: Vec<u64> = inside.map(|(_, value)| *value).collect();
        values.sort_unstable();
        values.dedup();
        values.len().div_ceil(set.len()) as u32
    });
    passes.max().unwrap_or(0)
}

/// Items that exclude each other pairwise need a pass each. The hardest items are tried in turn.
fn exclusive(problem: &Problem) -> usize {
    let mut chosen: Vec<usize> = Vec::new();
    let hard = problem.hardest_first();
    let simple = |item: usize| {
        let members = &problem.items[item];
        members.len() == 1 && problem.demands[members[0]].is_plain()
    };
    for item in hard.into_iter().filter(|item| !simple(*item)).take(MOST_PAIRED) {
        if chosen.iter().all(|other| !problem.fits(&[*other, item])) {
            chosen.push(item);
        }
    }
    chosen.len()
}
