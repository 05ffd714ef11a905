//! A digest as text: some parts, each in a QR code of its own.
//!
//! `BC1:2/3:1A2B3C4D:ABCD…EF.`: form and version, the part and how many there are, the CRC-32 of all parts together, the
//! part's bytes in Base32 (RFC 4648, without padding), and a full stop. All of it lies in the characters for which QR codes have their
//! dense form (ISO/IEC 18004, alphanumeric mode), and survives being copied from a phone: there is no blank in it, and blanks and ends of
//! lines that come in are passed over.

use crate::checksum::crc32;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thiserror::Error;

/// What each part begins with.
pub const MARK: &str = "BC1:";
/// Most parts: as many as somebody may be asked to photograph.
pub const MAX_PARTS: usize = 12;
/// Characters around a part's own: mark, two numbers of two digits, checksum, separators, full stop.
const FRAME: usize = MARK.len() + 5 + 1 + 8 + 1 + 1;

/// Why texts are no digest.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum TextError {
    /// Nothing in them begins like one.
    #[error("it has no text of barecount, which begins with {MARK}")]
    Nothing,
    /// A part is cut off or damaged.
    #[error("a part of the digest is damaged: it has no {0}")]
    Part(&'static str),
    /// Parts of several runs.
    #[error("these are codes of different runs: {0} and {1}")]
    Mixed(String, String),
    /// Not all parts are there.
    #[error("{} of {total} codes {} missing: {}", missing.len(), if missing.len() == 1 { "is" } else { "are" }, list(missing))]
    Missing { missing: Vec<usize>, total: usize },
    /// All parts are there and do not fit together.
    #[error("the digest is damaged: its checksum is {found}, the codes say {announced}")]
    Checksum { announced: String, found: String },
}

fn list(numbers: &[usize]) -> String {
    let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// Bytes that fit into `parts` parts of `characters` each.
#[must_use]
pub fn capacity(parts: usize, characters: usize) -> usize {
    parts * (characters.saturating_sub(FRAME) * 5 / 8)
}

/// The parts, each of at most `characters`. `None` if that takes more than [`MAX_PARTS`].
#[must_use]
pub fn split(packed: &[u8], characters: usize) -> Option<Vec<String>> {
    let each = capacity(1, characters);
    let total = packed.len().div_ceil(each.max(1));
    if each == 0 || total > MAX_PARTS {
        return None;
    }
    // All of about the same size: the codes then have the same size as well.
    let each = packed.len().div_ceil(total);
    let id = crc32(packed);
    let part = |(index, bytes): (usize, &[u8])| {
        let data = data_encoding::BASE32_NOPAD.encode(bytes);
        format!("{MARK}{}/{total}:{id:08X}:{data}.", index + 1)
    };
    Some(packed.chunks(each).enumerate().map(part).collect())
}

/// Puts parts together that stand anywhere in `text`, in any order, some of them more than once.
///
/// # Errors
/// Says what is wrong with them, or which ones are missing.
pub fn join(text: &str) -> Result<Vec<u8>, TextError> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let text = text.to_uppercase();
    let mut found: Option<(String, usize)> = None;
    let mut parts = BTreeMap::new();
    let mut rest = &text[..];
    while let Some(at) = rest.find(MARK) {
        // From full stop to full stop: a checksum may end like the mark.
        let behind = &rest[at + MARK.len()..];
        let (part, next) = behind.split_once('.').ok_or(TextError::Part("full stop at its end"))?;
        rest = next;
        let mut fields = part.splitn(3, ':');
        let number = fields.next().and_then(|field| field.split_once('/'));
        let number = number.and_then(|(n, of)| Some((n.parse().ok()?, of.parse().ok()?)));
        let (index, total): (usize, usize) = number.ok_or(TextError::Part("number"))?;
        if !(1..=total).contains(&index) || total > MAX_PARTS {
            return Err(TextError::Part("number that can be"));
        }
        let id = fields.next().filter(|id| id.len() == 8);
        let id = id.ok_or(TextError::Part("checksum"))?;
        let data = fields.next().unwrap_or_default();
        let bytes = data_encoding::BASE32_NOPAD.decode(data.as_bytes());
        let bytes = bytes.map_err(|_| TextError::Part("Base32 behind its number"))?;
        match &found {
            Some((other, of)) if other != id || *of != total => {
                return Err(TextError::Mixed(other.clone(), id.to_string()));
            }
            Some(_) => {}
            None => found = Some((id.to_string(), total)),
        }
        parts.insert(index, bytes);
    }
    let (announced, total) = found.ok_or(TextError::Nothing)?;
    let missing: Vec<usize> = (1..=total).filter(|index| !parts.contains_key(index)).collect();
    if !missing.is_empty() {
        return Err(TextError::Missing { missing, total });
    }
    let packed: Vec<u8> = parts.into_values().flatten().collect();
    let found = format!("{:08X}", crc32(&packed));
    if found == announced { Ok(packed) } else { Err(TextError::Checksum { announced, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BC1:`, `12/12`, `:`, eight digits, `:` and `.`.
    #[test]
    fn the_frame_of_a_part_is_20_characters() {
        assert_eq!(FRAME, "BC1:12/12:1A2B3C4D:.".len());
        assert_eq!(FRAME, 20);
    }
}
