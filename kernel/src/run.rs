//! The loop over a job's items.

pub mod kinds;

use crate::exact::{self, Stepper};
use crate::heartbeat::Heartbeat;
use crate::history::{self, Historian};
use crate::processors;
use crate::report::{Sink, outcome};
use crate::sampling::{self, Sampler};
use crate::screen::Status;
use crate::snippet::fault;
use crate::snippet::measure::{Measured, Runner, Unmeasured, executions, measure};
use crate::tasks;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::core_kind::CoreKind;
use protocol::job::{
    Conformance, Count, Criteria, Exact, History, Item, Job, Memory, Processors, Requirement,
    Sampling, Snippet, Tasks,
};
use protocol::memory::beyond;
use protocol::record::{
    Applied, Check, Comparison, CountResult, End, ErrorCode, ErrorRecord, ExactResult, Fault,
    HistoryResult, Outcome, ProcessorsResult, Record, SampleResult, Samples, SnippetResult, Suite,
    TaskEnd, TasksResult, Verdict,
};
use protocol::verdict;

/// What the loop needs of the machine besides running code.
pub trait Machine: Historian + Runner + Sampler + Stepper {
    /// The TSC now.
    fn now(&self) -> u64;
    /// Ticks between two progress records.
    fn progress_ticks(&self) -> u64;
    /// Prepares for the next item: memory areas zero.
    fn next_item(&mut self, index: u32, name: &str);
    /// Whether the processor has what the code of an item needs.
    fn has(&self, requirement: &Requirement) -> bool {
        let _ = requirement;
        true
    }
    /// Gives the item that comes the memory that it asks for, filled; ring 3 may use it if `user`. [`Machine::restore`] takes it
    /// back. Returns what the report says of it.
    ///
    /// # Errors
    /// What cannot be had, in a sentence.
    fn provide(&mut self, asked: &[&Memory], user: bool) -> Result<Vec<Applied>, String> {
        let _ = user;
        if asked.is_empty() { Ok(Vec::new()) } else { Err("there is no memory".to_string()) }
    }
    /// Behind an item: takes back what it asked of the machine, and puts back what it changed besides. Returns the
    /// names of the latter.
    fn restore(&mut self) -> Vec<String>;
    /// Whether foreign code has changed the firmware's own code, which cannot be put back. Looked for only if
    /// [`Machine::restore`] found reason to, or `at_end`.
    fn is_changed(&mut self, at_end: bool) -> bool {
        let _ = at_end;
        false
    }
    /// Runs the conformance suite as item `index`, and hands each of its records to `report`.
    fn conformance(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(&Check),
    ) -> Suite;
    /// Finds out all that can be known of the machine, and then runs the conformance suite by what was measured, as item
    /// `index`; hands each record but the last to `report`.
    fn bring_up(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(Record),
    ) -> Suite {
        self.conformance(suite, index, &mut |check| report(Record::Check(check.clone())))
    }
    /// Runs a workload to its end.
    ///
    /// # Errors
    /// Why it cannot be run, in a sentence.
    fn tasks(&mut self, item: &Tasks) -> Result<tasks::Summary, String>;
    /// Counts while the tasks of `item` run. Item, name and times are filled in by the caller.
    ///
    /// # Errors
    /// Why the tasks cannot run or the PMU refuses, in a sentence.
    fn count(&mut self, item: &Count) -> Result<CountResult, String>;
    /// The kind of each processor's core, by their numbers, where the processors tell.
    fn kinds(&mut self) -> Vec<Option<CoreKind>> {
        Vec::new()
    }
    /// Measures a snippet on several processors, of a kind of core where one is given, as item `index`.
    ///
    /// # Errors
    /// Why that cannot be done.
    fn processors(
        &mut self,
        item: &Processors,
        core: Option<CoreKind>,
        index: u32,
    ) -> Result<ProcessorsResult, processors::Failure>;
    /// Interrupts since the last call that nothing asked for and no instruction raised, in a sentence.
    fn take_stray(&mut self) -> Option<String> {
        None
    }
    /// Whether the PMU is an emulated one.
    fn is_emulated(&self) -> bool;
    /// Notes the record of an item that is done, for the screen.
    fn note(&mut self, record: &Record) {
        let _ = record;
    }
    /// Shows how far the run is, and what was noted.
    fn show(&mut self, status: &Status);
    /// Shows which item is about to run: that alone, because it is done before every one.
    fn announce(&mut self, status: &Status) {
        let _ = status;
    }
}

/// How often the screen is drawn anew, as a part of the time between two progress records.
const SHOWN_BETWEEN: u64 = 10;

/// What the scheduler leaves otherwise than it found it: the address space of the task that ran last, and the null SS of an
/// interrupt out of ring 3 (SDM vol. 3, 7.14.2). It is put back and no task's doing.
const OF_THE_SCHEDULER: [&str; 2] = ["CR3", "SS"];

fn is_scheduled(item: &Item) -> bool {
    matches!(item, Item::Tasks(_) | Item::Count(_) | Item::Sample(_))
}

/// Runs every item of `job`, in order, writes their records to the report of `heart`, and judges them by the job's
/// criteria. Returns the end record, without its count, for the caller to write when everything else is out.
pub fn run<S: Sink>(job: &Job, machine: &mut impl Machine, heart: &Heartbeat<S>) -> End {
    let total = job.items.len() as u32;
    let mut status = Status { total, ..Status::default() };
    let mut last_shown = machine.now();
    machine.show(&status);
    let kinds = machine.kinds();
    for part in kinds::parts(&job.items, &kinds) {
        let (index, item) = (part.index, part.item);
        machine.next_item(index, item.name());
        // What came by now is of something before, and has spoilt nothing of this one.
        let _ = machine.take_stray();
        status.running = Some(item.name().to_string());
        machine.announce(&status);
        let before = Tally::of(&status);
        let missing = job.requires.iter().find(|one| one.is_of(index) && !machine.has(one));
        let memory: Vec<&Memory> = job.memory_of(index).collect();
        let provided = match memory.is_empty() || missing.is_some() {
            true => Ok(Vec::new()),
            false => machine.provide(&memory, item.has_ring_3()),
        };
        let mut record = match item {
            _ if let Some(requirement) = missing => skipped(index, item.name(), requirement),
            _ if let Some(text) = &part.refused => {
                status.failed += 1;
                status.last_error = Some(alloc::format!("{}: {text}", item.name()));
                Record::Error(refused_record(index, item.name(), text.clone()))
            }
            _ if let Err(text) = &provided => {
                status.failed += 1;
                status.last_error = Some(alloc::format!("{}: {text}", item.name()));
                Record::Error(refused_record(index, item.name(), text.clone()))
            }
            Item::Snippet(snippet) => one(index, snippet, machine, &mut status),
            Item::Exact(exact) => stepped(index, exact, machine, &mut status),
            Item::History(history) => by_cycle(index, history, machine, &mut status),
            Item::Tasks(tasks) => workload(index, tasks, machine, &mut status),
            Item::Count(count) => counted(index, count, machine, &mut status),
            Item::Processors(item) => on_processors(index, (item, part.core), machine, &mut status),
            Item::Sample(sampling) => {
                let mut each = |samples: Samples| heart.send(&Record::Samples(samples));
                sampled(index, sampling, machine, &mut status, &mut each)
            }
            Item::BringUp(suite) => {
                let suite = machine.bring_up(suite, index, &mut |record| heart.send(&record));
                judge(&suite, &mut status);
                Record::Suite(suite)
            }
            Item::Conformance(suite) => {
                let mut each = |check: &Check| heart.send(&Record::Check(check.clone()));
                let suite = machine.conformance(suite, index, &mut each);
                judge(&suite, &mut status);
                Record::Suite(suite)
            }
        };
        with_memory(&mut record, &memory, provided.unwrap_or_default());
        if let Record::Processors(result) = &mut record {
            result.more = part.more;
        }
        let restored = machine.restore();
        if let Some(stray) = machine.take_stray() {
            before.put_back(&mut status);
            status.failed += 1;
            record = spoilt(index, item, &stray, &mut status);
        }
        if let Some(names) = record.restored_mut() {
            *names = restored;
            if is_scheduled(item) {
                names.retain(|name| !OF_THE_SCHEDULER.contains(&name.as_str()));
            }
        }
        let changed = machine.is_changed(false);
        if changed {
            before.put_back(&mut status);
            record = changed_record(index, item, record, &mut status);
        }
        tally(job.criteria(index as usize), &mut record, &mut status);
        machine.note(&record);
        heart.send(&record);
        (status.done, status.running) = (index + 1, None);
        if changed {
            not_run(index, job, machine, &mut status, heart);
            break;
        }
        let now = machine.now();
        heart.done(now, status.done);
        if now.wrapping_sub(last_shown) >= machine.progress_ticks() / SHOWN_BETWEEN {
            machine.show(&status);
            last_shown = now;
        }
    }
    let mut outcome = outcome(status.passed, status.failed, status.measured);
    if status.done == total && machine.is_changed(true) {
        outcome = Outcome::Fail;
        let error = error_record(ErrorCode::FirmwareChanged, None, CHANGED_BY_SOMEONE.to_string());
        status.last_error = Some(error.text.clone());
        heart.send(&Record::Error(error));
    }
    status.outcome = Some(outcome);
    machine.show(&status);
    End {
        records: 0,
        outcome,
        passed: status.passed,
        failed: status.failed,
        measured: status.measured,
        on_end: job.on_end,
        heap: None,
    }
}

/// Items by how they ended, before one of them: what an item that is spoilt has added is taken back. The error that it was
/// of is overwritten then.
#[derive(Clone, Copy)]
struct Tally {
    passed: u32,
    failed: u32,
    measured: u32,
}

impl Tally {
    fn of(status: &Status) -> Self {
        let &Status { passed, failed, measured, .. } = status;
        Self { passed, failed, measured }
    }

    fn put_back(self, status: &mut Status) {
        (status.passed, status.failed, status.measured) = (self.passed, self.failed, self.measured);
    }
}

/// The vector of a page fault.
const PAGE_FAULT: u8 = 14;

/// Adds to the record what is to be said of the item's memory: what was provided, and which of it a page fault ran out of.
fn with_memory(record: &mut Record, memory: &[&Memory], provided: Vec<Applied>) {
    match record {
        Record::Result(result) => drop(result.controls.splice(0..0, provided)),
        Record::History(history) => drop(history.controls.splice(0..0, provided)),
        Record::Error(ErrorRecord { text, fault: Some(fault), .. })
            if fault.vector == PAGE_FAULT =>
        {
            let place = beyond(fault.registers.cr2.0, memory.iter().copied());
            text.extend(place.map(|place| alloc::format!(", {place}")));
        }
        _ => {}
    }
}

/// An item into which a stray interrupt came: whatever it measured has that in it.
fn spoilt(index: u32, item: &Item, stray: &str, status: &mut Status) -> Record {
    let name = item.name();
    status.last_error = Some(alloc::format!("{name}: {stray}"));
    Record::Error(ErrorRecord {
        code: ErrorCode::StrayInterrupt,
        ..refused_record(index, name, stray.to_string())
    })
}

/// What is said when the change is found at the end.
const CHANGED_BY_SOMEONE: &str = "the firmware's code was changed by an item of this boot, and there is no telling by \
    which one: its figures are not to be trusted";

fn error_record(code: ErrorCode, item: Option<(u32, &str)>, text: String) -> ErrorRecord {
    let (item, name) = item.map(|(item, name)| (item, name.to_string())).unzip();
    ErrorRecord { code, item, name, text, fault: None, restored: Vec::new() }
}

/// In place of `record`, of the item that changed the firmware's code.
fn changed_record(index: u32, item: &Item, record: Record, status: &mut Status) -> Record {
    let text = "it changed the firmware's code, which cannot be put back".to_string();
    let mut record = record;
    let restored = record.restored_mut().map(core::mem::take).unwrap_or_default();
    status.failed += 1;
    status.last_error = Some(alloc::format!("{}: {text}", item.name()));
    let error = error_record(ErrorCode::FirmwareChanged, Some((index, item.name())), text);
    Record::Error(ErrorRecord { restored, ..error })
}

/// Says of each item behind the one that changed the firmware's code that it was not run.
fn not_run<S: Sink>(
    changer: u32,
    job: &Job,
    machine: &mut impl Machine,
    status: &mut Status,
    heart: &Heartbeat<S>,
) {
    for (index, item) in (0..).zip(&job.items).skip(changer as usize + 1) {
        let text = alloc::format!("not run: item {changer} changed the firmware's code");
        let error = error_record(ErrorCode::NotRun, Some((index, item.name())), text);
        let record = Record::Error(error);
        machine.note(&record);
        heart.send(&record);
        status.failed += 1;
    }
}

fn one(index: u32, snippet: &Snippet, machine: &mut impl Machine, status: &mut Status) -> Record {
    let start = machine.now();
    let measured = measure(machine, snippet);
    let stop = machine.now();
    match measured {
        Ok(measured) => {
            // The first one is the TSC.
            let emulated = machine.is_emulated() && measured.metrics.len() > 1;
            let result = result(index, snippet, measured, [start, stop]);
            Record::Result(SnippetResult { emulated, ..result })
        }
        Err(unmeasured) => failed(index, snippet, unmeasured, status),
    }
}

/// Judges the record of an item, and adds it to the counts. What ended in an error was counted then.
fn tally(criteria: &Criteria, record: &mut Record, status: &mut Status) {
    match verdict::judge_record(criteria, record) {
        None => {}
        Some(Verdict::Pass) => status.passed += 1,
        Some(Verdict::None) => status.measured += 1,
        Some(Verdict::Fail) => {
            status.failed += 1;
            status.last_error = Some(last_error(record));
        }
    }
}

/// What went wrong with an item that failed, in a sentence.
fn last_error(record: &Record) -> String {
    let (name, tasks) = match record {
        Record::Result(result) => (&result.name, &[][..]),
        Record::Exact(exact) => {
            let differs = exact.comparisons.iter().find(|comparison| !comparison.agrees);
            if let Some(Comparison { event, .. }) = differs {
                let name = &exact.name;
                return alloc::format!("{name}: PMU and exact counts of {event} disagree");
            }
            (&exact.name, &[][..])
        }
        Record::Tasks(ran) => (&ran.name, &ran.tasks[..]),
        Record::Count(count) => (&count.name, &count.tasks[..]),
        Record::Processors(result) => (&result.name, &[][..]),
        Record::History(history) => (&history.name, &[][..]),
        Record::Sample(sampled) => {
            let tasks = sampled.schedule.as_ref().map_or(&[][..], |schedule| &schedule.tasks);
            (&sampled.name, tasks)
        }
        _ => return String::new(),
    };
    if let Some(task) = tasks.iter().find(|task| task.end != TaskEnd::Exit) {
        let how = if task.end == TaskEnd::Fault { "raised an exception" } else { "took too long" };
        return alloc::format!("{name}: task {} {how}", task.name);
    }
    let misses = verdict::said(record).and_then(|(_, misses)| misses.first());
    alloc::format!("{name}: {}", misses.map(verdict::sentence).unwrap_or_default())
}

fn failed(index: u32, snippet: &Snippet, unmeasured: Unmeasured, status: &mut Status) -> Record {
    status.failed += 1;
    let record = match unmeasured {
        Unmeasured::Fault(fault) => fault_record(index, snippet, fault),
        Unmeasured::Refused(text) => refused_record(index, &snippet.name, text),
        Unmeasured::TooLong(text) => {
            ErrorRecord { code: ErrorCode::StepLimit, ..refused_record(index, &snippet.name, text) }
        }
    };
    status.last_error = Some(alloc::format!("{}: {}", snippet.name, record.text));
    Record::Error(record)
}

fn on_processors(
    index: u32,
    (item, core): (&Processors, Option<CoreKind>),
    machine: &mut impl Machine,
    status: &mut Status,
) -> Record {
    let start = machine.now();
    let measured = machine.processors(item, core.or(item.core), index);
    let tsc = [start, machine.now()];
    match measured {
        Ok(result) => {
            let emulated = machine.is_emulated() && !result.sums.is_empty();
            let name = match core {
                Some(core) => alloc::format!("{}, {core} cores", result.name),
                None => result.name,
            };
            Record::Processors(ProcessorsResult { name, emulated, tsc, ..result })
        }
        Err(failure) => {
            let mut record = failed(index, &item.snippet, failure.why, status);
            if let (Some(number), Record::Error(error)) = (failure.processor, &mut record) {
                error.text = alloc::format!("on processor {number}: {}", error.text);
                status.last_error = Some(alloc::format!("{}: {}", item.snippet.name, error.text));
            }
            record
        }
    }
}

/// Exact mode. Where it verifies the PMU, agreement is what is expected.
fn stepped(index: u32, item: &Exact, machine: &mut impl Machine, status: &mut Status) -> Record {
    let start = machine.now();
    let measured = exact::measure(machine, index, item);
    let tsc = [start, machine.now()];
    match measured {
        Ok(result) => {
            let emulated = item.verify && machine.is_emulated();
            Record::Exact(ExactResult { emulated, tsc, ..result })
        }
        Err(unmeasured) => failed(index, &item.snippet, unmeasured, status),
    }
}

/// A history.
fn by_cycle(index: u32, item: &History, machine: &mut impl Machine, status: &mut Status) -> Record {
    let start = machine.now();
    let measured = history::measure(machine, index, item);
    let tsc = [start, machine.now()];
    match measured {
        Ok(result) => {
            let emulated = machine.is_emulated();
            Record::History(HistoryResult { emulated, tsc, ..result })
        }
        Err(unmeasured) => failed(index, &item.snippet, unmeasured, status),
    }
}

/// A workload.
fn workload(index: u32, item: &Tasks, machine: &mut impl Machine, status: &mut Status) -> Record {
    let start = machine.now();
    let ran = machine.tasks(item);
    let tsc = [start, machine.now()];
    let summary = match ran {
        Ok(summary) => summary,
        Err(reason) => {
            status.failed += 1;
            status.last_error = Some(alloc::format!("{}: {reason}", item.name));
            return Record::Error(refused_record(index, &item.name, reason));
        }
    };
    Record::Tasks(TasksResult {
        item: index,
        name: item.name.to_string(),
        verdict: Verdict::None,
        misses: Vec::new(),
        restored: Vec::new(),
        tasks: summary.tasks,
        switches: summary.switches,
        ticks: summary.ticks,
        interrupts: summary.interrupts,
        user_instructions: summary.user_instructions,
        emulated: summary.user_instructions.is_some() && machine.is_emulated(),
        tsc,
        together: summary.together,
    })
}

/// Counting over tasks.
fn counted(index: u32, item: &Count, machine: &mut impl Machine, status: &mut Status) -> Record {
    let start = machine.now();
    let result = machine.count(item);
    let tsc = [start, machine.now()];
    let emulated = machine.is_emulated();
    match result {
        Ok(result) => {
            let name = item.name.to_string();
            Record::Count(CountResult { item: index, name, emulated, tsc, ..result })
        }
        Err(reason) => {
            status.failed += 1;
            status.last_error = Some(alloc::format!("{}: {reason}", item.name));
            Record::Error(refused_record(index, &item.name, reason))
        }
    }
}

fn sampled(
    index: u32,
    item: &Sampling,
    machine: &mut impl Machine,
    status: &mut Status,
    report: &mut dyn FnMut(Samples),
) -> Record {
    let start = machine.now();
    let measured = sampling::measure(machine, index, item, report);
    let tsc = [start, machine.now()];
    let text = match measured {
        Ok(result) => return Record::Sample(SampleResult { tsc, ..result }),
        Err(Unmeasured::Refused(text) | Unmeasured::TooLong(text)) => ErrorRecord {
            code: ErrorCode::Unsupported,
            item: Some(index),
            name: Some(item.name.to_string()),
            text,
            fault: None,
            restored: Vec::new(),
        },
        Err(Unmeasured::Fault(fault)) => ErrorRecord {
            code: ErrorCode::SnippetFault,
            item: Some(index),
            name: Some(item.name.to_string()),
            text: fault::sentence(&fault),
            fault: Some(*fault),
            restored: Vec::new(),
        },
    };
    status.failed += 1;
    status.last_error = Some(alloc::format!("{}: {}", item.name, text.text));
    Record::Error(text)
}

/// A suite without a failure passes, if it made any check; if not, it leaves no trace in the counts, and a run of
/// nothing else is skipped.
fn judge(suite: &Suite, status: &mut Status) {
    if suite.failed > 0 {
        status.failed += 1;
        status.last_error = Some(alloc::format!("{}: {} checks failed", suite.name, suite.failed));
    } else if suite.passed + suite.known_errata + suite.known_behaviours > 0 {
        status.passed += 1;
    }
}

fn result(index: u32, snippet: &Snippet, measured: Measured, tsc: [u64; 2]) -> SnippetResult {
    let Measured { metrics, uncounted, planning, controls, unwatched, smis } = measured;
    SnippetResult {
        item: index,
        name: snippet.name.to_string(),
        verdict: Verdict::None,
        misses: Vec::new(),
        per: executions(snippet),
        runs: snippet.runs,
        metrics,
        uncounted,
        planning,
        controls,
        restored: Vec::new(),
        unwatched,
        smis,
        emulated: false,
        tsc,
    }
}

/// An item that was left out.
fn skipped(index: u32, name: &str, requirement: &Requirement) -> Record {
    let refused = refused_record(index, name, requirement.reason());
    Record::Error(ErrorRecord { code: ErrorCode::Skipped, ..refused })
}

fn refused_record(index: u32, name: &str, text: String) -> ErrorRecord {
    ErrorRecord {
        code: ErrorCode::Unsupported,
        item: Some(index),
        name: Some(name.to_string()),
        text,
        fault: None,
        restored: Vec::new(),
    }
}

fn fault_record(index: u32, snippet: &Snippet, fault: Box<Fault>) -> ErrorRecord {
    let (code, text) = match fault.mnemonic.as_str() {
        fault::TIME_LIMIT => {
            let limit = snippet.setup.control.time_limit_ms;
            (ErrorCode::TimeLimit, fault::time_limit(&fault, limit))
        }
        _ => (ErrorCode::SnippetFault, fault::sentence(&fault)),
    };
    ErrorRecord {
        code,
        item: Some(index),
        name: Some(snippet.name.to_string()),
        text,
        fault: Some(*fault),
        restored: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
