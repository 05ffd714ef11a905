//! Lists of events, as users of perf, libpfm4 and pctr write them.
//!
//! ```text
//! list     := item { "," item }
//! item     := event | "{" event { "," event } "}" [ ":" modifiers ]
//! event    := [ table "::" ] name { ":" ( unit mask | modifier ) }
//!           | pmu "/" term { "," term } "/" [ ":" ] [ modifiers ]
//!           | "r" hex { ":" modifier } | "fixed" number { ":" modifier }
//!           | number "." number { ":" modifier }      (event and unit mask: 0xc4.0x20)
//!           | word                      (starts with a digit; flags joined by "|")
//! modifier := "u" | "k" | "p" .. "ppp" | "e" | "i" | several of them | key [ "=" number ]
//! ```
//!
//! Blanks and line ends may stand between all of these. What a name means, and whether its last
//! pieces are unit masks or modifiers, is decided later, by the processor's table.

pub(crate) mod attribute;
mod error;
mod event;
pub(crate) mod number;
mod terms;
mod word;

pub use error::{ParseError, ParseErrorKind};

use crate::request::{Attributes, Item, Request};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

/// Reads a list of events and groups.
///
/// # Errors
/// The first thing that is not understood, and the byte where it starts. An empty list is an error.
pub fn parse_list(text: &str) -> Result<Vec<Item>, ParseError> {
    let mut items = Vec::new();
    for part in split(text, 0, ',')? {
        items.push(item(&part)?);
    }
    Ok(items)
}

/// Reads one event.
///
/// # Errors
/// As [`parse_list`]; a comma or a group is one as well.
pub fn parse_event(text: &str) -> Result<Request, ParseError> {
    let parts = split(text, 0, ',')?;
    match &parts[..] {
        [only] => event::event(only),
        [_, second, ..] => Err(fail(second.at - 1, ParseErrorKind::Character(','))),
        [] => Err(fail(0, ParseErrorKind::MissingEvent)),
    }
}

/// Whether this could be a modifier after a name, wrong values included: `u`, `c=1`, `any`.
#[must_use]
pub fn is_modifier(text: &str) -> bool {
    let read = attribute::apply(&mut Attributes::default(), text);
    !matches!(read, Err(ParseErrorKind::UnknownModifier(_)))
}

/// A piece of the text, without the blanks around it, and where it starts.
#[derive(Clone, Copy, Debug)]
struct Part<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Part<'t> {
    fn new(text: &'t str, at: usize) -> Self {
        let trimmed = text.trim_start();
        Self { at: at + text.len() - trimmed.len(), text: trimmed.trim_end() }
    }

    /// What stands before and after the first `separator`.
    fn split_once(&self, separator: char) -> Option<(Self, Self)> {
        let (before, behind) = self.text.split_once(separator)?;
        let behind_at = self.at + before.len() + separator.len_utf8();
        Some((Self::new(before, self.at), Self::new(behind, behind_at)))
    }
}

fn fail(at: usize, kind: ParseErrorKind) -> ParseError {
    ParseError { at, kind }
}

/// Splits at separators outside of braces and slashes.
fn split(text: &str, at: usize, separator: char) -> Result<Vec<Part<'_>>, ParseError> {
    let mut parts = Vec::new();
    let (mut start, mut group, mut terms) = (0, None, None);
    for (index, character) in text.char_indices() {
        match character {
            '/' if terms.is_some() => terms = None,
            '/' => terms = Some(index),
            '{' if group.is_some() => return Err(fail(at + index, ParseErrorKind::NestedGroup)),
            '{' if terms.is_none() => group = Some(index),
            '}' if terms.is_none() && group.is_none() => {
                return Err(fail(at + index, ParseErrorKind::Character('}')));
            }
            '}' if terms.is_none() => group = None,
            c if c == separator && group.is_none() && terms.is_none() => {
                parts.push(Part::new(&text[start..index], at + start));
                start = index + c.len_utf8();
            }
            _ => {}
        }
    }
    if let Some(open) = terms {
        return Err(fail(at + open, ParseErrorKind::OpenTerms));
    }
    if let Some(open) = group {
        return Err(fail(at + open, ParseErrorKind::OpenGroup));
    }
    parts.push(Part::new(&text[start..], at + start));
    Ok(parts)
}

fn item(part: &Part<'_>) -> Result<Item, ParseError> {
    if part.text.is_empty() {
        return Err(fail(part.at, ParseErrorKind::MissingEvent));
    }
    let Some(inside) = part.text.strip_prefix('{') else {
        return event::event(part).map(|request| Item { requests: vec![request] });
    };
    // `split` has made sure that the brace is closed, and a brace between slashes is not a letter of a
    // term.
    let (members, behind) = match closing(inside) {
        Some(end) => (&inside[..end], Part::new(&inside[end + 1..], part.at + end + 2)),
        None => return Err(fail(part.at, ParseErrorKind::OpenGroup)),
    };
    let mut outer = Attributes::default();
    if !behind.text.is_empty() {
        let Some(modifiers) = behind.text.strip_prefix(':') else {
            let found = behind.text.chars().next().unwrap_or(' ');
            return Err(fail(behind.at, ParseErrorKind::Character(found)));
        };
        modifiers_into(&mut outer, &Part::new(modifiers, behind.at + 1))?;
    }
    let mut requests = Vec::new();
    for member in split(members, part.at + 1, ',')? {
        let mut request = event::event(&member)?;
        request.attributes.inherit(&outer);
        requests.push(request);
    }
    Ok(Item { requests })
}

/// The first closing brace outside of slashes.
fn closing(text: &str) -> Option<usize> {
    let mut in_terms = false;
    text.char_indices().find_map(|(index, character)| {
        in_terms ^= character == '/';
        (character == '}' && !in_terms).then_some(index)
    })
}

/// Reads modifiers separated by colons.
fn modifiers_into(attributes: &mut Attributes, part: &Part<'_>) -> Result<(), ParseError> {
    let mut rest = Some(*part);
    while let Some(here) = rest {
        let (modifier, behind) = match here.split_once(':') {
            Some((modifier, behind)) => (modifier, Some(behind)),
            None => (here, None),
        };
        if modifier.text.is_empty() {
            return Err(fail(modifier.at, ParseErrorKind::UnknownModifier("".to_string())));
        }
        attribute::apply(attributes, modifier.text).map_err(|kind| fail(modifier.at, kind))?;
        rest = behind;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
