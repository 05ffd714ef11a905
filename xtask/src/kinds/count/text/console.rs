//! What the console of a count said while its tasks ran.

use super::right_but;
use crate::collect::Report;
use crate::console::{said, value};
use crate::primitives::table::{Width, empty, fit};
use protocol::record::{ConsoleEvent, ConsoleRecord, ConsoleSet, ConsoleWhat, CountResult};

/// The head of [`rows`].
pub(crate) const HEAD: [&str; 8] =
    ["TSC ticks", "console", "set", "state", "generation", "event", "counter", "count"];

/// The records of an item's console.
fn of<'a>(report: &'a Report, count: &CountResult) -> impl Iterator<Item = &'a ConsoleRecord> {
    let item = count.item;
    report.console(item)
}

/// By row when, what was said, and of each event of the sets that it is about: the set, what it does, its generation, the
/// event, its counter and its count.
pub(crate) fn rows(report: &Report, count: &CountResult) -> Vec<[String; 8]> {
    let task = |task: u16| match count.tasks.get(usize::from(task)) {
        Some(task) => task.name.clone(),
        None => task.to_string(),
    };
    let mut rows = Vec::new();
    for record in of(report, count) {
        let head = [record.tsc.to_string(), said(record, &task)];
        let mut of_sets = Vec::new();
        for set in &record.sets {
            let name = match set.task {
                Some(one)
                    if record.sets.iter().filter(|other| other.set == set.set).count() > 1 =>
                {
                    format!("{}, task {}", set.name, task(one))
                }
                _ => set.name.clone(),
            };
            let state = crate::console::state(set.state).to_string();
            for event in &set.events {
                let counted = [name.clone(), state.clone(), set.generation.to_string()];
                of_sets.push([counted, [of_event(event), event.counter.clone(), of_count(event)]]);
            }
        }
        if of_sets.is_empty() {
            of_sets.push([const { [const { String::new() }; 3] }; 2]);
        }
        for (place, [counted, event]) in of_sets.into_iter().enumerate() {
            // What was said stands once.
            let [tsc, said] = if place == 0 { head.clone() } else { Default::default() };
            let ([a, b, c], [d, e, f]) = (counted, event);
            rows.push([tsc, said, a, b, c, d, e, f]);
        }
    }
    rows
}

fn of_event(event: &ConsoleEvent) -> String {
    match event.every {
        Some(every) => format!("{}, every {every}", event.event),
        None => event.event.clone(),
    }
}

fn of_count(event: &ConsoleEvent) -> String {
    let now = event.now.as_ref().map(value).unwrap_or_default();
    match &event.was {
        Some(was) => format!("{now} (before: {} of {})", value(&was.count), was.event),
        None => now,
    }
}

/// The table of what was said.
pub(super) fn table(report: &Report, count: &CountResult, width: Width) -> String {
    let rows = rows(report, count);
    if rows.is_empty() {
        return String::new();
    }
    let mut table = empty();
    right_but(&mut table, &HEAD.map(String::from), 7);
    for row in rows {
        table.add_row(row);
    }
    format!("{}\n", fit(table, width))
}

/// Rows of a CSV: which answer, of which set and event, and the count.
pub(crate) fn counts(report: &Report, count: &CountResult) -> Vec<(String, Option<u64>, bool)> {
    let mut rows = Vec::new();
    for record in of(report, count).filter(|record| record.what == ConsoleWhat::Done) {
        let each = |set: &ConsoleSet| {
            let task = set.task.map_or(String::new(), |task| format!(", task {task}"));
            let of = |event: &ConsoleEvent| {
                let now = event.now?;
                let (number, name) = (record.number, &set.name);
                let name = format!("console {number}: {name}: {}{task}", event.event);
                Some((name, now.scaled, now.counted == now.enabled))
            };
            set.events.iter().filter_map(of).collect::<Vec<_>>()
        };
        rows.extend(record.sets.iter().flat_map(each));
    }
    rows
}

#[cfg(test)]
mod tests {
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use crate::context::Context;
    use crate::render::render;
    use protocol::record::{
        ConsoleBefore, ConsoleEvent, ConsoleRecord, ConsoleSet, ConsoleWhat, CountResult,
        CountValue, Record,
    };

    fn report() -> Report {
        let value = |raw| CountValue { raw, scaled: Some(raw), counted: 9, enabled: 9 };
        let event = |raw| ConsoleEvent {
            event: "loads".into(),
            counter: "counter 1".into(),
            every: Some(100),
            now: Some(value(raw)),
            was: Some(ConsoleBefore { event: "stores".into(), every: None, count: value(77) }),
            ..ConsoleEvent::default()
        };
        let set = |task| ConsoleSet {
            set: 1,
            name: "both".into(),
            task: Some(task),
            generation: 3,
            events: vec![event(4_000 + u64::from(task))],
            ..ConsoleSet::default()
        };
        let said = |what, line: &str, text: &str| ConsoleRecord {
            item: 4,
            number: 1,
            what,
            line: Some(line.into()),
            text: vec![text.into()],
            tsc: 5_001,
            ..ConsoleRecord::default()
        };
        let sets = vec![set(0), set(1)];
        let records = [
            Record::Console(ConsoleRecord { item: 4, ..ConsoleRecord::default() }),
            Record::Console(ConsoleRecord {
                sets,
                ..said(ConsoleWhat::Done, "modify both 1 every=100", "")
            }),
            Record::Console(said(ConsoleWhat::Refused, "xy\u{1b}[31mzzy", "no command")),
            // Another item's.
            Record::Console(ConsoleRecord { item: 3, tsc: 9_999, ..ConsoleRecord::default() }),
            Record::Count(CountResult { item: 4, name: "driven".into(), ..CountResult::default() }),
        ];
        let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
        Report { records: records.collect(), ..Report::default() }
    }

    #[test]
    fn m7_what_the_console_said_is_in_every_form() {
        let rendered = |format| render(&report(), &Context::default(), format);
        let table = rendered(Format::Table);
        for part in [
            "modify both 1 every=100",
            "both, task 1",
            "loads, every 100",
            "4001 (before: 77 of stores)",
            "5001",
            "refused: no command",
        ] {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert!(!table.contains("9999") && !table.contains("\u{1b}[31mzzy"), "{table}");
        let csv = rendered(Format::Csv);
        let row = "4,driven,\"console 1: both: loads, task 1\",4001,4001,4001,4001,1,1,true,1,1,\n";
        assert!(csv.contains(row), "{csv}");
        let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
        assert_eq!(json["records"][1]["sets"][1]["events"][0]["now"]["raw"], 4_001);
    }
}
