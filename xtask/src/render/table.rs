//! The report as a table.

use super::{checks, found};
use crate::collect::Report;
use crate::context::Context;
use crate::honest::{Certificate, render as honest};
use crate::kinds::processors::text as processors;
use crate::kinds::snippet::text::unit;
use crate::kinds::{self, Shown};
use crate::metrics::render as metrics;
use crate::primitives::number;
use crate::primitives::style::{ERROR, FAINT, GOOD, STRONG, paint};
use crate::primitives::table::{empty, fit};
use crate::{notes, verdict};
use comfy_table::{Cell, CellAlignment, Color, Table};
use protocol::record::{CountedBy, ErrorCode, EventTables, Machine, Outcome, Record, TscSource};
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
    out.push_str(&metrics::sections(&context.metrics, width));
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
                let skipped = error.code == ErrorCode::Skipped;
                let color = if skipped { Color::Yellow } else { Color::Red };
                cells.push(Cell::new(verdict::of_error(error.code)).fg(color));
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
