//! Tables.

use crate::model::{Cell, Table, Tone};
use maud::{Markup, html};

/// A table in a frame that scrolls by itself where it is wider than the page.
pub fn render(table: &Table) -> Markup {
    let filter = table.filter.then_some("");
    html! {
        div.scroll tabindex="0" role="group" aria-label=(table.caption) {
            table.sort data-filter=[filter] {
                @if !table.caption.is_empty() { caption { (table.caption) } }
                thead { tr { @for (head, number) in &table.columns {
                            @if head.is_empty() { td {} } @else { th.n[*number] scope="col" { (head) } }
                        } } }
                tbody { @for row in &table.rows { (self::row(table, row)) } }
            }
        }
    }
}

fn row(table: &Table, row: &[Cell]) -> Markup {
    html! {
        tr {
            @for (index, cell) in row.iter().enumerate() {
                @let number = table.columns.get(index).is_some_and(|(_, number)| *number);
                (self::cell(cell, number, index == 0))
            }
        }
    }
}

fn cell(cell: &Cell, number: bool, first: bool) -> Markup {
    let text = html! {
        @if cell.tone != Tone::Plain { span.tone.(cell.tone.class()) { (cell.tone.sign()) " " (lines(&cell.text)) } }
        @else if cell.code { code { (lines(&cell.text)) } }
        @else { (lines(&cell.text)) }
    };
    let bar =
        cell.share.map(|share| format!("--p:{}%", crate::short(share.clamp(0.0, 1.0) * 100.0, 1)));
    html! {
        @if first && !number { th scope="row" style=[bar] { (text) } }
        @else { td.n[number].bar[bar.is_some()] style=[bar] { (text) } }
    }
}

/// A text whose lines stay lines.
pub fn lines(text: &str) -> Markup {
    html! {
        @for (index, line) in text.lines().enumerate() {
            @if index > 0 { br; }
            (line)
        }
    }
}
