//! What a processor's prefetchers of data bring, as measured.

use super::slack;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

/// Cycles by which a load that the first level does not serve is slower than one that it serves, at least.
const MISS: u64 = 3;

/// Prefetchers of data, seen at work. Times are in cycles beyond a hit of the first level, or in ticks of the TSC.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchFacts {
    /// A load that nothing brought.
    pub cold: u64,
    /// A load after one of a neighbouring line: of the upper line of an aligned pair, of the lower line, and of the line after a pair.
    pub pair: [u64; 3],
    /// Loads of lines at one distance, and of those after them.
    pub streams: Vec<PrefetchStream>,
    /// The first line of the next page of 4 KiB after a stream to the end of a page, and the last line of the page before one
    /// after a stream to its beginning; absent: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<[u64; 2]>,
}

/// Loads of some lines, each of which was cold, and of one after them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchStream {
    /// From one line to the next, in lines; less than 0: towards lower addresses.
    pub stride: i32,
    /// How many lines were loaded.
    pub loads: u32,
    /// A load of the line that many strides after the last one, from 1 on, each in a run of its own. The last one of the list was
    /// slow, or there was no room for more.
    pub cycles: Vec<u64>,
}

/// A prefetcher that was seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prefetched {
    /// From one line to the next, in lines.
    pub stride: i32,
    /// The least number of loads after which it brings something.
    pub after: u32,
    /// The farthest line that it brought, in strides.
    pub ahead: u32,
    /// The line after that one was not measured, so it may bring more.
    pub at_least: bool,
    /// Of the loads of what it brought, the quickest and the slowest.
    pub cycles: [u64; 2],
}

impl Prefetched {
    /// The names of its figures: loads before it brings something into the first level or into others, and lines.
    #[must_use]
    pub fn figures(stride: i32, first: bool) -> [String; 2] {
        let level = if first { "L1" } else { "others" };
        ["after loads", "lines"]
            .map(|what| format!("prefetched into {level} at stride {stride} {what}"))
    }
}

impl PrefetchFacts {
    /// Lines between two of a stream, towards higher and lower addresses: those that are tried.
    pub const STRIDES: [i32; 8] = [1, -1, 2, -2, 3, -3, 4, -4];
    /// Most lines that are loaded before.
    pub const MOST_LOADS: u32 = 8;

    /// Whether a line was brought before it was loaded: the load is a quarter quicker than a cold one.
    #[must_use]
    pub fn is_early(&self, cycles: u64) -> bool {
        self.cold > MISS && cycles + slack(self.cold) <= self.cold
    }

    /// Whether a line comes with the other one of its aligned pair. `None`: lines come with others, too.
    #[must_use]
    pub fn pairs(&self) -> Option<bool> {
        match self.pair.map(|cycles| self.is_early(cycles)) {
            [true, true, false] => Some(true),
            [false, false, _] => Some(false),
            _ => None,
        }
    }

    /// What brings lines of a stride into the first level, and what brings them into others.
    #[must_use]
    pub fn stream(&self, stride: i32) -> [Option<Prefetched>; 2] {
        [true, false].map(|first| {
            let is_own = |cycles: u64| self.is_early(cycles) && (cycles < MISS) == first;
            let mut found: Option<Prefetched> = None;
            for row in self.streams.iter().filter(|row| row.stride == stride) {
                for (at, &cycles) in row.cycles.iter().enumerate().filter(|(_, own)| is_own(**own))
                {
                    let ahead = at as u32 + 1;
                    let at_least = row.cycles.len() == at + 1;
                    let new = Prefetched {
                        stride,
                        after: row.loads,
                        ahead,
                        at_least,
                        cycles: [cycles; 2],
                    };
                    let one = found.get_or_insert(new);
                    one.at_least = match ahead.cmp(&one.ahead) {
                        Ordering::Less => one.at_least,
                        Ordering::Equal => one.at_least && at_least,
                        Ordering::Greater => at_least,
                    };
                    one.after = one.after.min(row.loads);
                    one.ahead = one.ahead.max(ahead);
                    one.cycles = [one.cycles[0].min(cycles), one.cycles[1].max(cycles)];
                }
            }
            found
        })
    }

    /// All strides that were tried, in their order.
    pub fn strides(&self) -> impl Iterator<Item = i32> {
        let rows = self.streams.iter().enumerate();
        let first = |at: usize, stride| self.streams[..at].iter().all(|one| one.stride != stride);
        rows.filter(move |(at, row)| first(*at, row.stride)).map(|(_, row)| row.stride)
    }

    /// Whether streams go on in the next page; `None`: not measured, or there are none.
    #[must_use]
    pub fn crosses_pages(&self) -> Option<[bool; 2]> {
        let across = self.across?;
        let seen = [1, -1].map(|stride| self.stream(stride).iter().any(Option::is_some));
        let any = seen[0] || seen[1];
        any.then(|| across.map(|cycles| self.is_early(cycles)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn row(stride: i32, loads: u32, cycles: &[u64]) -> PrefetchStream {
        PrefetchStream { stride, loads, cycles: cycles.to_vec() }
    }

    fn facts() -> PrefetchFacts {
        let streams = vec![
            row(1, 1, &[196]),
            row(1, 2, &[0, 196]),
            row(1, 3, &[0, 10, 11, 196]),
            row(-1, 3, &[190]),
            row(-1, 4, &[12, 196]),
        ];
        PrefetchFacts { cold: 196, pair: [196; 3], streams, across: Some([196, 30]) }
    }

    #[test]
    fn d1_what_comes_into_the_first_level_and_into_others_are_two_prefetchers() {
        let first = Prefetched { stride: 1, after: 2, ahead: 1, at_least: false, cycles: [0, 0] };
        let other = Prefetched { stride: 1, after: 3, ahead: 3, at_least: false, cycles: [10, 11] };
        assert_eq!(facts().stream(1), [Some(first), Some(other)]);
        let down = Prefetched { stride: -1, after: 4, ahead: 1, at_least: false, cycles: [12, 12] };
        assert_eq!(facts().stream(-1), [None, Some(down)]);
        assert_eq!(facts().stream(2), [None, None]);
        assert_eq!(facts().strides().collect::<Vec<_>>(), [1, -1]);
    }

    /// The page or the search ended with a line that was brought; another row that goes on says that it was the last one.
    #[test]
    fn d1_what_ends_with_a_line_that_was_brought_is_at_least_that() {
        let of = |streams| {
            let [_, other] = PrefetchFacts { streams, ..facts() }.stream(2);
            other.map(|one| (one.ahead, one.at_least))
        };
        let (ended, cut) = (row(2, 3, &[10, 10, 196]), row(2, 4, &[10, 10]));
        assert_eq!(of(vec![cut.clone()]), Some((2, true)));
        assert_eq!(of(vec![cut.clone(), ended.clone()]), Some((2, false)));
        assert_eq!(of(vec![ended.clone(), cut]), Some((2, false)));
        assert_eq!(of(vec![ended, row(2, 5, &[10, 10, 10])]), Some((3, true)));
        // What comes into the first level ends where others begin.
        let mixed = PrefetchFacts { streams: vec![row(2, 3, &[0, 10])], ..facts() };
        assert_eq!(mixed.stream(2).map(|one| one.unwrap().at_least), [false, true]);
    }

    #[test]
    fn d1_pairs_are_seen_from_both_sides() {
        let with = |pair| PrefetchFacts { pair, ..facts() }.pairs();
        assert_eq!(with([10, 11, 196]), Some(true));
        assert_eq!(with([190, 196, 196]), Some(false));
        // The next line comes, whatever pair it is of.
        assert_eq!(with([10, 196, 10]), None);
        assert_eq!(with([10, 10, 10]), None);
    }

    #[test]
    fn d1_pages_are_crossed_by_streams_alone() {
        assert_eq!(facts().crosses_pages(), Some([false, true]));
        let none = PrefetchFacts { streams: vec![row(1, 8, &[196])], ..facts() };
        assert_eq!(none.crosses_pages(), None);
        assert_eq!(PrefetchFacts { across: None, ..facts() }.crosses_pages(), None);
    }

    #[test]
    fn d1_where_caches_save_nothing_nothing_is_early() {
        let flat = PrefetchFacts { cold: 3, pair: [0; 3], ..facts() };
        assert_eq!((flat.pairs(), flat.stream(1)), (Some(false), [None, None]));
    }
}
