//! Sources and latencies of sampled data, what became of sampled branches, and stacks of calls.

use super::{MAX_ROWS, share, table};
use crate::samples::Profile;
use crate::samples::edges::text;
use crate::samples::memory::{LevelCount, class};
use comfy_table::{Cell, Table};

/// By source, and by class of latency.
pub(super) fn tables(profile: &Profile, event: usize) -> Vec<Table> {
    let levels = profile.levels(event);
    if levels.is_empty() {
        return Vec::new();
    }
    let total: u64 = levels.iter().map(|level| level.count).sum();
    let told = levels.iter().any(|level| level.latency > 0);
    let mut tables = vec![by_level(&levels, total, told)];
    let classes = profile.latencies(event);
    if !classes.is_empty() {
        let mut by_class = table(&["latency in cycles", "samples", "share", ""], &[0, 1, 2]);
        for (least, count) in classes {
            let part = count as f64 / total.max(1) as f64;
            let bar = "#".repeat((part * 40.0).round() as usize);
            let cells = [class(least), count.to_string(), share(count, total), bar];
            by_class.add_row(cells.map(Cell::new));
        }
        tables.push(by_class);
    }
    tables
}

fn by_level(levels: &[LevelCount], total: u64, told: bool) -> Table {
    let head = ["data from", "samples", "share", "TLB misses", "latency", "longest"];
    let mut table = table(&head[..if told { 6 } else { 4 }], &[1, 2, 3, 4, 5]);
    for level in levels {
        let cells = [
            level.source.clone(),
            level.count.to_string(),
            share(level.count, total),
            level.tlb_misses.map_or(String::new(), |count| count.to_string()),
            level.mean().map_or(String::new(), |cycles| format!("{cycles:.1}")),
            if level.latency > 0 { level.longest.to_string() } else { String::new() },
        ];
        table.add_row(cells[..if told { 6 } else { 4 }].iter().map(Cell::new));
    }
    table
}

/// What became of sampled branches.
pub(super) fn outcomes(profile: &Profile) -> Option<Table> {
    let result = profile.result;
    if result.outcomes.is_empty() {
        return None;
    }
    let head = ["sampled branch", "instruction", "samples", "taken", "mispredicted", "returns"];
    let mut table = table(&head, &[2, 3, 4, 5]);
    for one in result.outcomes.iter().take(MAX_ROWS) {
        let place = profile.rows.iter().find(|row| row.address == one.address.0);
        let (name, instruction) = match place {
            Some(row) => (text(&row.place, row.address), row.place.instruction.clone()),
            None => (format!("{:#x}", one.address.0), String::new()),
        };
        let part = |count| share(count, one.count);
        let cells = [
            name,
            instruction,
            one.count.to_string(),
            part(one.taken),
            part(one.mispredicted),
            part(one.returns),
        ];
        table.add_row(cells.map(Cell::new));
    }
    Some(table)
}

/// The stacks, from the outermost function to the sampled instruction's.
pub(super) fn stacks(profile: &Profile) -> Option<Table> {
    if profile.stacks.is_empty() {
        return None;
    }
    let total = profile.stacks.iter().map(|row| row.count).sum();
    let mut table = table(&["calls", "at", "samples", "share"], &[2, 3]);
    for row in profile.stacks.iter().take(MAX_ROWS) {
        let calls: Vec<&str> = row.symbols().collect();
        let at = row.frames.first().map_or(String::new(), |(at, place)| text(place, *at));
        let cells = [calls.join(" > "), at, row.count.to_string(), share(row.count, total)];
        table.add_row(cells.map(Cell::new));
    }
    Some(table)
}
