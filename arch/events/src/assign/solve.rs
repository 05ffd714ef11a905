//! The exact solver: units by matching, MSR values, pairs and exclusiveness by search around it.

use super::demand::{Demand, FIXED_UNITS};
use super::matching::place_all;
use crate::msr::MsrValue;
use alloc::vec::Vec;

/// Where each demand is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Solution {
    /// The unit of each demand.
    pub units: Vec<u8>,
    /// What the extra MSRs hold.
    pub msrs: Vec<MsrValue>,
}

/// Finds a place for all demands at the same time, if there is any way at all.
pub(crate) fn solve(demands: &[&Demand]) -> Option<Solution> {
    if demands.len() > 64 {
        return None;
    }
    let limits = limits(demands)?;
    let masks: Vec<u64> =
        demands.iter().zip(&limits).map(|(demand, limit)| demand.units & limit).collect();
    // Necessary in any case, and sufficient where units are all that is requested.
    let units = place_all(&masks, 0)?;
    let simple =
        |demand: &&Demand| !demand.merge && demand.ways.iter().all(|way| way.msr.is_none());
    if demands.iter().all(simple) {
        let msrs = Vec::new();
        return Some(Solution { units, msrs });
    }
    let mut search = Search { demands, limits: &limits, msrs: Vec::new() };
    search.run()
}

/// Units that each demand may have, seeing that one of them may have to be alone.
fn limits(demands: &[&Demand]) -> Option<Vec<u64>> {
    let mut alone = demands.iter().enumerate().filter(|(_, demand)| demand.alone);
    match (alone.next(), alone.next()) {
        (Some(_), Some(_)) => None,
        (Some((only, _)), None) => Some(
            (0..demands.len()).map(|index| if index == only { !0 } else { FIXED_UNITS }).collect(),
        ),
        (None, _) => Some(demands.iter().map(|_| !0).collect()),
    }
}

struct Search<'d> {
    demands: &'d [&'d Demand],
    limits: &'d [u64],
    /// What was decided of each MSR: its value, or that it is left alone.
    msrs: Vec<(u32, Option<u64>)>,
}

impl Search<'_> {
    fn decided(&self, address: u32) -> Option<Option<u64>> {
        self.msrs.iter().find(|(msr, _)| *msr == address).map(|(_, value)| *value)
    }

    /// Whether a way is open as things are, may yet become open (`None`), or is closed.
    fn open(&self, msr: Option<MsrValue>) -> Option<bool> {
        match msr {
            None => Some(true),
            Some(msr) => self.decided(msr.address).map(|value| value == Some(msr.value)),
        }
    }

    fn masks(&self, and_possible: bool) -> Vec<u64> {
        let open = |msr| self.open(msr).unwrap_or(and_possible);
        self.demands
            .iter()
            .zip(self.limits)
            .map(|(demand, limit)| {
                let ways = demand.ways.iter().filter(|way| open(way.msr));
                ways.fold(0, |units, way| units | way.units & limit)
            })
            .collect()
    }

    fn run(&mut self) -> Option<Solution> {
        place_all(&self.masks(true), 0)?;
        let masks = self.masks(false);
        if let Some(stuck) = masks.iter().position(|mask| *mask == 0) {
            return self.branch_on_demand(stuck);
        }
        if let Some(units) = self.place(&masks, 0, 0) {
            let decided = self.msrs.iter();
            let msrs = decided
                .filter_map(|(address, value)| {
                    value.map(|value| MsrValue { address: *address, value })
                })
                .collect();
            return Some(Solution { units, msrs });
        }
        self.branch_on_msr()
    }

    /// A demand has no open way: one of its MSRs must take its value.
    fn branch_on_demand(&mut self, index: usize) -> Option<Solution> {
        let demand = self.demands[index];
        for way in &demand.ways {
            let Some(msr) = way.msr.filter(|msr| self.decided(msr.address).is_none()) else {
                continue;
            };
            self.msrs.push((msr.address, Some(msr.value)));
            if let Some(solution) = self.run() {
                return Some(solution);
            }
            self.msrs.pop();
        }
        None
    }

    /// All have an open way, but not enough units: another MSR value may open more.
    fn branch_on_msr(&mut self) -> Option<Solution> {
        let undecided = |msr: &MsrValue| self.decided(msr.address).is_none();
        let wanted =
            || self.demands.iter().flat_map(|demand| &demand.ways).filter_map(|way| way.msr);
        let address = wanted().filter(undecided).map(|msr| msr.address).min()?;
        let mut values: Vec<Option<u64>> =
            wanted().filter(|msr| msr.address == address).map(|msr| Some(msr.value)).collect();
        values.sort_unstable();
        values.dedup();
        values.push(None);
        for value in values {
            self.msrs.push((address, value));
            if let Some(solution) = self.run() {
                return Some(solution);
            }
            self.msrs.pop();
        }
        None
    }

    /// Puts the pairs down first, each way in turn, and the rest around them.
    fn place(&self, masks: &[u64], from: usize, pairs: u64) -> Option<Vec<u8>> {
        let next = (from..masks.len()).find(|index| self.demands[*index].merge);
        let Some(index) = next else {
            // What is paired has its place: bits above the pairs' own stay blocked for the others.
            return self.place_rest(masks, pairs);
        };
        let mut even = masks[index];
        while even != 0 {
            let unit = even.trailing_zeros();
            even &= even - 1;
            let both = 0b11 << unit;
            if pairs & both != 0 {
                continue;
            }
            let mut placed = masks.to_vec();
            placed[index] = 1 << unit;
            if let Some(units) = self.place(&placed, index + 1, pairs | both) {
                return Some(units);
            }
        }
        None
    }

    fn place_rest(&self, masks: &[u64], pairs: u64) -> Option<Vec<u8>> {
        let masks: Vec<u64> = masks
            .iter()
            .zip(self.demands)
            .map(|(mask, demand)| if demand.merge { *mask } else { mask & !pairs })
            .collect();
        place_all(&masks, 0)
    }
}
