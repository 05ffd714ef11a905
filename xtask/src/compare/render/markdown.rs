//! For a comment on a pull request: GitHub Flavored Markdown.
//!
//! Names are in code spans, where nothing is taken for emphasis, a link, HTML or somebody's name. A code span ends at as
//! many backticks as it began with, and a table's cell at a `|` even within one (GFM 6.1, 4.10). A backslash in front of the `|`
//! is taken off in a table alone.

use super::{
    both, interval, listed, percent, shared_notes, signed, state_word, summary, test, untold, word,
};
use crate::compare::judge::Outcome;
use crate::compare::{Comparison, FigureCompared, ItemState};
use crate::text::printable;
use std::fmt::Write;

/// Rows of a table that a comment has at most: GitHub takes 65,536 characters.
const MAX_ROWS: usize = 200;

/// Renders it.
pub(super) fn render(comparison: &Comparison) -> String {
    let head = if comparison.is_worse() { "worse" } else { "nothing is worse" };
    // Writing to a String does not fail, here and below.
    let mut out = format!("### barecount: {head}\n\n{}.\n\n", summary(comparison));
    let _ = writeln!(out, "{} compared with {}.\n", code(&comparison.new), code(&comparison.old));
    if !comparison.differences.is_empty() {
        out += "| differs | old | new |\n| --- | --- | --- |\n";
        for one in &comparison.differences {
            let _ = writeln!(out, "| {} | {} | {} |", one.what, cell(&one.old), cell(&one.new));
        }
        out.push('\n');
    }
    figures(&mut out, comparison);
    let mut points = Vec::new();
    for item in comparison.items.iter().filter(|item| item.state != ItemState::Both) {
        let notes = item.notes.iter().map(|note| format!(": {}", code(note)));
        let notes: String = notes.collect();
        points.push(format!("{}: {}{notes}", state_word(item.state), code(&item.name)));
    }
    for (note, names) in shared_notes(comparison) {
        points.push(format!("{}: {note}", listed(&names, code)));
    }
    points.extend(comparison.notes.iter().map(|note| code(note)));
    points.extend(
        untold(comparison)
            .iter()
            .map(|(outcome, text)| format!("{}: {}", word(*outcome), code(text))),
    );
    points.extend(test(comparison));
    let more = points.len().saturating_sub(MAX_ROWS);
    points.iter().take(MAX_ROWS).for_each(|point| {
        let _ = writeln!(out, "- {point}");
    });
    if more > 0 {
        let _ = writeln!(out, "- and {more} more lines, which the other formats show");
    }
    out
}

fn figures(out: &mut String, comparison: &Comparison) {
    let quiet = |figure: &FigureCompared| {
        use Outcome::{Equal, NoChangeShown, NotCompared};
        matches!(figure.compared.outcome, Equal | NoChangeShown | NotCompared)
    };
    let mut rows: Vec<(&str, &FigureCompared)> = Vec::new();
    for item in &comparison.items {
        let shown = item.figures.iter().filter(|figure| !quiet(figure));
        rows.extend(shown.map(|figure| (&*item.name, figure)));
    }
    if rows.is_empty() {
        return;
    }
    // What is worse comes first: the rest may be cut.
    rows.sort_by_key(|(_, figure)| figure.compared.outcome);
    *out += "| item | figure | old | new | change | | interval | |\n";
    *out += "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n";
    for (item, figure) in rows.iter().take(MAX_ROWS) {
        let [old, new] = both(figure);
        let outcome = match figure.compared.outcome {
            Outcome::Worse => "**worse**",
            outcome => word(outcome),
        };
        let cells = [
            cell(item),
            cell(&figure.name),
            old,
            new,
            signed(figure.compared.change),
            percent(figure),
            interval(figure),
            outcome.to_string(),
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if rows.len() > MAX_ROWS {
        let _ = writeln!(out, "\nand {} more figures.", rows.len() - MAX_ROWS);
    }
    out.push('\n');
}

/// `text` as a code span of a table's cell.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// `text` as a code span, outside of tables.
fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A space is taken off at each end if there is one at both; and there must be something.
    let pads = text.is_empty()
        || text.starts_with('`')
        || text.ends_with('`')
        || text.starts_with(' ') && text.ends_with(' ');
    let pad = if pads { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::{cell, code};
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser};

    /// What a reader of Markdown takes a text for.
    fn read(text: &str) -> Vec<Event<'_>> {
        Parser::new_ext(text, Options::ENABLE_TABLES).collect()
    }

    fn spans<'a>(events: &'a [Event<'_>]) -> Vec<&'a str> {
        let span = |event: &'a Event<'_>| match event {
            Event::Code(text) => Some(&**text),
            _ => None,
        };
        events.iter().filter_map(span).collect()
    }

    #[test]
    fn a_bar_has_a_backslash_in_tables_alone() {
        for text in [format!("{} compared.", code("a|b")), format!("- failed: {}\n", code("a|b"))] {
            assert_eq!(spans(&read(&text)), ["a|b"], "{text}");
        }
        let row = format!("| a |\n| --- |\n| {} |\n", cell("a|b"));
        assert_eq!(spans(&read(&row)), ["a|b"], "{row}");
    }

    proptest! {
        #[test]
        fn whatever_a_name_has_is_one_code_span(name in "[ -~é]{1,40}") {
            prop_assume!(!name.trim().is_empty());
            let row = format!("| a | b |\n| --- | --- |\n| {} | 1 |\n", cell(&name));
            let events = read(&row);
            prop_assert_eq!(spans(&events), [&*name], "{}", row);
            let html = events.iter().any(|event| matches!(event, Event::Html(_) | Event::InlineHtml(_)));
            prop_assert!(!html, "{}", row);
            let point = format!("- failed: {}: {}\n", code(&name), code(&name));
            let events = read(&point);
            prop_assert_eq!(spans(&events), [&*name, &*name], "{}", point);
        }
    }
}
