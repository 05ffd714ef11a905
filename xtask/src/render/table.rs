//! The report as a table.

mod fit;

use super::style::{ERROR, FAINT, GOOD, STRONG, paint};
use super::{Context, checks, found, joules, metrics, notes, number, processors};
use crate::collect::Report;
use crate::honest::{Certificate, render as honest};
use crate::kinds::{self, Shown};
use comfy_table::{Cell, CellAlignment, Color, Table};
pub use fit::Width;
pub(crate) use fit::{empty, fit};
use protocol::criteria::TSC;
use protocol::record::{
    CountedBy, ErrorCode, EventTables, Machine, Metric, Outcome, Record, SnippetResult, TscSource,
    Verdict,
};
use std::fmt::Write;

/// Renders it.
#[must_use]
pub fn render(report: &Report, context: &Context) -> String {
    let (mut out, width) = (String::new(), context.width);
    if let Some(machine) = report.machine() {
        heading(&mut out, machine, context);
    }
    let table = results(report, context);
    if !table.is_empty() {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(out, "{}", fit(table, width));
    }
    out.push_str(&metrics::sections(context));
    out.push_str(&kinds::result_sections(report, context));
    out.push_str(&found::sections(report, width));
    out.push_str(&checks::table(report, width));
    out.push_str(&honest::section(Certificate::of(report).as_ref(), width));
    notes::write(&mut out, report, context);
    summary(&mut out, report);
    out
}

fn heading(out: &mut String, machine: &Machine, context: &Context) {
    let _ = writeln!(out, "{}", paint(STRONG, &machine.brand));
    let mut line = format!(
        "{} family {:#x} model {:#x} stepping {}",
        machine.vendor, machine.family, machine.model, machine.stepping
    );
    if let Some(microcode) = machine.microcode {
        let _ = write!(line, " microcode {microcode}");
    }
    match &machine.hypervisor {
        Some(name) => {
            let _ = write!(line, ", under {name}");
        }
        None => line.push_str(", bare metal"),
    }
    let _ = writeln!(out, "{}", paint(FAINT, &line));
    let source = match machine.tsc.source {
        TscSource::Cpuid => "from CPUID",
        TscSource::Hypervisor => "from the hypervisor",
        TscSource::AcpiPmTimer => "measured against the ACPI timer",
        TscSource::Hpet => "measured against the HPET",
        TscSource::Pit => "measured against the 8254",
        TscSource::BaseFrequency => "CPUID's base frequency, not measured",
    };
    let mut line = format!("TSC {} MHz ({source})", number(machine.tsc.hz as f64 / 1e6));
    if let Some(told) = machine.tsc.told_hz {
        let told = number(told as f64 / 1e6);
        let _ = write!(line, ", where CPUID or the hypervisor states {told} MHz, which is wrong");
    }
    if let Some(ticks) = context.ticks_per_instruction {
        let plural = if ticks == 1 { "" } else { "s" };
        let _ = write!(line, "; icount: {ticks} tick{plural} per instruction");
    }
    match (&machine.pmu, &machine.pmu_absent) {
        (Some(pmu), _) => {
            let emulated = if machine.emulated_pmu.is_some() { "emulated " } else { "" };
            let whose = machine.virtual_pmu.as_ref();
            let whose = whose.map_or(String::new(), |name| format!("{name}'s virtual "));
            let by = machine.emulated_pmu.map_or("", |pmu| match pmu.counted_by {
                CountedBy::Plugin => ", counting by plugin",
                CountedBy::Stepping => ", counting by stepping",
            });
            let _ = write!(
                line,
                "; {emulated}{whose}PMU version {}{by}: {} counters of {} bits, {} fixed",
                pmu.version, pmu.counters, pmu.counter_bits, pmu.fixed_counters
            );
        }
        (None, Some(reason)) => {
            let _ = write!(line, "; no PMU: {reason}");
        }
        (None, None) => {}
    }
    if let Some(reason) = &machine.watchdog_absent {
        let _ = write!(line, "; no watchdog ends a snippet that does not end: {reason}");
    }
    let _ = writeln!(out, "{}", paint(FAINT, &line));
    if let Some(line) = processors::heading(machine) {
        let _ = writeln!(out, "{}", paint(FAINT, &line));
    }
    for line in processors::kinds(machine) {
        let _ = writeln!(out, "{}", paint(FAINT, &line));
    }
    if let Some(pmu) = &machine.pmu {
        for (what, list) in
            [("erratum", &pmu.errata), ("PMU", &pmu.conflicts), ("PMU", &pmu.faults)]
        {
            for text in list {
                let _ = writeln!(out, "{}", paint(FAINT, &format!("{what}: {text}")));
            }
        }
    }
    let events = machine.event_tables.as_ref().filter(|_| machine.pmu.is_some());
    let line = match events {
        Some(EventTables { table: Some(table), source, events, .. }) => {
            let source = source.as_deref().unwrap_or("unknown source");
            format!("{events} events by name: table {table} ({source})")
        }
        Some(EventTables { absent: Some(reason), .. }) => format!("no events by name: {reason}"),
        _ => return,
    };
    let _ = writeln!(out, "{}", paint(FAINT, &line));
}

/// What TSC ticks are called.
pub(crate) fn unit(context: &Context) -> &'static str {
    match context.ticks_per_instruction {
        Some(1) => "TSC ticks = instructions",
        _ => "TSC ticks",
    }
}

fn results(report: &Report, context: &Context) -> Table {
    let mut table = empty();
    table.set_header(["", "snippet", unit(context), "min", "mean", "max", "runs", "values", ""]);
    for index in [0, 2, 3, 4, 5, 6] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for numbered in &report.records {
        match &numbered.record {
            Record::Error(error) if error.item.is_some() => {
                let name = error.name.as_deref().unwrap_or_default();
                let item = error.item.unwrap_or_default().to_string();
                let mut cells = vec![Cell::new(item), Cell::new(name)];
                cells.extend([""; 6].map(Cell::new));
                let (what, color) = match error.code {
                    ErrorCode::TimeLimit => ("TIME LIMIT", Color::Red),
                    ErrorCode::StepLimit => ("STEP LIMIT", Color::Red),
                    ErrorCode::Skipped => ("skipped", Color::Yellow),
                    ErrorCode::SnippetLost => ("LOST", Color::Red),
                    ErrorCode::Forged => ("FORGED", Color::Red),
                    ErrorCode::FirmwareChanged => ("FIRMWARE CHANGED", Color::Red),
                    ErrorCode::NotRun => ("NOT RUN", Color::Red),
                    _ => ("FAULT", Color::Red),
                };
                cells.push(Cell::new(what).fg(color));
                table.add_row(cells);
            }
            record => {
                for row in kinds::shown(record).map(Shown::rows).unwrap_or_default() {
                    table.add_row(row);
                }
            }
        }
    }
    table
}

/// How many records of the body a retire latency is the mean of.
pub(crate) fn of_records(metric: &Metric) -> String {
    let [small, large] = metric.retired.map_or([0; 2], |retired| retired.records);
    format!("{} records", large.saturating_sub(small))
}

/// The row of a figure.
pub(crate) fn row(result: &SnippetResult, metric: &Metric) -> Vec<Cell> {
    let value = &metric.value;
    let distinct = metric.series.iter().map(|series| series.distinct).max().unwrap_or(0);
    let (figure, spread): (fn(f64) -> String, String) = match &metric.energy {
        None if metric.retired.is_some() => (number, of_records(metric)),
        Some(energy) => (joules, format!("± {}", joules(energy.resolution))),
        None if metric.deterministic => (number, "all equal".to_string()),
        None => (number, format!("{distinct} distinct")),
    };
    // The verdict stands next to the name, and next to each figure that missed.
    let missed = result.misses.iter().any(|miss| miss.figure == metric.event);
    let verdict = match (result.verdict, metric.event == TSC) {
        (Verdict::Pass, true) => Cell::new("pass").fg(Color::Green),
        (Verdict::Fail, true) => Cell::new("FAIL").fg(Color::Red),
        _ if missed => Cell::new("FAIL").fg(Color::Red),
        _ => Cell::new(""),
    };
    // Further events stand below the time stamp counter, which has the snippet's name.
    let (item, name) = match metric.event.as_str() {
        "tsc" => (result.item.to_string(), result.name.clone()),
        event => {
            let pass = metric.counting.as_ref().map_or(0, |counting| counting.pass);
            let pass = if pass > 0 { format!(" (pass {})", pass + 1) } else { String::new() };
            let package = metric.counting.as_ref().is_some_and(|counting| counting.units > 0);
            let package = if package { " (whole package)" } else { "" };
            let emulated = if result.emulated { " (emulated)" } else { "" };
            (String::new(), format!("  {event}{pass}{package}{emulated}"))
        }
    };
    vec![
        Cell::new(item),
        Cell::new(name),
        Cell::new(figure(value.median)),
        Cell::new(figure(value.min)),
        Cell::new(figure(value.mean)),
        Cell::new(figure(value.max)),
        Cell::new(result.runs),
        Cell::new(spread),
        verdict,
    ]
}

fn summary(out: &mut String, report: &Report) {
    let Some(end) = report.end() else { return };
    let mut parts = Vec::new();
    let skipped = report.errors().filter(|error| error.code == ErrorCode::Skipped).count() as u32;
    for (count, what) in [
        (end.measured, "measured"),
        (end.passed, "passed"),
        (end.failed, "failed"),
        (skipped, "skipped"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    let (style, word) = match end.outcome {
        Outcome::Pass => (GOOD, "pass"),
        Outcome::Fail => (ERROR, "FAIL"),
        Outcome::BadJob => (ERROR, "NO USABLE JOB"),
        Outcome::Crash => (ERROR, "CRASH"),
        Outcome::Skip => (FAINT, "nothing to run"),
    };
    let counts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let _ = writeln!(out, "{}{counts}", paint(style, word));
}
