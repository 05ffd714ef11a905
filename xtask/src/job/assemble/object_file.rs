//! Taking the code out of the object file.

use super::rustc::{end_label, start_label};
use super::{Failed, Message};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex};
use std::collections::HashMap;

/// The code of each of `count` texts.
pub(super) fn codes(bytes: &[u8], count: usize) -> Result<Vec<Vec<u8>>, Failed> {
    let tool = |error: object::Error| Failed::Tool(format!("the object file is broken: {error}"));
    let file = object::File::parse(bytes).map_err(tool)?;
    let mut labels = HashMap::new();
    for symbol in file.symbols() {
        if let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) {
            labels.insert(name.to_string(), (section, symbol.address()));
        }
    }
    let (mut codes, mut messages) = (Vec::new(), Vec::new());
    for index in 0..count {
        let start = labels.get(&start_label(index)).copied();
        let end = labels.get(&end_label(index)).copied();
        match code(&file, start, end).map_err(tool)? {
            Ok(code) => codes.push(code),
            Err(text) => messages.push(Message {
                source: index,
                line: 0,
                column: 1,
                text,
            }),
        }
    }
    if messages.is_empty() {
        Ok(codes)
    } else {
        Err(Failed::Messages(messages))
    }
}

type Label = Option<(SectionIndex, u64)>;

/// The bytes between two labels, or what is wrong with them.
fn code(
    file: &object::File,
    start: Label,
    end: Label,
) -> Result<Result<Vec<u8>, String>, object::Error> {
    let (Some((section, start)), Some((end_section, end))) = (start, end) else {
        return Ok(Err(
            "it hides what stands behind it (an unended .macro, .rept or .if?)".into(),
        ));
    };
    if section != end_section || end < start {
        return Ok(Err(
            "it changes the section (.section, .data, .org) and does not return".into(),
        ));
    }
    let section = file.section_by_index(section)?;
    for (offset, relocation) in section.relocations() {
        if !(start..end).contains(&offset) {
            continue;
        }
        let name = match relocation.target() {
            RelocationTarget::Symbol(index) => file.symbol_by_index(index)?.name()?.to_string(),
            _ => String::new(),
        };
        return Ok(Err(unresolved(&name)));
    }
    let data = section.data()?;
    Ok(Ok(data[start as usize..end as usize].to_vec()))
}

fn unresolved(name: &str) -> String {
    if name.is_empty() {
        return "it needs the address of its own code, which is not known before it runs; address \
                relative to RIP"
            .to_string();
    }
    format!("`{name}` is neither a register nor a label of this snippet")
}
