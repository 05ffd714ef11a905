//! Data addresses of precise samples, by cache line and page.

use super::{Profile, inside_events};
use crate::collect::Report;
use protocol::hex::Hex;
use protocol::record::{DataCount, SampleResult};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 64;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Samples whose data lay in one cache line or page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineCount {
    /// The line's address.
    pub line: u64,
    /// How many different addresses of it.
    pub addresses: usize,
    /// How many samples.
    pub count: u64,
    /// Cycles to the data, of all of them; `None` where they are not told.
    pub latency: Option<u64>,
    /// The longest of them.
    pub longest: Option<u32>,
    /// How many samples have a latency.
    pub timed: u64,
}

impl LineCount {
    /// Cycles to the data on average, of the samples that tell them.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        Some(self.latency? as f64 / self.timed.max(1) as f64)
    }
}

/// How many samples of a row have a latency.
fn timed(row: &DataCount) -> u64 {
    row.timed.unwrap_or(if row.latency.is_some() { row.count } else { 0 })
}

/// Adds `more` to a sum that may not be told.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}

/// The data addresses of an item: its histogram's, or those of its single samples.
#[must_use]
pub fn addresses(report: &Report, result: &SampleResult) -> Vec<DataCount> {
    let mut counts: BTreeMap<(u32, u32, u64), DataCount> = BTreeMap::new();
    let mut count = |more: DataCount| {
        let key = (more.event, more.task, more.address.0);
        let nothing = DataCount { count: 0, latency: None, longest: None, timed: None, ..more };
        let row = counts.entry(key).or_insert(nothing);
        row.count += more.count;
        row.timed = Some(row.timed.unwrap_or(0) + timed(&more));
        add(&mut row.latency, more.latency);
        row.longest = row.longest.max(more.longest);
    };
    result.data.iter().cloned().for_each(&mut count);
    for chunk in report.samples(result.item) {
        for (index, ((_, _, events, task), &address)) in chunk.iter().zip(&chunk.data).enumerate() {
            let latency = chunk.latencies.get(index).copied().filter(|cycles| *cycles > 0);
            for event in inside_events(events, result).filter(|_| address.0 != 0) {
                count(DataCount {
                    address: Hex(address.0),
                    event: event as u32,
                    task: task >> 2,
                    count: 1,
                    latency: latency.map(u64::from),
                    longest: latency,
                    timed: None,
                });
            }
        }
    }
    let mut rows: Vec<_> = counts.into_values().collect();
    rows.sort_by_key(|row| (row.event, std::cmp::Reverse(row.count), row.address.0, row.task));
    rows
}

impl Profile<'_> {
    /// Samples of an event by cache line of their data, the most frequent first.
    #[must_use]
    pub fn lines(&self, event: usize) -> Vec<LineCount> {
        self.blocks(event, LINE_BYTES)
    }

    /// The same by page.
    #[must_use]
    pub fn pages(&self, event: usize) -> Vec<LineCount> {
        self.blocks(event, PAGE_BYTES)
    }

    /// The same by blocks of so many bytes, a power of two.
    fn blocks(&self, event: usize, bytes: u64) -> Vec<LineCount> {
        let mut lines: BTreeMap<u64, (BTreeSet<u64>, LineCount)> = BTreeMap::new();
        for row in self.data.iter().filter(|row| row.event as usize == event) {
            let at = row.address.0 & !(bytes - 1);
            let none = LineCount {
                line: at,
                addresses: 0,
                count: 0,
                latency: None,
                longest: None,
                timed: 0,
            };
            let (addresses, line) = lines.entry(at).or_insert((BTreeSet::new(), none));
            addresses.insert(row.address.0);
            line.addresses = addresses.len();
            line.count += row.count;
            line.timed += timed(row);
            add(&mut line.latency, row.latency);
            line.longest = line.longest.max(row.longest);
        }
        let mut lines: Vec<_> = lines.into_values().map(|(_, line)| line).collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.count), line.line));
        lines
    }
}
