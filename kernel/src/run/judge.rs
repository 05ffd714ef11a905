//! Whether items passed, and what the run counts of that.

use crate::screen::Status;
use alloc::string::String;
use protocol::job::Criteria;
use protocol::record::{Comparison, Record, Suite, TaskEnd, Verdict};
use protocol::verdict;

/// Judges the record of an item, and adds it to the counts. What ended in an error was counted then.
pub(super) fn tally(criteria: &Criteria, record: &mut Record, status: &mut Status) {
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
        Record::Facts(facts) => (&facts.name, &[][..]),
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

/// A suite without a failure passes, if it made any check; if not, it leaves no trace in the counts, and a run of
/// nothing else is skipped.
pub(super) fn suite(suite: &Suite, status: &mut Status) {
    if suite.failed > 0 {
        status.failed += 1;
        status.last_error = Some(alloc::format!("{}: {} checks failed", suite.name, suite.failed));
    } else if suite.passed + suite.known_errata + suite.known_behaviours > 0 {
        status.passed += 1;
    }
}
