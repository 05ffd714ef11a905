//! What sampling found, resolved: addresses as symbols, lines and instructions.
//!
//! [`Profile::of`] brings a histogram and single samples to the same rows; [`folded`] and [`pprof`] write them for
//! viewers that exist.

pub mod data;
pub mod edges;
pub mod folded;
pub mod groups;
mod listing;
pub mod memory;
pub mod pprof;
pub mod processors;
mod resolve;
pub(crate) mod retired;
pub mod saved;
pub mod stacks;

pub use listing::{Listed, Listing};
pub use resolve::{Place, Resolver, short};

use crate::collect::Report;
use protocol::hex::Hex;
use protocol::record::{DataCount, SampleResult};
use std::collections::{BTreeMap, HashSet};

/// Samples of one event at one address, in one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the event among those of the item.
    pub event: usize,
    /// The task's name.
    pub task: String,
    /// Its ring.
    pub ring: u8,
    /// What was interrupted: 64-bit or 32-bit code.
    pub bits: u8,
    /// The processor.
    pub cpu: u16,
    /// The address.
    pub address: u64,
    /// What lies there.
    pub place: Place,
    /// How many samples.
    pub count: u64,
}

/// All samples of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile<'a> {
    /// The item's result.
    pub result: &'a SampleResult,
    /// The samples, of each event the most frequent address first.
    pub rows: Vec<Row>,
    /// The data addresses, where samples have such, of each event the most frequent first.
    pub data: Vec<DataCount>,
    /// The branches that were recorded before the samples, most often first.
    pub edges: Vec<edges::EdgeRow>,
    /// The calls that led to the samples, where they are known, most often first.
    pub stacks: Vec<stacks::StackRow>,
    /// Values of counters at single samples, and their vector registers, where they were kept.
    pub values: Vec<groups::ValueRow>,
    /// See `values`.
    pub vectors: Vec<groups::VectorRow>,
    /// The code that was sampled, whole functions where that is known.
    pub listings: Vec<Listing>,
}

/// What samples are told apart by: event, task, ring, bits, address, processor.
type Key = (usize, u32, u8, u8, u64, u16);

impl<'a> Profile<'a> {
    /// The profile of each sampled item of `report`.
    #[must_use]
    pub fn of(report: &'a Report, resolver: &Resolver) -> Vec<Self> {
        report.sampled().map(|result| Self::one(report, result, resolver)).collect()
    }

    /// What needs no resolver: data, their sources and latencies.
    pub(crate) fn bare(report: &'a Report, result: &'a SampleResult) -> Self {
        Self {
            result,
            rows: Vec::new(),
            data: data::addresses(report, result),
            edges: Vec::new(),
            stacks: Vec::new(),
            values: groups::values(report, result),
            vectors: groups::vectors(report, result),
            listings: Vec::new(),
        }
    }

    fn one(report: &'a Report, result: &'a SampleResult, resolver: &Resolver) -> Self {
        let mut counts: BTreeMap<Key, (u64, String)> = BTreeMap::new();
        for row in &result.addresses {
            let key = (row.event as usize, row.task, row.ring, row.bits, row.address.0, row.cpu);
            let seen = counts.entry(key).or_default();
            seen.0 += row.count;
            seen.1.clone_from(&row.bytes);
        }
        for samples in report.samples(result.item) {
            let compatibility: HashSet<u32> = samples.compatibility.iter().copied().collect();
            for (index, (address, _, events, task)) in (0..).zip(samples.iter()) {
                let bits = if compatibility.contains(&index) { 32 } else { 64 };
                for event in inside_events(events, result) {
                    let key = (event, task >> 2, (task & 3) as u8, bits, address, samples.cpu);
                    counts.entry(key).or_default().0 += 1;
                }
            }
        }
        let rows =
            counts.into_iter().map(|((event, task, ring, bits, address, cpu), (count, bytes))| {
                let name = result.tasks.get(task as usize);
                Row {
                    event,
                    task: name.cloned().unwrap_or_else(|| format!("task {task}")),
                    ring,
                    bits,
                    cpu,
                    address,
                    place: resolver.place(result, task, address, &bytes, bits),
                    count,
                }
            });
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_by_key(|row| (row.event, std::cmp::Reverse(row.count), row.address));
        let listings = listing::of(resolver, result, &rows);
        let (edges, stacks) = (edges::rows(result, resolver), stacks::rows(result, resolver));
        let (values, vectors) = (groups::values(report, result), groups::vectors(report, result));
        let data = data::addresses(report, result);
        Self { result, rows, data, edges, stacks, values, vectors, listings }
    }

    /// All samples of an event.
    #[must_use]
    pub fn total(&self, event: usize) -> u64 {
        self.rows.iter().filter(|row| row.event == event).map(|row| row.count).sum()
    }

    /// Samples of an event by task and symbol, the most frequent first.
    #[must_use]
    pub fn symbols(&self, event: usize) -> Vec<SymbolCount> {
        let mut sums: BTreeMap<(&str, u8, u8, &str), u64> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.event == event) {
            let key = (&*row.task, row.ring, row.bits, &*row.place.symbol);
            *sums.entry(key).or_default() += row.count;
        }
        let count = |((task, ring, bits, symbol), count): ((&str, u8, u8, &str), u64)| {
            SymbolCount { task: task.to_string(), ring, bits, symbol: symbol.to_string(), count }
        };
        let mut sums: Vec<_> = sums.into_iter().map(count).collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.count));
        sums
    }
}

/// Samples of one event in one function, or after one label, of one task.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SymbolCount {
    /// The task's name.
    pub task: String,
    /// The ring.
    pub ring: u8,
    /// 64-bit or 32-bit code.
    pub bits: u8,
    /// The symbol.
    pub symbol: String,
    /// How many samples.
    pub count: u64,
}

/// The indices of the events that a sample is of.
fn inside_events(events: u32, result: &SampleResult) -> impl Iterator<Item = usize> + use<> {
    (0..result.events.len().min(32)).filter(move |event| events >> event & 1 != 0)
}

/// What is said after the name of code that is not the usual: 32-bit code.
#[must_use]
pub fn width(bits: u8) -> &'static str {
    if bits == 32 { " (32-bit)" } else { "" }
}

/// Whether an address lies between the two.
fn inside(range: &[Hex; 2], address: u64) -> bool {
    (range[0].0..range[1].0).contains(&address)
}

#[cfg(test)]
mod tests;
