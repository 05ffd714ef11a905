//! Addresses at which counting starts and stops: `start-at` and `stop-at`.

use crate::job::errors::Place;
use crate::job::file::Text;
use crate::job::workload::{Assembled, place};
use iced_x86::{Decoder, DecoderOptions};
use protocol::bits::Bits;
use protocol::job::gate::{GateAct, GateAt, GateOn, GatePoint, REGISTERS};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use toml::Spanned;

/// What is wrong with an address, without the item's place.
type Wrong = String;

/// What an address can be.
const FORMS: &str = "\"task:label\", { write = \"task:register+8\", bytes = N } or { access = \"task:register+8\", bytes = N }";
/// Bytes of data, if the job does not say.
const DEFAULT_BYTES: u8 = 8;

/// An address as written.
#[derive(Clone, Debug)]
pub(super) struct RawPoint {
    text: String,
    on: GateOn,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Table {
    write: Option<String>,
    access: Option<String>,
    bytes: Option<u8>,
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawPoint;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawPoint, E> {
                Ok(RawPoint { text: text.to_string(), on: GateOn::Execute })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawPoint, M::Error> {
                let Table { write, access, bytes } =
                    Table::deserialize(MapAccessDeserializer::new(map))?;
                let bytes = bytes.unwrap_or(DEFAULT_BYTES);
                match (write, access) {
                    (Some(text), None) => Ok(RawPoint { text, on: GateOn::Write(bytes) }),
                    (None, Some(text)) => Ok(RawPoint { text, on: GateOn::Access(bytes) }),
                    _ => Err(M::Error::custom(format!("an address must be one of {FORMS}"))),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The same with its place in the file.
#[derive(Clone, Debug)]
pub(super) struct PointFile {
    text: String,
    on: GateOn,
    act: GateAct,
    pub place: Place,
}

impl PointFile {
    pub fn decide(raw: Spanned<RawPoint>, act: GateAct, text: &Text, source: &str) -> Self {
        let place = place(text, source, &raw.span());
        let RawPoint { text, on } = raw.into_inner();
        Self { text, on, act, place }
    }

    /// The address: `task:label`, `task:label+8`, or `task:0x10`, which is counted from the beginning of the task's body; of
    /// data also `task:r14-8`, by what the register is at the task's start. With one task its name may be left out.
    pub fn point(&self, assembled: &Assembled) -> Result<GatePoint, Wrong> {
        let Self { text, on, act, .. } = self;
        let key = match act {
            GateAct::Start => "start-at",
            GateAct::Stop => "stop-at",
        };
        let tasks = &assembled.workload.tasks;
        let (index, place) = match (text.split_once(':'), &tasks[..]) {
            (Some((name, place)), _) => {
                let found = tasks.iter().position(|task| task.name == name.trim());
                (found.ok_or_else(|| format!("{key} `{text}`: there is no task `{name}`"))?, place)
            }
            (None, [_]) => (0, &text[..]),
            (None, _) => {
                return Err(format!("{key} `{text}`: which task's? Write it as `task:label`"));
            }
        };
        let at = match (on.bytes(), register(place)) {
            (Some(_), Some((register, behind))) => {
                let behind = if behind.is_empty() { Some(0) } else { signed(behind) };
                let wrong =
                    || format!("{key} `{text}`: `{place}` is not a register and a number of bytes");
                GateAt::Register(register, behind.ok_or_else(wrong)?)
            }
            _ => GateAt::Code(self.in_code(key, index, place, assembled)?),
        };
        Ok(GatePoint { task: index as u16, at, on: *on, act: *act })
    }

    fn in_code(
        &self,
        key: &str,
        index: usize,
        place: &str,
        assembled: &Assembled,
    ) -> Result<u64, Wrong> {
        let text = &self.text;
        let (label, behind) = match place.rsplit_once('+') {
            Some((label, behind)) => (label.trim(), behind.trim()),
            None if place.trim().starts_with(|first: char| first.is_ascii_digit()) => {
                ("", place.trim())
            }
            None => (place.trim(), "0"),
        };
        let wrong = || format!("{key} `{text}`: `{behind}` is not a number of bytes");
        let behind = number(behind).ok_or_else(wrong)?;
        let task = &assembled.workload.tasks[index];
        let labels = &assembled.symbols[index];
        let begin = match label {
            "" => task.init.len() as u64,
            _ => match labels.iter().find(|(name, _)| name == label) {
                Some((_, at)) => *at,
                None => {
                    let hint = self.hint(label, index, assembled);
                    return Err(format!(
                        "{key} `{text}`: task `{}` has no label `{label}`{hint}",
                        task.name
                    ));
                }
            },
        };
        let offset = begin.saturating_add(behind);
        let code = [&task.init[..], &task.body].concat();
        if self.on == GateOn::Execute && !begins_instruction(&code, task.bits, begin, offset) {
            return Err(format!(
                "{key} `{text}`: no instruction begins there, so it is never reached"
            ));
        }
        Ok(offset)
    }

    /// What there is in place of a label that is missing.
    fn hint(&self, label: &str, index: usize, assembled: &Assembled) -> String {
        if register(label).is_some() {
            return format!("; data of {label} is {{ write = … }} or {{ access = … }}");
        }
        let mut elsewhere = assembled.workload.tasks.iter().zip(&assembled.symbols);
        let other = elsewhere.find(|(_, labels)| labels.iter().any(|(name, _)| name == label));
        match (other, &assembled.symbols[index][..]) {
            (Some((other, _)), _) => format!("; task `{}` has one", other.name),
            (None, []) => "; it has no labels".to_string(),
            (None, all) => {
                let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
                format!("; it has {}", names.join(", "))
            }
        }
    }
}

/// The register that `place` begins with, by its place in [`REGISTERS`], and what is behind it. EBX is R14 in 32-bit code.
fn register(place: &str) -> Option<(u8, &str)> {
    let place = place.trim();
    let end = place.find(['+', '-']).unwrap_or(place.len());
    let (name, behind) = place.split_at(end);
    let name = match name.trim() {
        "esp" => "rsp",
        "ebp" => "rbp",
        "edi" => "rdi",
        "esi" => "rsi",
        "ebx" => "r14",
        name => name,
    };
    let found = REGISTERS.iter().position(|register| *register == name)?;
    Some((found as u8, behind.trim()))
}

/// A number of bytes behind its sign.
fn signed(text: &str) -> Option<i32> {
    let (sign, digits) = text.split_at_checked(1)?;
    let bytes = i32::try_from(number(digits.trim())?).ok()?;
    Some(if sign == "-" { -bytes } else { bytes })
}

/// Decimal, or hexadecimal behind 0x. A sign is not of the number.
fn number(text: &str) -> Option<u64> {
    if text.contains('+') {
        return None;
    }
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether code that is read from `begin` on has an instruction at `offset`. What lies beyond the code is not looked at: it
/// is refused elsewhere.
fn begins_instruction(code: &[u8], bits: Bits, begin: u64, offset: u64) -> bool {
    let Some(rest) = code.get(begin as usize..) else { return true };
    let mut decoder = Decoder::with_ip(u32::from(bits.number()), rest, begin, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() < offset {
        let _ = decoder.decode();
    }
    decoder.ip() == offset || offset >= code.len() as u64
}
