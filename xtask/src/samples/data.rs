//! Data addresses of precise samples, by cache line.

use super::{Profile, inside_events};
use crate::collect::Report;
use protocol::record::{DataCount, Hex, SampleResult};
use std::collections::BTreeMap;

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 64;

/// Samples whose data lay in one cache line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineCount {
    /// The line's address.
    pub line: u64,
    /// How many different addresses of it.
    pub addresses: usize,
    /// How many samples.
    pub count: u64,
}

/// The data addresses of an item: its histogram's, or those of its single samples.
#[must_use]
pub fn addresses(report: &Report, result: &SampleResult) -> Vec<DataCount> {
    let mut counts: BTreeMap<(u32, u32, u64), u64> = BTreeMap::new();
    for row in &result.data {
        *counts.entry((row.event, row.task, row.address.0)).or_default() += row.count;
    }
    for chunk in report.samples(result.item) {
        for ((_, _, events, task), address) in chunk.iter().zip(&chunk.data) {
            for event in inside_events(events, result).filter(|_| address.0 != 0) {
                *counts.entry((event as u32, task >> 2, address.0)).or_default() += 1;
            }
        }
    }
    let row =
        |((event, task, address), count)| DataCount { address: Hex(address), event, task, count };
    let mut rows: Vec<_> = counts.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row.event, std::cmp::Reverse(row.count), row.address.0, row.task));
    rows
}

impl Profile<'_> {
    /// Samples of an event by cache line of their data, the most frequent first.
    #[must_use]
    pub fn lines(&self, event: usize) -> Vec<LineCount> {
        let mut lines: BTreeMap<u64, (Vec<u64>, u64)> = BTreeMap::new();
        for row in self.data.iter().filter(|row| row.event as usize == event) {
            let line = lines.entry(row.address.0 & !(LINE_BYTES - 1)).or_default();
            if !line.0.contains(&row.address.0) {
                line.0.push(row.address.0);
            }
            line.1 += row.count;
        }
        let count = |(line, (addresses, count)): (u64, (Vec<u64>, u64))| LineCount {
            line,
            addresses: addresses.len(),
            count,
        };
        let mut lines: Vec<_> = lines.into_iter().map(count).collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.count), line.line));
        lines
    }
}
