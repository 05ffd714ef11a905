//! Instruction forms: latencies and throughput of each, worked out from the items that measured them.
//!
//! An item's name says what it measured (see [`Case`]), so this works for any report, without its job.

mod beside;
mod ports;

use crate::collect::Report;
use crate::job::form::case::{Case, Kind};
use crate::ports::Found;
use crate::primitives::number;
use crate::primitives::table::{Width, empty, fit};
use comfy_table::{Cell, CellAlignment};
use protocol::record::{Metric, Record, SnippetResult};
use serde::Serialize;
use std::collections::HashMap;

/// All that was measured of one form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FormRow {
    /// The form.
    pub form: String,
    /// What the figures count: `tsc`, or `cycles` where all items of forms counted these.
    pub unit: &'static str,
    /// One entry for each pair of a source and a destination.
    pub latency: Vec<Latency>,
    /// Units an instruction of a chain in which all operands of the destination's kind are one register: what a zero
    /// idiom takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_register: Option<f64>,
    /// Units an instruction, if none waits for another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Which ports its micro-operations can run on, where that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Found>,
}

/// From a source to a destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The source: an operand by number, `address`, `memory`, `flags`, or a register.
    pub from: String,
    /// The destination.
    pub to: String,
    /// The latency: what was measured without the way back.
    pub value: f64,
    /// The latency may be less: a way back has parts that cannot be measured by themselves, taken as 1 each.
    pub at_most: bool,
    /// Of the whole chain.
    pub measured: f64,
    /// Forms that lead back from the destination to the source, each once in the chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub back: Vec<String>,
    /// What else the chain writes again each time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaking: Vec<String>,
    /// Different values of the chain, of one code size, over the runs.
    pub distinct: u32,
}

/// Instructions that do not wait for each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Throughput {
    /// Units an instruction: what was measured without the throughput of the forms in `with`.
    pub value: f64,
    /// What `value` is, where others stand beside each instruction: `at least`, because these could run beside it at no
    /// cost; `at most`, if one of them was not measured, or if each instruction reads the register that it writes, and waiting for that
    /// explains the whole figure, as there are few registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<&'static str>,
    /// Units an instruction with what stands beside it.
    pub measured: f64,
    /// Forms of which one instruction stands beside each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Instructions in the body.
    pub copies: u32,
    /// What is written again before each: that takes part in the throughput.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaking: Vec<String>,
    /// As for a latency.
    pub distinct: u32,
    /// Events an instruction, without those of the forms in `with`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<(String, f64)>,
}

/// The report with figures for one instruction where a body holds several of a form: what is divided by the executions of
/// a body is divided by the instructions.
#[must_use]
pub fn per_instruction(report: &Report) -> Report {
    let mut report = report.clone();
    for numbered in &mut report.records {
        let Record::Result(result) = &mut numbered.record else { continue };
        let Ok(case) = result.name.parse::<Case>() else { continue };
        let copies = f64::from(case.copies());
        result.per *= u64::from(case.copies());
        // A mean of records is of one instruction already.
        let is_mean = |metric: &Metric| metric.retired.is_some();
        let means = result.metrics.iter().filter(|one| is_mean(one));
        let means: Vec<String> = means.map(|one| one.event.clone()).collect();
        for metric in result.metrics.iter_mut().filter(|one| !is_mean(one)) {
            let value = &mut metric.value;
            for figure in [&mut value.min, &mut value.median, &mut value.mean, &mut value.max] {
                *figure /= copies;
            }
        }
        for miss in result.misses.iter_mut().filter(|miss| !means.contains(&miss.figure)) {
            for figure in [&mut miss.min, &mut miss.max, &mut miss.value].into_iter().flatten() {
                *figure /= copies;
            }
        }
    }
    report
}

/// Whether the item measured a form.
#[must_use]
pub fn is_form(result: &SnippetResult) -> bool {
    result.name.parse::<Case>().is_ok()
}

/// All forms of a report that [`per_instruction`] made, in the order in which they come.
#[must_use]
pub fn rows(report: &Report) -> Vec<FormRow> {
    let cases: Vec<(Case, &SnippetResult)> =
        report.results().filter_map(|result| Some((result.name.parse().ok()?, result))).collect();
    let cycles = cases.iter().all(|(_, result)| metric(result, "cycles").is_some());
    let unit = if cycles { "cycles" } else { "tsc" };
    let figure = |result| metric(result, unit).map_or((0.0, 0), figure);
    // A way back that is a chain by itself is known, all others take at least one.
    let mut direct: HashMap<&str, f64> = HashMap::new();
    for (case, result) in cases.iter().filter(|(case, _)| case.tells_way_back()) {
        direct.entry(&case.form).or_insert_with(|| figure(result).0);
    }
    let known = |form: &String| direct.get(form.as_str()).copied();
    let (mut rows, mut places): (Vec<FormRow>, HashMap<&str, usize>) = Default::default();
    for (case, result) in &cases {
        let (measured, distinct) = figure(result);
        let index = *places.entry(&case.form).or_insert_with(|| {
            let (form, latency) = (case.form.clone(), Vec::new());
            let (same_register, throughput, ports) = (None, None, None);
            rows.push(FormRow { form, unit, latency, same_register, throughput, ports });
            rows.len() - 1
        });
        let breaking = case.breaking.clone();
        match &case.kind {
            Kind::Latency { from, to, back } => {
                let ways: Vec<Option<f64>> = back.iter().map(known).collect();
                let way: f64 = ways.iter().map(|way| way.unwrap_or(1.0)).sum();
                rows[index].latency.push(Latency {
                    from: from.clone(),
                    to: to.clone(),
                    value: measured - way,
                    at_most: ways.contains(&None),
                    measured,
                    back: back.clone(),
                    breaking,
                    distinct,
                });
            }
            Kind::SameRegister => rows[index].same_register = Some(measured),
            Kind::Throughput { copies, with } => {
                let events = result.metrics.iter().filter(|m| m.event != "tsc" && m.event != unit);
                // A mean of records says nothing of the other forms in the body.
                let events = events.filter(|m| m.retired.is_none());
                let events = events.map(|m| (m.event.clone(), m.value.median)).collect();
                let (copies, with) = (*copies, with.clone());
                let (value, bound) = (measured, None);
                rows[index].throughput = Some(Throughput {
                    value,
                    bound,
                    measured,
                    with,
                    copies,
                    breaking,
                    distinct,
                    events,
                });
            }
            // All of them together tell it.
            Kind::Ports { .. } => {}
        }
    }
    beside::subtract(&mut rows);
    rows.iter_mut().for_each(bound_by_latency);
    for (form, found) in ports::found(&cases) {
        rows.iter_mut()
            .filter(|row| row.form == form)
            .for_each(|row| row.ports = Some(found.clone()));
    }
    rows
}

/// Marks a throughput that is no less than waiting explains: of `copies` instructions, each that reads its destination waits for itself
/// in the body before. Of a figure that is larger by more than a 20th, something else is the limit.
fn bound_by_latency(row: &mut FormRow) {
    let Some(throughput) = row.throughput.as_mut().filter(|one| one.bound.is_none()) else {
        return;
    };
    let own = |one: &&Latency| one.from == one.to && one.back.is_empty() && one.breaking.is_empty();
    let chain = row.latency.iter().filter(own).map(|one| one.value).fold(0.0, f64::max);
    if chain > 0.0 && throughput.value * 20.0 <= 21.0 * chain / f64::from(throughput.copies) {
        throughput.bound = Some("at most");
    }
}

fn metric<'a>(result: &'a SnippetResult, event: &str) -> Option<&'a Metric> {
    result.metrics.iter().find(|metric| metric.event == event)
}

fn figure(metric: &Metric) -> (f64, u32) {
    let distinct = metric.series.iter().map(|series| series.distinct).max().unwrap_or(0);
    (metric.value.median, distinct)
}

/// One row for each form, with a line for each of its measurements; nothing without forms.
pub(crate) fn table(report: &Report, ticks: &str, width: Width) -> String {
    let rows = rows(report);
    let Some(first) = rows.first() else { return String::new() };
    let emulated = report.results().any(|result| result.emulated && is_form(result));
    let unit = match (first.unit, emulated) {
        ("cycles", true) => "cycles (emulated, by its rule, of the way back too)",
        ("cycles", false) => "cycles",
        _ => ticks,
    };
    let mut events: Vec<&String> = Vec::new();
    for (event, _) in rows.iter().filter_map(|row| row.throughput.as_ref()).flat_map(|t| &t.events)
    {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let mut table = empty();
    let head = ["form", "latency", "throughput", "measured as", "chain", "values"];
    table.set_header(head.map(String::from).into_iter().chain(events.iter().map(|e| (*e).clone())));
    for index in [1, 2, 4].into_iter().chain(6..6 + events.len()) {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in &rows {
        table.add_row(cells(row, &events));
    }
    format!("instruction forms, each instruction in {unit}\n{}\n", fit(table, width))
}

fn cells(row: &FormRow, events: &[&String]) -> Vec<Cell> {
    let mut lines: Vec<[String; 5]> = Vec::new();
    for latency in &row.latency {
        let bound = if latency.at_most { "≤ " } else { "" };
        let mut how = format!("{} → {}", latency.from, latency.to);
        if !latency.back.is_empty() {
            how += &format!(", back by {}", latency.back.join(" + "));
        }
        how += &broken(&latency.breaking);
        let value = format!("{bound}{}", number(latency.value));
        let chain = number(latency.measured);
        lines.push([value, String::new(), how, chain, values(latency.distinct)]);
    }
    if let Some(value) = row.same_register {
        let how = "one register in all operands".to_string();
        lines.push([number(value), String::new(), how, String::new(), String::new()]);
    }
    if let Some(ports) = &row.ports {
        let how = format!("ports: {}", ports.text());
        lines.push([String::new(), String::new(), how, String::new(), String::new()]);
    }
    if let Some(throughput) = &row.throughput {
        let how = throughput.how();
        let value = throughput.text();
        let spread = values(throughput.distinct);
        lines.push([String::new(), value, how, String::new(), spread]);
    }
    let column = |index: usize| {
        let cells = lines.iter().map(|line| line[index].as_str());
        Cell::new(cells.collect::<Vec<_>>().join("\n"))
    };
    let counted = |event: &&String| {
        let counts = row.throughput.iter().flat_map(|throughput| &throughput.events);
        let count = counts.into_iter().find(|(name, _)| name == *event);
        let text = count.map(|(_, count)| number(*count)).unwrap_or_default();
        // It belongs to the line of the throughput, the last one.
        Cell::new("\n".repeat(lines.len().saturating_sub(1)) + &text)
    };
    let form = std::iter::once(Cell::new(&row.form));
    form.chain((0..5).map(column)).chain(events.iter().map(counted)).collect()
}

pub(crate) fn broken(things: &[String]) -> String {
    if things.is_empty() { String::new() } else { format!(", new {} each time", things.join(", ")) }
}

fn values(distinct: u32) -> String {
    if distinct == 1 { "all equal".to_string() } else { format!("{distinct} distinct") }
}

#[cfg(test)]
mod tests;
