//! Samples by processor and by task.

use super::Profile;
use protocol::record::SampleResult;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a frame or a label calls a processor; nothing where the boot processor alone was sampled.
#[must_use]
pub fn named(result: &SampleResult, cpu: u16) -> Option<String> {
    (!result.processors.is_empty()).then(|| format!("processor {cpu}"))
}

/// The processor that a task ran on.
#[must_use]
pub fn of_task(result: &SampleResult, task: u32) -> u16 {
    let schedule = result.schedule.as_ref();
    let task = schedule.and_then(|schedule| schedule.tasks.get(task as usize));
    task.map_or(0, |task| task.cpu as u16)
}

/// Samples of one event in one task.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TaskCount {
    /// The task's name.
    pub task: String,
    /// The processor that they were taken on.
    pub cpu: u16,
    /// How many samples.
    pub count: u64,
}

impl Profile<'_> {
    /// Samples of an event by task and processor, the most frequent first.
    #[must_use]
    pub fn by_task(&self, event: usize) -> Vec<TaskCount> {
        let mut sums: BTreeMap<(&str, u16), u64> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.event == event) {
            *sums.entry((&row.task, row.cpu)).or_default() += row.count;
        }
        let count = |((task, cpu), count): ((&str, u16), u64)| TaskCount {
            task: task.to_string(),
            cpu,
            count,
        };
        let mut sums: Vec<TaskCount> = sums.into_iter().map(count).collect();
        sums.sort_by_key(|sum| Reverse(sum.count));
        sums
    }
}
