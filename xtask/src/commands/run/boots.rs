//! One job in as many boots as it takes.
//!
//! A snippet of ring 0 can take the machine down past all that the firmware can catch: `cli; hlt`, a triple fault, a
//! write to the reset port. Items run in order, so the first one without a record is the one that did it. It gets an
//! error record here, and the items behind it run in another boot. The reports become one.

use crate::Result;
use crate::collect::Report;
use crate::job::{JobError, Packed};
use crate::machine::{Ending, Finished};
use protocol::job::OnEnd;
use protocol::record::{End, ErrorCode, ErrorRecord, Outcome, Record, TaskEnd, Verdict};
use protocol::stream::Problem;

/// What all boots came to.
pub struct Whole {
    /// Their report; items are counted over all boots.
    pub report: Report,
    /// What the last machine has to be blamed for, if it did not end as it should.
    pub complaint: Option<String>,
    /// Every byte of every serial line.
    pub raw: Vec<u8>,
    /// The signal that came before the end.
    pub interrupted: Option<&'static str>,
}

/// Boots `packed` and, at most `reboots` times, what is left of it.
pub fn run(
    packed: &Packed,
    reboots: u32,
    boot: impl Fn(&Packed) -> Result<Finished>,
) -> Result<Whole> {
    let total = packed.job.items.len() as u64;
    let mut whole =
        Whole { report: Report::default(), complaint: None, raw: Vec::new(), interrupted: None };
    let (mut done, mut left) = (0, reboots);
    loop {
        let rest = packed
            .rest(done as usize)
            .map_err(|error| JobError::Pack { file: packed.job.name.to_string(), error })?;
        let finished = boot(&rest)?;
        let cause = lost(&finished, rest.job.self_test.is_some());
        let complaint = finished.complaint();
        if let (Ending::Interrupted(signal), Some(_)) = (&finished.ending, &complaint) {
            whole.interrupted = Some(signal);
        }
        whole.raw.extend_from_slice(finished.collector.raw());
        let mut report = finished.collector.finish();
        let reported = done + report.items();
        let (Some(cause), true) = (cause, reported < total) else {
            whole.complaint = complaint;
            whole.take(report, done);
            break;
        };
        if left == 0 {
            let said = format!(
                "{cause} in item {reported}, after {reboots} reboots; items {reported} to {} have no record",
                total - 1
            );
            whole.complaint = Some(said);
            whole.take(report, done);
            break;
        }
        left -= 1;
        report.problems.retain(|problem| !matches!(problem, Problem::NoEnd { .. }));
        report.records.retain(|one| !matches!(one.record, Record::End(_)));
        whole.take(report, done);
        let name = packed.job.items[reported as usize].name().to_string();
        whole.push(Record::Error(ErrorRecord {
            code: ErrorCode::SnippetLost,
            item: Some(reported as u32),
            text: format!("{cause} in `{name}`"),
            name: Some(name),
            fault: None,
            restored: Vec::new(),
        }));
        done = reported + 1;
        if done == total {
            break;
        }
    }
    if left < reboots && whole.complaint.is_none() {
        whole.sum();
    }
    Ok(whole)
}

/// Why the machine went down, if an item may have done it: it was up, and the time was not.
fn lost(finished: &Finished, breaks_on_purpose: bool) -> Option<String> {
    let was_up = finished.collector.is_up();
    if breaks_on_purpose || !was_up || finished.collector.ended() {
        return None;
    }
    match finished.ending {
        Ending::Silent(_) | Ending::Exited(_) => finished.complaint(),
        Ending::Stopped | Ending::TimedOut(_) | Ending::Interrupted(_) => None,
    }
}

impl Whole {
    fn push(&mut self, record: Record) {
        let seq = self.report.records.len() as u32;
        self.report.records.push(crate::collect::Numbered { seq, record });
    }

    /// Adds the records of a boot that began with item `done`. Of a later boot only those of its items and its end
    /// count.
    fn take(&mut self, report: Report, done: u64) {
        let later = done > 0;
        for mut one in report.records {
            let item = match &mut one.record {
                Record::Result(result) => Some(&mut result.item),
                Record::Exact(exact) => Some(&mut exact.item),
                Record::History(history) => Some(&mut history.item),
                Record::Processors(processors) => Some(&mut processors.item),
                Record::Tasks(tasks) => Some(&mut tasks.item),
                Record::Count(count) => Some(&mut count.item),
                Record::Samples(samples) => Some(&mut samples.item),
                Record::Sample(sampled) => Some(&mut sampled.item),
                Record::Check(check) => Some(&mut check.item),
                Record::Suite(suite) => Some(&mut suite.item),
                Record::Error(error) => error.item.as_mut(),
                Record::Crash(crash) => crash.item.as_mut(),
                _ => None,
            };
            let is_item = item.is_some();
            if let Some(item) = item {
                *item += done as u32;
            }
            if !later {
                self.report.records.push(one);
            } else if is_item || matches!(one.record, Record::End(_) | Record::Crash(_)) {
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
        let (mut passed, mut measured) = (0, 0);
        let mut failed = self.report.errors().filter(|error| error.item.is_some()).count() as u32;
        for result in self.report.results() {
            match result.verdict {
                Verdict::Pass => passed += 1,
                Verdict::None => measured += 1,
                Verdict::Fail => failed += 1,
            }
        }
        for exact in self.report.exact() {
            match &exact.comparisons[..] {
                [] => measured += 1,
                some if some.iter().all(|one| one.agrees) => passed += 1,
                _ => failed += 1,
            }
        }
        let ran = self.report.tasks().map(|one| &one.tasks);
        let ran = ran.chain(self.report.counts().map(|one| &one.tasks));
        let sampled = self.report.sampled().filter_map(|one| one.schedule.as_ref());
        for tasks in ran.chain(sampled.map(|schedule| &schedule.tasks)) {
            let whole = tasks.iter().all(|task| task.end == TaskEnd::Exit);
            *(if whole { &mut measured } else { &mut failed }) += 1;
        }
        measured += self.report.sampled().filter(|one| one.schedule.is_none()).count() as u32;
        measured += self.report.processors().count() as u32;
        measured += self.report.histories().count() as u32;
        for suite in self.report.suites() {
            if suite.failed > 0 {
                failed += 1;
            } else if suite.passed + suite.known_errata > 0 {
                passed += 1;
            }
        }
        // An item took the machine down, so the run failed, if nothing worse.
        let outcome = if crashed { Outcome::Crash } else { Outcome::Fail };
        let records = self.report.records.len() as u32 + 1;
        let on_end = OnEnd::default();
        let end = End { records, outcome, passed, failed, measured, on_end, heap: None };
        self.push(Record::End(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Numbered;

    fn record(json: &str) -> Record {
        serde_json::from_str(json).expect("a record")
    }

    fn exact(item: u32, agrees: Option<bool>) -> Record {
        let compared = agrees.map_or(String::new(), |agrees| {
            format!(
                r#","comparisons":[{{"event":"instructions","exact":1.0,"pmu_min":1.0,"pmu_median":1.0,
                   "pmu_max":1.0,"agrees":{agrees}}}]"#
            )
        });
        record(&format!(
            r#"{{"type":"exact","item":{item},"name":"e","per":1,"counts":[],"opcodes":[],"listing":[],"listed":0,
               "tsc":[0,1]{compared}}}"#
        ))
    }

    fn report(records: Vec<Record>) -> Report {
        let numbered = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
        Report { records: numbered.collect(), ..Report::default() }
    }

    #[test]
    fn x1_items_of_later_boots_are_counted_on_and_all_are_summed() {
        let mut whole = Whole {
            report: Report::default(),
            complaint: None,
            raw: Vec::new(),
            interrupted: None,
        };
        let progress = || record(r#"{"type":"progress","done":1,"total":5}"#);
        whole.take(report(vec![progress(), exact(0, None)]), 0);
        let lost = r#"{"type":"error","code":"snippet_lost","item":1,"text":"gone"}"#;
        whole.push(record(lost));
        let later = vec![progress(), exact(0, Some(true)), exact(1, Some(false)), exact(2, None)];
        whole.take(report(later), 2);
        whole.sum();
        let items: Vec<u32> = whole.report.exact().map(|exact| exact.item).collect();
        assert_eq!(items, [0, 2, 3, 4]);
        let sequence: Vec<u32> = whole.report.records.iter().map(|one| one.seq).collect();
        assert_eq!(sequence, (0..7).collect::<Vec<_>>(), "the later boot's progress is left out");
        let end = whole.report.end().expect("an end");
        assert_eq!((end.passed, end.failed, end.measured, end.records), (1, 2, 2, 7));
        assert_eq!(end.outcome, Outcome::Fail);
        assert_eq!(whole.report.items(), 5);
    }
}
