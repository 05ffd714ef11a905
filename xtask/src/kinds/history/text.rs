//! What was looked at cycle by cycle.

use crate::collect::Report;
use crate::kinds::failed;
use crate::primitives::number;
use crate::primitives::plot::PlotLine;
use crate::primitives::point::{Data, Point};
use crate::primitives::style::{FAINT, STRONG, WARNING, paint};
use crate::primitives::table::{Width, empty, fit};
use crate::text::printable;
use comfy_table::{Cell, CellAlignment, Table};
use protocol::record::{HistoryResult, HistorySeries, StoppedBy};
use std::fmt::Write;

/// One section for each item.
pub(crate) fn sections(report: &Report, columns: Width) -> String {
    report.histories().map(|history| section(history, columns)).collect()
}

fn section(history: &HistoryResult, columns: Width) -> String {
    let mut out = String::new();
    // Writing to a String does not fail, here and below.
    let (name, failed) = (paint(STRONG, &history.name), failed(history.verdict));
    let _ = writeln!(out, "{} {name}{failed}", history.item);
    let _ = writeln!(out, "{}", paint(FAINT, &heading(history)));
    let width = history.series.iter().map(|one| label(history, one).chars().count()).max();
    for one in &history.series {
        plot(&mut out, history, one, width.unwrap_or(0));
    }
    if history.series.iter().any(|one| !one.each.is_empty()) {
        let _ = writeln!(out, "{}", fit(rows(history), columns));
    }
    notes(&mut out, history);
    out
}

/// What was run, from where the rows count, and what stopped the counters.
pub(crate) fn heading(history: &HistoryResult) -> String {
    let clock = &history.clock;
    let runs = match history.runs {
        1 => "1 run".to_string(),
        runs => format!("{runs} runs"),
    };
    let mut text = format!("in which {clock} events happen: {runs} for each row");
    if history.step > 1 {
        let _ = write!(text, ", {} {clock} a row", history.step);
    }
    let range = |values: &mut dyn Iterator<Item = u64>| {
        let all: Vec<u64> = values.collect();
        let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
        match (least.unwrap_or(0), most.unwrap_or(0)) {
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        }
    };
    let passes = || history.passes.iter();
    match history.end_to_end {
        true => text.push_str("; from the switch that starts the counters on"),
        false => {
            let front = range(&mut passes().map(|pass| pass.front));
            let _ = write!(text, "; {front} {clock} of the code before it are subtracted");
        }
    }
    let ends: Vec<u64> = passes().filter_map(|pass| pass.end).collect();
    match ends[..] {
        [] => text.push_str("; the rows end before the snippet"),
        _ => {
            let _ = write!(text, "; the snippet ends at {}", range(&mut ends.into_iter()));
        }
    }
    let skid = range(&mut passes().flat_map(|pass| pass.skid));
    match history.stopped_by {
        StoppedBy::Freeze if skid == "0" => text.push_str("; frozen by the processor"),
        StoppedBy::Freeze => {
            let _ = write!(text, "; frozen by the processor {skid} {clock} late");
        }
        StoppedBy::Handler => {
            let _ = write!(text, "; stopped by the interrupt's handler {skid} {clock} late");
        }
    }
    text
}

fn label(history: &HistoryResult, one: &HistorySeries) -> String {
    let emulated = if history.emulated { " (emulated)" } else { "" };
    format!("{}{emulated}", one.event)
}

/// One character a row, its height what happened in it; `|` where the snippet ends.
fn plot(out: &mut String, history: &HistoryResult, one: &HistorySeries, width: usize) {
    let pass = history.passes.get(one.counting.pass as usize);
    let end = pass.and_then(|pass| pass.end).map(|end| (end / u64::from(history.step)) as usize);
    let values: Vec<Option<f64>> = one.each.iter().copied().map(Some).collect();
    let (name, step) = (&*label(history, one), history.step);
    let plot = PlotLine { name, values: &values, least_full: 0.0, step, end };
    plot.write(out, width);
}

/// A row for each stretch in which every cycle was like the one before.
fn rows(history: &HistoryResult) -> Table {
    let mut table = empty();
    let mut head = vec![history.clock.clone()];
    for one in &history.series {
        head.extend([label(history, one), "sum".to_string()]);
    }
    let columns = head.len();
    let is_named = history.places.iter().any(|place| place.function.is_some());
    head.extend(is_named.then(|| "at".to_string()));
    table.set_header(head);
    for index in 0..columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let count = history.series.iter().map(|one| one.each.len()).max().unwrap_or(0);
    let alike = |a: usize, b: usize| {
        function(history, a) == function(history, b)
            && history.series.iter().all(|one| {
                one.each.get(a) == one.each.get(b) && is_certain(one, a) && is_certain(one, b)
            })
    };
    let mut first = 0;
    while first < count {
        let mut last = first;
        while last + 1 < count && alike(first, last + 1) {
            last += 1;
        }
        let mut cells = cells(history, first, last);
        cells.extend(is_named.then(|| Cell::new(places(history, first, last))));
        table.add_row(cells);
        first = last + 1;
    }
    table
}

/// The function in which a row began.
fn function(history: &HistoryResult, row: usize) -> Option<&str> {
    history.places.get(row)?.function.as_deref()
}

/// Where rows of one function began: the function, and the line of the first one; if they have several, the last one's too.
fn places(history: &HistoryResult, first: usize, last: usize) -> String {
    let line = |row: usize| {
        let place = history.places.get(row)?.location.as_deref()?;
        Some(place.rsplit('/').next().unwrap_or(place))
    };
    let Some(function) = function(history, first) else { return String::new() };
    let text = match (line(first), line(last)) {
        (Some(from), Some(to)) if from != to => format!("{function}, {from} to {to}"),
        (Some(from), _) => format!("{function}, {from}"),
        (None, _) => function.to_string(),
    };
    printable(&text).into_owned()
}

/// Whether all runs of a row agreed.
fn is_certain(one: &HistorySeries, row: usize) -> bool {
    one.min.get(row) == one.max.get(row)
}

fn cells(history: &HistoryResult, first: usize, last: usize) -> Vec<Cell> {
    let step = u64::from(history.step);
    let begin = |row: usize| row as u64 * step + 1;
    let end = |row: usize| (row as u64 + 1) * step;
    let place = match (begin(first), end(last)) {
        (from, to) if from == to => from.to_string(),
        (from, to) => format!("{from}-{to}"),
    };
    let mut cells = vec![Cell::new(place)];
    for one in &history.series {
        let each = one.each.get(first).map_or(String::new(), |value| match last > first {
            true if *value != 0.0 => format!("{} each", number(*value)),
            _ => number(*value),
        });
        let sum = one.median.get(last).map_or(String::new(), |value| match is_certain(one, last) {
            true => number(*value),
            false => {
                format!("{} ({}-{})", number(*value), number(one.min[last]), number(one.max[last]))
            }
        });
        cells.extend([Cell::new(each), Cell::new(sum)]);
    }
    cells
}

fn notes(out: &mut String, history: &HistoryResult) {
    let mut say = |style, label: &str, text: String| {
        let _ = writeln!(out, "{}: {text}", paint(style, label));
    };
    for one in &history.uncounted {
        say(WARNING, "not counted", format!("{}: {}", one.event, one.reason));
    }
    for text in &history.remarks {
        say(WARNING, "doubtful", text.clone());
    }
    for one in &history.series {
        for text in &one.counting.remarks {
            say(WARNING, "doubtful", format!("{}: {text}", one.event));
        }
    }
    for one in &history.controls {
        let label = if one.applied { "applied" } else { "not available" };
        say(
            if one.applied { FAINT } else { WARNING },
            label,
            format!("{}: {}", one.option, one.note),
        );
    }
    if !history.restored.is_empty() {
        let text = format!("it changed {}, which was restored", history.restored.join(", "));
        say(FAINT, "restored", text);
    }
}

/// Figures for CSV: event, median, least, greatest, whether all runs agreed. Of each row the sum, and what happened in it.
pub(crate) fn figures(history: &HistoryResult) -> Vec<(String, [f64; 3], bool)> {
    let mut figures = Vec::new();
    for one in &history.series {
        let rows = one.median.iter().zip(&one.min).zip(&one.max).zip(&one.each);
        for (row, (((&median, &min), &max), &each)) in (1u64..).zip(rows) {
            let at = row * u64::from(history.step);
            let (event, clock) = (&one.event, &history.clock);
            figures.push((format!("{event} up to {clock} {at}"), [median, min, max], min == max));
            figures.push((format!("{event} in {clock} {at}"), [each; 3], min == max));
        }
    }
    figures
}

/// The item as a test point. What happened in each row is one text, with spaces between.
pub(crate) fn point(history: &HistoryResult) -> Point {
    let mut point = Point::new(&history.name, true);
    for one in &history.series {
        let pass = history.passes.get(one.counting.pass as usize);
        let front = pass.map_or(0, |pass| pass.front);
        let end = pass.and_then(|pass| pass.end).map_or("~".to_string(), |end| end.to_string());
        let each: Vec<String> = one.each.iter().map(|&value| number(value)).collect();
        let data = Data::new().text("event", &one.event).text("clock", &history.clock);
        let data = data.plain("step", history.step).plain("front", front).plain("end", end);
        point.push("history", data.text("each", &each.join(" ")));
    }
    point.uncounted(&history.uncounted)
}

#[cfg(test)]
pub(crate) mod tests;
