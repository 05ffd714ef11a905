//! Samples with their tasks' machine code, as items.

use super::{SampleFile, TaskCode};
use crate::job::assemble::{Code, Source, assemble_with_labels};
use crate::job::errors::JobError;
use crate::job::file::{FileItem, JobFile, PackedItem, SnippetFile};
use crate::job::function::Programs;
use crate::job::workload::{Assembled, WorkloadFile};
use crate::job::{SOURCES, analyse, memory, place, sources, whole};
use protocol::job::limits::LimitError;
use protocol::job::sampling::Sampling;
use protocol::job::workload::{Ring, Task, Workload};
use protocol::job::{Item, limits};
use std::borrow::Cow;

/// Assembles the samples of a job: each as an item, with what the host keeps of its tasks' code.
///
/// # Errors
/// What the assembler refuses; a task too large for the code area; what is wrong with tasks, each named.
pub(super) fn pack(
    file: &JobFile,
    samples: &[SampleFile],
    programs: &Programs,
) -> Result<Vec<PackedItem>, JobError> {
    let alone = samples.iter().filter(|sample| sample.tasks.is_none());
    let snippets: Vec<SnippetFile> = alone.map(|sample| sample.code.clone()).collect();
    let symbols: Vec<_> = snippets.iter().map(|one| memory::symbols(&one.options.memory)).collect();
    let both = snippets.iter().zip(&symbols);
    let all: Vec<Source> = both.flat_map(|(one, symbols)| sources(one, symbols)).collect();
    let assembled = assemble_with_labels(&all).map_err(|failed| {
        let alone = JobFile { snippets: snippets.clone(), ..file.clone() };
        place::explain(failed, &all, &alone)
    })?;
    let mut parts = assembled.as_chunks::<SOURCES>().0.iter();
    let mut items = Vec::with_capacity(samples.len());
    for sample in samples {
        let (workload, codes) = match &sample.tasks {
            Some(tasks) => of_tasks(tasks, programs)
                .map_err(|error| error.in_item(|message| sample.refused(&file.source, message)))?,
            None => {
                let part = parts.next().expect("each sample with code of its own was assembled");
                let (task, code) = sample.task(part, &file.source)?;
                (Workload { tasks: vec![task], tick_ns: 0, jitter: None }, vec![code])
            }
        };
        let [energy, uncore] = whole::split(&sample.whole);
        let item = Item::Sample(Sampling { workload, energy, uncore, ..sample.sampling.clone() });
        limits::check_item(&item).map_err(|error| {
            let of_task = sample.tasks.as_ref().and_then(|one| one.task_error(&error));
            of_task.unwrap_or_else(|| sample.refused(&file.source, sample.why(&error)))
        })?;
        items.push((item, Some(codes)));
    }
    Ok(items)
}

/// Tasks for the scheduler.
pub(super) fn of_tasks(
    tasks: &WorkloadFile,
    programs: &Programs,
) -> Result<(Workload<'static>, Vec<TaskCode>), JobError> {
    let Assembled { mut workload, symbols } = tasks.assemble()?;
    programs.fill(tasks, &mut workload)?;
    let codes = workload.tasks.iter().zip(symbols).map(|(task, labels)| {
        // The body follows the init code, from whose begin labels count.
        let ahead = task.init.len() as u64;
        let labels =
            labels.into_iter().filter_map(|(name, at)| Some((at.checked_sub(ahead)?, name)));
        TaskCode { body: task.body.to_vec(), labels: labels.collect() }
    });
    let codes = codes.collect();
    Ok((workload, codes))
}

impl SampleFile {
    /// The error in words, of which the firmware does not have all: it does not get energy and the uncore as events.
    fn why(&self, error: &LimitError) -> String {
        match (error, self.whole.first()) {
            (LimitError::NothingToSampleBy, Some(event)) => format!(
                "{event} is {}, read before the code and after it: {error}",
                whole::what(event)
            ),
            _ => error.to_string(),
        }
    }

    /// Its code as a task that runs alone.
    pub(super) fn task(
        &self,
        [_, init, _, body]: &[Code; SOURCES],
        source: &str,
    ) -> Result<(Task<'static>, TaskCode), JobError> {
        let bytes = (init.bytes.len() + body.bytes.len()) as u64 + limits::HARNESS_BYTES;
        if bytes > limits::CODE_AREA_BYTES {
            let max = limits::CODE_AREA_BYTES;
            let message = format!("its code takes {bytes} bytes; at most {max} fit");
            return Err(self.refused(source, message));
        }
        let bits = self.code.options.bits;
        let codes = [&init.bytes[..], &body.bytes];
        let task = Task {
            name: self.sampling.name.clone(),
            init: Cow::Owned(init.bytes.clone()),
            body: Cow::Owned(body.bytes.clone()),
            turns: self.turns,
            loop_counter: analyse::loop_counter(&codes, bits),
            extended_state: codes.iter().any(|code| analyse::uses_extended_state(code, bits)),
            ring: Ring::Kernel,
            parent: None,
            cpu: None,
            cpus: None,
            core: None,
            outlives: false,
            program: None,
            bits,
        };
        let labels = body.labels.iter().map(|(name, at)| (*at, name.clone())).collect();
        Ok((task, TaskCode { body: body.bytes.clone(), labels }))
    }
}
