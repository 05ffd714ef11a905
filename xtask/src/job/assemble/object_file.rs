//! Taking the code out of the object file.

use super::relocate::relocate;
use super::rustc::{LABEL_PREFIX, end_label, start_label};
use super::{Code, Failed, Labels, Message, Source};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex};
use std::collections::HashMap;

/// The code of each text.
pub(super) fn codes(bytes: &[u8], sources: &[Source]) -> Result<Vec<Code>, Failed> {
    let tool = |error: object::Error| Failed::Tool(format!("the object file is broken: {error}"));
    let file = object::File::parse(bytes).map_err(tool)?;
    let labels = Places::of(&file);
    let (mut codes, mut messages) = (Vec::new(), Vec::new());
    for (index, source) in sources.iter().enumerate() {
        let start = labels.ours.get(&start_label(index)).copied();
        let end = labels.ours.get(&end_label(index)).copied();
        match code(&file, start, end, source.symbols).map_err(tool)? {
            Ok(bytes) => codes.push(Code { bytes, labels: labels.inside(start, end) }),
            Err(Wrong { text, name }) => {
                let (line, column) = find_word(source.text, &name).unwrap_or((0, 1));
                messages.push(Message { source: index, line, column, text });
            }
        }
    }
    if messages.is_empty() { Ok(codes) } else { Err(Failed::Messages(messages)) }
}

/// Where the labels are. A long job has a text in each of tens of thousands of sections, so a text's own labels are found
/// by its section, not by looking at all.
#[derive(Default)]
struct Places {
    /// Those around the texts, by name.
    ours: HashMap<String, (SectionIndex, u64)>,
    /// The texts' own, with their addresses, by section.
    theirs: HashMap<SectionIndex, Labels>,
    /// How many were looked at, for the test that this is linear.
    #[cfg(test)]
    looked_at: std::cell::Cell<usize>,
}

impl Places {
    fn of(file: &object::File) -> Self {
        let mut places = Self::default();
        for symbol in file.symbols() {
            let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) else {
                continue;
            };
            let (name, address) = (name.to_string(), symbol.address());
            if name.starts_with(LABEL_PREFIX) {
                places.ours.insert(name, (section, address));
            } else if !name.is_empty() {
                places.theirs.entry(section).or_default().push((name, address));
            }
        }
        places
    }

    /// A text's own labels between its two ends, by their places.
    fn inside(&self, start: Label, end: Label) -> Labels {
        let (Some((section, start)), Some((_, end))) = (start, end) else { return Vec::new() };
        let all = self.theirs.get(&section).map_or(&[][..], Vec::as_slice);
        #[cfg(test)]
        self.looked_at.set(self.looked_at.get() + all.len());
        let between = all.iter().filter(|(_, at)| (start..=end).contains(at));
        let mut found: Labels = between.map(|(name, at)| (name.clone(), at - start)).collect();
        found.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        found
    }
}

type Label = Option<(SectionIndex, u64)>;

/// What is wrong with a text, and the name in it that it is about, or nothing.
struct Wrong {
    text: String,
    name: String,
}

fn wrong<T>(text: &str) -> Result<T, Wrong> {
    Err(Wrong { text: text.to_string(), name: String::new() })
}

/// Line and column, counted from 1, of the first place where `word` stands by itself.
fn find_word(text: &str, word: &str) -> Option<(usize, usize)> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '$';
    (1..).zip(text.lines()).find_map(|(number, line)| {
        let alone = |&(at, _): &(usize, &str)| {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            !before.ends_with(in_name) && !after.starts_with(in_name) && !word.is_empty()
        };
        line.match_indices(word).find(alone).map(|(at, _)| (number, at + 1))
    })
}

/// The bytes between two labels, or what is wrong with them.
fn code(
    file: &object::File,
    start: Label,
    end: Label,
    symbols: &[(String, u64)],
) -> Result<Result<Vec<u8>, Wrong>, object::Error> {
    let (Some((section, start)), Some((end_section, end))) = (start, end) else {
        return Ok(wrong("it hides what stands behind it (an unended .macro, .rept or .if?)"));
    };
    if section != end_section || end < start {
        return Ok(wrong("it changes the section (.section, .data, .org) and does not return"));
    }
    let section = file.section_by_index(section)?;
    let mut bytes = section.data()?[start as usize..end as usize].to_vec();
    for (offset, relocation) in section.relocations() {
        if !(start..end).contains(&offset) {
            continue;
        }
        let (name, undefined) = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = file.symbol_by_index(index)?;
                (symbol.name()?.to_string(), symbol.is_undefined())
            }
            _ => (String::new(), false),
        };
        let known = symbols.iter().find(|(symbol, _)| undefined && *symbol == name);
        let done = match known {
            Some((_, value)) => relocate(&mut bytes, offset - start, &relocation, &name, *value),
            None => Err(unresolved(&name)),
        };
        if let Err(text) = done {
            return Ok(Err(Wrong { text, name }));
        }
    }
    Ok(Ok(bytes))
}

fn unresolved(name: &str) -> String {
    if name.is_empty() {
        return "it needs the address of its own code, which is not known before it runs; address \
                relative to RIP"
            .to_string();
    }
    format!("`{name}` is neither a register nor a label of this snippet")
}

#[cfg(test)]
mod tests {
    use super::super::{Part, Syntax, rustc};
    use super::*;
    use protocol::bits::Bits;

    #[test]
    fn each_label_is_looked_at_once_however_many_texts_there_are() {
        const TEXTS: usize = 2_000;
        let texts: Vec<String> = (0..TEXTS).map(|i| format!("a{i}: nop; b{i}: jmp a{i}")).collect();
        let sources: Vec<Source> = texts
            .iter()
            .map(|text| Source {
                part: Part::Body,
                text,
                syntax: Syntax::Intel,
                bits: Bits::SixtyFour,
                symbols: &[],
            })
            .collect();
        let object = rustc::assemble(&sources).unwrap();
        let file = object::File::parse(&*object).unwrap();
        let places = Places::of(&file);
        for index in 0..TEXTS {
            let [start, end] = [start_label(index), end_label(index)];
            let [start, end] = [start, end].map(|label| places.ours.get(&label).copied());
            let expected = [(format!("a{index}"), 0), (format!("b{index}"), 1)];
            assert_eq!(places.inside(start, end), expected);
        }
        assert_eq!(places.looked_at.get(), 2 * TEXTS);
    }
}
