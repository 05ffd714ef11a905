//! An item that ended in an error.

use super::{Badge, Document, Entry, code};
use crate::kinds::page::note;
use crate::kinds::tasks::text as tasks;
use html_report::model::{Cell, Part, Table, Tone};
use protocol::record::{ErrorCode, ErrorRecord, Registers};

pub(super) fn of(document: &Document, error: &ErrorRecord) -> Option<Entry> {
    let number = error.item?;
    let (tone, word) = match error.code {
        ErrorCode::Skipped => (Tone::Warn, "skipped"),
        ErrorCode::TimeLimit => (Tone::Bad, "time limit"),
        ErrorCode::StepLimit => (Tone::Bad, "step limit"),
        ErrorCode::SnippetLost => (Tone::Bad, "lost"),
        ErrorCode::Forged => (Tone::Bad, "forged"),
        ErrorCode::FirmwareChanged => (Tone::Bad, "firmware changed"),
        ErrorCode::NotRun => (Tone::Bad, "not run"),
        ErrorCode::SnippetFault => (Tone::Bad, "fault"),
        _ => (Tone::Bad, "error"),
    };
    let mut parts = vec![note(tone, word, &*error.text)];
    if let Some(fault) = &error.fault {
        parts.push(note(Tone::Plain, "where", tasks::sentence(fault)));
        parts.push(registers(&fault.registers));
    }
    parts.extend(code::parts(document, number));
    Some(Entry {
        number,
        name: error.name.clone().unwrap_or_default(),
        kind: "error",
        verdict: Badge::new(tone, word),
        figures: Vec::new(),
        parts,
        open: false,
    })
}

fn registers(r: &Registers) -> Part {
    let rows = [
        [("rip", r.rip), ("rflags", r.rflags), ("rsp", r.rsp), ("cr2", r.cr2)],
        [("rax", r.rax), ("rbx", r.rbx), ("rcx", r.rcx), ("rdx", r.rdx)],
        [("rsi", r.rsi), ("rdi", r.rdi), ("rbp", r.rbp), ("r8", r.r8)],
        [("r9", r.r9), ("r10", r.r10), ("r11", r.r11), ("r12", r.r12)],
        [("r13", r.r13), ("r14", r.r14), ("r15", r.r15), ("", r.r15)],
    ];
    let pair = |(name, value): &(&str, protocol::hex::Hex)| {
        let value = if name.is_empty() { String::new() } else { format!("{:#018x}", value.0) };
        [Cell::text(*name), Cell::code(value)]
    };
    let rows = rows.iter().map(|row| row.iter().flat_map(pair).collect()).collect();
    let columns = ["register", "value"].repeat(4).into_iter().map(|name| (name.to_string(), false));
    Part::Table(Table {
        caption: "Registers".to_string(),
        columns: columns.collect(),
        rows,
        filter: false,
    })
}
