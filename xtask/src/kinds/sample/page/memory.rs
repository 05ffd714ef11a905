//! Data of samples: lines, pages, sources and latencies; what became of sampled branches; stacks of calls.

use crate::kinds::page::{percent, share, table};
use crate::samples::Profile;
use crate::samples::data::LineCount;
use crate::samples::edges::text;
use crate::samples::memory::class;
use html_report::model::{Cell, Part};
use protocol::record::SampledCount;

/// Rows of one table at most.
const MAX_ROWS: usize = 200;

fn cycles(mean: Option<f64>) -> Cell {
    Cell::text(mean.map_or(String::new(), |cycles| format!("{cycles:.1}")))
}

/// Samples by line or page of their data, where records have data addresses.
pub(super) fn data(what: &str, lines: &[LineCount], count: &SampledCount) -> Option<Part> {
    let total: u64 = lines.iter().map(|line| line.count).sum();
    let told = lines.iter().any(|line| line.latency.is_some());
    let head = [what, "addresses", "samples", "share", "latency", "longest"];
    let columns = if told { 6 } else { 4 };
    let row = |line: &LineCount| {
        let mut cells = vec![
            Cell::code(format!("{:#x}", line.line)),
            Cell::text(line.addresses.to_string()),
            Cell::text(line.count.to_string()),
            Cell::bar(percent(line.count, total), share(line.count, total)),
            cycles(line.mean()),
            Cell::text(line.longest.map_or(String::new(), |cycles| cycles.to_string())),
        ];
        cells.truncate(columns);
        cells
    };
    let caption = format!("{} by {what} of the data", count.event);
    let rows: Vec<Vec<Cell>> = lines.iter().take(MAX_ROWS).map(row).collect();
    (!rows.is_empty()).then(|| table(&caption, &head[..columns], 1, rows))
}

/// Samples by where their data came from, and by the class of their latency.
pub(super) fn sources(profile: &Profile, event: usize, count: &SampledCount) -> Vec<Part> {
    let levels = profile.levels(event);
    let total: u64 = levels.iter().map(|level| level.count).sum();
    let mut parts = Vec::new();
    if levels.is_empty() {
        return parts;
    }
    let rows = levels.iter().map(|level| {
        let longest = if level.latency > 0 { level.longest.to_string() } else { String::new() };
        vec![
            Cell::text(&*level.source),
            Cell::text(level.count.to_string()),
            Cell::bar(percent(level.count, total), share(level.count, total)),
            Cell::text(level.tlb_misses.map_or(String::new(), |count| count.to_string())),
            cycles(level.mean()),
            Cell::text(longest),
        ]
    });
    let head = ["data from", "samples", "share", "TLB misses", "latency", "longest"];
    let caption = format!("{} by where the data came from", count.event);
    parts.push(table(&caption, &head, 1, rows.collect()));
    let rows: Vec<Vec<Cell>> = profile
        .latencies(event)
        .into_iter()
        .map(|(least, seen)| {
            let bar = Cell::bar(percent(seen, total), share(seen, total));
            vec![Cell::text(class(least)), Cell::text(seen.to_string()), bar]
        })
        .collect();
    if let Some([data, _]) = profile.result.latencies.as_ref().filter(|_| !rows.is_empty()) {
        let caption = format!("{} by latency: cycles {data}", count.event);
        parts.push(table(&caption, &["cycles", "samples", "share"], 1, rows));
    }
    parts
}

/// What became of branches that were sampled themselves.
pub(super) fn outcomes(profile: &Profile) -> Option<Part> {
    let row = |one: &protocol::record::OutcomeCount| {
        let place = profile.rows.iter().find(|row| row.address == one.address.0);
        let name = place
            .map_or_else(|| format!("{:#x}", one.address.0), |row| text(&row.place, row.address));
        let bar = |count| Cell::bar(percent(count, one.count), share(count, one.count));
        let count = Cell::text(one.count.to_string());
        vec![Cell::code(name), count, bar(one.taken), bar(one.mispredicted), bar(one.returns)]
    };
    let rows: Vec<Vec<Cell>> = profile.result.outcomes.iter().take(MAX_ROWS).map(row).collect();
    let head = ["branch", "samples", "taken", "mispredicted", "returns"];
    (!rows.is_empty()).then(|| table("What became of sampled branches", &head, 1, rows))
}

/// Stacks of calls, from the outermost function on.
pub(super) fn stacks(profile: &Profile) -> Option<Part> {
    let total = profile.stacks.iter().map(|row| row.count).sum();
    let row = |row: &crate::samples::stacks::StackRow| {
        let calls: Vec<&str> = row.symbols().collect();
        let at = row.frames.first().map_or(String::new(), |(at, place)| text(place, *at));
        let bar = Cell::bar(percent(row.count, total), share(row.count, total));
        vec![Cell::code(calls.join(" > ")), Cell::code(at), Cell::text(row.count.to_string()), bar]
    };
    let rows: Vec<Vec<Cell>> = profile.stacks.iter().take(MAX_ROWS).map(row).collect();
    let head = ["calls", "at", "samples", "share"];
    (!rows.is_empty()).then(|| table("Calls that led to the samples", &head, 2, rows))
}
