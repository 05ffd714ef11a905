//! How much of a set's counts has gone to somebody.

use super::reading::NEVER;
use super::{Count, Counts, Mismatch};

/// The counts up to which everything was charged to whoever ran. As long as all requests have been counted all the time that
/// the set counted, their times are one, and kept as one.
#[derive(Clone, Debug)]
pub struct Charged {
    counts: Counts,
    /// The time of each request, where those of `counts` are out of date; else [`NEVER`].
    time: u64,
}

impl Charged {
    /// Nothing but what the set started from.
    #[must_use]
    pub fn new(start: Counts) -> Self {
        let mut new = Self { counts: start, time: NEVER };
        new.find_time();
        new
    }

    /// The counts.
    pub fn counts(&mut self) -> &Counts {
        let time = core::mem::replace(&mut self.time, NEVER);
        if time != NEVER {
            for count in self.counts.counts_mut() {
                (count.counted, count.enabled) = (time, time);
            }
        }
        &self.counts
    }

    /// All was charged up to `now`.
    ///
    /// # Errors
    /// They are another set's.
    pub fn up_to(&mut self, now: &Counts) -> Result<(), Mismatch> {
        self.counts.copy(now)?;
        self.find_time();
        Ok(())
    }

    fn find_time(&mut self) {
        let mut all = self.counts.counts().iter();
        let time = all.next().map_or(NEVER, |first| first.enabled);
        let is_one = self.counts.counts().iter().all(|one| [one.counted, one.enabled] == [time; 2]);
        self.time = if is_one { time } else { NEVER };
    }

    /// The time of each request; `None`: they differ.
    #[inline]
    pub(super) const fn time(&self) -> Option<u64> {
        if self.time == NEVER { None } else { Some(self.time) }
    }

    /// All was charged up to that time.
    #[inline]
    pub(super) const fn pass(&mut self, time: u64) {
        self.time = time;
    }

    /// The first `requests` were charged up to `time`, the others up to `before`.
    #[cold]
    #[inline(never)]
    pub(super) fn part(&mut self, requests: usize, [time, before]: [u64; 2]) {
        self.time = NEVER;
        for (index, count) in self.counts.counts_mut().iter_mut().enumerate() {
            let time = if index < requests { time } else { before };
            (count.counted, count.enabled) = (time, time);
        }
    }

    /// Those up to which events were charged; the times are out of date.
    #[inline]
    pub(super) fn raw(&mut self) -> &mut [Count] {
        self.counts.counts_mut()
    }
}
