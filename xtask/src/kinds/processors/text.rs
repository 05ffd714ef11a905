//! What ran on several processors at once.

use crate::collect::Report;
use crate::kinds::{energy, failed, uncore};
use crate::primitives::style::{FAINT, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use crate::primitives::{joules, number};
use comfy_table::{Cell, CellAlignment, Table};
use protocol::record::{
    ContentionRounds, KindOfCores, Machine, Metric, ProcessorResult, ProcessorState,
    ProcessorsResult,
};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The line about the machine's processors, if there are several.
pub(crate) fn heading(machine: &Machine) -> Option<String> {
    let all = &machine.processors;
    if all.len() < 2 {
        return None;
    }
    let is_used = |state| matches!(state, ProcessorState::Boot | ProcessorState::Started);
    let used = all.iter().filter(|one| is_used(one.state)).count();
    let mut line = format!("{used} processors in use");
    for one in all {
        if let Some(reason) = &one.reason {
            // Writing to a String does not fail.
            let _ = write!(line, "; APIC id {}: {reason}", one.apic_id);
        }
    }
    Some(line)
}

/// A line for each kind of core of a hybrid package.
pub(crate) fn kinds(machine: &Machine) -> Vec<String> {
    let line = |kind: &KindOfCores| {
        let numbers: Vec<String> = kind.processors.iter().map(u32::to_string).collect();
        let s = if numbers.len() == 1 { "" } else { "s" };
        let mut line = format!("{} cores: processor{s} {}", kind.core, numbers.join(", "));
        match (&kind.pmu, &kind.pmu_absent) {
            (Some(pmu), _) => {
                // Writing to a String does not fail.
                let _ = write!(
                    line,
                    "; PMU version {}: {} counters of {} bits, {} fixed of {}",
                    pmu.version,
                    pmu.counters,
                    pmu.counter_bits,
                    pmu.fixed_counters,
                    pmu.fixed_counter_bits
                );
            }
            (None, reason) => {
                let _ = write!(line, "; no PMU: {}", reason.as_deref().unwrap_or("unknown"));
            }
        }
        let tables = kind.event_tables.as_ref();
        if let Some(table) = tables.and_then(|tables| tables.table.as_ref()) {
            let events = tables.map_or(0, |tables| tables.events);
            let _ = write!(line, "; {events} events by name: table {table}");
        } else if let Some(reason) = tables.and_then(|tables| tables.absent.as_ref()) {
            let _ = write!(line, "; no events by name: {reason}");
        }
        line
    };
    machine.kinds.iter().map(line).collect()
}

/// One section for each item.
pub(crate) fn sections(report: &Report, columns: Width) -> String {
    report.processors().map(|one| section(one, columns)).collect()
}

fn section(result: &ProcessorsResult, columns: Width) -> String {
    let mut out = String::new();
    let (name, failed) = (paint(STRONG, &result.name), failed(result.verdict));
    let _ = writeln!(out, "{} {name}{failed}", result.item);
    let skew = &result.start_skew;
    let together = match result.in_turn {
        true => "one after the other, as the emulated PMU's clock counts all of them".to_string(),
        false => format!(
            "begun within {} ticks of each other ({} to {})",
            skew.median, skew.min, skew.max
        ),
    };
    let on = result.core.map_or("processor".to_string(), |core| format!("{core} core"));
    let text = format!("per execution, {} on each {on}; {together}", result.per);
    let _ = writeln!(out, "{}", paint(FAINT, &text));
    let _ = writeln!(out, "{}", fit(table(result), columns));
    for line in energy::of_processors(result).into_iter().chain(uncore::of_processors(result)) {
        let _ = writeln!(out, "{line}");
    }
    let snapshot = &result.snapshot;
    let _ = writeln!(out, "snapshot of all processors: skew {} ticks", snapshot.skew);
    for one in &result.processors {
        let text =
            format!("  processor {}: TSC {} from its deadline", one.processor, late(result, one));
        let counts = snapshot.events.iter().zip(&one.snapshot);
        let counts: Vec<String> = counts.map(|(event, count)| format!("{count} {event}")).collect();
        let _ = writeln!(out, "{}", [vec![text], counts].concat().join(", "));
    }
    for one in &result.processors {
        if let Some(seen) = &one.interrupts {
            let _ = writeln!(
                out,
                "  processor {}: {} interrupts for {} overflows in {} instructions, {} spurious",
                one.processor, seen.taken, seen.overflows, seen.instructions, seen.spurious
            );
        }
    }
    for one in &result.processors {
        if let Some(seen) = &one.contention {
            let _ = writeln!(out, "  processor {}: {}", one.processor, contention(seen));
        }
    }
    for uncounted in &result.uncounted {
        let _ = writeln!(out, "not counted: {}: {}", uncounted.event, uncounted.reason);
    }
    for one in &result.processors {
        if let Some(reason) = one.pmu_absent.as_ref().filter(|_| !result.sums.is_empty()) {
            let _ = writeln!(out, "processor {} counts nothing: {reason}", one.processor);
        }
    }
    out
}

/// What a processor did while all others did the same.
pub(crate) fn contention(seen: &ContentionRounds) -> String {
    let counted = seen.counted.map(|counted| format!(", {counted} instructions counted"));
    format!(
        "{} rounds at once with the others: {} turns with the lock, {} interrupts, {} PMIs{}",
        seen.rounds,
        seen.locked,
        seen.interrupts,
        seen.pmis,
        counted.unwrap_or_default()
    )
}

/// Ticks from the snapshot's instant to the processor's reading.
pub(crate) fn late(result: &ProcessorsResult, one: &ProcessorResult) -> String {
    let ticks = one.snapshot_tsc.wrapping_sub(result.snapshot.deadline) as i64;
    format!("{ticks:+}")
}

/// A row for each event, a column for each processor, and the sum.
fn table(result: &ProcessorsResult) -> Table {
    let mut table = empty();
    let columns = result.processors.iter().map(|one| format!("cpu {}", one.processor));
    let head: Vec<String> =
        [String::new()].into_iter().chain(columns).chain(["sum".to_string()]).collect();
    let width = head.len();
    table.set_header(head);
    for index in 1..width {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let longest = result.processors.iter().max_by_key(|one| one.metrics.len());
    let events = longest.iter().flat_map(|one| &one.metrics).map(|metric| metric.event.as_str());
    let mut listed = BTreeSet::new();
    let events = events.filter(|event| listed.insert(*event));
    for event in events {
        let is_energy = |metric: &Metric| metric.event == event && metric.energy.is_some();
        let figure = match result.processors.iter().any(|one| one.metrics.iter().any(is_energy)) {
            true => joules,
            false => number,
        };
        let of_package = |metric: &Metric| {
            let units = metric.counting.as_ref().map_or(0, |counting| counting.units);
            metric.event == event && units > 0
        };
        let package = match result.processors.iter().any(|one| one.metrics.iter().any(of_package)) {
            true => " (whole package)",
            false => "",
        };
        let name = match event {
            "tsc" => "TSC ticks".to_string(),
            _ if result.emulated => format!("{event}{package} (emulated)"),
            _ => format!("{event}{package}"),
        };
        let value = |one: &ProcessorResult| {
            let found = one.metrics.iter().find(|metric| metric.event == event);
            found.map_or("-".to_string(), |metric| figure(metric.value.median))
        };
        let sum = result.sums.iter().find(|sum| sum.event == event);
        let sum = sum.map_or(String::new(), |sum| figure(sum.value));
        let cells = [name].into_iter().chain(result.processors.iter().map(value)).chain([sum]);
        table.add_row(cells.map(Cell::new));
    }
    let offsets = result.processors.iter().map(|one| match one.processor {
        0 => "0".to_string(),
        _ => format!("{:+} ±{}", one.tsc_offset, one.tsc_offset_error),
    });
    let cells = ["TSC offset".to_string()].into_iter().chain(offsets).chain([String::new()]);
    table.add_row(cells.map(Cell::new));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Numbered;
    use crate::render::csv;
    use protocol::record::{Record, Skew, Snapshot, Sum, Uncounted};

    fn metric(event: &str, median: f64) -> Metric {
        let value = protocol::record::Aggregates { median, ..Default::default() };
        let series = Default::default();
        Metric {
            event: event.into(),
            value,
            deterministic: true,
            series,
            counting: None,
            energy: None,
            retired: None,
        }
    }

    fn processor(number: u32, metrics: Vec<Metric>) -> ProcessorResult {
        ProcessorResult {
            processor: number,
            apic_id: 2 * number,
            tsc_offset: -5,
            tsc_offset_error: 3,
            pmu_absent: (number == 1).then(|| "no counters here".to_string()),
            metrics,
            snapshot_tsc: 1000 + u64::from(number),
            snapshot: if number == 0 { vec![77] } else { vec![] },
            interrupts: None,
            contention: None,
        }
    }

    #[test]
    fn i7_each_processor_has_a_column_and_what_is_missing_a_reason() {
        let result = ProcessorsResult {
            item: 2,
            name: "adds".into(),
            core: None,
            more: false,
            verdict: protocol::record::Verdict::None,
            misses: vec![],
            restored: Vec::new(),
            per: 100,
            runs: 10,
            processors: vec![
                processor(0, vec![metric("tsc", 4.0), metric("loads", 2.5)]),
                processor(1, vec![metric("tsc", 6.0)]),
            ],
            sums: vec![Sum { event: "loads".into(), value: 2.5, processors: 1 }],
            uncounted: vec![Uncounted { event: "stores".into(), reason: "unknown".into() }],
            in_turn: false,
            start_skew: Skew { min: 1, median: 2, max: 9 },
            snapshot: Snapshot { deadline: 990, skew: 1, events: vec!["loads".into()] },
            emulated: false,
            tsc: [0; 2],
        };
        let text = section(&result, Width::default());
        for part in [
            "cpu 0",
            "cpu 1",
            "within 2 ticks of each other (1 to 9)",
            "skew 1 ticks",
            "TSC +10 from its deadline, 77 loads",
            "processor 1 counts nothing: no counters here",
            "-5 ±3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let row = text.lines().find(|line| line.starts_with(" loads")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["loads", "2.5", "-", "2.5"]);
        let records = vec![Numbered { seq: 0, record: Record::Processors(result) }];
        let csv = csv::render(&Report { records, ..Report::default() });
        assert!(csv.contains("2,adds,loads on cpu 0,2.5,"), "{csv}");
        assert!(csv.contains("2,adds,stores,,,,,,,,,,uncounted\n"), "{csv}");
    }
}
