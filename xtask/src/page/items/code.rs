//! An item's machine code, with offsets.

use crate::disassembly::{all, hex, unhex};
use crate::document::Document;
use crate::job::AboutCode;
use html_report::model::{Code, Instruction, Part};

/// Instructions of one part that are shown.
const MAX_ROWS: usize = 400;

/// The code of the item, as far as the report says it.
pub(super) fn parts(document: &Document, item: u32) -> Vec<Part> {
    let code = document.about(item).map(|about| &about.code[..]).unwrap_or_default();
    code.iter().map(|one| Part::Code(part(one))).collect()
}

fn part(one: &AboutCode) -> Code {
    let bytes = unhex(&one.bytes).unwrap_or_default();
    let decoded = all(&bytes, one.address.0, one.bits, MAX_ROWS);
    let more = one.cut || decoded.last().is_some_and(|last| last.offset + last.bytes < bytes.len());
    let row = |one: &crate::disassembly::Decoded| Instruction {
        at: format!("{:x}", one.offset),
        bytes: hex(&bytes[one.offset..(one.offset + one.bytes).min(bytes.len())]),
        text: one.text.clone(),
        ..Instruction::default()
    };
    let wide = if one.bits == 32 { ", 32-bit code" } else { "" };
    let cut = if more { ", its beginning" } else { "" };
    let caption = format!("{}{wide}{cut}", one.part);
    Code { caption, counts: Vec::new(), rows: decoded.iter().map(row).collect() }
}
