//! One event of a list: which of the forms it has.

use super::number::number;
use super::{ParseError, ParseErrorKind as Kind, Part, fail, modifiers_into, terms, word};
use crate::request::{Attributes, Base, NamePart, Pmu, Request};
use alloc::string::ToString;
use alloc::vec::Vec;

pub(super) fn event(part: &Part<'_>) -> Result<Request, ParseError> {
    let mut request = Request { text: part.text.to_string(), at: part.at, ..Request::default() };
    if let Some((pmu, behind)) = part.split_once('/') {
        check_name(&pmu)?;
        request.pmu = Some(named(&pmu));
        let open = || fail(part.at, Kind::OpenTerms);
        let (inside, modifiers) = behind.split_once('/').ok_or_else(open)?;
        (request.base, request.attributes) = terms::terms(&inside)?;
        let bare = modifiers.text.strip_prefix(':').unwrap_or(modifiers.text);
        if !modifiers.text.is_empty() {
            let at = modifiers.at + modifiers.text.len() - bare.len();
            modifiers_into(&mut request.attributes, &Part::new(bare, at))?;
        }
        return Ok(request);
    }
    if let Some(code) = code(part, &mut request.attributes) {
        request.base = code?;
        return Ok(request);
    }
    if part.text.starts_with(|c: char| c.is_ascii_digit()) {
        let value = word::word(part.text).map_err(|(at, kind)| fail(part.at + at, kind))?;
        request.base = Base::Word(value);
        return Ok(request);
    }
    let mut name = *part;
    if let Some(at) = part.text.find("::") {
        let table = Part::new(&part.text[..at], part.at);
        check_name(&table)?;
        request.pmu = Some(named(&table));
        name = Part::new(&part.text[at + 2..], part.at + at + 2);
    }
    request.base = base(&name, &mut request.attributes)?;
    Ok(request)
}

/// Event and unit mask as two numbers, `0xc4.0x20`, with modifiers after colons.
fn code(part: &Part<'_>, attributes: &mut Attributes) -> Option<Result<Base, ParseError>> {
    let (first, behind) = match part.split_once(':') {
        Some((first, behind)) => (first, Some(behind)),
        None => (*part, None),
    };
    let (event, umask) = first.split_once('.')?;
    if !event.text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let read = |name: &str, part: &Part<'_>| {
        number(part.text).ok_or_else(|| {
            let (name, value) = (name.to_string(), part.text.to_string());
            fail(part.at, Kind::Number { name, value })
        })
    };
    Some((|| {
        let base = Base::Code { event: read("event", &event)?, umask: read("umask", &umask)? };
        behind.map_or(Ok(()), |behind| modifiers_into(attributes, &behind))?;
        Ok(base)
    })())
}

fn named(part: &Part<'_>) -> Pmu {
    Pmu { name: part.text.to_string(), at: part.at }
}

/// A name, `rNNN` or `fixedN`, with what follows it after colons.
fn base(part: &Part<'_>, attributes: &mut Attributes) -> Result<Base, ParseError> {
    let (first, behind) = match part.split_once(':') {
        Some((first, behind)) => (first, Some(behind)),
        None => (*part, None),
    };
    let special = match raw(first.text) {
        Some(result) => Some(result.map_err(|kind| fail(first.at, kind))?),
        None => fixed(first.text),
    };
    if let Some(special) = special {
        if let Some(behind) = behind {
            modifiers_into(attributes, &behind)?;
        }
        return Ok(special);
    }
    let mut pieces = Vec::new();
    let mut rest = Some(*part);
    while let Some(here) = rest {
        let (piece, behind) = match here.split_once(':') {
            Some((piece, behind)) => (piece, Some(behind)),
            None => (here, None),
        };
        check_name(&piece)?;
        pieces.push(NamePart { text: piece.text.to_string(), at: piece.at });
        rest = behind;
    }
    Ok(Base::Name(pieces))
}

/// Names have letters, digits and a few signs; `=` is in a few of perfmon's older names.
pub(super) fn check_name(part: &Part<'_>) -> Result<(), ParseError> {
    if part.text.is_empty() {
        return Err(fail(part.at, Kind::MissingEvent));
    }
    for (index, character) in part.text.char_indices() {
        if !character.is_ascii_alphanumeric() && !"._-=".contains(character) {
            return Err(fail(part.at + index, Kind::Character(character)));
        }
    }
    Ok(())
}

/// `r` and nothing but hexadecimal digits: perf's raw form.
fn raw(text: &str) -> Option<Result<Base, Kind>> {
    let digits = text.strip_prefix(['r', 'R'])?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let value = u64::from_str_radix(digits, 16);
    Some(value.map(Base::Raw).map_err(|_| Kind::RawTooLong(text.to_string())))
}

/// `fixed0`, `fixed1` and so on.
fn fixed(text: &str) -> Option<Base> {
    let digits = match text.get(..5) {
        Some(word) if word.eq_ignore_ascii_case("fixed") => &text[5..],
        _ => return None,
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(Base::Fixed)
}
