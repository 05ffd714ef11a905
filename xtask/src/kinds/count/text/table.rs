//! The sections on the terminal: of each item a table of events by task, and what else is to be said of it.

use super::{
    all_uncounted, bindings, console, cpus, family, gates, inherited_from_afar, lost, plural,
    right_but, series, share, stale, taken_out, value, waiting,
};
use crate::collect::Report;
use crate::kinds::{energy, failed, tasks, uncore};
use crate::primitives::style::{FAINT, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use comfy_table::{Cell, Table};
use protocol::record::{CountResult, CountedEvent, CountedSet, TaskEnd};
use std::collections::BTreeSet;
use std::fmt::Write;

/// One section for each item.
pub(crate) fn sections(report: &Report, width: Width) -> String {
    let of = |count| section(count, width) + &console::table(report, count, width);
    report.counts().map(of).collect()
}

fn section(count: &CountResult, width: Width) -> String {
    let mut out = String::new();
    let emulated = if count.emulated { " (emulated PMU)" } else { "" };
    // Writing to a String does not fail, here and below.
    let (name, failed) = (paint(STRONG, &count.name), failed(count.verdict));
    let _ = writeln!(out, "{} {name}{emulated}{failed}", count.item);
    let mut text = format!("{}, {}", plural(count.ticks, "tick"), plural(count.switches, "switch"));
    if count.groups > 1 {
        let _ = write!(text, ", {} groups of events in turns", count.groups);
    }
    if count.passes > 0 {
        let _ = write!(text, ", {}", plural(count.passes, "pass"));
    }
    if let Some(interval) = count.lengthened {
        text += &tasks::text::too_short(interval);
    }
    text += &gates(count);
    let _ = writeln!(out, "{}", paint(FAINT, &text));
    out += &count.together.as_ref().map(tasks::text::together).unwrap_or_default();
    if let Some(bind) = &count.bind {
        let _ = writeln!(out, "bound to {bind}");
    }
    if !count.events.is_empty() {
        let _ = writeln!(out, "{}", fit(events(count, &count.events, count.groups), width));
    }
    for one in &count.energy {
        let _ = writeln!(out, "{}", energy::line(one));
    }
    for one in &count.uncore {
        let _ = writeln!(out, "{}", uncore::line(one));
    }
    count.sets.iter().for_each(|set| out += &of_set(count, set, width));
    out += &crate::kinds::moves::of_tasks(&count.tasks, count.together.as_ref(), width);
    out += &crate::kinds::moves::of_counts(count, width);
    if let Some(table) = bindings::table(count) {
        let _ = writeln!(out, "{}", fit(table, width));
    }
    if count.bindings_dropped > 0 {
        let dropped = plural(count.bindings_dropped, "binding");
        let _ = writeln!(out, "  and {dropped} that there was no room for");
    }
    for line in waiting(count).chain(stale(count)) {
        let _ = writeln!(out, "  {line}");
    }
    for task in count.tasks.iter().filter(|task| task.end == TaskEnd::Limit) {
        let _ = writeln!(out, "  {}: took too long", task.name);
    }
    out += &tasks::text::faults(&count.tasks);
    out += &series::tables(count, width);
    if count.dropped > 0 {
        let _ = writeln!(out, "  and {} that did not fit", plural(count.dropped, "row"));
    }
    if !count.readings.is_empty() {
        let _ = writeln!(out, "{}", fit(family::readings(count), width));
    }
    if count.readings_dropped > 0 {
        let dropped = plural(count.readings_dropped, "reading");
        let _ = writeln!(out, "  and {dropped} that did not fit");
    }
    for one in count.tasks.iter().filter_map(|task| inherited_from_afar(count, task)) {
        let _ = writeln!(out, "  {one}");
    }
    for one in all_uncounted(count) {
        let _ = writeln!(out, "  not counted: {}: {}", one.event, one.reason);
    }
    for one in taken_out(count) {
        let _ = writeln!(out, "  {one}");
    }
    // Several requests may be for one event; what is known of it is said once.
    let mut said = BTreeSet::new();
    for event in count.events.iter().chain(count.sets.iter().flat_map(|set| &set.events)) {
        for remark in event.remarks.iter().filter(|&remark| said.insert((&event.event, remark))) {
            let _ = writeln!(out, "  {}: {remark}", event.event);
        }
    }
    out
}

/// A set of its own: what it counted, or who was in its way.
fn of_set(count: &CountResult, set: &CountedSet, width: Width) -> String {
    let mut out = format!("{}, bound to {}", paint(STRONG, &set.name), set.bind);
    if set.groups > 1 {
        let _ = write!(out, ", {} groups of events in turns", set.groups);
    }
    out.push('\n');
    if let Some(line) = lost(set) {
        let _ = writeln!(out, "  {line}");
    }
    if !set.events.is_empty() {
        let _ = writeln!(out, "{}", fit(events(count, &set.events, set.groups), width));
    }
    out
}

pub(super) fn events(count: &CountResult, events: &[CountedEvent], groups: u32) -> Table {
    let mut table = empty();
    let cpus = cpus(count);
    let overflows = events.iter().any(|event| event.overflows.is_some());
    let mut head: Vec<String> = ["event", "counter", "sum"].map(String::from).to_vec();
    head.extend(cpus.iter().map(|cpu| format!("cpu {cpu}")));
    head.extend(count.tasks.iter().map(tasks::text::label));
    head.extend(["kernel", "share"].map(String::from));
    head.extend(overflows.then(|| "overflows".to_string()));
    right_but(&mut table, &head, 2);
    for event in events {
        let group = match groups {
            0 | 1 => String::new(),
            _ => format!(" (group {})", event.group + 1),
        };
        let mut row = vec![format!("{}{group}", event.event), event.counter.clone()];
        row.push(value(&event.sum));
        row.extend((0..cpus.len()).map(|cpu| event.cpus.get(cpu).map_or(String::new(), value)));
        row.extend((0..count.tasks.len()).map(|t| event.tasks.get(t).map_or(String::new(), value)));
        row.extend([value(&event.kernel), share(&event.sum)]);
        let overflowed = event.overflows.map(|number| number.to_string()).unwrap_or_default();
        row.extend(overflows.then_some(overflowed));
        table.add_row(row.into_iter().map(Cell::new));
    }
    table
}
