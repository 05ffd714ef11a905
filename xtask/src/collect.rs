//! A report as it comes in.

use protocol::authentication::Key;
use protocol::record::{
    Check, ConsoleRecord, CountResult, Crash, End, ErrorRecord, ExactResult, FactsResult,
    HistoryResult, Machine, ProcessorsResult, Record, SampleResult, Samples, SnippetResult, Suite,
    TasksResult,
};
use protocol::stream::{Event, Problem, Reader};
use serde::Serialize;

/// A record with its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numbered {
    /// Sequence number.
    pub seq: u32,
    /// The record.
    #[serde(flatten)]
    pub record: Record,
}

/// Text of other origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Foreign {
    /// Line of the input.
    pub line: u64,
    /// The text.
    pub text: String,
}

/// Most lines of foreign text that are kept.
const MAX_FOREIGN: usize = 10_000;

/// Collects records and everything that is wrong with them.
#[derive(Default)]
pub struct Collector {
    reader: Reader,
    raw: Vec<u8>,
    report: Report,
    /// Items done, and the records that were looked at for that: a long job asks after every few bytes.
    items: u64,
    counted: usize,
}

/// A report, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Records in the order in which they came; after a restart, those of the last boot.
    pub records: Vec<Numbered>,
    /// Defects of the report.
    pub problems: Vec<Problem>,
    /// Text between the records.
    pub foreign: Vec<Foreign>,
    /// Lines that somebody without the boot's key wrote: how many records had come by then, and what is wrong with each.
    pub forged: Vec<(usize, String)>,
    /// Where the report says of its figures what they do not say themselves: [`crate::verdict`].
    pub disputes: Vec<String>,
}

impl Collector {
    /// A collector that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A collector for one boot whose records carry the codes of `key`.
    #[must_use]
    pub fn with_key(key: Key) -> Self {
        Self { reader: Reader::with_key(key), ..Self::default() }
    }

    /// Whether records carried codes. Without the key, nobody looked whether they are right.
    #[must_use]
    pub fn signed(&self) -> bool {
        self.reader.signed()
    }

    /// Takes bytes as they come.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        let events = self.reader.feed(bytes);
        self.report.take(events);
        let records = &self.report.records;
        if self.counted > records.len() {
            // The machine started again.
            (self.items, self.counted) = (0, 0);
        }
        self.items +=
            records[self.counted..].iter().filter(|one| one.record.ends_item()).count() as u64;
        self.counted = records.len();
    }

    /// Records so far.
    #[must_use]
    pub fn records(&self) -> usize {
        self.report.records.len()
    }

    /// The records so far.
    #[must_use]
    pub fn so_far(&self) -> &[Numbered] {
        &self.report.records
    }

    /// Whether the firmware has come up: items run only after its machine record.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.report.machine().is_some()
    }

    /// Items of the job that are done.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Whether the end record has come.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.reader.ended()
    }

    /// Every byte that came, for the log.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Ends the report.
    #[must_use]
    pub fn finish(mut self) -> Report {
        let events = self.reader.finish();
        self.report.take(events);
        self.report
    }
}

impl Report {
    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Problem(problem @ Problem::Forged { .. }) => {
                    if self.forged.len() < MAX_FOREIGN {
                        self.forged.push((self.records.len(), problem.to_string()));
                    }
                    self.problems.push(problem);
                }
                Event::Record { seq, record } => {
                    self.records.push(Numbered { seq, record: *record });
                }
                Event::Problem(problem) => {
                    if matches!(problem, Problem::Restarted { .. }) {
                        self.records.clear();
                    }
                    self.problems.push(problem);
                }
                Event::Foreign { line, text } if self.foreign.len() < MAX_FOREIGN => {
                    self.foreign.push(Foreign { line, text });
                }
                Event::Foreign { .. } => {}
            }
        }
    }

    /// The machine record.
    #[must_use]
    pub fn machine(&self) -> Option<&Machine> {
        self.find(|record| match record {
            Record::Machine(machine) => Some(machine),
            _ => None,
        })
    }

    /// The end record.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.find(|record| match record {
            Record::End(end) => Some(end),
            _ => None,
        })
    }

    /// The crash record.
    #[must_use]
    pub fn crash(&self) -> Option<&Crash> {
        self.find(|record| match record {
            Record::Crash(crash) => Some(crash),
            _ => None,
        })
    }

    /// Whether the firmware's failure cost one item, which has an error record for it, and the others were run.
    #[must_use]
    pub fn is_cost_of_item(&self, crash: &Crash) -> bool {
        crash.item.is_some() && self.errors().any(|error| error.item == crash.item)
    }

    /// The results, in order.
    pub fn results(&self) -> impl Iterator<Item = &SnippetResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Result(result) => Some(result),
            _ => None,
        })
    }

    /// What was stepped through, in order.
    pub fn exact(&self) -> impl Iterator<Item = &ExactResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Exact(exact) => Some(exact),
            _ => None,
        })
    }

    /// What was looked at cycle by cycle, in order.
    pub fn histories(&self) -> impl Iterator<Item = &HistoryResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::History(history) => Some(history),
            _ => None,
        })
    }

    /// The fact sheets, in order.
    pub fn fact_sheets(&self) -> impl Iterator<Item = &FactsResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Facts(facts) => Some(facts),
            _ => None,
        })
    }

    /// The workloads that were run, in order.
    pub fn tasks(&self) -> impl Iterator<Item = &TasksResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Tasks(tasks) => Some(tasks),
            _ => None,
        })
    }

    /// What was sampled, in order.
    pub fn sampled(&self) -> impl Iterator<Item = &SampleResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Sample(sampled) => Some(sampled),
            _ => None,
        })
    }

    /// What was counted over tasks, in order.
    pub fn counts(&self) -> impl Iterator<Item = &CountResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Count(count) => Some(count),
            _ => None,
        })
    }

    /// What ran on several processors, in order.
    pub fn processors(&self) -> impl Iterator<Item = &ProcessorsResult> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Processors(processors) => Some(processors),
            _ => None,
        })
    }

    /// What the console of an item said, in order.
    pub fn console(&self, item: u32) -> impl Iterator<Item = &ConsoleRecord> {
        self.records.iter().filter_map(move |numbered| match &numbered.record {
            Record::Console(console) if console.item == item => Some(console),
            _ => None,
        })
    }

    /// The single samples of an item, in order.
    pub fn samples(&self, item: u32) -> impl Iterator<Item = &Samples> {
        self.records.iter().filter_map(move |numbered| match &numbered.record {
            Record::Samples(samples) if samples.item == item => Some(samples),
            _ => None,
        })
    }

    /// The suite records, in order.
    pub fn suites(&self) -> impl Iterator<Item = &Suite> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Suite(suite) => Some(suite),
            _ => None,
        })
    }

    /// The checks of the conformance suite, in order.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Check(check) => Some(check),
            _ => None,
        })
    }

    /// The error records, in order.
    pub fn errors(&self) -> impl Iterator<Item = &ErrorRecord> {
        self.records.iter().filter_map(|numbered| match &numbered.record {
            Record::Error(error) => Some(error),
            _ => None,
        })
    }

    fn find<'a, T>(&'a self, pick: impl Fn(&'a Record) -> Option<T>) -> Option<T> {
        self.records.iter().rev().find_map(|numbered| pick(&numbered.record))
    }

    /// Items that have a result of any kind, a suite or an error.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.records.iter().filter(|one| one.record.ends_item()).count() as u64
    }

    /// Exit code: 3 if the report is not whole or contradicts itself, else the run's own.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.end() {
            Some(end) if self.problems.is_empty() && self.disputes.is_empty() => {
                end.outcome.exit_code()
            }
            _ => 3,
        }
    }
}

#[cfg(test)]
mod tests;
