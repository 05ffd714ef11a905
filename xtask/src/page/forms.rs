//! Instruction forms: a row for each, as people know them from tables of latency, throughput and ports.

use crate::document::Document;
use crate::forms::{FormRow, Latency, Throughput, broken, rows};
use crate::ports::Found;
use crate::primitives::number;
use html_report::model::{Cell, Table, Tone};

/// A table of all forms; several runs stand side by side.
pub(super) fn of(documents: &[Document]) -> Vec<Table> {
    let all: Vec<Vec<FormRow>> = documents.iter().map(|one| rows(&one.report)).collect();
    let mut forms: Vec<&str> = Vec::new();
    let mut events: Vec<&str> = Vec::new();
    let add = |known: &mut Vec<_>, one| {
        if !known.contains(&one) {
            known.push(one);
        }
    };
    for row in all.iter().flatten() {
        add(&mut forms, row.form.as_str());
        row.throughput
            .iter()
            .flat_map(|one| &one.events)
            .for_each(|(event, _)| add(&mut events, event));
    }
    let Some(first) = all.iter().flatten().next() else { return Vec::new() };
    let unit = match first.unit {
        "cycles" => "core cycles",
        _ => documents.first().map_or("TSC ticks", Document::ticks),
    };
    let mut columns = vec![("instruction".to_string(), false)];
    for document in documents {
        let whose =
            if documents.len() > 1 { format!("{}: ", document.name) } else { String::new() };
        columns.push((format!("{whose}latency"), true));
        columns.push((format!("{whose}throughput"), true));
        columns.extend(events.iter().map(|event| (format!("{whose}{event}"), true)));
    }
    let told = all.iter().flatten().any(|row| row.ports.is_some());
    if told {
        columns.push(("ports".to_string(), false));
    }
    columns.push(("latency from → to".to_string(), false));
    columns.push(("values".to_string(), false));
    let row = |form: &&str| {
        let own: Vec<Option<&FormRow>> =
            all.iter().map(|rows| rows.iter().find(|row| row.form == **form)).collect();
        let mut cells = vec![Cell::code(*form)];
        for row in &own {
            cells.push(Cell::text(row.map(latency).unwrap_or_default()));
            let throughput = row.and_then(|row| row.throughput.as_ref());
            cells.push(Cell::text(throughput.map(Throughput::text).unwrap_or_default()));
            for event in &events {
                let count =
                    throughput.and_then(|one| one.events.iter().find(|(name, _)| name == event));
                cells.push(Cell::text(count.map(|(_, count)| number(*count)).unwrap_or_default()));
            }
        }
        if told {
            let found = own.iter().flatten().filter_map(|row| row.ports.as_ref());
            let mut texts: Vec<String> = found.map(Found::text).collect();
            texts.dedup();
            cells.push(Cell::text(texts.join("\n")));
        }
        let told = own.into_iter().flatten().next();
        cells.push(Cell::text(told.map(pairs).unwrap_or_default()));
        cells.push(told.map(values).unwrap_or_default());
        cells
    };
    let caption = format!("Each instruction in {unit}");
    vec![Table { caption, columns, rows: forms.iter().map(row).collect(), filter: true }]
}

fn bound(latency: &Latency) -> String {
    format!("{}{}", if latency.at_most { "≤ " } else { "" }, number(latency.value))
}

/// One figure where all pairs have the same, else from the least to the greatest.
fn latency(row: &FormRow) -> String {
    let mut sorted: Vec<&Latency> = row.latency.iter().collect();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    match (sorted.first(), sorted.last()) {
        (Some(least), Some(most)) if bound(least) == bound(most) => bound(least),
        (Some(least), Some(most)) => format!("{} … {}", bound(least), bound(most)),
        _ => String::new(),
    }
}

fn pairs(row: &FormRow) -> String {
    let latencies = row.latency.iter().map(|one| {
        let back = if one.back.is_empty() {
            String::new()
        } else {
            format!(", back by {}", one.back.join(" + "))
        };
        let rest = broken(&one.breaking);
        format!("{} → {}: {}{back}{rest}", one.from, one.to, bound(one))
    });
    let throughput = row.throughput.iter().map(|one| format!("throughput: {}", one.how()));
    let same = row.same_register.iter().map(|value| format!("one register: {}", number(*value)));
    latencies.chain(same).chain(throughput).collect::<Vec<_>>().join("\n")
}

fn values(row: &FormRow) -> Cell {
    let distinct = row
        .latency
        .iter()
        .map(|one| one.distinct)
        .chain(row.throughput.iter().map(|one| one.distinct));
    match distinct.max().unwrap_or(0) {
        0 | 1 => Cell::text("all equal"),
        most => Cell::toned(Tone::Plain, format!("up to {most} distinct")),
    }
}
