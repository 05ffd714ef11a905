//! The loop over a job's items.

use crate::report::{Report, Sink, outcome};
use crate::screen::Status;
use crate::snippet::fault;
use crate::snippet::measure::{Runner, executions, measure};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::job::{Item, Job, Snippet};
use protocol::record::{
    End, ErrorCode, ErrorRecord, Fault, Metric, Progress, Record, SnippetResult, Verdict,
};

/// What the loop needs of the machine besides running code.
pub trait Machine: Runner {
    /// The TSC now.
    fn now(&self) -> u64;
    /// Ticks between two progress records.
    fn progress_ticks(&self) -> u64;
    /// Prepares for the next item: memory areas zero.
    fn next_item(&mut self, index: u32);
    /// Shows how far the run is.
    fn show(&mut self, status: &Status);
}

/// Runs every item of `job`, in order, and writes their records. Returns the end record, without its
/// count, for the caller to write when everything else is out.
pub fn run<S: Sink>(job: &Job, machine: &mut impl Machine, report: &mut Report<S>) -> End {
    let total = job.items.len() as u32;
    let mut status = Status { total, ..Status::default() };
    let mut last_sign = machine.now();
    machine.show(&status);
    for (index, item) in (0..).zip(&job.items) {
        machine.next_item(index);
        let Item::Snippet(snippet) = item;
        let record = one(index, snippet, machine, &mut status);
        report.send(&record);
        status.done = index + 1;
        let now = machine.now();
        if now.wrapping_sub(last_sign) >= machine.progress_ticks() {
            report.send(&Record::Progress(Progress { done: status.done, total }));
            machine.show(&status);
            last_sign = now;
        }
    }
    let outcome = outcome(status.passed, status.failed, status.measured);
    status.outcome = Some(outcome);
    machine.show(&status);
    End {
        records: 0,
        outcome,
        passed: status.passed,
        failed: status.failed,
        measured: status.measured,
        on_end: job.on_end,
    }
}

fn one(index: u32, snippet: &Snippet, machine: &mut impl Machine, status: &mut Status) -> Record {
    let start = machine.now();
    let measured = measure(machine, snippet);
    let stop = machine.now();
    match measured {
        Ok(metric) => {
            let result = result(index, snippet, metric, [start, stop]);
            match result.verdict {
                Verdict::Pass => status.passed += 1,
                Verdict::None => status.measured += 1,
                Verdict::Fail => {
                    status.failed += 1;
                    status.last_error = Some(miss(snippet, &result.metrics));
                }
            }
            Record::Result(result)
        }
        Err(fault) => {
            status.failed += 1;
            let record = fault_record(index, snippet, fault);
            status.last_error = Some(alloc::format!("{}: {}", snippet.name, record.text));
            Record::Error(record)
        }
    }
}

fn result(index: u32, snippet: &Snippet, metric: Metric, tsc: [u64; 2]) -> SnippetResult {
    let verdict = match &snippet.expect {
        None => Verdict::None,
        Some(expect) if expect.holds(metric.value.median) => Verdict::Pass,
        Some(_) => Verdict::Fail,
    };
    SnippetResult {
        item: index,
        name: snippet.name.to_string(),
        verdict,
        per: executions(snippet),
        runs: snippet.runs,
        metrics: Vec::from([metric]),
        tsc,
    }
}

fn miss(snippet: &Snippet, metrics: &[Metric]) -> alloc::string::String {
    let median = metrics.first().map_or(0.0, |metric| metric.value.median);
    match &snippet.expect {
        Some(e) => alloc::format!("{}: {median}, not {} to {}", snippet.name, e.min, e.max),
        None => snippet.name.to_string(),
    }
}

fn fault_record(index: u32, snippet: &Snippet, fault: Box<Fault>) -> ErrorRecord {
    ErrorRecord {
        code: ErrorCode::SnippetFault,
        item: Some(index),
        name: Some(snippet.name.to_string()),
        text: fault::sentence(&fault),
        fault: Some(*fault),
    }
}

#[cfg(test)]
mod tests;
