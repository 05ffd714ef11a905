//! What was stepped through.

use crate::disassembly::listed;
use crate::kinds::exact::text::{compared, where_it_is};
use crate::kinds::page::{note, table};
use crate::primitives::number;
use crate::samples::width;
use html_report::model::{Cell, Code, Instruction, Part, Tone};
use protocol::record::{ExactCount, ExactResult};

pub(crate) fn parts(exact: &ExactResult) -> Vec<Part> {
    let filtered = if exact.filtered { ", as far as the filter counts them" } else { "" };
    let mut parts = vec![Part::Text(format!(
        "Exact counts per execution, {} stepped through{filtered}.",
        exact.per
    ))];
    for one in &exact.comparisons {
        let tone = if one.agrees { Tone::Good } else { Tone::Bad };
        let plain = anstream::adapter::strip_str(&compared(one, exact.emulated)).to_string();
        let (label, text) = plain.split_once(": ").unwrap_or(("", &plain));
        parts.push(note(tone, label, text));
    }
    let most = exact.opcodes.iter().map(|one| one.value).fold(0.0, f64::max);
    let row = |one: &ExactCount| {
        vec![Cell::code(&*one.event), Cell::bar(number(one.value), one.value / most.max(1e-9))]
    };
    if !exact.opcodes.is_empty() {
        parts.push(table(
            "Executed instructions by mnemonic",
            &["mnemonic", "executed"],
            1,
            exact.opcodes.iter().map(row).collect(),
        ));
    }
    parts.push(Part::Code(listing(exact)));
    parts
}

fn listing(exact: &ExactResult) -> Code {
    let most = exact.listing.iter().map(|row| row.value).fold(0.0, f64::max);
    let more = (exact.listed as usize).saturating_sub(exact.listing.len());
    let cut = if more > 0 { format!("; {more} more are not listed") } else { String::new() };
    let rows = exact.listing.iter().map(|row| Instruction {
        label: None,
        at: format!("{:x}", row.offset),
        bytes: row.bytes.clone(),
        text: format!("{}{}", listed(row), width(row.bits)),
        line: where_it_is(row),
        counts: vec![Some((number(row.value), row.value / most.max(1e-9)))],
    });
    Code {
        caption: format!("What was executed{cut}"),
        counts: vec!["executed".to_string()],
        rows: rows.collect(),
    }
}
