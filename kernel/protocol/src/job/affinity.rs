//! Which processors a task may run on, if it moves between several.

use crate::job::limits::{LimitError, MAX_CPU, range};
use crate::job::workload::{Task, Workload};
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The processors that a task may run on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Affinity {
    /// All processors in use whose core is of the kind of the boot processor's. The run puts their numbers in its place.
    Any,
    /// Those of these numbers. It begins on the first.
    These(Vec<u16>),
}

impl Workload<'_> {
    /// Whether tasks move between processors.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.tasks.iter().any(|task| task.cpus.is_some())
    }

    /// The processors that task `index` may run on, the one first that it begins on: its own, else its parent's, else the first.
    ///
    /// # Panics
    /// If there is no such task.
    #[must_use]
    pub fn cpus_of(&self, index: usize) -> Vec<u16> {
        let task = &self.tasks[index];
        match (&task.cpus, task.cpu, task.parent.map(usize::from)) {
            (Some(Affinity::These(cpus)), ..) => cpus.clone(),
            (None, Some(cpu), _) => vec![cpu],
            (None, None, Some(parent)) if parent < index => self.cpus_of(parent),
            _ => vec![0],
        }
    }

    /// The processors on which task `index` is counted if its children are: its own and theirs.
    #[must_use]
    pub fn cpus_of_family(&self, index: usize) -> Vec<u16> {
        let mut cpus = self.cpus_of(index);
        for child in index + 1..self.tasks.len() {
            if self.tasks[child].parent.map(usize::from) == Some(index) {
                cpus.extend(self.cpus_of_family(child));
            }
        }
        let mut seen = Vec::new();
        cpus.retain(|cpu| {
            let is_new = !seen.contains(cpu);
            seen.push(*cpu);
            is_new
        });
        cpus
    }
}

/// Checks where a task of a workload may run in which tasks move.
pub(crate) fn check(workload: &Workload, index: usize) -> Result<(), LimitError> {
    let Task { cpus, cpu, core, .. } = &workload.tasks[index];
    range("cpu", cpu.unwrap_or(0).into(), 0, MAX_CPU.into())?;
    if core.is_some() {
        return Err(LimitError::Affinity(
            "core is given where a task of the item has cpus; cpus = \"any\" are those of one kind of core",
        ));
    }
    let Some(Affinity::These(cpus)) = cpus else { return Ok(()) };
    range("the number of processors in cpus", cpus.len() as u64, 1, u64::from(MAX_CPU) + 1)?;
    for (place, &cpu) in cpus.iter().enumerate() {
        range("a processor in cpus", cpu.into(), 0, MAX_CPU.into())?;
        if cpus[..place].contains(&cpu) {
            return Err(LimitError::Affinity("cpus names a processor twice"));
        }
    }
    match workload.tasks[index].cpu {
        Some(_) => Err(LimitError::Affinity("a task has either cpu or cpus")),
        None => Ok(()),
    }
}

/// Refuses what does not follow a task of `workload` from one processor to another, for this reason.
pub(crate) fn refuse_moving(workload: &Workload, why: &'static str) -> Result<(), LimitError> {
    let mut all = workload.tasks.iter().enumerate();
    match all.find(|(_, task)| task.cpus.is_some()) {
        None => Ok(()),
        Some((index, task)) => Err(LimitError::Task {
            index,
            name: alloc::string::ToString::to_string(&task.name),
            error: alloc::boxed::Box::new(LimitError::Affinity(why)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::workload::check;
    use crate::job::workload::tests::task;

    fn on(cpus: Option<&[u16]>, cpu: Option<u16>, parent: Option<u16>) -> Task<'static> {
        let cpus = cpus.map(|cpus| Affinity::These(cpus.to_vec()));
        Task { cpus, cpu, ..task("t", parent) }
    }

    fn workload(tasks: &[Task<'static>]) -> Workload<'static> {
        Workload { tasks: tasks.to_vec(), tick_ns: 0, jitter: None }
    }

    #[test]
    fn i8_a_child_may_run_where_its_parent_may_unless_it_says_so_itself() {
        let tasks = [
            on(Some(&[2, 0]), None, None),
            on(None, None, Some(0)),
            on(None, Some(3), Some(1)),
            on(None, None, None),
            on(Some(&[1]), None, Some(1)),
        ];
        let workload = workload(&tasks);
        let of = [0, 1, 2, 3, 4].map(|index| workload.cpus_of(index));
        assert_eq!(of, [vec![2, 0], vec![2, 0], vec![3], vec![0], vec![1]]);
        assert_eq!(workload.cpus(), [0, 1, 2, 3]);
        assert_eq!(workload.cpus_of_family(0), [2, 0, 3, 1]);
        assert_eq!(check(&workload), Ok(()));
        assert!(workload.moves() && !self::workload(&tasks[3..4]).moves());
    }

    /// A workload that was not checked may have a task that is its own parent.
    #[test]
    fn i8_a_task_that_is_its_own_parent_is_on_the_boot_processor() {
        let own = workload(&[on(None, None, Some(0))]);
        assert_eq!((own.cpus_of(0), own.cpus_of_family(0), own.cpu_of(0)), (vec![0], vec![0], 0));
        let all: Vec<u16> = (0..=MAX_CPU).collect();
        assert_eq!(check(&workload(&[on(Some(&all), None, None)])), Ok(()), "each of them once");
    }

    #[test]
    fn i8_bad_affinities_are_refused_by_the_name_of_the_task() {
        for (bad, part) in [
            (on(Some(&[]), None, None), "the number of processors in cpus is 0"),
            (on(Some(&[1, 256]), None, None), "a processor in cpus is 256; it must be 0 to 255"),
            (on(Some(&[1, 2, 1]), None, None), "cpus names a processor twice"),
            (on(Some(&[1]), Some(1), None), "a task has either cpu or cpus"),
            (
                Task {
                    core: Some(crate::core_kind::CoreKind::Efficient),
                    ..on(Some(&[1]), None, None)
                },
                "core is given where a task of the item has cpus",
            ),
        ] {
            let error = check(&workload(&[bad])).unwrap_err().to_string();
            assert!(error.starts_with("task 0 (`t`): ") && error.contains(part), "{error}");
        }
    }
}
