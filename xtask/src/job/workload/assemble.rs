//! Tasks with their machine code.

use super::task::TaskFile;
use super::{Assembled, WorkloadFile};
use crate::job::affinity::AffinityFile;
use crate::job::assemble::{self, Code, Failed, Labels, Part, Source};
use crate::job::errors::JobError;
use crate::job::memory::{self, Symbol};
use protocol::job::limits::LimitError;
use protocol::job::workload::{self, Workload};

impl WorkloadFile {
    /// Assembles the tasks, and finds their parents.
    ///
    /// # Errors
    /// Everything that is wrong with them, each named.
    pub fn assemble(&self) -> Result<Assembled, JobError> {
        let parents = self.parents()?;
        let symbols = memory::symbols(&self.memory);
        let sources: Vec<Source> =
            self.tasks.iter().flat_map(|task| sources(task, &symbols)).collect();
        let codes = assemble::assemble_with_labels(&sources).map_err(|failed| match failed {
            Failed::Tool(reason) => JobError::Assembler(reason),
            Failed::Messages(messages) => JobError::Tasks(
                messages
                    .iter()
                    .map(|message| {
                        let task = &self.tasks[message.source / 2];
                        task.complaint(message, sources[message.source].part)
                    })
                    .collect(),
            ),
        })?;
        let (codes, _) = codes.as_chunks::<2>();
        let tasks = self.tasks.iter().zip(parents).zip(codes);
        let tasks = tasks.map(|((task, parent), [init, body])| task.task(parent, init, body));
        let workload =
            Workload { tasks: tasks.collect(), tick_ns: self.tick_ns, jitter: self.jitter };
        workload::check(&workload)
            .map_err(|error| self.task_error(&error).unwrap_or(JobError::Workload(error)))?;
        Ok(Assembled { workload, symbols: codes.iter().map(labels).collect() })
    }

    /// The index of each task's parent.
    fn parents(&self) -> Result<Vec<Option<u16>>, JobError> {
        let (mut parents, mut errors) = (Vec::new(), Vec::new());
        for (index, task) in self.tasks.iter().enumerate() {
            let before = &self.tasks[..index];
            errors.extend(task.wrong.clone().map(|wrong| task.error(wrong)));
            if before.iter().any(|other| other.name == task.name) {
                errors.push(task.error("another task before it has the same name".to_string()));
            }
            let find = |name: &String| before.iter().position(|other| other.name == *name);
            let found = task.parent.as_ref().map(|name| (name, find(name)));
            parents.push(found.and_then(|(_, index)| u16::try_from(index?).ok()));
            if let Some((name, None)) = found {
                let reason = if self.tasks.iter().any(|other| other.name == *name) {
                    "does not stand before it"
                } else {
                    "does not exist"
                };
                errors.push(task.error(format!("its parent `{name}` {reason}")));
            }
        }
        if errors.is_empty() { Ok(parents) } else { Err(JobError::Tasks(errors)) }
    }

    /// The error with its place, if it is a task's.
    pub(in crate::job) fn task_error(&self, error: &LimitError) -> Option<JobError> {
        let LimitError::Task { index, error, .. } = error else { return None };
        let task = self.tasks.get(*index)?;
        let mut found = task.error(error.to_string());
        let of_cpus = match **error {
            LimitError::Affinity(_) => true,
            LimitError::Range { field, .. } => field.ends_with("cpus"),
            _ => false,
        };
        if let Some(AffinityFile { place, .. }) = task.cpus.as_ref().filter(|_| of_cpus) {
            found.place = place.clone();
        }
        Some(JobError::Tasks(vec![found]))
    }
}

/// The texts of a task.
fn sources<'a>(task: &'a TaskFile, symbols: &'a [Symbol]) -> [Source<'a>; 2] {
    let (syntax, bits) = (task.syntax, task.bits);
    let of = |part, text| Source { part, text, syntax, bits, symbols };
    [of(Part::Init, task.init.as_str()), of(Part::Body, task.asm.as_str())]
}

/// Labels of a task. The body follows its init code.
fn labels([init, body]: &[Code; 2]) -> Labels {
    let ahead = init.bytes.len() as u64;
    let behind = body.labels.iter().map(|(name, offset)| (name.clone(), ahead + offset));
    let mut all: Vec<_> = init.labels.iter().cloned().chain(behind).collect();
    all.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    all
}
