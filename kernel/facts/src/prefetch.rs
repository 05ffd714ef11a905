//! Prefetchers of data: which lines are there before they are loaded.
//!
//! All caches are emptied, some lines are loaded, and then one more, whose time says whether it was brought, and from how far it still has to
//! come. Each run is in a page of 4 KiB of its own, so that what was learnt from one says nothing of another. The last line that is loaded is
//! the one of its aligned pair that lies in the direction of the stream: so a prefetcher of pairs brings nothing that is timed.

use crate::finder::TRIES;
use crate::probe::{Flush, LARGE, Probe, Run};
use alloc::vec::Vec;
use protocol::record::{PrefetchFacts, PrefetchStream};

/// Bytes of a page, which few prefetchers leave.
const PAGE: u64 = 4096;
/// Farthest line that is timed, in strides.
const MOST_AHEAD: u32 = 24;

/// A search.
struct Search<'p, P> {
    probe: &'p mut P,
    /// Bytes of a line.
    line: u64,
    /// The page of the last run.
    page: u64,
}

/// Finds out what is brought. `cold`: cycles of a load beyond a hit, of a line that no cache has.
pub fn measure(probe: &mut impl Probe, line: u64, cold: u64) -> PrefetchFacts {
    let mut search = Search { probe, line, page: 0 };
    // The upper line of a pair, the lower one, and the one after a pair.
    let pair = [[2, 3], [3, 2], [3, 4]].map(|lines| search.time(&lines));
    let mut facts = PrefetchFacts { cold, pair, ..PrefetchFacts::default() };
    for stride in PrefetchFacts::STRIDES {
        for loads in 1..=PrefetchFacts::MOST_LOADS {
            let cycles = search.stream(stride, loads, &facts);
            facts.streams.push(PrefetchStream { stride, loads, cycles });
        }
        search.probe.beat();
    }
    facts.across = Some(search.across());
    facts
}

impl<P: Probe> Search<'_, P> {
    fn lines(&self) -> u64 {
        PAGE / self.line
    }

    /// Cycles of the load of the last line of a list, all of one page, from its beginning.
    fn time(&mut self, lines: &[u64]) -> u64 {
        let pages = self.probe.large_page().min(self.probe.bytes()) / PAGE;
        // Two further on: a list may go on in the next page.
        self.page = (self.page + 2) % (pages - 2);
        let at = self.page * PAGE;
        let places: Vec<u64> = lines.iter().map(|line| (at + line * self.line) | LARGE).collect();
        let run =
            Run { flush: Flush::Caches, places: &places, skip: places.len() - 1, tries: TRIES };
        self.probe.cycles(&run)
    }

    /// Cycles of the lines after so many of a stream, up to the first one that was not brought.
    fn stream(&mut self, stride: i32, loads: u32, facts: &PrefetchFacts) -> Vec<u64> {
        let (step, loads) = (u64::from(stride.unsigned_abs()), u64::from(loads));
        // The last one is odd: the upper line of its pair.
        let first = 1 + (loads - 1) * step % 2;
        let last = first + (loads - 1) * step;
        let mut all = Vec::new();
        for ahead in 1..=u64::from(MOST_AHEAD) {
            let target = last + ahead * step;
            if target >= self.lines() {
                break;
            }
            let mut lines: Vec<u64> = (0..loads).map(|at| first + at * step).collect();
            lines.push(target);
            if stride < 0 {
                // The same from the other end, where the last one is the lower line of its pair.
                lines.iter_mut().for_each(|line| *line = self.lines() - 1 - *line);
            }
            let cycles = self.time(&lines);
            all.push(cycles);
            if !facts.is_early(cycles) {
                break;
            }
        }
        all
    }

    /// The line after a page and the one before it, each after a stream up to there.
    fn across(&mut self) -> [u64; 2] {
        let (loads, lines) = (u64::from(PrefetchFacts::MOST_LOADS), self.lines());
        let up: Vec<u64> = (lines - loads..=lines).collect();
        // From the page after to the last line of this one.
        let down: Vec<u64> = (lines - 1..lines + loads).rev().collect();
        [self.time(&up), self.time(&down)]
    }
}
