//! What ran on several processors at once.

use crate::kinds::page::{note, table};
use crate::kinds::processors::text::{contention, late};
use crate::kinds::snippet::page as snippet;
use crate::kinds::{energy, uncore};
use crate::primitives::{joules, number};
use html_report::model::{Cell, Part, Spread, Tone};
use protocol::record::{Metric, ProcessorResult, ProcessorsResult};
use std::collections::BTreeSet;

pub(crate) fn parts(result: &ProcessorsResult) -> Vec<Part> {
    let skew = &result.start_skew;
    let together = match result.in_turn {
        true => "They ran one after the other, as the emulated PMU's clock counts all of them."
            .to_string(),
        false => format!(
            "They began within {} TSC ticks of each other ({} to {}).",
            skew.median, skew.min, skew.max
        ),
    };
    let text =
        format!("Figures are per execution, of {} on each processor. {together}", result.per);
    let mut parts = vec![Part::Text(text), figures(result)];
    let spreads: Vec<Spread> = result
        .processors
        .iter()
        .flat_map(|one| {
            one.metrics.iter().flat_map(|metric| {
                snippet::spreads(metric, &format!(" on processor {}", one.processor))
            })
        })
        .collect();
    if !spreads.is_empty() {
        parts.push(Part::Heading("Distribution over the runs, undivided".to_string()));
        parts.push(Part::Spreads(spreads));
    }
    let used = energy::of_processors(result).into_iter().chain(uncore::of_processors(result));
    parts.extend(used.map(|text| Part::Text(text + ".")));
    parts.push(snapshot(result));
    for one in &result.processors {
        if let Some(seen) = &one.interrupts {
            let text = format!(
                "processor {}: {} interrupts for {} overflows in {} instructions, {} spurious",
                one.processor, seen.taken, seen.overflows, seen.instructions, seen.spurious
            );
            parts.push(note(Tone::Plain, "interrupts", text));
        }
        if let Some(seen) = &one.contention {
            let text = format!("processor {}: {}", one.processor, contention(seen));
            parts.push(note(Tone::Plain, "contention", text));
        }
        if let Some(reason) = one.pmu_absent.as_ref().filter(|_| !result.sums.is_empty()) {
            parts.push(note(
                Tone::Warn,
                "counts nothing",
                format!("processor {}: {reason}", one.processor),
            ));
        }
    }
    parts
}

fn figures(result: &ProcessorsResult) -> Part {
    let names: Vec<String> =
        result.processors.iter().map(|one| format!("processor {}", one.processor)).collect();
    let mut head = vec!["event"];
    head.extend(names.iter().map(String::as_str));
    head.push("sum");
    let longest = result.processors.iter().max_by_key(|one| one.metrics.len());
    let events = longest.iter().flat_map(|one| &one.metrics).map(|metric| metric.event.as_str());
    let mut listed = BTreeSet::new();
    let events = events.filter(|event| listed.insert(*event));
    let mut rows: Vec<Vec<Cell>> = events
        .map(|event| {
            let is_energy = |metric: &Metric| metric.event == event && metric.energy.is_some();
            let energy = result.processors.iter().any(|one| one.metrics.iter().any(is_energy));
            let figure = if energy { joules } else { number };
            let value = |one: &ProcessorResult| {
                let found = one.metrics.iter().find(|metric| metric.event == event);
                Cell::text(found.map_or("–".to_string(), |metric| figure(metric.value.median)))
            };
            let sum = result.sums.iter().find(|sum| sum.event == event);
            let sum = Cell::text(sum.map_or(String::new(), |sum| figure(sum.value)));
            [Cell::text(event)]
                .into_iter()
                .chain(result.processors.iter().map(value))
                .chain([sum])
                .collect()
        })
        .collect();
    let offset = |one: &ProcessorResult| match one.processor {
        0 => Cell::text("0"),
        _ => Cell::text(format!("{:+} ±{}", one.tsc_offset, one.tsc_offset_error)),
    };
    let offsets = result.processors.iter().map(offset);
    rows.push(
        [Cell::text("offset of its TSC")]
            .into_iter()
            .chain(offsets)
            .chain([Cell::default()])
            .collect(),
    );
    table("Figures by processor", &head, 1, rows)
}

fn snapshot(result: &ProcessorsResult) -> Part {
    let snapshot = &result.snapshot;
    let mut head = vec!["processor", "TSC from its deadline"];
    head.extend(snapshot.events.iter().map(String::as_str));
    let row = |one: &ProcessorResult| {
        let counts = one.snapshot.iter().map(|count| Cell::text(count.to_string()));
        let first = [Cell::text(one.processor.to_string()), Cell::text(late(result, one))];
        first.into_iter().chain(counts).collect()
    };
    let caption =
        format!("Snapshot of all processors while they counted; skew {} ticks", snapshot.skew);
    table(&caption, &head, 1, result.processors.iter().map(row).collect())
}
