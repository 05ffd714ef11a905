//! Samples: what became of them, and where they lie.

mod groups;
mod memory;
mod processors;

use crate::document::Document;
use crate::kinds::page::{note, percent, share, table};
use crate::kinds::sample::text::{handling, intervals, not_counted, period, warnings};
use crate::kinds::{energy, tasks, uncore};
use crate::samples::edges::{self, EdgeRow};
use crate::samples::processors::named;
use crate::samples::{Listing, Profile, Row, retired, width};
use html_report::model::{Cell, Code, Flame, Frame, Instruction, Part, Table, Tone};
use protocol::job::sampling::Delivery;
use protocol::record::{SampleResult, SampledCount};
use std::collections::BTreeMap;

pub(crate) fn parts(document: &Document, result: &SampleResult) -> Vec<Part> {
    let delivery = match result.delivery {
        Delivery::Fixed => "a vector",
        Delivery::Nmi => "NMI",
    };
    let capability = &result.capability;
    let mut parts = vec![
        Part::Text(format!("Interrupted by {delivery}; counters meanwhile: {}.", handling(result))),
        Part::Text(format!(
            "Skid: {}; data address: {}.",
            capability.skid, capability.data_address
        )),
    ];
    parts.extend(result.events.iter().filter_map(|one| {
        Some(Part::Text(format!("Skid of {}: {}.", one.event, one.skid.as_ref()?)))
    }));
    let retired = result.events.iter().filter_map(retired::line);
    parts.extend(retired.map(|line| Part::Text(format!("R{}.", &line[1..]))));
    parts.extend(result.timer.as_ref().map(|timer| Part::Text(intervals(timer))));
    parts.push(events(result));
    parts.extend(processors::accounts(result));
    parts.extend(result.energy.iter().map(|one| Part::Text(energy::line(one) + ".")));
    parts.extend(result.uncore.iter().map(|one| Part::Text(uncore::line(one) + ".")));
    parts.extend(
        result.schedule.as_ref().map(|one| tasks::page::of_tasks(&one.tasks, result.emulated)),
    );
    parts.extend(warnings(result).into_iter().map(|text| note(Tone::Warn, "note", text)));
    let uncounted = not_counted(result).into_iter();
    parts.extend(uncounted.map(|text| note(Tone::Warn, "not counted", text)));
    let Some(profile) = document.profile(result.item) else { return parts };
    for (event, count) in result.events.iter().enumerate() {
        if profile.total(event) > 0 {
            parts.push(Part::Flame(flame(&profile, event, count)));
            parts.extend(processors::tasks(&profile, event, &count.event));
            parts.push(symbols(&profile, event, count));
            parts.extend(source_lines(&profile, event, count));
            for (what, lines) in
                [("cache line", profile.lines(event)), ("page", profile.pages(event))]
            {
                parts.extend(memory::data(what, &lines, count));
            }
            parts.extend(memory::sources(&profile, event, count));
        }
    }
    parts.extend(groups::parts(&profile));
    parts.extend(branches(&profile));
    parts.extend(memory::outcomes(&profile));
    parts.extend(memory::stacks(&profile));
    parts.extend(profile.listings.iter().map(|listing| Part::Code(annotated(&profile, listing))));
    parts.extend(unlisted(&profile).map(Part::Code));
    parts
}

fn events(result: &SampleResult) -> Part {
    let head = [
        "event",
        "counter",
        "period",
        "overflows",
        "sampled",
        "dropped",
        "lost",
        "throttled",
        "rest",
        "counted",
    ];
    let row = |one: &SampledCount| {
        let mut row = vec![
            Cell::text(&*one.event),
            Cell::text(one.counter.clone().unwrap_or_default()),
            Cell::text(period(one)),
        ];
        let numbers = [one.overflows, one.samples, one.dropped, one.lost, one.throttled, one.rest];
        row.extend(numbers.map(|number| Cell::text(number.to_string())));
        row.push(Cell::text(one.witness.map(|count| count.to_string()).unwrap_or_default()));
        row
    };
    table("What became of the overflows", &head, 2, result.events.iter().map(row).collect())
}

/// Task, function, source line, instruction: from the outermost in. The outermost of several processors is the processor.
fn flame(profile: &Profile, event: usize, count: &SampledCount) -> Flame {
    let mut root = Tree::default();
    let stacks: Vec<_> = profile.stacks.iter().filter(|row| row.event == event).collect();
    for row in &stacks {
        let task = format!("{}, ring {}", row.task, row.ring);
        let leaf = row.frames.first().map(|(at, place)| format!("{at:#x} {}", place.instruction));
        let frames = row.symbols().map(str::to_string).chain(leaf);
        let cpu = named(profile.result, row.cpu);
        root.add(cpu.into_iter().chain([task]).chain(frames), row.count);
    }
    if !stacks.is_empty() {
        return Flame {
            title: format!("Where {} samples lie: task, calls, function, instruction", count.event),
            unit: "samples".to_string(),
            frames: root.frames(),
        };
    }
    for row in profile.rows.iter().filter(|row| row.event == event) {
        let task = format!("{}, ring {}{}", row.task, row.ring, width(row.bits));
        let line = row.place.line.clone();
        let frames = [Some(task), Some(row.place.symbol.clone()), line, Some(instruction(row))];
        let cpu = named(profile.result, row.cpu);
        root.add(cpu.into_iter().chain(frames.into_iter().flatten()), row.count);
    }
    Flame {
        title: format!("Where {} samples lie: task, function, line, instruction", count.event),
        unit: "samples".to_string(),
        frames: root.frames(),
    }
}

fn instruction(row: &Row) -> String {
    let place = row
        .place
        .offset
        .map_or_else(|| format!("{:#x}", row.address), |offset| format!("+{offset:#x}"));
    format!("{place} {}", row.place.instruction).trim_end().to_string()
}

#[derive(Default)]
struct Tree {
    count: u64,
    inner: BTreeMap<String, Tree>,
}

impl Tree {
    fn add(&mut self, frames: impl Iterator<Item = String>, count: u64) {
        self.count += count;
        let mut place = self;
        for frame in frames {
            place = place.inner.entry(frame).or_default();
            place.count += count;
        }
    }

    fn frames(self) -> Vec<Frame> {
        let frame =
            |(name, tree): (String, Self)| Frame { name, count: tree.count, inner: tree.frames() };
        self.inner.into_iter().map(frame).collect()
    }
}

fn symbols(profile: &Profile, event: usize, count: &SampledCount) -> Part {
    let total = profile.total(event);
    let row = |one: &crate::samples::SymbolCount| {
        vec![
            Cell::code(&*one.symbol),
            Cell::text(&*one.task),
            Cell::text(format!("{}{}", one.ring, width(one.bits))),
            Cell::text(one.count.to_string()),
            Cell::bar(percent(one.count, total), share(one.count, total)),
        ]
    };
    let rows: Vec<Vec<Cell>> = profile.symbols(event).iter().map(row).collect();
    table(
        &format!("{} by function or label", count.event),
        &["function", "task", "ring", "samples", "share"],
        3,
        rows,
    )
}

/// Samples by file and line, where these are known.
fn source_lines(profile: &Profile, event: usize, count: &SampledCount) -> Option<Part> {
    let total = profile.total(event);
    let mut lines: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in profile.rows.iter().filter(|row| row.event == event) {
        if let Some(line) = &row.place.line {
            *lines.entry((line, &row.place.symbol)).or_default() += row.count;
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(line, count)| (std::cmp::Reverse(*count), *line));
    let row = |((line, symbol), count): &((&str, &str), u64)| {
        let bar = Cell::bar(percent(*count, total), share(*count, total));
        vec![Cell::code(*line), Cell::code(*symbol), Cell::text(count.to_string()), bar]
    };
    let rows: Vec<Vec<Cell>> = lines.iter().map(row).collect();
    (!rows.is_empty()).then(|| {
        let caption = format!("{} by source line", count.event);
        let filter = rows.len() > 20;
        let columns = [("line", false), ("function", false), ("samples", true), ("share", true)];
        let columns = columns.map(|(name, number)| (name.to_string(), number)).into();
        Part::Table(Table { caption, columns, rows, filter })
    })
}

/// The branches that were recorded before the samples, if the item requested them.
fn branches(profile: &Profile) -> Option<Part> {
    let total = profile.edges.iter().map(|edge| edge.seen.count).sum();
    let row = |edge: &EdgeRow| {
        vec![
            Cell::code(edges::text(&edge.from, edge.seen.from.0)),
            Cell::code(&*edge.from.instruction),
            Cell::code(edges::text(&edge.to, edge.seen.to.0)),
            Cell::text(&*edge.task),
            Cell::text(edge.seen.count.to_string()),
            Cell::bar(percent(edge.seen.count, total), share(edge.seen.count, total)),
            Cell::text(edge.mispredicted().map_or(String::new(), |part| format!("{part:.1} %"))),
            Cell::text(edge.cycles().map_or(String::new(), |cycles| format!("{cycles:.1}"))),
        ]
    };
    let rows: Vec<Vec<Cell>> = profile.edges.iter().map(row).collect();
    let head =
        ["branch", "instruction", "to", "task", "recorded", "share", "mispredicted", "cycles"];
    (!rows.is_empty()).then(|| table("Branches recorded before the samples", &head, 4, rows))
}

/// The samples of each event at an address.
fn counts_at(profile: &Profile, address: u64) -> Vec<Option<(String, f64)>> {
    let of = |event: usize| {
        let rows = profile.rows.iter().filter(|row| row.event == event && row.address == address);
        let count: u64 = rows.map(|row| row.count).sum();
        (count > 0).then(|| (count.to_string(), share(count, profile.total(event))))
    };
    (0..profile.result.events.len()).map(of).collect()
}

fn annotated(profile: &Profile, listing: &Listing) -> Code {
    let first = listing.rows.first().map_or(0, |row| row.address);
    let rows = listing.rows.iter().map(|row| Instruction {
        label: row.label.clone(),
        at: format!("{:x}", row.address.wrapping_sub(first)),
        bytes: row.bytes.clone(),
        text: row.text.clone(),
        line: row.line.clone().unwrap_or_default(),
        counts: counts_at(profile, row.address),
    });
    Code {
        caption: format!("{}, from {first:#x}: samples at each instruction", listing.name),
        counts: profile.result.events.iter().map(|event| event.event.clone()).collect(),
        rows: rows.collect(),
    }
}

/// Instructions that were sampled and are in no listing: their code is known one by one, if at all.
fn unlisted(profile: &Profile) -> Option<Code> {
    let listed = |address: u64| {
        profile.listings.iter().any(|listing| listing.rows.iter().any(|row| row.address == address))
    };
    let mut rows: BTreeMap<u64, &Row> = BTreeMap::new();
    profile.rows.iter().filter(|row| !listed(row.address)).for_each(|row| {
        rows.entry(row.address).or_insert(row);
    });
    let row = |row: &&Row| Instruction {
        at: format!("{:x}", row.address),
        text: row.place.instruction.clone(),
        line: [Some(row.place.symbol.clone()), row.place.line.clone()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", "),
        counts: counts_at(profile, row.address),
        ..Instruction::default()
    };
    (!rows.is_empty()).then(|| Code {
        caption: "Sampled instructions whose function is not known as a whole".to_string(),
        counts: profile.result.events.iter().map(|event| event.event.clone()).collect(),
        rows: rows.values().map(row).collect(),
    })
}
