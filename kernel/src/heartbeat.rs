//! How far the run is, told while items run.
//!
//! The loop over the items and what runs one of them write to the same report: the former its records, the latter at most
//! one progress record in a while. A step or a tick that finds the report in use says nothing.

use crate::console::Terminal;
use crate::report::{Report, Sink};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use protocol::console::Received;
use protocol::record::{Progress, Record, Within};
use spin::Mutex;

/// The report of a run, and when it last told how far the run is.
pub struct Heartbeat<'a, S> {
    report: Mutex<&'a mut Report<S>>,
    /// TSC ticks between two progress records.
    ticks: u64,
    /// TSC at the last one, or at the beginning.
    last: AtomicU64,
    done: AtomicU32,
    total: u32,
}

/// What an item tells how far it is, whatever the report is written to.
pub trait Beat: Sync {
    /// At TSC `now` the item is so far. Most calls come too early and do nothing, so whoever loops may call it often.
    fn beat(&self, now: u64, within: Within);
    /// TSC ticks from `now` in which a call would be too early; 0: one now would not be.
    fn early_for(&self, now: u64) -> u64;
    /// The line that the report goes out on, if something can come in there.
    fn terminal(&self) -> Option<&dyn Terminal> {
        None
    }
}

impl<'a, S: Sink> Heartbeat<'a, S> {
    /// For a run of `total` items that begins at TSC `now`, with a progress record every so many ticks at most.
    #[must_use]
    pub fn new(report: &'a mut Report<S>, ticks: u64, now: u64, total: u32) -> Self {
        let (last, done) = (AtomicU64::new(now), AtomicU32::new(0));
        Self { report: Mutex::new(report), ticks, last, done, total }
    }

    /// Writes one record.
    pub fn send(&self, record: &Record) {
        self.report.lock().send(record);
    }

    /// So many items are done, at TSC `now`. Returns whether that was told: if it is time.
    pub fn done(&self, now: u64, done: u32) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.tell(now, None)
    }

    fn tell(&self, now: u64, within: Option<Within>) -> bool {
        if self.early_for(now) > 0 {
            return false;
        }
        let Some(mut report) = self.report.try_lock() else { return false };
        self.last.store(now, Ordering::Relaxed);
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total);
        report.send(&Record::Progress(Progress { done, total, within }));
        true
    }
}

impl<S: Sink + Send> Beat for Heartbeat<'_, S> {
    fn beat(&self, now: u64, within: Within) {
        self.tell(now, Some(within));
    }

    fn early_for(&self, now: u64) -> u64 {
        Heartbeat::early_for(self, now)
    }

    fn terminal(&self) -> Option<&dyn Terminal> {
        Some(self)
    }
}

impl<S: Sink + Send> Terminal for Heartbeat<'_, S> {
    fn receive(&self) -> Option<(usize, Received)> {
        self.report.lock().sink_mut().receive()
    }

    fn send(&self, record: &Record) {
        Heartbeat::send(self, record);
    }
}

impl<S> Heartbeat<'_, S> {
    fn early_for(&self, now: u64) -> u64 {
        self.ticks.saturating_sub(now.wrapping_sub(self.last.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Buffer;
    use protocol::record::Unit;
    use protocol::stream::{Event, Reader};
    use std::prelude::v1::*;

    fn told(report: &mut Report<Buffer>) -> Vec<Progress> {
        let events = Reader::new().feed(report.sink_mut().0.as_bytes());
        let progress = |event| match event {
            Event::Record { record, .. } => match *record {
                Record::Progress(progress) => progress,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        events.into_iter().map(progress).collect()
    }

    #[test]
    fn a_long_item_tells_how_far_it_is_at_most_once_in_a_while() {
        let mut report = Report::new(Buffer::default());
        let heart = Heartbeat::new(&mut report, 100, 50, 9);
        for now in 50..460 {
            heart.beat(now, Within { unit: Unit::Steps, done: now, total: 1000 });
        }
        assert!(heart.done(550, 1) && !heart.done(551, 2), "items count in the same time");
        heart.beat(650, Within { unit: Unit::Steps, done: 1, total: 1000 });
        let told = told(&mut report);
        let within: Vec<_> = told.iter().map(|one| one.within.map(|within| within.done)).collect();
        assert_eq!(within, [Some(150), Some(250), Some(350), Some(450), None, Some(1)]);
        let done: Vec<_> = told.iter().map(|one| (one.done, one.total)).collect();
        assert_eq!(done[3..], [(0, 9), (1, 9), (2, 9)]);
    }

    #[test]
    fn who_finds_the_report_in_use_says_nothing_and_does_not_wait() {
        let mut report = Report::new(Buffer::default());
        let heart = Heartbeat::new(&mut report, 1, 0, 1);
        let held = heart.report.lock();
        heart.beat(10, Within { unit: Unit::Runs, done: 1, total: 2 });
        drop(held);
        assert!(told(&mut report).is_empty());
    }
}
