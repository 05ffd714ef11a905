//! The table as text: for people, as CSV, as JSON, and in the layout of uops.info's file.

pub mod xml;

use super::{Line, Machine, Table};
use crate::forms::Throughput;
use crate::ports::Found;
use crate::primitives::number;
use crate::primitives::table::{Width, empty, fit};
use serde::Serialize;

/// Columns of the CSV form.
const HEADER: [&str; 10] = [
    "form",
    "encoding",
    "extension",
    "state",
    "throughput",
    "latency",
    "unit",
    "events",
    "ports",
    "reason",
];

/// For people: a line for each form.
#[must_use]
pub fn table(table: &Table, width: Width) -> String {
    let mut text = table.machine.as_ref().map(heading).unwrap_or_default();
    let mut rows = empty();
    rows.set_header(["form", "extension", "state", "throughput", "latency", "ports", "why not"]);
    for line in &table.lines {
        rows.add_row([
            line.form.clone(),
            line.extension.clone(),
            line.state.name().to_string(),
            throughput(line),
            latencies(line, " → ", "\n"),
            ports(line),
            line.reasons(),
        ]);
    }
    text += &format!("{}\n", fit(rows, width));
    text
}

fn heading(machine: &Machine) -> String {
    let beneath =
        if machine.emulated { ", on the emulated PMU, by its own rule for cycles" } else { "" };
    format!("{} ({}), in {}{beneath}\n", machine.brand, machine.processor, machine.unit)
}

/// How many forms there are, and in which states.
#[must_use]
pub fn summary(table: &Table) -> String {
    let counts = table.counts().into_iter().map(|(state, count)| format!("{count} {state}"));
    let mut text =
        format!("{} forms: {}\n", table.lines.len(), counts.collect::<Vec<_>>().join(", "));
    for one in &table.differing {
        text += &format!("two reports differ: {one}\n");
    }
    text
}

fn throughput(line: &Line) -> String {
    line.throughput.as_ref().map(Throughput::text).unwrap_or_default()
}

/// With what its sets are; nothing where it is not told, as the reason stands elsewhere.
fn ports(line: &Line) -> String {
    let told = line.ports.as_ref().filter(|found| found.usage.is_some());
    told.map(Found::text).unwrap_or_default()
}

/// `1 → 2: 3`, one for each pair; `≤` where it is a bound.
fn latencies(line: &Line, arrow: &str, between: &str) -> String {
    let one = |latency: &crate::forms::Latency| {
        let bound = if latency.at_most { "≤" } else { "" };
        format!("{}{arrow}{}: {bound}{}", latency.from, latency.to, number(latency.value))
    };
    let same = line.same_register.iter().map(|value| format!("one register: {}", number(*value)));
    line.latency.iter().map(one).chain(same).collect::<Vec<_>>().join(between)
}

/// One row for each form; several latencies and events are separated by semicolons.
#[must_use]
pub fn csv(table: &Table) -> String {
    let unit = table.machine.as_ref().map_or("", |machine| machine.unit.as_str());
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let mut row = |fields: [&str; 10]| writer.write_record(fields).expect("rows of one length");
    row(HEADER);
    for line in &table.lines {
        let events = line.throughput.iter().flat_map(|one| &one.events);
        let events = events.map(|(name, value)| format!("{name}={}", number(*value)));
        row([
            &line.form,
            &line.encoding,
            &line.extension,
            line.state.name(),
            &throughput(line).replace("≥ ", ">=").replace("≤ ", "<="),
            &latencies(line, "->", ";").replace(": ", "=").replace('≤', "<="),
            unit,
            &events.collect::<Vec<_>>().join(";"),
            &ports(line),
            &line.reasons(),
        ]);
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("the fields are text")
}

/// Version of the document.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    instructions: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a Machine>,
    forms: &'a [Line],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    differing: &'a [String],
}

/// Everything, as one document.
#[must_use]
pub fn json(table: &Table) -> String {
    let document = Document {
        instructions: VERSION,
        machine: table.machine.as_ref(),
        forms: &table.lines,
        differing: &table.differing,
    };
    let mut text = serde_json::to_string_pretty(&document).expect("tables serialise");
    text.push('\n');
    text
}
