//! The fewest passes for single requests, exactly: flow for the counts, colouring for the passes.
//!
//! Works for lists without groups and without AMD's pairs, where each MSR value is wanted once;
//! that is nearly every long list. Everything else is left to [`super::greedy`] and
//! [`super::exact`].

use super::colour::{Edge, colour};
use super::flow::{BESIDE_ALONE, Growing, Units};
use super::problem::Problem;
use crate::assign::demand::{Demand, FIXED_AT, FIXED_UNITS};
use crate::assign::matching::place_all;
use alloc::vec;
use alloc::vec::Vec;

/// Passes as lists of items, or `None` if the problem is not of this kind.
pub(super) fn spread(problem: &Problem) -> Option<Vec<Vec<usize>>> {
    let demand = |item: usize| &problem.demands[problem.items[item][0]];
    let single = |item: &Vec<usize>| item.len() == 1 && fits_here(&problem.demands[item[0]]);
    let plain = |number: &usize| problem.demands[*number].is_plain();
    if !problem.items.iter().all(single) || !problem.correlates.iter().all(plain) {
        return None;
    }
    let (alone, others): (Vec<usize>, Vec<usize>) =
        (0..problem.items.len()).partition(|item| demand(*item).alone);
    let msrs = Msrs::share_out(others.iter().map(|item| (*item, demand(*item))));
    let correlates: Vec<&Demand> =
        problem.correlates.iter().map(|number| &problem.demands[*number]).collect();
    // Fixed counters that the correlates leave free in passes where one request is alone.
    let mut free_beside = FIXED_UNITS;
    if !alone.is_empty() {
        let fixed: Vec<u64> = correlates.iter().map(|demand| demand.units & FIXED_UNITS).collect();
        free_beside &= place_all(&fixed, 0)?.iter().fold(!0, |free, unit| free & !(1 << unit));
    }
    let units = |demand: &Demand| {
        let beside = (demand.units & free_beside) >> FIXED_AT;
        Units::from(demand.units) | Units::from(beside) << BESIDE_ALONE
    };
    let every = others.iter().map(|item| demand(*item)).chain(correlates.iter().copied());
    let all = every.fold(0, |all, demand| all | units(demand));
    let ordinary = all & Units::from(u64::MAX);
    let mut growing = Growing::new(ordinary, all & !ordinary, alone.len() as u32, msrs.most());
    let everywhere: Vec<usize> =
        correlates.iter().map(|demand| growing.add_everywhere(Units::from(demand.units))).collect();
    let classes: Vec<usize> = others.iter().map(|item| growing.add(units(demand(*item)))).collect();
    let count = growing.passes as usize;
    let flow = growing.into_flow();

    // Each request takes one of the places that its class has got; correlates take one for each
    // pass.
    let most = everywhere.iter().chain(&classes).max().map_or(0, |class| class + 1);
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); most];
    for class in everywhere.iter().chain(&classes) {
        if places[*class].is_empty() {
            let units = flow.of_class(*class).into_iter();
            places[*class] = units.flat_map(|(unit, n)| vec![unit; n as usize]).collect();
        }
    }
    let mut edges = Vec::new();
    let mut owners = Vec::new();
    for (number, class) in everywhere.iter().enumerate() {
        // Correlates do not count together with requests that are alone: their class has no unit there.
        for _ in 0..count {
            let right = places[*class].pop()?;
            edges.push(Edge { left: Some(msrs.addresses.len() + number), right });
            owners.push(None);
        }
    }
    let mut passes: Vec<Vec<usize>> = alone.iter().map(|item| vec![*item]).collect();
    let mut beside = [0; 16];
    for (item, class) in others.iter().zip(&classes) {
        let unit = places[*class].pop()?;
        match unit.checked_sub(BESIDE_ALONE as usize) {
            Some(fixed) => {
                passes[beside[fixed]].push(*item);
                beside[fixed] += 1;
            }
            None => {
                edges.push(Edge { left: msrs.of(*item), right: unit });
                owners.push(Some(*item));
            }
        }
    }
    let colours = colour(&edges, msrs.addresses.len() + everywhere.len(), 64, count)?;
    let mut ordinary = vec![Vec::new(); count];
    for (owner, colour) in owners.iter().zip(colours) {
        ordinary[colour].extend(*owner);
    }
    passes.extend(ordinary.into_iter().filter(|pass| !pass.is_empty()));
    Some(passes)
}

/// Whether a request is of the kind that this way of planning understands: if it needs an MSR, then
/// one value on the same counters, whichever MSR it is.
fn fits_here(demand: &Demand) -> bool {
    let first = demand.ways[0];
    let same_value = |msr: crate::msr::MsrValue| Some(msr.value) == first.msr.map(|msr| msr.value);
    let no_msr = demand.ways.iter().all(|way| way.msr.is_none());
    let one_value = demand.ways.iter().all(|way| way.msr.is_some_and(same_value));
    let same_units = demand.ways.iter().all(|way| way.units == first.units);
    !demand.merge && (no_msr || one_value && same_units)
}

/// Which MSR each request is going to use: one request an MSR and pass.
struct Msrs {
    addresses: Vec<u32>,
    loads: Vec<u32>,
    chosen: Vec<(usize, usize)>,
}

impl Msrs {
    /// Requests that have no choice first; the others go where least is to be done.
    fn share_out<'d>(demands: impl Iterator<Item = (usize, &'d Demand)>) -> Self {
        let mut wanting: Vec<(usize, &Demand)> =
            demands.filter(|(_, demand)| demand.ways[0].msr.is_some()).collect();
        wanting.sort_by_key(|(_, demand)| demand.ways.len());
        let mut msrs = Self { addresses: Vec::new(), loads: Vec::new(), chosen: Vec::new() };
        for (item, demand) in wanting {
            let addresses = demand.ways.iter().filter_map(|way| way.msr).map(|msr| msr.address);
            let numbers: Vec<usize> = addresses.map(|address| msrs.number(address)).collect();
            if let Some(least) = numbers.into_iter().min_by_key(|number| msrs.loads[*number]) {
                msrs.loads[least] += 1;
                msrs.chosen.push((item, least));
            }
        }
        msrs.chosen.sort_unstable();
        msrs
    }

    fn number(&mut self, address: u32) -> usize {
        self.addresses.iter().position(|known| *known == address).unwrap_or_else(|| {
            self.addresses.push(address);
            self.loads.push(0);
            self.addresses.len() - 1
        })
    }

    fn most(&self) -> u32 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    fn of(&self, item: usize) -> Option<usize> {
        let at = self.chosen.binary_search_by_key(&item, |(item, _)| *item).ok()?;
        Some(self.chosen[at].1)
    }
}
