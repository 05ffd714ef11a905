//! Workloads that are sampled while they run.

use super::head;
use super::tasks::{of_energy, of_uncore};
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{ItemRecord, SampleResult, TaskResult, Uncounted};
use alloc::format;
use alloc::vec::Vec;

impl ItemRecord for SampleResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Sample(_))
    }

    /// What each counter saw, and what became of its overflows; what was counted beside, and read of the whole item.
    fn figures(&self) -> Vec<Figure> {
        let number = |value: u64| Some(value as f64);
        let mut all = Vec::new();
        for one in &self.events {
            all.push(figure(&*one.event, one.seen().and_then(number)));
            if !one.is_sampled() {
                continue;
            }
            for (what, value) in
                [("overflows", one.overflows), ("samples", one.samples), ("dropped", one.dropped)]
            {
                all.push(figure(format!("{}, {what}", one.event), number(value)));
            }
            let estimate = one.qualified.as_ref().map(|one| one.estimate);
            all.extend(
                estimate.map(|value| figure(format!("{}, estimate", one.event), number(value))),
            );
        }
        let turns = self.tasks().iter();
        all.extend(
            turns.map(|task| figure(format!("turns, task {}", task.name), number(task.turns))),
        );
        all.extend(of_energy(&self.energy));
        all.extend(of_uncore(&self.uncore));
        all
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        [&self.uncounted[..], &self.unread].concat()
    }

    fn tasks(&self) -> &[TaskResult] {
        self.schedule.as_ref().map_or(&[], |schedule| &schedule.tasks)
    }
}
