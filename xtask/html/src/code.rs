//! Machine code, with what was counted at each instruction.

use crate::model::{Code, Instruction};
use crate::{short, table};
use maud::{Markup, html};

/// The instructions as a table.
pub fn render(code: &Code) -> Markup {
    let lines = code.rows.iter().any(|row| !row.line.is_empty());
    let columns = 3 + code.counts.len() + usize::from(lines);
    html! {
        div.scroll tabindex="0" role="group" aria-label=(code.caption) {
            table.code {
                caption { (code.caption) }
                thead {
                    tr {
                        @for name in &code.counts { th.n scope="col" { (name) } }
                        th.n scope="col" { "offset" } th scope="col" { "bytes" } th scope="col" { "instruction" }
                        @if lines { th scope="col" { "source" } }
                    }
                }
                tbody {
                    @for row in &code.rows {
                        @if let Some(label) = &row.label { tr.label { th colspan=(columns) scope="rowgroup" { (label) ":" } } }
                        (self::row(code, row, lines))
                    }
                }
            }
        }
    }
}

fn row(code: &Code, row: &Instruction, lines: bool) -> Markup {
    html! {
        tr {
            @for index in 0..code.counts.len() {
                @match row.counts.get(index).and_then(Option::as_ref) {
                    Some((text, share)) => {
                        td.n.bar style=(format!("--p:{}%", short(share.clamp(0.0, 1.0) * 100.0, 1))) { (text) }
                    }
                    None => { td.n {} }
                }
            }
            td.n.at { (row.at) } td.by { (row.bytes) } td.in { (row.text) }
            @if lines { td.ln { (table::lines(&row.line)) } }
        }
    }
}
