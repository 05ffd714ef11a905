//! Wild cards in a list of events: `{l2_rqsts.*_hit:u, cycles}` becomes the list of what they fit.

use super::{EventsError, list};
use events::parse::is_modifier;
use events::tables::Core;

/// Whether `text` has a wild card.
#[must_use]
pub fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// `text` with each name that has wild cards replaced by the names that it fits, its modifiers
/// after each. Without wild cards it is returned as it is.
///
/// # Errors
/// A name fits nothing.
pub fn expand(core: &Core<'_>, text: &str) -> Result<String, EventsError> {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut in_terms = false;
        let end = rest
            .find(|c: char| {
                in_terms ^= c == '/';
                !in_terms && ",{}".contains(c)
            })
            .unwrap_or(rest.len());
        let (token, behind) = rest.split_at(end);
        if has_wildcard(token) && !token.contains('/') {
            out.push_str(&fitting(core, token.trim())?);
        } else {
            out.push_str(token);
        }
        let separator = behind.chars().next();
        out.extend(separator);
        rest = &behind[separator.map_or(0, char::len_utf8)..];
    }
    Ok(out)
}

/// The names that one token fits, joined by commas.
fn fitting(core: &Core<'_>, token: &str) -> Result<String, EventsError> {
    let (prefix, name) = match token.split_once("::") {
        Some((table, name)) => (format!("{table}::"), name),
        None => (String::new(), token),
    };
    let mut pieces: Vec<&str> = name.split(':').collect();
    let mut modifiers = String::new();
    while pieces.len() > 1 && pieces.last().is_some_and(|piece| is_modifier(piece)) {
        modifiers.insert_str(0, &format!(":{}", pieces.pop().unwrap_or_default()));
    }
    let pattern = pieces.join(":");
    let rows = list::events(core, Some(&pattern));
    if rows.is_empty() {
        let cpu = core.name().to_string();
        return Err(EventsError::Nothing { what: "event", cpu, pattern });
    }
    let names = rows.iter().map(|row| format!("{prefix}{}{modifiers}", row.name));
    Ok(names.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Block;

    fn on_skylakex(text: &str) -> Result<String, String> {
        let block = Block::embedded();
        let core = block.tables().named("skylakex").unwrap();
        expand(&core, text).map_err(|error| error.to_string())
    }

    #[test]
    fn p4_wild_cards_take_modifiers_and_stand_in_lists() {
        let both = "UOPS_ISSUED.SLOW_LEA:u:c=1,UOPS_ISSUED.STALL_CYCLES:u:c=1";
        assert_eq!(on_skylakex("uops_issued.s*:u:c=1").as_deref(), Ok(both));
        assert_eq!(
            on_skylakex("{cycles, skx::uops_issued.an?:k}:p,r20c4").as_deref(),
            Ok("{cycles,skx::UOPS_ISSUED.ANY:k}:p,r20c4")
        );
        // Nothing to replace: nothing changes.
        for text in ["a, b", "{cycles}:u", "cpu/event=0xc4,umask=0x20/k", ""] {
            assert_eq!(on_skylakex(text).as_deref(), Ok(text));
        }
        let error = on_skylakex("cycles,nothing_like*:u").unwrap_err();
        assert!(error.contains("no event of skylakex fits \"nothing_like*\""), "{error}");
    }
}
