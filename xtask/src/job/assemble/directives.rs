//! Directives that make much of little, or read what is no part of the job.

use super::bounds::Bounds;
use super::rustc::{Stopped, assemble_within};
use super::{Failed, Message, Source};

/// Read files of the host.
const FILES: [&str; 2] = [".incbin", ".include"];
/// Repeat, fill or move on by an operand.
const MANY: [&str; 20] = [
    ".align",
    ".balign",
    ".balignl",
    ".balignw",
    ".dcb",
    ".ds",
    ".fill",
    ".irp",
    ".irpc",
    ".macro",
    ".nops",
    ".org",
    ".p2align",
    ".p2alignl",
    ".p2alignw",
    ".rep",
    ".rept",
    ".skip",
    ".space",
    ".zero",
];
/// How many texts are tried alone to find the one that took too much.
const SUSPECTS: usize = 8;

/// A statement's directive and its place.
struct Directive<'a> {
    line: usize,
    column: usize,
    /// From the directive to the statement's end.
    text: &'a str,
}

impl Directive<'_> {
    fn is_of(&self, names: &[&str]) -> bool {
        let name = self.text.split(|c: char| !is_of_name(c)).next().unwrap_or_default();
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    /// The greatest number in its operands: how much it may make. A macro, which may call itself, comes first.
    fn size(&self) -> u128 {
        if self.is_of(&[".macro"]) {
            return u128::MAX;
        }
        let words = self.text.split(|c: char| !c.is_ascii_alphanumeric());
        let number = |word: &str| match word.to_ascii_lowercase().strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let most = words.filter_map(number).max().unwrap_or(0);
        // The operand of this one is a power of two.
        if self.is_of(&[".p2align", ".p2alignl", ".p2alignw"]) { 1 << most.min(64) } else { most }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '$')
}

/// The directives of a text: what begins a statement, behind its labels, with a dot. Comments and strings have none.
fn directives(text: &str) -> Vec<Directive<'_>> {
    let mut found = Vec::new();
    let mut in_comment = false;
    for (line, whole) in (1..).zip(text.lines()) {
        let mut at = 0;
        let mut begin = true;
        while let Some(rest) = whole.get(at..).filter(|rest| !rest.is_empty()) {
            let first = rest.chars().next().unwrap_or_default();
            if in_comment {
                in_comment = !rest.starts_with("*/");
                at += if in_comment { first.len_utf8() } else { 2 };
            } else if rest.starts_with("/*") {
                (in_comment, at) = (true, at + 2);
            } else if first == '#' || rest.starts_with("//") {
                break;
            } else if first == '"' {
                at += string(rest);
                begin = false;
            } else if first == ';' || first.is_whitespace() {
                begin |= first == ';';
                at += first.len_utf8();
            } else if begin {
                let name = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                if rest[name..].trim_start().starts_with(':') {
                    // A label: the statement is behind it.
                    at += rest.len() - rest[name..].trim_start().len() + 1;
                    continue;
                }
                if first == '.' {
                    let text = rest.split(';').next().unwrap_or(rest);
                    found.push(Directive { line, column: at + 1, text });
                }
                (begin, at) = (false, at + name.max(first.len_utf8()));
            } else {
                at += first.len_utf8();
            }
        }
    }
    found
}

/// Bytes of the string that `text` begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].char_indices().find(|&(_, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 2)
}

/// Complaints about directives that read files: a job is one file, that can be looked at before it is run.
pub(super) fn files((source, text): (usize, &Source)) -> Vec<Message> {
    let all = directives(text.text).into_iter().filter(|one| one.is_of(&FILES));
    let message = |one: Directive| {
        Message {
        source,
        line: one.line,
        column: one.column,
        text: "directives that read files are not taken: what a job measures stands in the job (.byte takes bytes)"
            .to_string(),
    }
    };
    all.map(message).collect()
}

/// The text that takes `what` or more: the likeliest are tried alone.
pub(super) fn blame(sources: &[Source], what: &str) -> Failed {
    let mut suspects: Vec<(u128, usize)> = sources
        .iter()
        .enumerate()
        .filter_map(|(index, source)| Some((largest(source)?.size(), index)))
        .collect();
    suspects.sort_by_key(|&(size, index)| (std::cmp::Reverse(size), index));
    for (_, index) in suspects.into_iter().take(SUSPECTS) {
        let source = &sources[index];
        let bounds = Bounds::of_suspect(source.text.len());
        if crate::interrupt::pending().is_some() {
            break;
        }
        if let Err(Stopped::Exceeded(what)) = assemble_within(&[*source], &bounds) {
            return Failed::Messages(vec![too_much(index, source, &what)]);
        }
    }
    Failed::Tool(format!(
        "the texts together take more than {what}; no single one was found that does"
    ))
}

/// The directive of a text that may make most.
fn largest<'a>(source: &Source<'a>) -> Option<Directive<'a>> {
    directives(source.text).into_iter().filter(|one| one.is_of(&MANY)).max_by_key(Directive::size)
}

/// The complaint about a text that took more than `what`.
pub(super) fn too_much(index: usize, source: &Source, what: &str) -> Message {
    let cause = largest(source);
    let (line, column) = cause.map_or((0, 1), |one| (one.line, one.column));
    let text = format!(
        "it was not assembled within {what}, which is more than any code that can be measured takes"
    );
    Message { source: index, line, column, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, usize, &str)> {
        directives(text).iter().map(|one| (one.line, one.column, one.text)).collect()
    }

    #[test]
    fn directives_are_what_begins_a_statement() {
        let text = "nop; .align 8\n2: a:.Rept 3 # .org 1\n/* .fill 1\n .fill 2 */ .skip 4\n\
                    .ascii \"; .incbin \\\" ; .org 3\"; mov al, [rip + .x] // .zero 5\n\u{e9}: .zero 6";
        let expected = [
            (1, 6, ".align 8"),
            (2, 6, ".Rept 3 # .org 1"),
            (4, 13, ".skip 4"),
            (5, 1, ".ascii \""),
            (6, 5, ".zero 6"),
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn the_directive_that_may_make_most_is_known_by_its_operands() {
        let size = |text: &str| directives(text)[0].size();
        assert_eq!(size(".fill 3, 0x100, 7"), 256);
        assert_eq!(size(".p2align 31"), 1 << 31);
        assert_eq!(size(".macro m"), u128::MAX);
        assert_eq!(size(".align x"), 0);
    }
}
