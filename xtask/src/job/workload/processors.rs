//! The processors that tasks run on.

use super::WorkloadFile;
use super::task::TaskFile;
use crate::job::errors::{JobError, TaskError};

/// What a machine with so many processors lacks for `cpu`.
pub(in crate::job) fn too_few(cpu: u16, cpus: u32) -> String {
    let has = if cpus == 1 { "one processor".to_string() } else { format!("{cpus} processors") };
    format!("the machine has {has}, numbered from 0: --cpus {} gives it enough", u32::from(cpu) + 1)
}

impl WorkloadFile {
    /// The figures of how often each task moved, if some may.
    pub(in crate::job) fn figures_of_moves(&self) -> Vec<String> {
        // A child moves where its parent may.
        let may = self.tasks.iter().any(|task| task.cpus.is_some());
        let each = self.tasks.iter().filter(|_| may);
        each.map(|task| format!("moves, task {}", task.name)).collect()
    }

    /// The greatest number of a processor that a task is to run on.
    pub(in crate::job) fn greatest_cpu(&self) -> Option<u16> {
        let numbered = self.tasks.iter().filter(|task| task.core.is_none());
        numbered.flat_map(TaskFile::named_cpus).max()
    }

    /// Whether a machine with so many processors has all that tasks are to run on.
    ///
    /// # Errors
    /// Every task for which it has none.
    pub(in crate::job) fn check_cpus(&self, cpus: u32) -> Result<(), JobError> {
        let beyond = |task: &TaskFile| {
            let mut numbered = task.named_cpus().filter(|_| task.core.is_none());
            let cpu = numbered.find(|&cpu| u32::from(cpu) >= cpus)?;
            Some(task.error(format!("it is to run on processor {cpu}; {}", too_few(cpu, cpus))))
        };
        let errors: Vec<TaskError> = self.tasks.iter().filter_map(beyond).collect();
        if errors.is_empty() { Ok(()) } else { Err(JobError::Tasks(errors)) }
    }
}
