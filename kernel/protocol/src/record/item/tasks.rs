//! Workloads that are run for their own sake.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{CountedEnergy, CountedUncore, ItemRecord, TaskResult, TasksResult, Uncounted};
use alloc::format;
use alloc::vec::Vec;

impl ItemRecord for TasksResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Tasks(_))
    }

    fn figures(&self) -> Vec<Figure> {
        let number = |value: u64| Some(value as f64);
        let mut all = Vec::from([
            figure("ticks", number(self.ticks.count)),
            figure("switches", number(self.switches)),
            figure("instructions:u", self.user_instructions.map(|count| count as f64)),
        ]);
        for task in &self.tasks {
            let user = |count: Option<u64>| count.map(|count| count as f64);
            for (what, value) in [
                ("turns", number(task.turns)),
                ("switches", number(task.switches)),
                ("value", number(task.value.0)),
                ("instructions:u", user(task.user_instructions)),
            ] {
                all.push(figure(format!("{what}, task {}", task.name), value));
            }
        }
        all.extend(of_moves(&self.tasks));
        for task in &self.tasks {
            for share in &task.shares {
                let (name, user) = (
                    format!("instructions:u, task {}, cpu {}", task.name, share.processor),
                    share.user_instructions,
                );
                all.push(figure(name, user.map(|count| count as f64)));
            }
        }
        all.extend(of_energy(&self.energy));
        all.extend(of_uncore(&self.uncore));
        all
    }

    fn whole(&self, name: &str) -> Option<u64> {
        let name = name.strip_prefix("value, task ")?;
        self.tasks.iter().find(|task| task.name == name).map(|task| task.value.0)
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }

    fn tasks(&self) -> &[TaskResult] {
        &self.tasks
    }
}

/// Energy by its event's name, over all packages; where there are several, each behind the number of the processor that read it.
pub(super) fn of_energy(energy: &[CountedEnergy]) -> impl Iterator<Item = Figure> {
    CountedEnergy::sums(energy).into_iter().map(|(name, joules)| figure(name, Some(joules)))
}

/// Events of the uncore, likewise.
pub(super) fn of_uncore(uncore: &[CountedUncore]) -> impl Iterator<Item = Figure> {
    CountedUncore::sums(uncore).into_iter().map(|(name, count)| figure(name, Some(count as f64)))
}

/// How often each task moved that may.
pub(super) fn of_moves(tasks: &[TaskResult]) -> impl Iterator<Item = Figure> {
    tasks.iter().filter_map(|task| {
        Some(figure(format!("moves, task {}", task.name), Some(task.moves? as f64)))
    })
}
