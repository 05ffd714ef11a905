//! For tests: the same question answered by trying everything.

use super::demand::{Demand, FIXED_UNITS};
use super::solve::Solution;
use crate::msr::MsrValue;
use proptest::prelude::*;

/// Whether any choice of way and unit for each demand works.
pub(crate) fn fits(demands: &[&Demand]) -> bool {
    let alone = demands.iter().filter(|demand| demand.alone).count();
    try_all(demands, 0, &mut Vec::new(), (alone, demands.len()))
}

fn try_all(
    demands: &[&Demand],
    taken: u64,
    msrs: &mut Vec<MsrValue>,
    counts: (usize, usize),
) -> bool {
    let Some((first, rest)) = demands.split_first() else {
        return true;
    };
    for way in &first.ways {
        for unit in 0..64 {
            let bits = if first.merge { 0b11 << unit } else { 1 << unit };
            if way.units >> unit & 1 == 0 || taken & bits != 0 {
                continue;
            }
            // With an exclusive demand among several, all others are on fixed counters.
            let (alone, all) = counts;
            let general = (1_u64 << unit) & FIXED_UNITS == 0;
            if alone > 1 && all > 1 || alone == 1 && !first.alone && general {
                continue;
            }
            let held = way.msr.and_then(|msr| msrs.iter().find(|held| held.address == msr.address));
            if held.is_some_and(|held| Some(*held) != way.msr) {
                continue;
            }
            let new = way.msr.filter(|_| held.is_none());
            msrs.extend(new);
            if try_all(rest, taken | bits, msrs, counts) {
                return true;
            }
            if new.is_some() {
                msrs.pop();
            }
        }
    }
    false
}

/// Panics unless the solution keeps to every rule.
pub(crate) fn check(demands: &[&Demand], solution: &Solution) {
    assert_eq!(demands.len(), solution.units.len());
    let mut taken = 0_u64;
    for (demand, unit) in demands.iter().zip(&solution.units) {
        let bits = if demand.merge { 0b11 << unit } else { 1 << unit };
        assert_eq!(taken & bits, 0, "{demands:?} {solution:?}");
        taken |= bits;
        let held =
            |way: &&super::demand::Way| way.msr.is_none_or(|msr| solution.msrs.contains(&msr));
        let ways = demand.ways.iter().filter(held);
        assert!(ways.clone().any(|way| way.units >> unit & 1 == 1), "{demands:?} {solution:?}");
    }
    for (index, msr) in solution.msrs.iter().enumerate() {
        let again = solution.msrs[..index].iter().any(|other| other.address == msr.address);
        assert!(!again, "{solution:?}");
    }
    if demands.iter().any(|demand| demand.alone) {
        let mut general = demands.iter().zip(&solution.units).filter(|(_, unit)| **unit < 48);
        let first = general.next();
        assert!(first.is_none_or(|(demand, _)| demand.alone), "{demands:?} {solution:?}");
        assert!(general.next().is_none(), "{demands:?} {solution:?}");
    }
}

/// Demands of every kind on up to `counters` general-purpose counters and two fixed ones.
pub(crate) fn any_demand(counters: u32) -> impl Strategy<Value = Demand> {
    let all = (1_u64 << counters) - 1;
    let msr = prop_oneof![
        3 => Just(0_u8),
        1 => 1..3_u8,
        1 => Just(3_u8),
        1 => Just(4_u8),
    ];
    (1..=all, 0..4_u8, msr, 0..3_u64, 0..8_u8, 0..10_u8).prop_map(
        move |(units, fixed, msr, value, merge, alone)| {
            let at = |address| MsrValue { address, value };
            let way = |units, msr| super::demand::Way { units, msr };
            let even = units & 0x5555 & all >> 1;
            if merge == 0 && even != 0 {
                return Demand::of(vec![way(even, None)], true, false);
            }
            let ways = match msr {
                0 if fixed > 1 => vec![way(1 << (46 + fixed), None), way(units, None)],
                0 => vec![way(units, None)],
                // One MSR, the other, or either, with the same value or with another.
                3 | 4 => {
                    let second = MsrValue { address: 2, value: value + u64::from(msr == 4) };
                    let units_there = units.rotate_left(1) & all | 1;
                    vec![way(units, Some(at(1))), way(units_there, Some(second))]
                }
                msr => vec![way(units, Some(at(msr.into())))],
            };
            let alone = alone == 0 && ways.len() == 1;
            Demand::of(ways, false, alone)
        },
    )
}
