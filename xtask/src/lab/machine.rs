//! What came of one machine.

use super::engine::{LOG, Place};
use crate::collect::{Collector, Report};
use crate::context::Context;
use crate::job::Packed;
use crate::kinds::places;
use crate::primitives::table::Width;
use crate::{exit_code, verdict};
use std::fs;
use std::path::Path;

/// A machine and its report.
#[derive(Debug)]
pub struct Machine {
    /// Its place; without a coordinator, the environment's target.
    pub place: Place,
    /// Its report, as far as it came.
    pub report: Report,
    /// What went wrong, and what else is to be said.
    pub context: Context,
}

impl Machine {
    /// Reads the log that a machine left in `folder`, and judges its report by the job.
    #[must_use]
    pub fn of(
        place: Place,
        folder: &Path,
        packed: &Packed,
        complaint: Option<String>,
        width: Width,
    ) -> Self {
        // A machine of which nothing came has no log.
        let log = fs::read(folder.join(LOG)).unwrap_or_default();
        let mut collector = Collector::new();
        collector.feed(&log);
        let mut report = collector.finish();
        verdict::judge(&mut report, &packed.job);
        let notes = places::name(&mut report);
        verdict::add_up(&mut report);
        let next = packed.job.items.get(report.items() as usize);
        let complaint = complaint.map(|complaint| match (report.end(), report.machine(), next) {
            (None, Some(_), Some(item)) => {
                format!("{complaint}; item {} ({}) has no result", report.items(), item.name())
            }
            (None, None, _) => format!("{complaint}; the firmware did not start"),
            _ => complaint,
        });
        let items = packed.job.items.iter().map(|item| item.name().to_string()).collect();
        let (source, job) = (place.name.clone(), Some(packed.about()));
        let notes = notes.into_iter().collect();
        let context = Context { source, complaint, job, items, notes, width, ..Context::default() };
        Self { place, report, context }
    }

    /// The exit code of this machine alone.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        exit_code::of(&self.context, &self.report)
    }
}

/// The exit code of all: that of the machine that came off worst.
#[must_use]
pub fn exit_code(machines: &[Machine]) -> u8 {
    let rank = |code: &u8| [77, 0, 1, 2, 3, 130].iter().position(|one| one == code);
    let codes = machines.iter().map(Machine::exit_code);
    codes.max_by_key(|code| rank(code).unwrap_or(usize::MAX)).unwrap_or(77)
}
