//! Why a set of requests cannot be counted at the same time, and which of them are to blame.

use super::demand::{Demand, Way};
use super::solve::solve;
use super::{Counter, counter};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use thiserror::Error;

/// How many sets are tried in looking for a smaller conflict.
pub const CONFLICT_BUDGET: u32 = 100_000;

/// A set of requests that cannot be counted at the same time, while every part of it can.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{} cannot be counted at the same time: {reason}", list(.requests))]
pub struct Conflict {
    /// The requests in conflict: their numbers in the list given, and their texts.
    pub requests: Vec<(usize, String)>,
    /// What they compete for.
    pub reason: Reason,
    /// Whether it is certain that no smaller set is in conflict. Else [`CONFLICT_BUDGET`] was not
    /// enough to try all; the set is minimal all the same: without any one of them, the rest fits.
    pub smallest: bool,
}

fn list(requests: &[(usize, String)]) -> String {
    let texts: Vec<&str> = requests.iter().map(|(_, text)| text.as_str()).collect();
    texts.join(", ")
}

/// What requests compete for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// More requests than counters that they could go to.
    Counters {
        /// All counters that any of them could go to.
        counters: Vec<Counter>,
    },
    /// More values than MSRs to hold them.
    Msrs {
        /// The MSRs' addresses.
        addresses: Vec<u32>,
        /// How many different values are wanted in them.
        values: usize,
    },
    /// One of them must be alone on the general-purpose counters.
    Alone,
    /// Large increments take two counters each.
    Pairs,
    /// Several of these at once.
    Several,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counters { counters } => {
                let names: Vec<String> = counters.iter().map(|c| format!("{c}")).collect();
                write!(f, "all of them need one of {}: {}", names.len(), names.join(", "))
            }
            Self::Msrs { addresses, values } => {
                let names: Vec<String> = addresses.iter().map(|a| format!("{a:#x}")).collect();
                let (names, msrs) = (names.join(", "), addresses.len());
                write!(f, "{values} different values for {msrs} extra MSR ({names})")
            }
            Self::Alone => f.write_str("one of them must be alone on the general-purpose counters"),
            Self::Pairs => {
                f.write_str("an event with large increments takes an even counter and the next")
            }
            Self::Several => f.write_str("there are not enough counters and extra MSRs"),
        }
    }
}

/// Names the conflict in a set that has been found impossible.
pub(super) fn find(demands: &[&Demand], text: impl Fn(usize) -> String) -> Conflict {
    let fits = |set: &[usize]| {
        let chosen: Vec<&Demand> = set.iter().map(|index| demands[*index]).collect();
        solve(&chosen).is_some()
    };
    let mut set = minimal(demands.len(), fits);
    let smallest = match smaller(demands, set.len(), fits) {
        Search::Found(better) => {
            set = better;
            true
        }
        Search::None => true,
        Search::GaveUp => false,
    };
    let chosen: Vec<&Demand> = set.iter().map(|index| demands[*index]).collect();
    Conflict {
        requests: set.iter().map(|index| (*index, text(*index))).collect(),
        reason: reason(&chosen),
        smallest,
    }
}

/// A set that does not fit while each of its parts does.
fn minimal(count: usize, fits: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let mut set: Vec<usize> = Vec::new();
    for index in 0..count {
        set.push(index);
        if !fits(&set) {
            break;
        }
    }
    let mut at = 0;
    while at < set.len() {
        let taken = set.remove(at);
        if fits(&set) {
            set.insert(at, taken);
            at += 1;
        }
    }
    set
}

enum Search {
    Found(Vec<usize>),
    None,
    GaveUp,
}

/// Tries all sets of fewer than `size`, the smaller ones first. Equal demands are interchangeable,
/// so sets that differ in nothing but which of them they hold are tried once.
fn smaller(demands: &[&Demand], size: usize, fits: impl Fn(&[usize]) -> bool) -> Search {
    let kinds = kinds(demands);
    let mut budget = CONFLICT_BUDGET;
    for length in 1..size {
        let mut counts = vec![0; kinds.len()];
        if !fill(&mut counts, &kinds, length) {
            break;
        }
        loop {
            if budget == 0 {
                return Search::GaveUp;
            }
            budget -= 1;
            let members = kinds.iter().zip(&counts).flat_map(|(kind, count)| &kind[..*count]);
            let mut set: Vec<usize> = members.copied().collect();
            if !fits(&set) {
                set.sort_unstable();
                return Search::Found(set);
            }
            if !next_counts(&mut counts, &kinds) {
                break;
            }
        }
    }
    Search::None
}

/// The numbers of the demands, equal ones together.
fn kinds(demands: &[&Demand]) -> Vec<Vec<usize>> {
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for (index, demand) in demands.iter().enumerate() {
        match kinds.iter_mut().find(|kind| demands[kind[0]] == *demand) {
            Some(kind) => kind.push(index),
            None => kinds.push(vec![index]),
        }
    }
    kinds
}

/// Spreads `total` over the first kinds that have room. `false`: there is not room enough.
fn fill(counts: &mut [usize], kinds: &[Vec<usize>], mut total: usize) -> bool {
    for (count, kind) in counts.iter_mut().zip(kinds) {
        *count = total.min(kind.len());
        total -= *count;
    }
    total == 0
}

/// The next way to spread the same total over the kinds.
fn next_counts(counts: &mut [usize], kinds: &[Vec<usize>]) -> bool {
    let mut freed = 0;
    for at in 0..counts.len() {
        if freed > 0 && counts[at] < kinds[at].len() {
            counts[at] += 1;
            counts[..at].fill(0);
            return fill(&mut counts[..at], &kinds[..at], freed - 1);
        }
        freed += counts[at];
    }
    false
}

/// What it is that cannot be shared: the one restriction without which the set would fit.
fn reason(set: &[&Demand]) -> Reason {
    let would_fit = |change: fn(&mut Demand)| {
        let changed: Vec<Demand> = set
            .iter()
            .map(|demand| {
                let mut demand = (*demand).clone();
                change(&mut demand);
                demand
            })
            .collect();
        solve(&changed.iter().collect::<Vec<_>>()).is_some()
    };
    let without_msrs = |demand: &mut Demand| {
        demand.ways = [Way { units: demand.units, msr: None }].into();
    };
    if would_fit(|demand| demand.alone = false) {
        return Reason::Alone;
    }
    if would_fit(without_msrs) {
        let mut msrs: Vec<_> =
            set.iter().flat_map(|demand| &demand.ways).filter_map(|way| way.msr).collect();
        let mut values: Vec<u64> = msrs.iter().map(|msr| msr.value).collect();
        values.sort_unstable();
        values.dedup();
        msrs.sort_unstable();
        msrs.dedup_by_key(|msr| msr.address);
        return Reason::Msrs {
            addresses: msrs.into_iter().map(|msr| msr.address).collect(),
            values: values.len(),
        };
    }
    if would_fit(|demand| demand.merge = false) {
        return Reason::Pairs;
    }
    let units = set.iter().fold(0_u64, |units, demand| units | demand.units);
    let plain = set.iter().all(|demand| demand.is_plain());
    if plain || set.len() > units.count_ones() as usize {
        let bits = (0..64_u8).filter(|unit| units >> unit & 1 == 1);
        return Reason::Counters { counters: bits.map(counter).collect() };
    }
    Reason::Several
}
