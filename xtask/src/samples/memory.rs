//! Where sampled data came from, and how long it took.

use super::Profile;
use protocol::record::SourceCount;
use std::collections::BTreeMap;

/// Samples whose data came from one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelCount {
    /// The place.
    pub source: String,
    /// How many.
    pub count: u64,
    /// Of these, how many have a latency.
    pub timed: u64,
    /// Of these, how many had no translation in the second-level TLB; `None` where that is not told.
    pub tlb_misses: Option<u64>,
    /// Cycles to the data, of all of them; 0: they are not told.
    pub latency: u64,
    /// The longest of them.
    pub longest: u32,
    /// Cycles of the other kind, of all of them.
    pub other: u64,
}

impl LevelCount {
    /// Cycles to the data on average, of the samples that tell them.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.latency > 0).then(|| self.latency as f64 / self.timed.max(1) as f64)
    }
}

/// The name of a class of latencies that begins at `least`.
#[must_use]
pub fn class(least: u32) -> String {
    match least {
        0 => "not told".to_string(),
        1 => "1".to_string(),
        _ => format!("{least} to {}", u64::from(least) * 2 - 1),
    }
}

impl Profile<'_> {
    fn sources(&self, event: usize) -> impl Iterator<Item = &SourceCount> {
        self.result.sources.iter().filter(move |row| row.event as usize == event)
    }

    /// Samples of an event by where their data came from, the most frequent first.
    #[must_use]
    pub fn levels(&self, event: usize) -> Vec<LevelCount> {
        let mut levels: BTreeMap<&str, LevelCount> = BTreeMap::new();
        for row in self.sources(event) {
            let level = levels.entry(&row.source).or_default();
            level.count += row.count;
            // The class that begins at 0 has none.
            level.timed += if row.least > 0 { row.count } else { 0 };
            level.latency += row.latency;
            level.longest = level.longest.max(row.longest);
            level.other += row.other;
            if let Some(missed) = row.tlb_miss {
                let more = if missed { row.count } else { 0 };
                level.tlb_misses = Some(level.tlb_misses.unwrap_or(0) + more);
            }
        }
        let named = |(source, level): (&str, LevelCount)| LevelCount {
            source: source.to_string(),
            ..level
        };
        let mut levels: Vec<_> = levels.into_iter().map(named).collect();
        levels.sort_by(|one, other| {
            other.count.cmp(&one.count).then_with(|| one.source.cmp(&other.source))
        });
        levels
    }

    /// Samples of an event by the class of their latency, the shortest first: the least cycles of each, and how many. Empty if no
    /// latency is told.
    #[must_use]
    pub fn latencies(&self, event: usize) -> Vec<(u32, u64)> {
        let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
        for row in self.sources(event) {
            *classes.entry(row.least).or_default() += row.count;
        }
        if classes.keys().all(|least| *least == 0) {
            return Vec::new();
        }
        classes.into_iter().collect()
    }
}
