//! Whether what a boot reported fits the job that it was given.
//!
//! The firmware runs in one address space with the code that it measures, so the host, which has the job, looks at order,
//! number, names and kinds itself, and does not take a report's word for its being whole.

use crate::collect::Report;
use protocol::job::{Item, Job};
use protocol::record::{Crash, ErrorCode, Outcome, Record};

/// The first place of a report that cannot stand.
pub(super) struct Cut {
    /// The records before it, which do.
    pub records: usize,
    /// The item that was running, of those of this boot. As many as there are if all were done.
    pub item: usize,
    /// What it is reported as.
    pub code: ErrorCode,
    /// Why, in words.
    pub cause: String,
    /// What the firmware said of its failure.
    pub crash: Option<Box<Crash>>,
}

/// Looks at the report of a boot that was given `job`. Returns the number of items that are done.
///
/// # Errors
/// The first place that does not fit.
pub(super) fn look(job: &Job, report: &Report) -> Result<usize, Cut> {
    let mut done = 0;
    let forged = |at: usize, item: usize| {
        let first = report.forged.first().filter(|(records, _)| *records <= at)?;
        let more = report.forged.len() - 1;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let cause = format!("a line on the serial port is not the firmware's: {}{more}", first.1);
        Some(Cut { records: at, item, code: ErrorCode::Forged, cause, crash: None })
    };
    for (at, numbered) in report.records.iter().enumerate() {
        if let Some(cut) = forged(at, done) {
            return Err(cut);
        }
        let cut = |code, cause| Err(Cut { records: at, item: done, code, cause, crash: None });
        let seq = numbered.seq;
        let (item, name, fits) = match &numbered.record {
            Record::End(end) => {
                let all = end.outcome == Outcome::BadJob || done == job.items.len();
                if !all {
                    let cause = format!("the end record arrived after {done} items");
                    return cut(ErrorCode::SnippetLost, cause);
                }
                continue;
            }
            Record::Crash(crash) if crash.item.is_some() && done < job.items.len() => {
                let place = crash.location.as_ref().map(|place| format!(", at {place}"));
                let (text, place) = (&crash.text, place.unwrap_or_default());
                let cause = format!("the firmware failed ({text}{place})");
                let crash = Some(Box::new(crash.clone()));
                let code = ErrorCode::SnippetLost;
                return Err(Cut { records: at, item: done, code, cause, crash });
            }
            Record::Error(error) if error.code == ErrorCode::NotRun => {
                return cut(ErrorCode::NotRun, error.text.clone());
            }
            record => match part(record, job.items.get(done)) {
                Some(part) => part,
                None => continue,
            },
        };
        let Some(running) = job.items.get(done) else {
            let cause = format!("record {seq} is of item {item}, but all items were done");
            return cut(ErrorCode::Forged, cause);
        };
        if item as usize != done || name.is_some_and(|name| name != running.name()) || !fits {
            let name = name.map(|name| format!(" (`{name}`)")).unwrap_or_default();
            let cause = format!(
                "record {seq}, of item {item}{name}, is not the next one that the job expects"
            );
            return cut(ErrorCode::Forged, cause);
        }
        if numbered.record.ends_item() {
            done += 1;
        }
    }
    match forged(report.records.len(), done) {
        Some(cut) => Err(cut),
        None => Ok(done),
    }
}

/// Of a record that belongs to an item: the item, its name, and whether `running` can have such a record.
fn part<'a>(record: &'a Record, running: Option<&'a Item>) -> Option<(u32, Option<&'a str>, bool)> {
    let is = |fits: fn(&Item) -> bool| running.is_some_and(fits);
    Some(match record {
        Record::Samples(one) => (one.item, None, is(|item| matches!(item, Item::Sample(_)))),
        Record::Console(one) => (one.item, None, is(has_console)),
        Record::Suite(one) => (one.item, Some(&one.name), is(has_checks)),
        Record::Check(one) => (one.item, None, is(has_checks)),
        Record::Cpuid(one) => (one.item, None, is(brings_up)),
        Record::Msrs(one) => (one.item, None, is(brings_up)),
        Record::Acpi(one) => (one.item, None, is(brings_up)),
        Record::Measure(one) => (one.item, None, is(brings_up)),
        Record::Error(one) => (one.item?, one.name.as_deref(), true),
        _ => {
            let result = record.result()?;
            let head = result.head();
            let name = running.map(Item::name).filter(|name| result.is_named(name));
            let fits = running.is_some_and(|item| result.is_of(item));
            (head.item, Some(name.unwrap_or(head.name)), fits)
        }
    })
}

fn has_console(item: &Item) -> bool {
    matches!(item, Item::Count(count) if count.console)
}

fn brings_up(item: &Item) -> bool {
    matches!(item, Item::BringUp(_))
}

fn has_checks(item: &Item) -> bool {
    matches!(item, Item::Conformance(_)) || brings_up(item)
}

/// Whether code of the job runs in ring 0 in this item: then it can break the machine for those after it.
pub(super) fn runs_in_ring_0(item: &Item) -> bool {
    use protocol::job::{control, workload};
    let snippet = item.part().snippet();
    let tasks = item.part().workload().into_iter().flat_map(|workload| &workload.tasks);
    snippet.is_some_and(|snippet| snippet.setup.control.ring == control::Ring::Kernel)
        || tasks.into_iter().any(|task| task.ring == workload::Ring::Kernel)
}
