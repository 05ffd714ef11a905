//! The planning problem: demands, which of them go together, and which go everywhere.

use crate::assign::demand::Demand;
use crate::assign::solve::solve;
use alloc::vec::Vec;

/// Items are sets of demands that share a pass; every item goes into exactly one pass.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub demands: Vec<Demand>,
    pub items: Vec<Vec<usize>>,
    pub correlates: Vec<usize>,
}

impl Problem {
    /// Whether the items with these numbers fit into one pass, the correlates in addition to them.
    pub fn fits(&self, items: &[usize]) -> bool {
        solve(&self.pass(items)).is_some()
    }

    /// All demands of a pass with these items, the correlates last.
    pub fn pass(&self, items: &[usize]) -> Vec<&Demand> {
        self.numbers(items).iter().map(|number| &self.demands[*number]).collect()
    }

    /// The numbers of these demands.
    pub fn numbers(&self, items: &[usize]) -> Vec<usize> {
        let members = items.iter().flat_map(|item| &self.items[*item]);
        members.chain(&self.correlates).copied().collect()
    }

    /// For each demand that needs one value in an MSR: the MSRs that will do, as bits, and the
    /// value.
    pub fn msr_values(&self) -> Vec<Option<(u64, u64)>> {
        let mut addresses: Vec<u32> = Vec::new();
        let mut bit = |address: u32| {
            let at = addresses.iter().position(|known| *known == address).unwrap_or_else(|| {
                addresses.push(address);
                addresses.len() - 1
            });
            1_u64.checked_shl(at as u32).unwrap_or(0)
        };
        let one_value = |demand: &Demand| {
            let value = demand.ways.first()?.msr?.value;
            let mut msrs = 0;
            for way in &demand.ways {
                let msr = way.msr.filter(|msr| msr.value == value)?;
                msrs |= bit(msr.address);
            }
            Some((msrs, value))
        };
        self.demands.iter().map(one_value).collect()
    }

    /// Items by how hard they are to place, the hardest first; equal ones stand together.
    pub fn hardest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_cached_key(|item| {
            let members = || self.items[*item].iter().map(|number| &self.demands[*number]);
            let alone = members().any(|demand| demand.alone);
            let merges = members().filter(|demand| demand.merge).count();
            let msrs = members().filter(|demand| demand.ways[0].msr.is_some()).count();
            let units: u32 = members().map(|demand| demand.units.count_ones()).sum();
            let signature = members().map(|demand| (demand.units, demand.ways[0].msr)).min();
            let size = self.items[*item].len() + merges;
            (core::cmp::Reverse((alone, size, msrs)), units, signature)
        });
        order
    }

    /// Whether two items request the very same.
    pub fn same(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.items[a], &self.items[b]);
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.demands[*a] == self.demands[*b])
    }
}
