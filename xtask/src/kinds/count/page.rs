//! What was counted over tasks: by task, by processor, and over time.

use super::over_time::series;
use crate::document::Document;
use crate::kinds::count::text::{
    BINDINGS, READINGS, all_uncounted, console, cpus, gates, inherited_from_afar, lost,
    rows_of_bindings, rows_of_readings, share as counted_share, stale, taken_out, value, waiting,
};
use crate::kinds::page::{note, share, table};
use crate::kinds::tasks::page::{faults, of_tasks, plain};
use crate::kinds::tasks::text::{label, together, too_short};
use crate::kinds::{energy, moves, uncore};
use html_report::model::{Cell, Part, Tone};
use protocol::record::{CountResult, CountSnapshot, CountValue, CountedEvent};

pub(crate) fn parts(document: &Document, count: &CountResult) -> Vec<Part> {
    let mut text = format!("{} ticks, {} switches", count.ticks, count.switches);
    if count.groups > 1 {
        text += &format!(", {} groups of events in turns, {} passes", count.groups, count.passes);
    }
    text += &count.lengthened.map(too_short).unwrap_or_default();
    text += &gates(count);
    text += &count.bind.as_ref().map_or(String::new(), |bind| format!("; bound to {bind}"));
    let mut parts = vec![Part::Text(text + ".")];
    parts.extend(count.together.as_ref().map(|one| Part::Text(plain(&together(one)))));
    if !count.events.is_empty() {
        parts.extend(events(count, &count.events, count.groups));
    }
    parts.extend(count.energy.iter().map(|one| Part::Text(energy::line(one) + ".")));
    parts.extend(count.uncore.iter().map(|one| Part::Text(uncore::line(one) + ".")));
    for set in &count.sets {
        parts.push(Part::Heading(format!("Set {}, bound to {}", set.name, set.bind)));
        let what = if set.events.is_empty() { "no counts" } else { "lost" };
        parts.extend(lost(set).map(|why| note(Tone::Warn, what, why)));
        if !set.events.is_empty() {
            parts.extend(events(count, &set.events, set.groups));
        }
    }
    parts.extend(bindings(count));
    parts.extend(series(document, count));
    if count.dropped > 0 {
        parts.push(note(Tone::Warn, "series", format!("{} rows found no room", count.dropped)));
    }
    parts.extend(readings(count));
    parts.extend(console(document, count));
    parts.push(of_tasks(&count.tasks, count.emulated));
    parts.extend(moves::page::of_tasks(&count.tasks, count.together.as_ref()));
    parts.extend(moves::page::of_counts(count));
    parts.extend(faults(&count.tasks));
    let outlived = count.tasks.iter().filter_map(|task| inherited_from_afar(count, task));
    parts.extend(outlived.map(|text| Part::Text(text + ".")));
    parts.extend(snapshots(count));
    parts.extend(
        all_uncounted(count)
            .map(|one| note(Tone::Warn, "not counted", format!("{}: {}", one.event, one.reason))),
    );
    parts.extend(taken_out(count).into_iter().map(|text| Part::Text(text + ".")));
    let mut said: Vec<String> = Vec::new();
    for event in count.events.iter().chain(count.sets.iter().flat_map(|set| &set.events)) {
        for remark in &event.remarks {
            let text = format!("{}: {remark}", event.event);
            if !said.contains(&text) {
                parts.push(note(Tone::Warn, "doubtful", text.clone()));
                said.push(text);
            }
        }
    }
    parts
}

/// The counts by task, and by processor where there are several; bars are shares of an event's sum.
fn events(count: &CountResult, events: &[CountedEvent], groups: u32) -> Vec<Part> {
    let bar = |one: &CountValue, event: &CountedEvent| {
        Cell::bar(value(one), share(one.scaled.unwrap_or(0), event.sum.scaled.unwrap_or(0)))
    };
    let overflows = events.iter().any(|event| event.overflows.is_some());
    let tasks: Vec<String> = count.tasks.iter().map(label).collect();
    let mut head = vec!["event", "counter", "sum"];
    head.extend(tasks.iter().map(String::as_str));
    head.extend(["kernel", "counted for"]);
    head.extend(overflows.then_some("overflows"));
    let row = |event: &CountedEvent| {
        let group =
            if groups > 1 { format!(" (group {})", event.group + 1) } else { String::new() };
        let mut row =
            vec![Cell::text(format!("{}{group}", event.event)), Cell::text(&*event.counter)];
        row.push(Cell::text(value(&event.sum)));
        let of_task =
            |task| event.tasks.get(task).map_or_else(Cell::default, |one| bar(one, event));
        row.extend((0..tasks.len()).map(of_task));
        row.extend([bar(&event.kernel, event), Cell::text(counted_share(&event.sum))]);
        row.extend(
            overflows.then(|| Cell::text(event.overflows.map_or(String::new(), |n| n.to_string()))),
        );
        row
    };
    let mut parts = vec![table("Counts by task", &head, 2, events.iter().map(row).collect())];
    let cpus = cpus(count);
    if !cpus.is_empty() {
        let names: Vec<String> = cpus.iter().map(|cpu| format!("processor {cpu}")).collect();
        let mut head = vec!["event", "sum"];
        head.extend(names.iter().map(String::as_str));
        let row =
            |event: &CountedEvent| {
                let mut row = vec![Cell::text(&*event.event), Cell::text(value(&event.sum))];
                row.extend((0..cpus.len()).map(|cpu| {
                    event.cpus.get(cpu).map_or_else(Cell::default, |one| bar(one, event))
                }));
                row
            };
        parts.push(table("Counts by processor", &head, 1, events.iter().map(row).collect()));
    }
    parts
}

/// When sets had the counters, and who waited for them or read what was not theirs any more.
fn bindings(count: &CountResult) -> Vec<Part> {
    let rows = rows_of_bindings(count);
    let rows = rows.iter().map(|row| row.iter().map(|text| Cell::text(&**text)).collect());
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut parts = Vec::new();
    if !rows.is_empty() {
        parts.push(table("Who had the counters when", &BINDINGS, 7, rows));
    }
    if count.bindings_dropped > 0 {
        let text = format!("{} bindings found no room", count.bindings_dropped);
        parts.push(note(Tone::Warn, "bindings", text));
    }
    parts.extend(waiting(count).map(|text| note(Tone::Warn, "waits", text)));
    parts.extend(stale(count).map(|text| note(Tone::Warn, "stale", text)));
    parts
}

/// What the console said while they ran.
fn console(document: &Document, count: &CountResult) -> Option<Part> {
    let rows = console::rows(&document.report, count);
    let rows: Vec<Vec<Cell>> =
        rows.iter().map(|row| row.iter().map(|text| Cell::text(&**text)).collect()).collect();
    (!rows.is_empty()).then(|| table("Console while they ran", &console::HEAD, 7, rows))
}

/// What tasks read while they ran.
fn readings(count: &CountResult) -> Vec<Part> {
    if count.readings.is_empty() {
        return Vec::new();
    }
    let rows = rows_of_readings(count);
    let rows = rows.iter().map(|row| row.iter().map(|text| Cell::text(&**text)).collect());
    let mut parts = vec![table("Readings while they ran", &READINGS, 3, rows.collect())];
    if count.readings_dropped > 0 {
        let text = format!("{} readings did not fit", count.readings_dropped);
        parts.push(note(Tone::Warn, "readings", text));
    }
    parts
}

/// What the machine itself counted meanwhile.
fn snapshots(count: &CountResult) -> Option<Part> {
    let own = count
        .cpus
        .iter()
        .filter_map(|cpu| Some((format!("processor {}", cpu.processor), cpu.snapshot.as_ref()?)));
    let own: Vec<(String, &CountSnapshot)> = own.collect();
    let all = match &own[..] {
        [] => vec![("machine".to_string(), count.snapshot.as_ref()?)],
        _ => own,
    };
    let row = |(name, one): &(String, &CountSnapshot)| {
        let count =
            |value: Option<u64>| Cell::text(value.map_or(String::new(), |value| value.to_string()));
        let interrupts: Vec<String> =
            one.interrupts.iter().map(|one| format!("{:#x}: {}", one.vector, one.count)).collect();
        vec![
            Cell::text(&**name),
            Cell::text(interrupts.join(", ")),
            Cell::text(one.tsc.to_string()),
            Cell::text(one.switches.to_string()),
            count(one.aperf),
            count(one.mperf),
            count(one.smis),
        ]
    };
    let head = [
        "",
        "interrupts and exceptions by vector",
        "TSC ticks",
        "switches",
        "APERF",
        "MPERF",
        "SMIs",
    ];
    Some(table("Snapshot of the machine", &head, 2, all.iter().map(row).collect()))
}
