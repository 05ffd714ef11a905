//! The host's own judgement of a report.
//!
//! `run` has the job: it judges each record's figures by it, and what the firmware says of its own counts for nothing.
//! `collect` has the report alone: it takes each record's verdict, and adds them up. Where the report says something else
//! than comes out here, it is not to be trusted, and the exit code says so.

use crate::collect::Report;
use protocol::job::Job;
use protocol::record::{ErrorCode, Miss, Outcome, Record, Verdict};
use protocol::verdict;

/// How many items came to what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Items that met what the job expects.
    pub passed: u32,
    /// Items that did not, or ended in an error.
    pub failed: u32,
    /// Items of which nothing was expected.
    pub measured: u32,
}

impl Tally {
    /// Adds up the verdicts of all records.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let mut tally = Self::default();
        for numbered in &report.records {
            let place = match (&numbered.record, verdict::said(&numbered.record)) {
                (_, Some((Verdict::Pass, _))) => &mut tally.passed,
                (_, Some((Verdict::Fail, _))) => &mut tally.failed,
                (_, Some((Verdict::None, _))) => &mut tally.measured,
                // What the processor lacks is neither.
                (Record::Error(error), _) if error.code == ErrorCode::Skipped => continue,
                (Record::Error(error), _) if error.item.is_some() => &mut tally.failed,
                (Record::Suite(suite), _) if suite.failed > 0 => &mut tally.failed,
                (Record::Suite(suite), _)
                    if suite.passed + suite.known_errata + suite.known_behaviours > 0 =>
                {
                    &mut tally.passed
                }
                _ => continue,
            };
            *place += 1;
        }
        tally
    }

    /// How the run went, if it ended and its figures can be trusted.
    fn outcome(self) -> Outcome {
        match self {
            Self { failed: 1.., .. } => Outcome::Fail,
            Self { passed: 0, measured: 0, .. } => Outcome::Skip,
            _ => Outcome::Pass,
        }
    }
}

/// How the run went, if it ended. A firmware that somebody changed, and nobody knows who, fails it.
#[must_use]
pub fn outcome(report: &Report) -> Outcome {
    let changed = report.errors().any(|error| error.code == ErrorCode::FirmwareChanged);
    if changed { Outcome::Fail } else { Tally::of(report).outcome() }
}

/// Judges every record by what `job` expects, and writes the verdicts into the report in place of the firmware's.
pub fn judge(report: &mut Report, job: &Job) {
    for numbered in &mut report.records {
        let record = &mut numbered.record;
        let Some((item, name)) = item_of(record) else { continue };
        let said = verdict::said(record).map(|(verdict, _)| verdict);
        let judged = verdict::judge_record(job.criteria(item as usize), record);
        if let (Some(said), Some(judged)) = (said, judged)
            && said != judged
        {
            let [said, judged] = [said, judged].map(word);
            let text = format!(
                "item {item} ({name}): the firmware states that it {said}; by its figures and the job it {judged}"
            );
            report.disputes.push(text);
        }
    }
}

/// Adds up the verdicts, and compares them with the end record, which gets the sums that are right.
pub fn add_up(report: &mut Report) {
    let (tally, outcome) = (Tally::of(report), self::outcome(report));
    let whole = report.problems.is_empty();
    let ends = report.records.iter_mut().rev().find_map(|numbered| match &mut numbered.record {
        Record::End(end) => Some(end),
        _ => None,
    });
    let Some(end) = ends.filter(|end| !matches!(end.outcome, Outcome::Crash | Outcome::BadJob))
    else {
        return;
    };
    let said = Tally { passed: end.passed, failed: end.failed, measured: end.measured };
    if whole && (said != tally || end.outcome != outcome) {
        let words = |tally: Tally, outcome: Outcome| {
            let Tally { passed, failed, measured } = tally;
            let outcome = format!("{outcome:?}").to_lowercase();
            format!("{passed} passed, {failed} failed, {measured} measured, so {outcome}")
        };
        report.disputes.push(format!(
            "the end record states {}; its records give {}",
            words(said, end.outcome),
            words(tally, outcome)
        ));
    }
    (end.passed, end.failed, end.measured) = (tally.passed, tally.failed, tally.measured);
    end.outcome = outcome;
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::None => "expected nothing",
    }
}

/// What tables write in place of a verdict where an item ended in an error: a fault is an exception in its code.
#[must_use]
pub fn of_error(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::SnippetFault => "FAULT",
        ErrorCode::TimeLimit => "TIME LIMIT",
        ErrorCode::StepLimit => "STEP LIMIT",
        ErrorCode::Skipped => "skipped",
        ErrorCode::SnippetLost => "LOST",
        ErrorCode::Forged => "FORGED",
        ErrorCode::FirmwareChanged => "FIRMWARE CHANGED",
        ErrorCode::NotRun => "NOT RUN",
        _ => "ERROR",
    }
}

/// Index and name of the item that the record is the result of.
#[must_use]
pub fn item_of(record: &Record) -> Option<(u32, String)> {
    record.result().map(|result| (result.head().item, result.head().name.to_string()))
}

/// Whether the miss is an event that was not counted, of which nothing was expected.
#[must_use]
pub fn is_uncounted(miss: &Miss) -> bool {
    miss.min.is_none() && miss.max.is_none()
}

/// What an item's record missed, a sentence each.
#[must_use]
pub fn sentences(record: &Record) -> Vec<String> {
    let misses = verdict::said(record).map(|(_, misses)| misses).unwrap_or_default();
    misses.iter().map(verdict::sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Numbered;
    use protocol::job::OnEnd;
    use protocol::job::criteria::{Bounds, Criteria, Expect};

    fn record(json: &str) -> Record {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    /// A snippet that took four ticks, and says what came of it.
    fn result(item: u32, verdict: &str) -> Record {
        record(&format!(
            r#"{{"type":"result","item":{item},"name":"a","verdict":"{verdict}","per":1,"runs":1,"metrics":[
               {{"event":"tsc","min":4.0,"median":4.0,"mean":4.0,"max":4.0,"deterministic":true,
               "series":[{{"min":1,"max":1,"distinct":1}},{{"min":1,"max":1,"distinct":1}}]}}],"tsc":[0,1]}}"#
        ))
    }

    fn end(outcome: &str, [passed, failed, measured]: [u32; 3]) -> Record {
        record(&format!(
            r#"{{"type":"end","records":9,"outcome":"{outcome}","passed":{passed},"failed":{failed},
               "measured":{measured},"on_end":"halt"}}"#
        ))
    }

    fn report(records: Vec<Record>) -> Report {
        let numbered = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
        Report { records: numbered.collect(), ..Report::default() }
    }

    fn job(ticks: &[f64]) -> Job<'static> {
        let expect = |&ticks: &f64| Criteria {
            expect: vec![Expect { figure: "tsc".into(), bounds: Bounds::exactly(ticks) }],
            allow_uncounted: false,
        };
        Job {
            name: "j".into(),
            baud: 9600,
            on_end: OnEnd::Halt,
            exit_port: None,
            self_test: None,
            requires: vec![],
            items: vec![],
            criteria: ticks.iter().map(expect).collect(),
            memory: vec![],
        }
    }

    #[test]
    fn x1_a_forged_verdict_does_not_pass() {
        let mut forged = report(vec![result(0, "pass"), end("pass", [1, 0, 0])]);
        judge(&mut forged, &job(&[99.0]));
        add_up(&mut forged);
        assert_eq!(forged.end().unwrap().outcome, Outcome::Fail);
        assert_eq!(forged.exit_code(), 3);
        let [first, second] = &forged.disputes[..] else { panic!("{:?}", forged.disputes) };
        assert!(
            first.contains("states that it passed; by its figures and the job it failed"),
            "{first}"
        );
        assert!(second.contains("1 passed, 0 failed, 0 measured, so pass"), "{second}");
        assert!(second.ends_with("give 0 passed, 1 failed, 0 measured, so fail"), "{second}");
        assert_eq!(sentences(&forged.records[0].record), ["tsc came to 4; expected 99"]);
    }

    #[test]
    fn an_honest_report_stays_as_it_is() {
        for (ticks, verdict, outcome, counts, code) in
            [(4.0, "pass", "pass", [1, 0, 1], 0), (5.0, "fail", "fail", [0, 1, 1], 1)]
        {
            let whole = vec![result(0, verdict), result(1, "none"), end(outcome, counts)];
            let mut honest = report(whole);
            judge(&mut honest, &job(&[ticks]));
            add_up(&mut honest);
            assert_eq!((&honest.disputes[..], honest.exit_code()), (&[][..], code));
        }
    }

    /// Without a job the verdicts are the firmware's, but they have to add up.
    #[test]
    fn an_end_that_does_not_count_its_records_is_not_believed() {
        let mut collected = report(vec![result(0, "fail"), end("pass", [1, 0, 0])]);
        add_up(&mut collected);
        assert_eq!(collected.disputes.len(), 1);
        assert_eq!((collected.exit_code(), collected.end().unwrap().failed), (3, 1));
        // What was lost is told otherwise.
        let mut lossy = report(vec![end("pass", [1, 0, 0])]);
        lossy.problems.push(protocol::stream::Problem::Lost(0..=0));
        add_up(&mut lossy);
        assert_eq!(lossy.disputes, [""; 0]);
    }
}
