//! For a terminal.

use super::{
    both, interval, listed, number, percent, shared_notes, signed, state_word, summary, test,
    untold, word,
};
use crate::compare::judge::Outcome;
use crate::compare::{Comparison, FigureCompared, ItemState};
use crate::primitives::style::{ERROR, FAINT, GOOD, WARNING, paint};
use crate::primitives::table::{Width, empty, fit};
use crate::text::printable;
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};
use std::fmt::Write;

/// Renders it.
pub(super) fn render(comparison: &Comparison, all: bool, width: Width) -> String {
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(out, "{label}: {}", printable(text));
    };
    line("old", &comparison.old);
    line("new", &comparison.new);
    for one in &comparison.differences {
        line(&paint(WARNING, "differs"), &format!("{}: {}, now {}", one.what, one.old, one.new));
    }
    comparison.notes.iter().for_each(|note| line(&paint(WARNING, "note"), note));
    test(comparison).iter().for_each(|test| line("test", test));
    let table = table(comparison, all);
    if table.row_count() > 0 {
        let _ = writeln!(out, "{}", fit(table, width));
    }
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "{label}: {}", printable(text));
    };
    for item in comparison.items.iter().filter(|item| item.state != ItemState::Both) {
        let text = match &item.notes[..] {
            [] => item.name.clone(),
            notes => format!("{}: {}", item.name, notes.join("; ")),
        };
        let style = if item.state == ItemState::Failed { ERROR } else { WARNING };
        line(&paint(style, state_word(item.state)), &text);
    }
    for (note, names) in shared_notes(comparison) {
        line(&paint(FAINT, "item"), &format!("{}: {note}", listed(&names, str::to_owned)));
    }
    for (outcome, text) in untold(comparison) {
        line(&paint(WARNING, word(outcome)), &text);
    }
    let (style, verdict) = if comparison.is_worse() { (ERROR, "WORSE") } else { (GOOD, "pass") };
    line(&paint(style, verdict), &summary(comparison));
    out
}

fn is_shown(figure: &FigureCompared, all: bool) -> bool {
    let quiet = matches!(figure.compared.outcome, Outcome::Equal | Outcome::NoChangeShown);
    // What is not compared has a line of its own, with the reason.
    let told = figure.compared.outcome == Outcome::NotCompared;
    if told { false } else { all || !quiet }
}

fn table(comparison: &Comparison, all: bool) -> Table {
    let mut table = empty();
    table.set_header(["figure", "old", "new", "change", "", "interval", "allowed", "worse", ""]);
    for index in 1..=6 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for item in &comparison.items {
        let shown: Vec<_> = item.figures.iter().filter(|figure| is_shown(figure, all)).collect();
        if shown.is_empty() {
            continue;
        }
        table.add_row([Cell::new(printable(&item.name)).add_attribute(Attribute::Bold)]);
        shown.into_iter().for_each(|figure| {
            table.add_row(row(figure));
        });
    }
    table
}

fn row(figure: &FigureCompared) -> Vec<Cell> {
    let [old, new] = both(figure);
    let compared = &figure.compared;
    let changed = compared.change != 0.0;
    let outcome = Cell::new(word(compared.outcome));
    let outcome = match compared.outcome {
        Outcome::Worse => outcome.fg(Color::Red),
        Outcome::Better => outcome.fg(Color::Green),
        Outcome::Undecided => outcome.fg(Color::Yellow),
        _ => outcome,
    };
    vec![
        Cell::new(format!("  {}", printable(&figure.name))),
        Cell::new(old),
        Cell::new(new),
        Cell::new(if changed { signed(compared.change) } else { String::new() }),
        Cell::new(if changed { percent(figure) } else { String::new() }),
        Cell::new(interval(figure)),
        Cell::new(number(compared.limit)),
        Cell::new(compared.worse),
        outcome,
    ]
}
