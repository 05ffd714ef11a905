//! What was sampled: what became of the overflows, and where they were.

mod groups;
mod memory;
mod processors;

use crate::collect::Report;
use crate::context::Context;
use crate::kinds::{failed, tasks};
use crate::primitives::style::{FAINT, STRONG, WARNING, paint};
use crate::primitives::table::{Width, empty, fit};
use crate::samples::data::LineCount;
use crate::samples::edges::{self, EdgeRow};
use crate::samples::{Profile, retired, width};
use comfy_table::{Cell, CellAlignment, Table};
use protocol::job::sampling::{Delivery, OnFull};
use protocol::record::{SampleResult, SampledCount, Schedule, TaskEnd, TimerResult};
use std::fmt::Write;

/// Addresses of one event that are shown.
const MAX_ROWS: usize = 20;

/// One section for each item.
pub(crate) fn sections(report: &Report, context: &Context) -> String {
    let resolver = context.resolver(report);
    Profile::of(report, &resolver).iter().map(|one| section(one, context.width)).collect()
}

fn section(profile: &Profile, columns: Width) -> String {
    let result = profile.result;
    let mut out = String::new();
    // Writing to a String does not fail, here and below.
    let name = paint(STRONG, &result.name);
    let _ = writeln!(out, "{} {name}{}", result.item, failed(result.verdict));
    let mut say = |text: &str| {
        let _ = writeln!(out, "{}", paint(FAINT, text));
    };
    let emulated = if result.emulated { ", emulated PMU" } else { "" };
    let delivery = match result.delivery {
        Delivery::Fixed => "a vector",
        Delivery::Nmi => "NMI",
    };
    say(&format!("sampled by {delivery}{emulated}; counters: {}", handling(result)));
    let capability = &result.capability;
    say(&format!("skid: {}; data address: {}", capability.skid, capability.data_address));
    for one in &result.events {
        if let Some(skid) = &one.skid {
            say(&format!("skid of {}: {skid}", one.event));
        }
    }
    result.events.iter().filter_map(retired::line).for_each(|line| say(&line));
    if let Some(timer) = &result.timer {
        say(&intervals(timer));
    }
    if let Some(schedule) = &result.schedule {
        let _ = writeln!(out, "{}", fit(tasks(schedule), columns));
    }
    let _ = writeln!(out, "{}", fit(events(result), columns));
    if let Some(table) = processors::accounts(result) {
        let _ = writeln!(out, "{}", fit(table, columns));
    }
    let energy = result.energy.iter().map(crate::kinds::energy::line);
    for line in energy.chain(result.uncore.iter().map(crate::kinds::uncore::line)) {
        let _ = writeln!(out, "{line}");
    }
    for warning in warnings(result) {
        let _ = writeln!(out, "{}: {warning}", paint(WARNING, "note"));
    }
    for one in not_counted(result) {
        let _ = writeln!(out, "{}: {one}", paint(WARNING, "not counted"));
    }
    for (event, count) in result.events.iter().enumerate() {
        if profile.total(event) > 0 {
            if let Some(table) = processors::tasks(profile, event, &count.event) {
                let _ = writeln!(out, "{}", fit(table, columns));
                more(&mut out, profile.by_task(event).len(), "tasks");
            }
            let _ = writeln!(out, "{}", fit(by_symbol(profile, event, count), columns));
            more(&mut out, profile.symbols(event).len(), "symbols");
            let _ = writeln!(out, "{}", fit(by_address(profile, event), columns));
            let rows = profile.rows.iter().filter(|row| row.event == event).count();
            more(&mut out, rows, "addresses");
            for (what, lines) in [("line", profile.lines(event)), ("page", profile.pages(event))] {
                if !lines.is_empty() {
                    let _ = writeln!(out, "{}", fit(by_line(what, &lines), columns));
                }
                more(&mut out, lines.len(), &format!("{what}s"));
            }
            for table in memory::tables(profile, event) {
                let _ = writeln!(out, "{}", fit(table, columns));
            }
        }
    }
    if !profile.edges.is_empty() {
        let _ = writeln!(out, "{}", fit(by_edge(&profile.edges), columns));
        more(&mut out, profile.edges.len(), "branches");
    }
    for table in groups::tables(profile) {
        let _ = writeln!(out, "{}", fit(table, columns));
    }
    let outcomes = (memory::outcomes(profile), result.outcomes.len(), "branches");
    for (table, rows, what) in [outcomes, (memory::stacks(profile), profile.stacks.len(), "stacks")]
    {
        if let Some(table) = table {
            let _ = writeln!(out, "{}", fit(table, columns));
            more(&mut out, rows, what);
        }
    }
    out
}

/// How many rows of a table there would be beyond [`MAX_ROWS`].
fn more(out: &mut String, rows: usize, what: &str) {
    if let Some(more) = rows.checked_sub(MAX_ROWS).filter(|&more| more > 0) {
        let _ = writeln!(out, "  and {more} more {what}");
    }
}

pub(crate) fn intervals(timer: &TimerResult) -> String {
    let mut text = format!("timer: {} ns requested, {} ns set", timer.asked_ns, timer.set_ns);
    if let Some([least, median, most]) = timer.measured_ns {
        let _ = write!(text, ", {least} to {most} ns measured (median {median})");
    }
    text
}

/// What is doubtful or was left out.
pub(crate) fn warnings(result: &SampleResult) -> Vec<String> {
    let mut said = Vec::new();
    if result.throttled > 0 {
        let times = result.throttled;
        let eased = match result.eased {
            0 => String::new(),
            eased => format!(", and halved {eased} times when the rate fell again"),
        };
        said.push(format!("samples were too frequent: periods doubled {times} times{eased}"));
    }
    if let Some(times) = result.timer.as_ref().map(|timer| timer.doubled).filter(|&n| n > 0) {
        said.push(format!("ticks were late: the timer's interval doubled {times} times"));
    }
    if result.elsewhere > 0 {
        let count = result.elsewhere;
        said.push(format!("{count} overflows at addresses that did not fit into the histogram"));
    }
    if result.data_elsewhere > 0 {
        let count = result.data_elsewhere;
        said.push(format!("{count} data addresses did not fit into their histogram"));
    }
    if let Some(branches) = result.branches.as_ref().filter(|branches| branches.elsewhere > 0) {
        let count = branches.elsewhere;
        said.push(format!("{count} branches did not fit into their table"));
    }
    if result.branches.as_ref().is_some_and(|branches| branches.edges.is_empty()) {
        said.push("no branch of the tasks was in the records at any sample".to_string());
    }
    if result.sources_elsewhere + result.outcomes_elsewhere > 0 {
        let count = result.sources_elsewhere + result.outcomes_elsewhere;
        said.push(format!("{count} sources and outcomes did not fit into their tables"));
    }
    if let Some(stacks) = result.stacks.as_ref().filter(|stacks| stacks.elsewhere > 0) {
        said.push(format!("{} call stacks did not fit into their table", stacks.elsewhere));
    }
    for one in result.events.iter().filter(|one| one.filtered > 0) {
        said.push(format!(
            "{}: {} samples were of other kinds, and are not shown",
            one.event, one.filtered
        ));
    }
    for one in result.events.iter().filter(|one| one.lost > 0) {
        // IBS has no buffer: such a sample has no address (erratum 1197, and IbsRipInvalid).
        let why = match one.counter.as_ref().is_some_and(|name| name.starts_with("ibs")) {
            true => "samples were left out, because the processor gave them no address",
            false => "records were lost, because the processor found their buffer full",
        };
        said.push(format!("{}: {} {why}", one.event, one.lost));
    }
    if result.dropped > 0 {
        said.push(format!("the log was full: {} samples dropped", result.dropped));
    }
    if result.stopped && result.on_full == OnFull::Stop {
        said.push("the log was full and stopped the counters before the end".to_string());
    }
    for one in &result.events {
        said.extend(one.qualified.iter().map(|what| format!("{}, {what}", one.event)));
        said.extend(one.remarks.iter().map(|remark| format!("{}: {remark}", one.event)));
    }
    said
}

/// What becomes of the counters while a sample is taken, without the word itself.
pub(crate) fn handling(result: &SampleResult) -> &str {
    result.handling.strip_prefix("counters ").unwrap_or(&result.handling)
}

/// Events that were neither sampled by nor counted beside, each with the reason.
pub(crate) fn not_counted(result: &SampleResult) -> Vec<String> {
    let all = result.uncounted.iter().chain(&result.unread);
    all.map(|one| format!("{}: {}", one.event, one.reason)).collect()
}

fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = empty();
    table.set_header(header);
    for &index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn tasks(schedule: &Schedule) -> Table {
    let mut table = table(&["task", "end", "turns", "switches", "TSC ticks"], &[2, 3, 4]);
    for one in &schedule.tasks {
        let end = match (one.end, &one.fault) {
            (TaskEnd::Exit, _) => "exit".to_string(),
            (TaskEnd::Limit, _) => "ended at its limit".to_string(),
            (TaskEnd::Fault, Some(fault)) => tasks::text::sentence(fault),
            (TaskEnd::Fault, None) => "an exception".to_string(),
        };
        let numbers = [one.turns, one.switches, one.time].map(Cell::new);
        let name = tasks::text::label(one);
        table.add_row([Cell::new(name), Cell::new(end)].into_iter().chain(numbers));
    }
    table
}

fn events(result: &SampleResult) -> Table {
    let header =
        ["event", "period", "overflows", "sampled", "dropped", "throttled", "rest", "counted"];
    let mut table = table(&header, &[1, 2, 3, 4, 5, 6, 7]);
    for one in &result.events {
        let period = period(one);
        let witness = one.witness.map(|count| count.to_string()).unwrap_or_default();
        let numbers = [one.overflows, one.samples, one.dropped, one.throttled, one.rest];
        let mut cells = vec![Cell::new(&one.event), Cell::new(period)];
        cells.extend(numbers.map(Cell::new));
        cells.push(Cell::new(witness));
        table.add_row(cells);
    }
    table
}

/// The period of an event, and what throttling made of it; of one that is only counted there is none.
pub(crate) fn period(one: &SampledCount) -> String {
    match one.last_period {
        _ if !one.is_sampled() => "none".to_string(),
        Some(last) => format!("{} to {last}", one.period),
        None => one.period.to_string(),
    }
}

/// A part of `total` in percent.
pub(crate) fn share(count: u64, total: u64) -> String {
    format!("{:.1} %", 100.0 * count as f64 / total.max(1) as f64)
}

fn by_symbol(profile: &Profile, event: usize, count: &SampledCount) -> Table {
    let total = profile.total(event);
    let symbols = profile.symbols(event).into_iter().take(MAX_ROWS);
    if profile.result.schedule.is_none() {
        // One task, in ring 0.
        let mut table = table(&[&count.event, "samples", "share"], &[1, 2]);
        for one in symbols {
            let symbol = format!("{}{}", one.symbol, width(one.bits));
            let cells = [symbol, one.count.to_string(), share(one.count, total)];
            table.add_row(cells.map(Cell::new));
        }
        return table;
    }
    let mut table = table(&[&count.event, "task", "ring", "samples", "share"], &[2, 3, 4]);
    for one in symbols {
        let ring = format!("{}{}", one.ring, width(one.bits));
        let samples = one.count.to_string();
        let cells = [one.symbol, one.task, ring, samples, share(one.count, total)];
        table.add_row(cells.map(Cell::new));
    }
    table
}

fn by_address(profile: &Profile, event: usize) -> Table {
    let header = ["address", "in", "instruction", "samples", "share", ""];
    let mut table = table(&header, &[0, 3, 4]);
    let total = profile.total(event);
    for row in profile.rows.iter().filter(|row| row.event == event).take(MAX_ROWS) {
        let place = &row.place;
        let offset = place.offset.map(|offset| format!("+{offset:#x}")).unwrap_or_default();
        let cells = [
            format!("{:#x}", row.address),
            format!("{}{offset}", place.symbol),
            place.instruction.clone(),
            row.count.to_string(),
            share(row.count, total),
            place.line.clone().unwrap_or_default(),
        ];
        table.add_row(cells.map(Cell::new));
    }
    table
}

/// By branch; shares are of all branches in the records.
fn by_edge(edges: &[EdgeRow]) -> Table {
    let head =
        ["branch", "instruction", "to", "task", "recorded", "share", "mispredicted", "cycles"];
    let mut table = table(&head, &[4, 5, 6, 7]);
    let total = edges.iter().map(|edge| edge.seen.count).sum();
    for edge in edges.iter().take(MAX_ROWS) {
        let cells = [
            edges::text(&edge.from, edge.seen.from.0),
            edge.from.instruction.clone(),
            edges::text(&edge.to, edge.seen.to.0),
            edge.task.clone(),
            edge.seen.count.to_string(),
            share(edge.seen.count, total),
            edge.mispredicted().map_or(String::new(), |part| format!("{part:.1} %")),
            edge.cycles().map_or(String::new(), |cycles| format!("{cycles:.1}")),
        ];
        table.add_row(cells.map(Cell::new));
    }
    table
}

/// By cache line or page of the data; shares are of the samples that have a data address.
fn by_line(what: &str, lines: &[LineCount]) -> Table {
    let head = [&*format!("data {what}"), "addresses", "samples", "share", "latency", "longest"];
    let told = lines.iter().any(|line| line.latency.is_some());
    let head = &head[..if told { 6 } else { 4 }];
    let mut table = table(head, &[0, 1, 2, 3, 4, 5]);
    let total = lines.iter().map(|line| line.count).sum();
    for line in lines.iter().take(MAX_ROWS) {
        let cells = [
            format!("{:#x}", line.line),
            line.addresses.to_string(),
            line.count.to_string(),
            share(line.count, total),
            line.mean().map_or(String::new(), |cycles| format!("{cycles:.1}")),
            line.longest.map_or(String::new(), |cycles| cycles.to_string()),
        ];
        table.add_row(cells[..head.len()].iter().map(Cell::new));
    }
    table
}
