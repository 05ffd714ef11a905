//! One record as one line of text.
//!
//! `{"seq":7,"type":"result",...,"crc":"1f2e3d4c"}`: a JSON object whose first member is the sequence
//! number, counted from 0 in each boot, and whose last is the CRC-32 of all bytes of the line before
//! `,"crc"`. Lines end in CR LF.
//!
//! In a boot that was given a [`Key`], a member `mac` stands before the checksum: the key's code of all bytes before
//! `,"mac"`.

use crate::authentication::{Key, TAG_DIGITS, digits};
use crate::checksum::crc32;
use crate::record::Record;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thiserror::Error;

/// How every line starts; nothing else on a serial line is taken for a record.
pub const PREFIX: &str = "{\"seq\":";
/// Between the record's members and the checksum's eight digits.
const CRC_KEY: &str = ",\"crc\":\"";
const CRC_DIGITS: usize = 8;
/// Between the record's members and the code's sixteen digits.
const MAC_KEY: &str = ",\"mac\":\"";
/// More than what stands around a record: prefix, number, code, checksum, line end.
const AROUND_BYTES: usize = 48 + MAC_TAIL_BYTES;
const CRC_TAIL_BYTES: usize = CRC_KEY.len() + CRC_DIGITS + "\"}".len();
const MAC_TAIL_BYTES: usize = MAC_KEY.len() + TAG_DIGITS + "\"".len();

/// Why a line is not a record.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum LineError {
    /// The line does not have the shape of a record: cut off, or text mixed in.
    #[error("it does not end in a checksum")]
    Shape,
    /// Bytes changed on the way.
    #[error("its checksum is {found:08x}, the line says {announced:08x}")]
    Checksum { announced: u32, found: u32 },
    /// The checksum is right, but this version does not know the record.
    #[error("it is not a record of this version: {0}")]
    Unknown(String),
    /// The checksum is right, and a code is missing where the boot has a key.
    #[error("it carries no authentication code")]
    Unsigned,
    /// The checksum is right, and the code is not that of the boot's key.
    #[error("its authentication code is not that of this boot's key")]
    Forged,
}

impl LineError {
    /// Whether the line is whole, but not written by who has the key.
    #[must_use]
    pub fn is_forgery(&self) -> bool {
        matches!(self, Self::Unsigned | Self::Forged)
    }
}

/// Writes `record` as the line with sequence number `seq`, without a line end.
#[must_use]
pub fn encode(seq: u32, record: &Record) -> String {
    encode_with(seq, record, None)
}

/// The same in a boot that has a key.
#[must_use]
pub fn encode_with(seq: u32, record: &Record, key: Option<&Key>) -> String {
    let line = encode_bytes(seq, record, key);
    String::from_utf8(line).expect("JSON is UTF-8")
}

/// The same as bytes: what is sent need not be looked through once more.
#[must_use]
pub fn encode_bytes(seq: u32, record: &Record, key: Option<&Key>) -> Vec<u8> {
    // Serialising these types cannot fail: no map with keys that are not text, no failing Serialize.
    let body = serde_json::to_vec(record).expect("records serialise");
    // Room for the line end as well, so that nothing is moved to a larger piece of memory.
    let mut line = Vec::with_capacity(body.len() + AROUND_BYTES);
    line.extend_from_slice(PREFIX.as_bytes());
    push_number(&mut line, seq);
    line.push(b',');
    // Without the record's braces: its members go on from the number, and others follow them.
    line.extend_from_slice(&body[1..body.len() - 1]);
    let push = |line: &mut Vec<u8>, key: &str, digits: &[u8]| {
        line.extend_from_slice(key.as_bytes());
        line.extend_from_slice(digits);
        line.push(b'"');
    };
    if let Some(key) = key {
        let tag = key.tag(&line);
        push(&mut line, MAC_KEY, &digits::<TAG_DIGITS>(tag));
    }
    let crc = crc32(&line);
    push(&mut line, CRC_KEY, &digits::<CRC_DIGITS>(u64::from(crc)));
    line.push(b'}');
    line
}

/// `number` in decimal, without the formatter's machinery: one stands in each line.
pub(crate) fn push_number(line: &mut Vec<u8>, number: u32) {
    let (mut digits, mut at, mut rest) = ([0; 10], 10, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// A line, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Sequence number.
    pub seq: u32,
    /// The record.
    pub record: Record,
    /// Whether the line carries a code. With a key, the code is right.
    pub signed: bool,
}

/// Reads one line, without its line end. A code is passed over.
///
/// # Errors
/// Says which check the line failed.
pub fn decode(line: &str) -> Result<(u32, Record), LineError> {
    decode_with(line, None).map(|decoded| (decoded.seq, decoded.record))
}

/// Reads one line, without its line end. With a key, its code has to be that of the key.
///
/// # Errors
/// Says which check the line failed.
pub fn decode_with(line: &str, key: Option<&Key>) -> Result<Decoded, LineError> {
    let (covered, announced) = split(line).ok_or(LineError::Shape)?;
    let found = crc32(covered.as_bytes());
    if found != announced {
        return Err(LineError::Checksum { announced, found });
    }
    let (covered, tag) = match split_code(covered) {
        Some((covered, tag)) => (covered, Some(tag)),
        None => (covered, None),
    };
    match (key, tag) {
        (Some(_), None) => return Err(LineError::Unsigned),
        (Some(key), Some(tag)) if key.tag(covered.as_bytes()) != tag => {
            return Err(LineError::Forged);
        }
        _ => {}
    }
    let rest = covered.strip_prefix(PREFIX).ok_or(LineError::Shape)?;
    let (seq, body) = rest.split_once(',').ok_or(LineError::Shape)?;
    let seq = seq.parse().map_err(|_| LineError::Shape)?;
    let record = serde_json::from_str(&format!("{{{body}}}"))
        .map_err(|error| LineError::Unknown(error.to_string()))?;
    Ok(Decoded { seq, record, signed: tag.is_some() })
}

/// The part that the checksum covers, and the checksum that the line announces.
fn split(line: &str) -> Option<(&str, u32)> {
    let (covered, tail) = line.split_at_checked(line.len().checked_sub(CRC_TAIL_BYTES)?)?;
    let digits = tail.strip_prefix(CRC_KEY)?.strip_suffix("\"}")?;
    is_hex(digits).then_some(())?;
    Some((covered, u32::from_str_radix(digits, 16).ok()?))
}

/// The part that the code covers, and the code, if there is one.
fn split_code(covered: &str) -> Option<(&str, u64)> {
    let (covered, tail) = covered.split_at_checked(covered.len().checked_sub(MAC_TAIL_BYTES)?)?;
    let digits = tail.strip_prefix(MAC_KEY)?.strip_suffix('"')?;
    is_hex(digits).then_some(())?;
    Some((covered, u64::from_str_radix(digits, 16).ok()?))
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::Hex;
    use crate::record::{Crash, CrashKind, Progress, Registers};
    use proptest::prelude::*;

    fn progress(done: u32) -> Record {
        Record::Progress(Progress { done, total: 10, within: None })
    }

    /// One form of each checksum: what is not as it was written was changed on the way.
    #[test]
    fn a_checksum_in_capitals_is_damage() {
        let lines = (0..20).map(|done| encode(1, &progress(done)));
        let with_letter = |line: &String| {
            let digits = &line[line.len() - 10..line.len() - 2];
            digits.bytes().any(|digit| digit.is_ascii_alphabetic())
        };
        let line = lines.into_iter().find(with_letter).expect("one of twenty has a letter");
        assert!(decode(&line).is_ok());
        let (front, digits) = line.split_at(line.len() - 10);
        let changed = format!("{front}{}", digits.to_uppercase());
        assert_eq!(decode(&changed), Err(LineError::Shape));
    }

    #[test]
    fn a_line_looks_as_the_document_says() {
        let line = encode(7, &progress(3));
        assert_eq!(line, r#"{"seq":7,"type":"progress","done":3,"total":10,"crc":"f850e731"}"#);
        assert_eq!(decode(&line), Ok((7, progress(3))));
    }

    #[test]
    fn the_number_is_that_of_the_formatter() {
        for seq in [0, 9, 10, 4_095, 1_000_000_000, u32::MAX] {
            assert!(encode(seq, &progress(1)).starts_with(&format!("{PREFIX}{seq},\"type\"")));
        }
    }

    const KEY: Key = Key::new(*b"sixteen bytes ok");

    #[test]
    fn x1_a_line_of_a_boot_with_a_key_looks_as_the_document_says() {
        let line = encode_with(7, &progress(3), Some(&KEY));
        let (covered, crc) = split(&line).unwrap();
        let tag = KEY.tag(br#"{"seq":7,"type":"progress","done":3,"total":10"#);
        assert_eq!(
            line,
            format!(
                r#"{{"seq":7,"type":"progress","done":3,"total":10,"mac":"{tag:016x}","crc":"{crc:08x}"}}"#
            )
        );
        assert_eq!(crc, crc32(covered.as_bytes()));
        let decoded = decode_with(&line, Some(&KEY)).unwrap();
        assert_eq!((decoded.seq, &decoded.record, decoded.signed), (7, &progress(3), true));
        // Who has no key reads it all the same.
        assert_eq!(decode(&line), Ok((7, progress(3))));
    }

    #[test]
    fn x1_a_right_checksum_without_the_key_is_a_forgery() {
        let unsigned = encode(7, &progress(3));
        assert_eq!(decode_with(&unsigned, Some(&KEY)), Err(LineError::Unsigned));
        let other = encode_with(7, &progress(3), Some(&Key::new([0; 16])));
        assert_eq!(decode_with(&other, Some(&KEY)), Err(LineError::Forged));
        // A right line with another content, and a checksum that fits it.
        let right = encode_with(7, &progress(3), Some(&KEY));
        let changed = split(&right).unwrap().0.replace("\"done\":3", "\"done\":4");
        let changed = format!("{changed}{CRC_KEY}{:08x}\"}}", crc32(changed.as_bytes()));
        assert_eq!(decode(&changed), Ok((7, progress(4))));
        assert_eq!(decode_with(&changed, Some(&KEY)), Err(LineError::Forged));
    }

    #[test]
    fn text_with_quotes_and_line_ends_stays_one_line() {
        let crash = Record::Crash(Crash {
            kind: CrashKind::Panic,
            text: "a \"quoted\"\nmessage with }\u{1F600}".into(),
            location: None,
            vector: None,
            error_code: None,
            item: None,
            registers: Registers::default(),
            backtrace: alloc::vec![Hex(u64::MAX)],
        });
        let line = encode(0, &crash);
        assert!(!line.contains('\n'));
        assert_eq!(decode(&line), Ok((0, crash)));
    }

    #[test]
    fn a_newer_record_with_a_right_checksum_is_named_unknown() {
        let covered = r#"{"seq":1,"type":"teleport""#;
        let line = format!("{covered}{CRC_KEY}{:08x}\"}}", crc32(covered.as_bytes()));
        assert!(matches!(decode(&line), Err(LineError::Unknown(_))));
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_noticed(seq: u32, done: u32, at in 0usize..1000, to: u8) {
            let line = encode(seq, &progress(done));
            let mut bytes = line.clone().into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            if let Ok(text) = String::from_utf8(bytes) {
                prop_assert!(decode(&text).is_err(), "{}", text);
            }
        }

        #[test]
        fn any_cut_is_noticed(seq: u32, done: u32, keep in 0usize..1000) {
            let line = encode(seq, &progress(done));
            prop_assert!(decode(&line[..keep % line.len()]).is_err());
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,200}") {
            let _ = decode(&text);
            let _ = decode(&format!("{PREFIX}{text}"));
            let line = format!("{PREFIX}{text}");
            let line = format!("{line}{CRC_KEY}{:08x}\"}}", crc32(line.as_bytes()));
            prop_assert!(decode_with(&line, Some(&KEY)).is_err());
        }
    }

    /// `,"crc":"` and `"}` around eight digits, `,"mac":"` and `"` around sixteen.
    #[test]
    fn what_stands_around_a_record_is_as_long_as_its_constants() {
        assert_eq!((CRC_TAIL_BYTES, MAC_TAIL_BYTES, AROUND_BYTES), (18, 25, 73));
        let tail = format!("{CRC_KEY}{:08x}\"}}", 0);
        assert_eq!(tail.len(), CRC_TAIL_BYTES);
    }
}
