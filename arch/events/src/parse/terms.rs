//! What stands between the slashes of `cpu/…/`.

use super::number::number;
use super::{ParseError, ParseErrorKind as Kind, Part, attribute, fail};
use crate::request::{Attributes, Base, NamePart};
use alloc::string::ToString;
use alloc::vec;

const KNOWN: &str = "event, umask, config, an event's name, cmask, inv, edge, any, eq, pc, in_tx, \
     in_tx_cp, offcore_rsp, snoop_rsp, ldlat, frontend, config1, precise, counter, alone, name";

pub(super) fn terms(inside: &Part<'_>) -> Result<(Base, Attributes), ParseError> {
    let mut attributes = Attributes::default();
    let (mut event, mut config, mut name) = (None, None, None);
    let mut rest = Some(*inside);
    let mut first = true;
    while let Some(here) = rest {
        let (term, behind) = match here.split_once(',') {
            Some((term, behind)) => (term, Some(behind)),
            None => (here, None),
        };
        rest = behind;
        if term.text.is_empty() {
            return Err(fail(term.at, Kind::MissingEvent));
        }
        let key = term.text.split('=').next().unwrap_or("").trim();
        let slot = match key {
            key if key.eq_ignore_ascii_case("event") => Some(&mut event),
            key if key.eq_ignore_ascii_case("config") => Some(&mut config),
            _ => None,
        };
        if let Some(slot) = slot {
            let value = value(&term)?;
            if slot.replace(value).is_some() {
                return Err(fail(term.at, Kind::Twice(key.to_string())));
            }
        } else {
            match attribute::apply(&mut attributes, term.text) {
                Ok(()) => {}
                // perf takes an event's name as the first term.
                Err(Kind::UnknownModifier(_)) if first && !term.text.contains('=') => {
                    name = Some(piece(&term)?);
                }
                Err(Kind::UnknownModifier(_)) => {
                    let name = key.to_string();
                    return Err(fail(term.at, Kind::UnknownTerm { name, known: KNOWN }));
                }
                Err(kind) => return Err(fail(term.at, kind)),
            }
        }
        first = false;
    }
    let base = match (event, config, name) {
        (None, None, Some(piece)) => Base::Name(vec![piece]),
        (Some(event), None, None) => {
            Base::Code { event, umask: attributes.umask.take().unwrap_or(0) }
        }
        (None, Some(config), None) => Base::Raw(config),
        (None, None, None) => return Err(fail(inside.at, Kind::MissingEvent)),
        _ => return Err(fail(inside.at, Kind::TwoEvents)),
    };
    Ok((base, attributes))
}

fn value(term: &Part<'_>) -> Result<u64, ParseError> {
    let Some((name, value)) = term.split_once('=') else {
        return Err(fail(term.at, Kind::MissingValue(term.text.to_string())));
    };
    number(value.text).ok_or_else(|| {
        let (name, text) = (name.text.to_string(), value.text.to_string());
        fail(value.at, Kind::Number { name, value: text })
    })
}

/// An event's name; modifiers and unit masks have terms of their own here.
fn piece(term: &Part<'_>) -> Result<NamePart, ParseError> {
    super::event::check_name(term)?;
    Ok(NamePart { text: term.text.to_string(), at: term.at })
}
