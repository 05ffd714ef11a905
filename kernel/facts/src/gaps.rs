//! Stolen time: the TSC is read again and again, and where it continued for longer than reading takes, somebody else had the
//! processor. So does Linux's `hwlat` tracer (Documentation/trace/hwlat_detector.rst), and `sysjitter` and `oslat` above a system.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use protocol::record::{Gap, NoiseWindow};

/// Gaps that are kept one by one.
const KEPT: usize = 1000;
/// Powers of two that a time can have.
const BUCKETS: usize = 64;

/// Looks at readings of the TSC.
#[derive(Debug)]
pub struct Gaps {
    threshold: u64,
    /// What counts as a gap now: the reading after one also has the noting of it, and there twice as much counts. Else one gap
    /// would make the next, where the threshold is low.
    limit: u64,
    begin: u64,
    last: u64,
    /// Its window, but for what is known at the end.
    found: NoiseWindow,
}

impl Gaps {
    /// For gaps from so many ticks on. All memory that it will need is taken here: who watches may not wait for an allocator.
    #[must_use]
    pub fn new(threshold: u64) -> Self {
        let buckets = vec![0; BUCKETS];
        let found =
            NoiseWindow { buckets, gaps: Vec::with_capacity(KEPT), ..NoiseWindow::default() };
        let threshold = threshold.max(1);
        Self { threshold, limit: threshold, begin: 0, last: 0, found }
    }

    /// The first reading.
    pub const fn begin(&mut self, now: u64) {
        (self.begin, self.last) = (now, now);
    }

    /// The next one.
    #[inline(always)]
    pub fn see(&mut self, now: u64) {
        let (at, ticks) = (self.last, now.wrapping_sub(self.last));
        self.last = now;
        self.found.reads += 1;
        self.found.buckets[bucket(ticks)] += 1;
        if ticks >= self.limit {
            self.keep(at, ticks);
            return;
        }
        self.limit = self.threshold;
        self.found.longest = self.found.longest.max(ticks);
    }

    #[cold]
    fn keep(&mut self, at: u64, ticks: u64) {
        self.limit = self.threshold.saturating_mul(2);
        let found = &mut self.found;
        found.count += 1;
        found.stolen += ticks;
        found.longest = found.longest.max(ticks);
        if found.gaps.len() < KEPT {
            found.gaps.push(Gap { at: at.wrapping_sub(self.begin), ticks });
        }
    }

    /// What was seen.
    #[must_use]
    pub fn finish(mut self) -> NoiseWindow {
        trim(&mut self.found.buckets);
        NoiseWindow { begin: self.begin, ticks: self.last.wrapping_sub(self.begin), ..self.found }
    }
}

/// The power of two of a time; that of 0 is 0.
#[inline(always)]
const fn bucket(ticks: u64) -> usize {
    63 - (ticks | 1).leading_zeros() as usize
}

/// How many times lie between each two powers of two, up to the last one that has some.
#[must_use]
pub fn buckets(times: &[u64]) -> Vec<u64> {
    let mut all = vec![0; BUCKETS];
    times.iter().for_each(|ticks| all[bucket(*ticks)] += 1);
    trim(&mut all);
    all
}

fn trim(buckets: &mut Vec<u64>) {
    let used = buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    buckets.truncate(used);
}

/// Reads `now` for so many ticks.
#[inline(always)]
pub fn watch(gaps: &mut Gaps, ticks: u64, mut now: impl FnMut() -> u64) {
    let begin = now();
    gaps.begin(begin);
    loop {
        let at = now();
        gaps.see(at);
        if at.wrapping_sub(begin) >= ticks {
            return;
        }
    }
}

/// How many gaps of the first window share at least half of their time with a gap of every other window, the same half with all of
/// them: something took all processors at once, as the handler of a system management interrupt does, which waits for all. Where
/// processors run in turn no more than the change of turns is common to all. 0 of one window. Windows begin in one processor's time.
#[must_use]
pub fn shared(windows: &[NoiseWindow]) -> usize {
    let [first, others @ ..] = windows else { return 0 };
    let own = spans(first).filter(|own| {
        let mut common = vec![own.clone()];
        for window in others {
            let with_each = |one: &Range<u64>| {
                let meet =
                    spans(window).map(|other| other.start.max(one.start)..other.end.min(one.end));
                meet.filter(|both| both.start < both.end).collect::<Vec<_>>()
            };
            common = common.iter().flat_map(with_each).collect();
        }
        common.iter().any(|both| both.end - both.start >= (own.end - own.start) / 2)
    });
    if others.is_empty() { 0 } else { own.count() }
}

/// When a window's gaps were.
fn spans(window: &NoiseWindow) -> impl Iterator<Item = Range<u64>> {
    window.gaps.iter().map(|gap| {
        let at = window.begin.wrapping_add(gap.at);
        at..at.wrapping_add(gap.ticks)
    })
}

#[cfg(test)]
mod tests;
