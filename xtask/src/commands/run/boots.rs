//! One job in as many boots as it takes.
//!
//! A snippet of ring 0 can take the machine down past all that the firmware can catch: `cli; hlt`, a triple fault, a
//! write to the reset port, page tables without which the firmware fails. Items run in order, so the first one without a
//! record was running. It may be the victim of one before it in the same boot, so it is tried once more as the first item
//! of a clean boot; if it is lost there again, it gets an error record here. The items after it run in another boot.
//! The reports become one, in which every item of the job has its record.

mod fit;

use crate::Result;
use crate::collect::Report;
use crate::job::{JobError, Packed};
use crate::machine::{Ending, Finished};
use crate::verdict;
use fit::Cut;
use protocol::authentication::{KEY_BYTES, Key};
use protocol::job::{Item, OnEnd};
use protocol::record::{End, ErrorCode, ErrorRecord, Outcome, Record};

/// What all boots came to.
#[derive(Default)]
pub struct Whole {
    /// Their report; items are counted over all boots.
    pub report: Report,
    /// What the last machine must be blamed for, if it did not end as it should.
    pub complaint: Option<String>,
    /// What else is to be said about the boots.
    pub notes: Vec<String>,
    /// Every byte of every serial line.
    pub raw: Vec<u8>,
    /// The end record of a single boot does not hold for all.
    summed: bool,
    /// The signal that came before the end.
    pub interrupted: Option<&'static str>,
}

/// Boots `packed` and, at most `reboots` times, what is left of it. Each boot has a key of its own.
pub fn run(
    packed: &Packed,
    reboots: u32,
    boot: impl Fn(&Packed) -> Result<Finished>,
) -> Result<Whole> {
    let items = &packed.job.items;
    let mut whole = Whole::default();
    let (mut done, mut left) = (0, reboots);
    // The item that a boot begins with since it was lost in another one, and how.
    let mut retried: Option<String> = None;
    loop {
        let rest = packed
            .rest(done, Some(random_key()?))
            .map_err(|error| JobError::Pack { file: packed.job.name.to_string(), error })?;
        let finished = boot(&rest)?;
        let (was_up, ended) = (finished.collector.is_up(), finished.collector.ended());
        let (complaint, ending) = (finished.complaint(), finished.ending.clone());
        if let (Ending::Interrupted(signal), Some(_)) = (&ending, &complaint) {
            whole.interrupted = Some(signal);
        }
        whole.raw.extend_from_slice(finished.collector.raw());
        let mut report = finished.collector.finish();
        if rest.job.self_test.is_some() {
            whole.complaint = complaint;
            whole.take(report, done);
            return Ok(whole);
        }
        let seen = fit::look(&rest.job, &report);
        let stood = seen.as_ref().map_or_else(|cut| cut.item, |stood| *stood);
        if let Some(how) = retried.take().filter(|_| stood > 0) {
            let (victim, before) = (items[done].name(), items[done - 1].name());
            whole.notes.push(format!(
                "item {done} ({victim}) was lost in the boot of item {} ({before}), and not in a clean one: {how}",
                done - 1
            ));
        }
        let down = was_up && !ended && matches!(ending, Ending::Silent(_) | Ending::Exited(_));
        let cut = match seen {
            Err(cut) if done + cut.item < items.len() => cut,
            Ok(stood) if down && done + stood < items.len() => Cut {
                records: report.records.len(),
                item: stood,
                code: ErrorCode::SnippetLost,
                cause: complaint.unwrap_or_default(),
                crash: None,
            },
            other => {
                whole.complaint = other.err().map(|cut| cut.cause).or(complaint);
                let bad_job = report.end().is_some_and(|end| end.outcome == Outcome::BadJob);
                let crash = report.crash().map(|crash| crash.text.clone());
                whole.take(report, done);
                let cause = whole.complaint.clone().or(crash).unwrap_or_default();
                let mut next = done + stood;
                if next < items.len() && !bad_job {
                    if was_up && matches!(ending, Ending::TimedOut(_)) {
                        whole.blame(items, next, ErrorCode::SnippetLost, &cause);
                        next += 1;
                    }
                    whole.not_run(items, next, &cause);
                }
                break;
            }
        };
        // What is wrong with the lines of this boot is said of the item.
        report.problems.clear();
        report.records.truncate(cut.records);
        whole.take(report, done);
        whole.summed = true;
        let before = &items[done..done + cut.item];
        done += cut.item;
        let is_suspect = before.iter().any(fit::runs_in_ring_0);
        if cut.code == ErrorCode::NotRun || is_suspect && left > 0 {
            retried = (cut.code != ErrorCode::NotRun).then_some(cut.cause.clone());
        } else {
            if let Some(crash) = cut.crash {
                whole.push(Record::Crash(protocol::record::Crash {
                    item: Some(done as u32),
                    ..*crash
                }));
            }
            whole.blame(items, done, cut.code, &cut.cause);
            done += 1;
        }
        if done == items.len() {
            break;
        }
        if left == 0 {
            let said = format!("{}, after {reboots} reboots", cut.cause);
            whole.not_run(items, done, &said);
            whole.complaint = Some(said);
            break;
        }
        left -= 1;
    }
    if whole.summed && whole.complaint.is_none() {
        whole.sum();
    }
    Ok(whole)
}

/// A key that nobody has seen.
fn random_key() -> Result<Key> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        crate::Failure::Usage(format!(
            "the system has no random numbers for the boot's key: {error}"
        ))
    })?;
    Ok(Key::new(bytes))
}

impl Whole {
    /// Says of item `index` that it is at fault.
    fn blame(&mut self, items: &[Item], index: usize, code: ErrorCode, cause: &str) {
        let name = items[index].name();
        self.error(index, name, code, format!("{cause} in `{name}`"));
    }

    /// Says of the items from `first` on that they were not run.
    fn not_run(&mut self, items: &[Item], first: usize, cause: &str) {
        for (index, item) in items.iter().enumerate().skip(first) {
            self.error(index, item.name(), ErrorCode::NotRun, format!("not run: {cause}"));
        }
    }

    fn error(&mut self, index: usize, name: &str, code: ErrorCode, text: String) {
        let (item, name) = (Some(index as u32), Some(name.to_string()));
        let (fault, restored, more) = (None, Vec::new(), false);
        self.push(Record::Error(ErrorRecord { code, item, name, text, fault, restored, more }));
    }

    fn push(&mut self, record: Record) {
        let seq = self.report.records.len() as u32;
        self.report.records.push(crate::collect::Numbered { seq, record });
    }

    /// Adds the records of a boot that began with item `done`. Of a later boot only those of its items and its end
    /// count.
    fn take(&mut self, report: Report, done: usize) {
        let later = done > 0;
        for mut one in report.records {
            let item = one.record.item_mut();
            let is_item = item.is_some();
            if let Some(item) = item {
                *item += done as u32;
            }
            if !later {
                self.report.records.push(one);
            } else if is_item || is_kept(&one.record) {
                self.push(one.record);
            }
        }
        self.report.problems.extend(report.problems);
        self.report.foreign.extend(report.foreign);
    }

    /// The end record of all boots together.
    fn sum(&mut self) {
        let crashed = self.report.end().is_some_and(|end| end.outcome == Outcome::Crash);
        self.report.records.retain(|one| !matches!(one.record, Record::End(_)));
        let verdict::Tally { passed, failed, measured } = verdict::Tally::of(&self.report);
        let outcome = if crashed { Outcome::Crash } else { verdict::outcome(&self.report) };
        let records = self.report.records.len() as u32 + 1;
        let on_end = OnEnd::default();
        let end =
            End { records, outcome, passed, failed, measured, on_end, heap: None, stack: None };
        self.push(Record::End(end));
    }
}

/// What holds for more than the boot that it comes from, in addition to the records of items.
fn is_kept(record: &Record) -> bool {
    match record {
        Record::End(_) | Record::Crash(_) => true,
        Record::Error(error) => error.code == ErrorCode::FirmwareChanged,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
