//! A column for each machine.

use crate::clean;
use crate::kinds::figures::JOULES;
use crate::lab::machine::Machine;
use crate::primitives::style::{ERROR, FAINT, GOOD, STRONG, WARNING, paint};
use crate::primitives::table::{empty, fit};
use crate::primitives::{joules, number};
use crate::text::printable;
use crate::verdict::{Tally, of_error, sentences};
use comfy_table::CellAlignment;
use protocol::job::criteria::TSC;
use protocol::record::{ErrorCode, Outcome, Record, Verdict, figures};
use protocol::stream::Problem;
use protocol::verdict;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What stands where a machine has no figure.
const NONE: &str = "-";

/// Renders it.
pub(super) fn render(machines: &[Machine], job: &str) -> String {
    let machines: Vec<(String, Shown)> = machines.iter().map(Shown::of).collect();
    let mut out = String::new();
    let title = if job.is_empty() { "job" } else { job };
    let plural = if machines.len() == 1 { "" } else { "s" };
    // Writing to a String does not fail, here and below.
    let _ = writeln!(
        out,
        "{}",
        paint(STRONG, &format!("{}, on {} machine{plural}", printable(title), machines.len()))
    );
    for (name, shown) in &machines {
        let _ = writeln!(out, "{name}: {}", shown.state);
        let _ = writeln!(out, "  {}", paint(FAINT, &shown.machine));
    }
    let width = machines.first().map(|(_, shown)| shown.width).unwrap_or_default();
    let mut table = empty();
    let names = machines.iter().map(|(name, _)| name.clone());
    table.set_header(["", "item", "event"].into_iter().map(str::to_string).chain(names));
    for index in std::iter::once(0).chain(3..3 + machines.len()) {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in rows(&machines) {
        table.add_row(row);
    }
    if !table.is_empty() {
        let _ = writeln!(out, "{}", fit(table, width));
    }
    for (name, shown) in &machines {
        for note in &shown.notes {
            let _ = writeln!(out, "{name}: {note}");
        }
    }
    out
}

/// What one machine's report says, item by item.
#[derive(Default)]
struct Shown {
    width: crate::primitives::table::Width,
    state: String,
    machine: String,
    items: Vec<Item>,
    notes: Vec<String>,
}

struct Item {
    index: u32,
    name: String,
    /// A word where it did not pass.
    word: &'static str,
    figures: Vec<(String, String)>,
}

impl Shown {
    fn of(machine: &Machine) -> (String, Self) {
        let report = &*clean::report(&machine.report);
        let mut shown = Self { width: machine.context.width, ..Self::default() };
        shown.machine = report.machine().map_or_else(
            || "nothing is known of the machine".to_string(),
            |machine| {
                let pmu = match (&machine.pmu, machine.emulated_pmu) {
                    (Some(pmu), Some(_)) => format!("emulated PMU version {}", pmu.version),
                    (Some(pmu), None) => format!("PMU version {}", pmu.version),
                    (None, _) => "no PMU".to_string(),
                };
                let stepping = format!(
                    "{} family {:#x} model {:#x} stepping {}",
                    machine.vendor, machine.family, machine.model, machine.stepping
                );
                format!("{}: {stepping}; {pmu}", machine.brand)
            },
        );
        shown.state = state(machine, report);
        for numbered in &report.records {
            shown.take(&numbered.record);
        }
        let told = machine.context.complaint.is_some();
        // The complaint says why there is no end.
        let problems = report.problems.iter();
        for problem in problems.filter(|one| !told || !matches!(one, Problem::NoEnd { .. })) {
            shown.notes.push(format!("{} {problem}", paint(ERROR, "report:")));
        }
        for dispute in &report.disputes {
            shown.notes.push(format!("{} {dispute}", paint(ERROR, "report:")));
        }
        (printable(&machine.place.name).into_owned(), shown)
    }

    fn take(&mut self, record: &Record) {
        let item = match record {
            Record::Error(error) => {
                let (Some(index), Some(name)) = (error.item, &error.name) else { return };
                let word = of_error(error.code);
                let style = if error.code == ErrorCode::Skipped { WARNING } else { ERROR };
                let label = paint(style, if style == WARNING { "skipped:" } else { "error:" });
                self.notes.push(format!("{label} item {index} ({name}): {}", error.text));
                Item { index, name: name.clone(), word, figures: Vec::new() }
            }
            Record::Suite(suite) => {
                let counts = [
                    (suite.passed, "passed"),
                    (suite.failed, "failed"),
                    (suite.skipped, "skipped"),
                ];
                let figures =
                    counts.map(|(count, what)| (format!("checks {what}"), count.to_string()));
                let word = if suite.failed > 0 { "FAIL" } else { "" };
                let (index, name) = (suite.item, suite.name.clone());
                Item { index, name, word, figures: figures.to_vec() }
            }
            _ => {
                let Some((index, name, _)) = record.restored() else { return };
                let said = verdict::said(record).map(|(verdict, _)| verdict);
                let word = if said == Some(Verdict::Fail) { "FAIL" } else { "" };
                for sentence in sentences(record) {
                    let label = paint(ERROR, "missed:");
                    self.notes.push(format!("{label} item {index} ({name}): {sentence}"));
                }
                let known = crate::kinds::figures::of(record, false);
                let known = known.iter().flat_map(|item| &item.figures);
                let energy: BTreeSet<&str> =
                    known.filter(|one| one.unit == JOULES).map(|one| &*one.name).collect();
                let figures = figures(record).into_iter().map(|figure| {
                    let shown = if energy.contains(&*figure.label) { joules } else { number };
                    let label = if figure.label == TSC { "TSC ticks".into() } else { figure.label };
                    (label, figure.value.map_or_else(|| NONE.to_string(), shown))
                });
                Item { index, name: name.to_string(), word, figures: figures.collect() }
            }
        };
        self.items.push(item);
    }
}

/// How far the machine came.
fn state(machine: &Machine, report: &crate::collect::Report) -> String {
    if let Some(complaint) = &machine.context.complaint {
        return paint(ERROR, &format!("not whole: {}", printable(complaint)));
    }
    if machine.exit_code() == 3 {
        return paint(ERROR, "not whole");
    }
    let Tally { passed, failed, measured } = Tally::of(report);
    let counts = [(measured, "measured"), (passed, "passed"), (failed, "failed")];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
    let (style, word) = match report.end().map(|end| end.outcome) {
        _ if failed > 0 => (ERROR, "FAIL"),
        Some(Outcome::Skip) => (WARNING, "skipped"),
        Some(Outcome::BadJob) => (ERROR, "no usable job"),
        _ => (GOOD, "pass"),
    };
    paint(style, &format!("{word}: {}", told.join(", ")))
}

/// A row for each figure of each item that any machine has.
fn rows(machines: &[(String, Shown)]) -> Vec<Vec<String>> {
    let mut items: Vec<(u32, &str)> = Vec::new();
    for item in machines.iter().flat_map(|(_, shown)| &shown.items) {
        if !items.iter().any(|(index, _)| *index == item.index) {
            items.push((item.index, &item.name));
        }
    }
    items.sort_by_key(|(index, _)| *index);
    let mut rows = Vec::new();
    for (index, name) in items {
        let of = |shown: &'_ Shown| shown.items.iter().position(|item| item.index == index);
        let mut labels: Vec<&str> = Vec::new();
        for (_, shown) in machines {
            let figures = of(shown).map(|at| &shown.items[at].figures);
            for (label, _) in figures.into_iter().flatten() {
                if !labels.contains(&label.as_str()) {
                    labels.push(label);
                }
            }
        }
        if labels.is_empty() {
            labels.push("");
        }
        for (nth, label) in labels.into_iter().enumerate() {
            let first = nth == 0;
            let mut row = match first {
                true => vec![index.to_string(), name.to_string(), label.to_string()],
                false => vec![String::new(), String::new(), label.to_string()],
            };
            row.extend(machines.iter().map(|(_, shown)| {
                of(shown)
                    .map_or_else(|| NONE.to_string(), |at| cell(&shown.items[at], label, first))
            }));
            rows.push(row);
        }
    }
    rows
}

fn cell(item: &Item, label: &str, first: bool) -> String {
    let value = item.figures.iter().find(|(one, _)| one == label);
    let value = value.map_or(NONE, |(_, value)| value);
    match (first, item.word, item.figures.is_empty()) {
        (true, "", _) | (false, ..) => value.to_string(),
        (true, word, true) => word.to_string(),
        (true, word, false) => format!("{value} {word}"),
    }
}
