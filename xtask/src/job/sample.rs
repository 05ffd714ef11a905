//! `[[sample]]`: code that is sampled while it runs.

mod decide;
mod keys;
mod pack;

pub(crate) use keys::RawSample;

use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names};
use super::file::{FileItem, JobFile, PackedItem, Section, SnippetFile, Text};
use super::function::Programs;
use super::memory::MemoryFile;
use super::workload::WorkloadFile;
use crate::events::EventText;
use crate::metrics::request::Ask;
use decide::{BESIDE, decide};
use pack::pack;
use protocol::job::sampling::{SampledEvent, Sampling};
use toml::Spanned;

/// Entries of the logs or the histograms of all processors together, if the job does not say.
const CAPACITY: u32 = 4096;
/// The general registers, in the order of their encoding.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Sampled code, all decided.
#[derive(Clone, Debug)]
pub struct SampleFile {
    /// Its name, code and place in the file.
    pub(super) code: SnippetFile,
    /// The events' texts, in the order of those of `sampling`.
    pub(super) texts: Vec<EventText>,
    /// Energy and events of the uncore, which are of the whole item.
    pub(super) whole: Vec<EventText>,
    /// Turns of the code.
    turns: u64,
    /// Its tasks; `None`: the code is the only one.
    tasks: Option<WorkloadFile>,
    /// Everything else; its workload is empty, and so are its energy and its uncore.
    sampling: Sampling<'static>,
}

impl SampleFile {
    /// Adds events that are counted beside the samples, each once.
    pub(super) fn count_beside(&mut self, events: impl Iterator<Item = String>) {
        for text in events {
            let event: EventText = text.parse().expect("an event of a metric");
            if !self.texts.contains(&event) {
                self.sampling.events.push(SampledEvent { event: text.into(), rate: BESIDE });
                self.texts.push(event);
            }
        }
    }
}

/// What the host knows of a task's code.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TaskCode {
    /// The body.
    pub body: Vec<u8>,
    /// Its labels, with their places in it, in order.
    pub labels: Vec<(u64, String)>,
}

impl FileItem for SampleFile {
    fn place(&self, source: &str) -> Place {
        self.code.place(source)
    }

    fn criteria(&self) -> &CriteriaFile {
        &self.code.criteria
    }

    fn criteria_mut(&mut self) -> &mut CriteriaFile {
        &mut self.code.criteria
    }

    fn memory(&self) -> &[MemoryFile] {
        self.tasks.as_ref().map_or(&self.code.options.memory, |tasks| &tasks.memory)
    }

    fn memory_mut(&mut self) -> &mut Vec<MemoryFile> {
        let own = &mut self.code.options.memory;
        self.tasks.as_mut().map_or(own, |tasks| &mut tasks.memory)
    }

    fn asks(&self) -> &[Ask] {
        &self.code.asks
    }

    fn events(&self) -> Vec<&EventText> {
        self.texts.iter().collect()
    }

    fn workload(&self) -> Option<&WorkloadFile> {
        self.tasks.as_ref()
    }

    fn check_expected(&self, source: &str) -> Result<(), JobError> {
        let tasks = self.tasks.iter().flat_map(|tasks| &tasks.tasks);
        let mut whole: Vec<String> =
            tasks.map(|task| format!("turns, task {}", task.name)).collect();
        whole.extend(Names::of_events(self.whole.iter()));
        let mut events = Names::of_events(self.texts.iter());
        events.extend((self.sampling.interval_ns != 0).then(|| "timer".to_string()));
        let behind = &[", overflows", ", samples", ", dropped", ", estimate"];
        let names = Names { whole, behind, events };
        names.check(&self.code.criteria).map_err(|message| self.refused(source, message))
    }

    fn refused(&self, source: &str, message: String) -> JobError {
        JobError::of_item("sample", &self.place(source), &self.code.name, message)
    }
}

impl Section for SampleFile {
    type Raw = RawSample;

    fn decide(
        raw: Spanned<RawSample>,
        _number: usize,
        text: &Text,
        source: &str,
    ) -> Result<Self, JobError> {
        decide(raw, text, source)
    }

    fn pack(
        file: &JobFile,
        all: &[Self],
        programs: &Programs,
    ) -> Result<Vec<PackedItem>, JobError> {
        pack(file, all, programs)
    }
}

#[cfg(test)]
mod tests;
