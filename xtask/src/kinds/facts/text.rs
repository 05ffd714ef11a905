//! What a processor's caches and TLBs are; in parts of their own how fast data are moved, what predicts its branches, what lies between cores, and what takes
//! their time.

pub(crate) mod bandwidth;
pub(crate) mod cores;
pub(crate) mod noise;
pub(crate) mod pipeline;
mod prefetch;
mod sharing;
mod sure;
mod told;
mod words;

use crate::collect::Report;
use crate::kinds::failed;
use crate::primitives::number;
use crate::primitives::style::{FAINT, STRONG, WARNING, paint};
use crate::primitives::table::{Width, empty, fit};
use ::facts::judge::{self, Told};
use comfy_table::Cell;
use protocol::record::{CacheFact, FactsResult, FactsTimer, MemoryFacts, TlbFact};
use std::fmt::Write;
pub(crate) use words::{Grid, HEAD, HEAD_MEMORY, Row, size, sureness, ticks, time};

/// Most policies that are named.
const NAMED: usize = 6;

/// Longer tables are in the other formats alone.
const MOST_ROWS: usize = 32;

/// One section for each item.
pub(crate) fn sections(report: &Report, columns: Width) -> String {
    report.fact_sheets().map(|sheet| section(sheet, columns)).collect()
}

fn section(sheet: &FactsResult, columns: Width) -> String {
    let mut out = String::new();
    // Writing to a String does not fail, here and below.
    let (name, failed) = (paint(STRONG, &sheet.name), failed(sheet.verdict));
    let _ = writeln!(out, "{} {name}{failed}", sheet.item);
    let mut part = |heading: String,
                    head: &[&str],
                    rows: Vec<Vec<String>>,
                    tables: Vec<Grid>,
                    untold: Vec<String>| {
        let _ = writeln!(out, "{}", paint(FAINT, &heading));
        let mut table = empty();
        table.set_header(head);
        for row in rows {
            table.add_row(row.into_iter().map(Cell::new));
        }
        let _ = writeln!(out, "{}", fit(table, columns));
        for grid in &tables {
            if grid.rows.len() > MOST_ROWS {
                let text =
                    format!("{}: {} rows, which --format json has", grid.caption, grid.rows.len());
                let _ = writeln!(out, "{}", paint(FAINT, &text));
                continue;
            }
            let mut table = empty();
            table.set_header(&grid.head);
            for row in &grid.rows {
                table.add_row(row);
            }
            let _ = writeln!(out, "{}\n{}", paint(FAINT, &grid.caption), fit(table, columns));
        }
        for text in untold {
            let _ = writeln!(out, "{} {text}", paint(WARNING, "not told:"));
        }
    };
    if let Some(memory) = &sheet.memory {
        part(heading(sheet), &HEAD_MEMORY, rows(sheet, memory), Vec::new(), untold(memory));
    }
    if let Some(facts) = &sheet.bandwidth {
        let rows = cells(bandwidth::rows(sheet, facts));
        let untold = bandwidth::untold(facts, sheet.emulated);
        part(bandwidth::heading(facts), &HEAD, rows, Vec::new(), untold);
    }
    if let Some(core) = &sheet.core {
        let rows = pipeline::rows(sheet, core);
        part(pipeline::heading(sheet), &HEAD, cells(rows), Vec::new(), pipeline::untold(core));
    }
    if let Some(facts) = &sheet.cores {
        let (rows, tables) = (cores::rows(sheet, facts), cores::tables(facts));
        part(cores::heading(facts), &HEAD, cells(rows), tables, cores::untold(facts));
    }
    if let Some(facts) = &sheet.noise {
        let (rows, tables) = (noise::rows(facts), noise::tables(facts));
        part(
            noise::heading(facts),
            &HEAD,
            cells(rows),
            tables,
            noise::untold(facts, sheet.emulated),
        );
    }
    out
}

/// The cells of rows.
pub(crate) fn cells(rows: Vec<Row>) -> Vec<Vec<String>> {
    rows.into_iter().map(Row::cells).collect()
}

/// What times are in.
pub(crate) fn unit(sheet: &FactsResult) -> &'static str {
    match sheet.timer {
        FactsTimer::CoreCycles => "cycles",
        FactsTimer::Tsc => "TSC ticks",
    }
}

/// How it was measured.
pub(crate) fn heading(sheet: &FactsResult) -> String {
    let clock = match sheet.timer {
        FactsTimer::CoreCycles => "a counter of core cycles",
        FactsTimer::Tsc => "the TSC, whose ticks are not core cycles: no counter counts those",
    };
    let size = size(sheet.bytes);
    format!("derived only from the time of loads, by {clock}, in {size} of contiguous memory")
}

/// All figures of the memory: the cells below [`HEAD_MEMORY`].
pub(crate) fn rows(sheet: &FactsResult, memory: &MemoryFacts) -> Vec<Vec<String>> {
    let unit = unit(sheet);
    let cycles = |tenths: u64| format!("{} {unit}", number(tenths as f64 / 10.0));
    let row =
        |figure: &str, value: String, told: Option<String>, sure: String, evidence: String| {
            vec![figure.to_string(), value, told.unwrap_or_default(), sure, evidence]
        };
    let says = told::Says::of(&sheet.cpuid);
    let mut all = Vec::new();
    let line = memory.line.map_or("not told".to_string(), |line| format!("{line} bytes"));
    let steps = memory.line_evidence.iter().map(|[far, cost]| format!("{far}: {cost}"));
    let steps = steps.collect::<Vec<_>>().join(", ");
    let told = says.line().map(|told| marked(memory.line, Some(told), format!("{told} bytes")));
    all.push(row(
        "line",
        line,
        told,
        sure::line(memory),
        format!("{unit} more, this many bytes from a line: {steps}"),
    ));
    for (at, cache) in memory.caches.iter().enumerate() {
        let name = format!("L{} data", cache.level);
        let told = says.cache(cache.level).map(|told| {
            let seen = cache.bytes().zip(cache.ways);
            marked(seen, Some((told.bytes, told.ways)), told.to_string())
        });
        all.push(row(&name, shape(cache), told, sure::cache(memory, at), fits(cache)));
        if let Some(tenths) = cache.tenths {
            let front = at.checked_sub(1).and_then(|front| memory.caches.get(front));
            let sure = sure::latency(memory, cache, front);
            let figure = format!("{name}, latency");
            all.push(row(&figure, cycles(tenths), None, sure, "single loads".into()));
        }
        let policy = policies(&memory.caches, at);
        let evidence = cache.policy.as_ref().map_or(String::new(), |evidence| {
            let (count, runs) = (evidence.sequences.len(), evidence.runs);
            format!("{count} sequences of accesses to a set, {runs} runs of each")
        });
        let sure = sure::policy(cache.policy.as_ref());
        all.push(row(&format!("{name}, policy"), policy, None, sure, evidence));
    }
    all.push(row(
        "memory, latency",
        cycles(memory.memory_tenths),
        None,
        sure::memory(memory),
        "a load after WBINVD".into(),
    ));
    for (at, tlb) in memory.tlbs.iter().enumerate() {
        let page = size(tlb.page);
        let name = format!("L{} TLB, {page} pages", tlb.level);
        let told = says.tlb(tlb.level, tlb.page).map(|(entries, ways)| {
            let seen = tlb.ways.zip(tlb.sets).map(|(ways, sets)| (ways * sets, ways));
            marked(seen, Some((entries, ways)), format!("{entries} entries, {ways} ways"))
        });
        let fit = tlb.evidence.len();
        let evidence = format!("{fit} numbers and distances of pages");
        all.push(row(&name, entries(tlb), told, sure::tlb(memory, at), evidence));
        let costs = match (tlb.level, tlb.tenths) {
            (1, _) => format!("{} more where no TLB has it", cycles(tlb.walk_tenths)),
            (_, Some(tenths)) => format!("{} more than a hit of the first", cycles(tenths)),
            (_, None) => continue,
        };
        let (figure, tries) = (format!("{name}, cost"), "quickest of 4".to_string());
        all.push(row(&figure, costs, None, tries, "single loads".into()));
    }
    all.extend(prefetch::rows(sheet, memory));
    let [line, page] = memory.crossing_tenths;
    for (figure, tenths) in [("crossing a line", line), ("crossing a page", page)] {
        let value = format!("{} more", cycles(tenths));
        all.push(row(figure, value, None, "quickest of 3".into(), "three loads".into()));
    }
    all
}

/// What CPUID says, with a mark if something else was measured.
fn marked<T: PartialEq>(seen: Option<T>, told: Option<T>, text: String) -> String {
    if seen.is_some() && seen != told { format!("{text} (contradicts)") } else { text }
}

fn shape(cache: &CacheFact) -> String {
    match cache.bytes().zip(cache.ways) {
        Some((bytes, ways)) => format!("{}, {ways} ways", size(bytes)),
        None => "not told".to_string(),
    }
}

fn entries(tlb: &TlbFact) -> String {
    match tlb.ways.zip(tlb.sets) {
        Some((ways, 1)) => format!("{ways} entries, fully associative"),
        Some((ways, sets)) => format!("{} entries, {ways} ways", ways * sets),
        None => "not told".to_string(),
    }
}

/// The numbers of lines of one set that fit, and that do not.
fn fits(cache: &CacheFact) -> String {
    let greatest = cache.evidence.iter().map(|fit| fit.stride).max().unwrap_or(0);
    let of = |fits| move |fit: &&protocol::record::Fit| fit.stride == greatest && fit.fits == fits;
    let most = cache.evidence.iter().filter(of(true)).map(|fit| fit.places).max();
    let least = cache.evidence.iter().filter(of(false)).map(|fit| fit.places).min();
    let (Some(most), Some(least)) = (most, least) else { return String::new() };
    let repeat = cache
        .set_stride
        .map_or(String::new(), |stride| format!("; sets repeat every {}", size(stride)));
    format!("{most} lines {} apart stay, {least} do not{repeat}", size(greatest))
}

/// Which policies are left.
fn policies(caches: &[CacheFact], level: usize) -> String {
    match judge::policies(caches, level) {
        Told::OneOf(left) if left.len() <= NAMED => {
            left.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
        }
        Told::OneOf(left) => {
            let first: Vec<String> = left.iter().take(NAMED).map(ToString::to_string).collect();
            format!("{} or {} more", first.join(" or "), left.len() - NAMED)
        }
        Told::Random => "random, or dependent on more than the set".to_string(),
        Told::NoneKnown => "none of the known ones".to_string(),
        Told::NotTold(_) => "not told".to_string(),
    }
}

/// What was not determined, and why, in sentences.
pub(crate) fn untold(memory: &MemoryFacts) -> Vec<String> {
    let mut all = Vec::new();
    if memory.line.is_none() {
        all.push("the bytes of a line: loads next to a line are as fast as on it".to_string());
    }
    for (at, cache) in memory.caches.iter().enumerate() {
        let level = cache.level;
        if let Some(reason) = &cache.reason {
            match cache.tenths {
                Some(_) => all.push(format!("size and ways of the L{level} data cache: {reason}")),
                None => all.push(format!("whether there is an L{level} data cache: {reason}")),
            }
        }
        if let Told::NotTold(reason) = judge::policies(&memory.caches, at) {
            all.push(format!("the policy of the L{level} data cache: {reason}"));
        }
    }
    all.extend(prefetch::untold(memory));
    for tlb in &memory.tlbs {
        let (level, page) = (tlb.level, size(tlb.page));
        if let Some(reason) = &tlb.reason {
            all.push(format!("the L{level} TLB for pages of {page}: {reason}"));
        }
    }
    all.push(
        "slices of the last cache: a hash of addresses shows as sets that do not repeat"
            .to_string(),
    );
    all
}

#[cfg(test)]
mod tests;
