//! Workloads in a job: tasks with their code, and the timer that switches between them.

mod assemble;
mod keys;
mod processors;
mod task;

pub use task::TaskFile;

pub(super) use keys::RawTask;
pub(super) use processors::too_few;

use super::assemble::Labels;
use super::errors::Place;
use super::file::{Lines, Text, lines};
use super::memory::MemoryFile;
use protocol::job::workload::Workload;
use toml::Spanned;

/// What [`super::file::FileItem`] asks of a kind whose file has `place`, `criteria` and `workload` as they are.
macro_rules! of_workload {
    () => {
        fn place(&self, _source: &str) -> $crate::job::errors::Place {
            self.place.clone()
        }

        fn criteria(&self) -> &$crate::job::expect::CriteriaFile {
            &self.criteria
        }

        fn criteria_mut(&mut self) -> &mut $crate::job::expect::CriteriaFile {
            &mut self.criteria
        }

        fn memory(&self) -> &[$crate::job::memory::MemoryFile] {
            &self.workload.memory
        }

        fn memory_mut(&mut self) -> &mut Vec<$crate::job::memory::MemoryFile> {
            &mut self.workload.memory
        }

        fn workload(&self) -> Option<&$crate::job::workload::WorkloadFile> {
            Some(&self.workload)
        }
    };
}
pub(super) use of_workload;

/// Time between two ticks if a job says nothing: 1 ms, as most systems have it.
pub const DEFAULT_TICK_NS: u64 = 1_000_000;
/// Time that a task may take if a job says nothing: 10 s.
pub const DEFAULT_LIMIT_US: u64 = 10_000_000;

/// A workload, all decided but its machine code.
#[derive(Clone, Debug)]
pub struct WorkloadFile {
    /// The tasks, parents before their children.
    pub tasks: Vec<TaskFile>,
    /// Nanoseconds between two ticks; 0: none.
    pub tick_ns: u64,
    /// Seed of the jitter.
    pub jitter: Option<u64>,
    /// Memory that all tasks see.
    pub memory: Vec<MemoryFile>,
}

/// A workload with its machine code.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The workload.
    pub workload: Workload<'static>,
    /// The labels of each task, counted from where it begins: `entry` in its record.
    pub symbols: Vec<Labels>,
}

/// Where `span` begins.
pub(crate) fn place(text: &Text, source: &str, span: &std::ops::Range<usize>) -> Place {
    let Lines { line, column, .. } = lines(text, span);
    Place { file: source.to_string(), position: Some((line, column)) }
}

impl WorkloadFile {
    /// Decides what is left open.
    pub(super) fn decide(
        tasks: Vec<Spanned<RawTask>>,
        tick_ns: Option<u64>,
        jitter: Option<u64>,
        text: &Text,
        source: &str,
    ) -> Self {
        let tasks = tasks.into_iter().map(|task| TaskFile::decide(task, text, source)).collect();
        let tick_ns = tick_ns.unwrap_or(DEFAULT_TICK_NS);
        Self { tasks, tick_ns, jitter, memory: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
