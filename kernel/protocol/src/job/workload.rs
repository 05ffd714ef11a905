//! Work that goes on over time, for counting and sampling: tasks that a scheduler switches between.

use crate::bits::Bits;
use crate::core_kind::CoreKind;
use crate::job::LoopCounter;
use crate::job::affinity::{self, Affinity};
use crate::job::limits::{self, LimitError, MAX_CPU, MAX_LOOP, length, name, range};
use crate::program::MAX_PROGRAMS;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Tasks of a workload.
pub const MAX_TASKS: usize = 64;
/// Machine code of a task, init and body together, in bytes.
pub const MAX_TASK_CODE_BYTES: usize = 192 << 10;
/// Shortest time between ticks, in nanoseconds: a switch takes a good part of it.
pub const MIN_TICK_NS: u64 = 1_000;
/// Longest time between ticks, in nanoseconds.
pub const MAX_TICK_NS: u64 = 10_000_000_000;
/// Longest time that a task may take, in microseconds: an hour.
pub const MAX_LIMIT_US: u64 = 3_600_000_000;

/// Tasks, and how they share the processors.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Workload<'a> {
    /// The tasks. A parent stands before its children.
    #[serde(borrow)]
    pub tasks: Vec<Task<'a>>,
    /// Time between two timer ticks, in nanoseconds; 0: no ticks, each task runs to its end.
    pub tick_ns: u64,
    /// Draws each tick evenly from half to one and a half of [`Workload::tick_ns`], by a generator that starts here.
    /// `None`: ticks are periodic.
    pub jitter: Option<u64>,
}

/// One task: machine code that runs a number of turns and ends.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Task<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Runs once, when the task starts.
    #[serde(borrow)]
    pub init: Cow<'a, [u8]>,
    /// Runs [`Task::turns`] times, as the body of a loop.
    #[serde(borrow)]
    pub body: Cow<'a, [u8]>,
    /// Iterations of the loop around the body; 0: the body alone, once.
    pub turns: u64,
    /// Where the loop keeps its count.
    pub loop_counter: LoopCounter,
    /// Whether x87, MMX, SSE, AVX or other extended state is the task's own and is switched with it.
    pub extended_state: bool,
    /// Where it runs.
    pub ring: Ring,
    /// Index of the task that starts this one when it starts itself, and that does not end before it unless
    /// [`Task::outlives`]; counts of a child begin at zero and are added to its parent's when it exits. `None`: it is there
    /// from the beginning.
    pub parent: Option<u16>,
    /// Whether its parent may end before it. Its counts go to the nearest ancestor that is there when it exits; if none
    /// is, they remain its own.
    pub outlives: bool,
    /// The number of the processor that it runs on; `None`: its parent's, or the first.
    pub cpu: Option<u16>,
    /// The processors that it may run on, between which it then moves; `None`: those of its parent, unless it names one itself.
    pub cpus: Option<Affinity>,
    /// The kind of core that it runs on, among whose processors `cpu` is then counted, from 0 on.
    pub core: Option<CoreKind>,
    /// What its code is when it starts. 32-bit code has EBX in place of R14, and its loop counts in memory.
    pub bits: Bits,
    /// The program that its code calls, by its position in the ramdisk among programs.
    pub program: Option<u16>,
}

impl Workload<'_> {
    /// The processor of task `index`: its own, else its parent's, else the first.
    ///
    /// # Panics
    /// If there is no such task.
    #[must_use]
    pub fn cpu_of(&self, index: usize) -> u16 {
        let task = &self.tasks[index];
        let of_parent = |parent: u16| match usize::from(parent) {
            parent if parent < index => self.cpu_of(parent),
            _ => 0,
        };
        task.cpu.unwrap_or_else(|| task.parent.map_or(0, of_parent))
    }

    /// The processors of all tasks, in the order of their numbers.
    #[must_use]
    pub fn cpus(&self) -> Vec<u16> {
        let all = 0..self.tasks.len();
        let mut cpus: Vec<u16> = match self.moves() {
            true => all.flat_map(|index| self.cpus_of(index)).collect(),
            false => all.map(|index| self.cpu_of(index)).collect(),
        };
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

/// A workload that is run for its own sake: do its tasks come through preemption whole?
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Tasks<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The tasks.
    #[serde(borrow)]
    pub workload: Workload<'a>,
    /// Time that each task may take, in microseconds; a task that takes longer is ended.
    pub limit_us: u64,
    /// Energy that is read before and after, by the names of the crate `events`.
    #[serde(borrow)]
    pub energy: Vec<Cow<'a, str>>,
    /// Events of the uncore that are read before and after: one each, or several in braces that are to be counted at the same time.
    #[serde(borrow)]
    pub uncore: Vec<Cow<'a, str>>,
}

/// The privilege level of code.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Ring {
    /// Ring 0.
    #[default]
    #[serde(rename = "0")]
    Kernel,
    /// Ring 3.
    #[serde(rename = "3")]
    User,
}

/// Checks an item that runs a workload.
///
/// # Errors
/// The first value outside its bounds.
pub(crate) fn check_tasks(tasks: &Tasks) -> Result<(), LimitError> {
    name(&tasks.name)?;
    range("limit-us", tasks.limit_us, 1, MAX_LIMIT_US)?;
    limits::check_whole(&tasks.energy, &tasks.uncore)?;
    check(&tasks.workload)
}

/// Checks a workload.
///
/// # Errors
/// The first value outside its bounds, with the task that it belongs to.
pub fn check(workload: &Workload) -> Result<(), LimitError> {
    range("the number of tasks", workload.tasks.len() as u64, 1, MAX_TASKS as u64)?;
    if workload.tick_ns != 0 {
        range("tick-ns", workload.tick_ns, MIN_TICK_NS, MAX_TICK_NS)?;
    } else if workload.jitter.is_some() {
        return Err(LimitError::JitterWithoutTicks);
    }
    for (index, task) in workload.tasks.iter().enumerate() {
        check_task(index, task).map_err(|error| LimitError::Task {
            index,
            name: task.name.to_string(),
            error: Box::new(error),
        })?;
        check_place(workload, index).map_err(|error| LimitError::Task {
            index,
            name: task.name.to_string(),
            error: Box::new(error),
        })?;
    }
    Ok(())
}

/// A task is started by its parent, so on the same processor unless it moves.
fn check_place(workload: &Workload, index: usize) -> Result<(), LimitError> {
    if workload.moves() {
        return affinity::check(workload, index);
    }
    let (cpu, task) = (workload.cpu_of(index), &workload.tasks[index]);
    range("cpu", cpu.into(), 0, MAX_CPU.into())?;
    match task.parent.map(|parent| (parent, workload.cpu_of(usize::from(parent)))) {
        Some((parent, other)) if other != cpu => {
            let parent = workload.tasks[usize::from(parent)].name.to_string();
            Err(LimitError::ParentElsewhere { parent, cpu, other })
        }
        _ => Ok(()),
    }
}

/// Checks a loop around code of a width: 32-bit code counts in 32 bits, and has no R15.
pub(crate) fn check_turns(
    field: &'static str,
    turns: u64,
    bits: Bits,
    counter: LoopCounter,
) -> Result<(), LimitError> {
    match bits {
        Bits::SixtyFour => range(field, turns, 0, MAX_LOOP),
        Bits::Compatibility if counter == LoopCounter::R15 => Err(LimitError::Compatibility(
            "a loop keeps its count in memory, as 32-bit code has no R15",
        )),
        Bits::Compatibility => range(field, turns, 0, u32::MAX.into()),
    }
}

fn check_task(index: usize, task: &Task) -> Result<(), LimitError> {
    name(&task.name)?;
    length("the code of init and body", task.init.len() + task.body.len(), MAX_TASK_CODE_BYTES)?;
    check_turns("turns", task.turns, task.bits, task.loop_counter)?;
    range("the program's number", task.program.unwrap_or(0).into(), 0, MAX_PROGRAMS as u64 - 1)?;
    match task.parent {
        Some(parent) if usize::from(parent) >= index => Err(LimitError::Parent { parent, index }),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A task of one NOP.
    pub fn task(name: &str, parent: Option<u16>) -> Task<'static> {
        Task {
            name: Cow::Owned(name.into()),
            init: Cow::Borrowed(&[]),
            body: Cow::Borrowed(&[0x90]),
            turns: 10,
            loop_counter: LoopCounter::R15,
            extended_state: false,
            ring: Ring::Kernel,
            parent,
            cpu: None,
            core: None,
            cpus: None,
            outlives: false,
            program: None,
            bits: Bits::SixtyFour,
        }
    }

    #[test]
    fn i7_each_processor_of_a_workload_is_named_once_in_order() {
        let on = |cpu, parent| Task { cpu, ..task("t", parent) };
        let tasks = alloc::vec![
            on(Some(3), None),
            on(None, Some(0)),
            on(None, None),
            on(Some(1), Some(0)),
            on(Some(3), None),
        ];
        let workload = Workload { tasks, tick_ns: 0, jitter: None };
        assert_eq!([0, 1, 2, 3].map(|index| workload.cpu_of(index)), [3, 3, 0, 1]);
        assert_eq!(workload.cpus(), [0, 1, 3]);
    }

    #[test]
    fn t9_bounds_of_a_workload_name_the_task() {
        let workload = |tasks| Workload { tasks, tick_ns: 1_000, jitter: Some(1) };
        let good = workload(alloc::vec![task("a", None), task("b", Some(0))]);
        assert_eq!(check(&good), Ok(()));
        for (bad, part) in [
            (workload(alloc::vec![]), "the number of tasks is 0"),
            (workload(alloc::vec![task("a", None); 65]), "the number of tasks is 65"),
            (workload(alloc::vec![task("a", Some(0))]), "task 0 (`a`): its parent is task 0"),
            (workload(alloc::vec![task("", None)]), "task 0 (``): the name is empty"),
            (
                workload(alloc::vec![
                    Task { cpu: Some(1), ..task("a", None) },
                    Task { cpu: Some(0), ..task("b", Some(0)) },
                ]),
                "task 1 (`b`): cpu is 0, but its parent `a` runs on processor 1",
            ),
            (
                workload(alloc::vec![Task { cpu: Some(256), ..task("a", None) }]),
                "task 0 (`a`): cpu is 256; it must be 0 to 255",
            ),
            (Workload { tick_ns: 999, ..good.clone() }, "tick-ns is 999"),
            (Workload { tick_ns: MAX_TICK_NS + 1, ..good.clone() }, "tick-ns is 10000000001"),
            (Workload { tick_ns: 0, ..good.clone() }, "no ticks"),
            (
                workload(alloc::vec![Task { turns: MAX_LOOP + 1, ..task("a", None) }]),
                "task 0 (`a`): turns is",
            ),
            (
                workload(alloc::vec![Task {
                    turns: 1 << 32,
                    bits: Bits::Compatibility,
                    loop_counter: LoopCounter::Memory,
                    ..task("a", None)
                }]),
                "task 0 (`a`): turns is 4294967296; it must be 0 to 4294967295",
            ),
            (
                workload(alloc::vec![Task { bits: Bits::Compatibility, ..task("a", None) }]),
                "task 0 (`a`): bits = 32: a loop keeps its count in memory",
            ),
            (
                workload(alloc::vec![Task {
                    body: Cow::Owned(alloc::vec![0x90; MAX_TASK_CODE_BYTES + 1]),
                    ..task("a", None)
                }]),
                "task 0 (`a`): the code of init and body is 196609 bytes long",
            ),
        ] {
            let error = check(&bad).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn c3_a_child_runs_where_its_parent_does() {
        let on = |cpu, parent| Task { cpu, ..task("t", parent) };
        let tasks =
            alloc::vec![on(Some(2), None), on(None, Some(0)), on(None, Some(1)), on(None, None)];
        let workload = Workload { tasks, tick_ns: 0, jitter: None };
        assert_eq!([0, 1, 2, 3].map(|index| workload.cpu_of(index)), [2, 2, 2, 0]);
        // A parent that comes no earlier is refused elsewhere, and asked for nothing here.
        let own = Workload { tasks: alloc::vec![on(None, Some(0))], tick_ns: 0, jitter: None };
        assert_eq!(own.cpu_of(0), 0);
    }

    prop_compose! {
        fn any_task()(
            name in ".{0,20}", init in prop::collection::vec(any::<u8>(), 0..50),
            body in prop::collection::vec(any::<u8>(), 0..100), turns: u64, memory: bool,
            extended_state: bool, user: bool, parent: Option<u16>, cpu: Option<u16>, compatibility: bool,
            outlives: bool,
        ) -> Task<'static> {
            Task {
                init: Cow::Owned(init), body: Cow::Owned(body), turns, extended_state, cpu, outlives,
                loop_counter: if memory { LoopCounter::Memory } else { LoopCounter::R15 },
                ring: if user { Ring::User } else { Ring::Kernel },
                bits: if compatibility { Bits::Compatibility } else { Bits::SixtyFour },
                ..task(&name, parent)
            }
        }
    }

    prop_compose! {
        pub fn any_tasks()(
            name in ".{0,40}", workload in any_workload(), limit_us: u64,
            energy in prop::collection::vec(".{0,20}", 0..3), uncore in prop::collection::vec(".{0,20}", 0..3),
        ) -> Tasks<'static> {
            let [energy, uncore] =
                [energy, uncore].map(|texts| texts.into_iter().map(Cow::Owned).collect());
            Tasks { name: Cow::Owned(name), workload, limit_us, energy, uncore }
        }
    }

    prop_compose! {
        pub fn any_workload()(
            tasks in prop::collection::vec(any_task(), 0..4), tick_ns: u64, jitter: Option<u64>,
        ) -> Workload<'static> {
            Workload { tasks, tick_ns, jitter }
        }
    }

    /// In bytes.
    #[test]
    fn the_code_of_a_task_has_192_kib() {
        assert_eq!(MAX_TASK_CODE_BYTES, 196_608);
    }
}
