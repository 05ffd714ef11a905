//! The loop over a job's items.
//!
//! `kinds` has one module for each kind of item, and the one match over them; `failure` is what an item ends in that gives no
//! result, `judge` whether it passed; [`core_kinds`] divides items among the kinds of core of a hybrid package; [`silence`] is how
//! long an item may give no sign of life. What all this asks of the machine is [`Machine`].

pub mod core_kinds;
mod failure;
mod judge;
mod kinds;
mod machine;
pub mod silence;

pub use machine::Machine;

use crate::heartbeat::Heartbeat;
use crate::report::{Sink, outcome};
use crate::screen::Status;
use alloc::string::ToString;
use alloc::vec::Vec;
use failure::{Failure, error_record};
use protocol::job::memory::beyond;
use protocol::job::{Item, Job, Memory};
use protocol::record::{Applied, End, ErrorCode, ErrorRecord, Outcome, Record};

/// How often the screen is drawn again, as a part of the time between two progress records.
const SHOWN_BETWEEN: u64 = 10;

/// What the scheduler leaves otherwise than it found it: the address space of the task that ran last, and the null SS of an
/// interrupt out of ring 3 (SDM vol. 3, 7.14.2). It is restored and no task's doing.
const OF_THE_SCHEDULER: [&str; 2] = ["CR3", "SS"];

/// Runs every item of `job`, in order, writes their records to the report of `heart`, and judges them by the job's
/// criteria. Returns the end record, without its count, for the caller to write when everything else is out.
pub fn run<S: Sink>(job: &Job, machine: &mut impl Machine, heart: &Heartbeat<S>) -> End {
    let total = job.items.len() as u32;
    let mut status = Status { total, ..Status::default() };
    let mut last_shown = machine.now();
    machine.show(&status);
    let cores = machine.kinds();
    for part in core_kinds::parts(&job.items, &cores) {
        let (index, item) = (part.index, part.item);
        machine.next_item(index, item);
        // What came by now is of something before, and has spoilt nothing of this one.
        let _ = machine.take_stray();
        status.running = Some(item.name().to_string());
        machine.announce(&status);
        let before = Tally::of(&status);
        let missing = job.requires.iter().find(|one| one.is_of(index) && !machine.has(one));
        let memory: Vec<&Memory> = job.memory_of(index).collect();
        let provided = match memory.is_empty() || missing.is_some() || part.refused.is_some() {
            true => Ok(Vec::new()),
            false => machine.provide(&memory, item.has_ring_3()),
        };
        let ran = match (missing, &part.refused, &provided) {
            (Some(requirement), ..) => Err(Failure::skipped(requirement)),
            (None, Some(text), _) | (None, None, Err(text)) => Err(Failure::refused(text.clone())),
            (None, None, Ok(_)) => kinds::run(&part, machine, &mut |record| heart.send(record)),
        };
        let mut record = match ran {
            Ok(record) => record,
            Err(failure) => {
                failure.count(item.name(), &mut status);
                Record::Error(ErrorRecord { more: part.more, ..failure.record(index, item.name()) })
            }
        };
        if let Record::Suite(suite) = &record {
            judge::suite(suite, &mut status);
        }
        with_memory(&mut record, &memory, provided.unwrap_or_default());
        let restored = machine.restore();
        if let Some(stray) = machine.take_stray() {
            before.put_back(&mut status);
            let failure = Failure::new(ErrorCode::StrayInterrupt, stray);
            failure.count(item.name(), &mut status);
            let error = failure.record(index, item.name());
            record = Record::Error(ErrorRecord { more: part.more, ..error });
        }
        if let Some(names) = record.restored_mut() {
            *names = restored;
            if kinds::is_scheduled(item) {
                names.retain(|name| !OF_THE_SCHEDULER.contains(&name.as_str()));
            }
        }
        let changed = machine.is_changed(false);
        if changed {
            before.put_back(&mut status);
            record = changed_record(index, item, record, &mut status);
        }
        judge::tally(job.criteria(index as usize), &mut record, &mut status);
        machine.note(&record);
        heart.send(&record);
        (status.done, status.running) = (index + u32::from(!part.more), None);
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
        stack: None,
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

/// What is said when the change is found at the end.
const CHANGED_BY_SOMEONE: &str = "the firmware's code was changed by an item of this boot, and there is no telling by \
    which one: its figures are not to be trusted";

/// In place of `record`, of the item that changed the firmware's code.
fn changed_record(index: u32, item: &Item, record: Record, status: &mut Status) -> Record {
    let text = "it changed the firmware's code, which cannot be put back".to_string();
    let mut record = record;
    let restored = record.restored_mut().map(core::mem::take).unwrap_or_default();
    let failure = Failure::new(ErrorCode::FirmwareChanged, text);
    failure.count(item.name(), status);
    Record::Error(ErrorRecord { restored, ..failure.record(index, item.name()) })
}

/// Says of each item after the one that changed the firmware's code that it was not run.
fn not_run<S: Sink>(
    changer: u32,
    job: &Job,
    machine: &mut impl Machine,
    status: &mut Status,
    heart: &Heartbeat<S>,
) {
    for (index, item) in (0..).zip(&job.items).skip(changer as usize + 1) {
        let text = alloc::format!("not run: item {changer} changed the firmware's code");
        let record =
            Record::Error(Failure::new(ErrorCode::NotRun, text).record(index, item.name()));
        machine.note(&record);
        heart.send(&record);
        status.failed += 1;
    }
}

#[cfg(test)]
mod tests;
