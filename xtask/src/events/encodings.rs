//! From an event as it is written to registers, and from a register back to events.

use super::{EventsError, list};
use events::decode::{self, Closeness};
use events::encode::{Counters, encode};
use events::msr::{self, MsrValue};
use events::parse::parse_event;
use events::processor::Processor;
use events::tables::Core;
use serde::Serialize;
use std::str::FromStr;

/// One way to count a written event.
#[derive(Clone, Debug, Serialize)]
pub struct EncodedRow {
    /// The event as written.
    pub text: String,
    /// Its name in the table.
    pub name: String,
    /// What the control register takes: the event select, or the fixed counter's field in IA32_FIXED_CTR_CTRL.
    pub control: String,
    /// General-purpose counters that can count it, a bit mask; empty for a fixed counter.
    pub counters: String,
    /// The fixed counter.
    pub fixed: Option<u8>,
    /// The extra MSR and its value, `0x1a6=0x10003`.
    pub msr: String,
    /// PEBS level asked for, 0 to 3.
    pub precise: u8,
    /// What else to know, joined by semicolons.
    pub notes: String,
}

/// The ways to count `text` on the processor that the table describes.
///
/// # Errors
/// It is no event's form, or this processor cannot count it; why.
pub fn encoded(core: &Core<'_>, text: &str) -> Result<Vec<EncodedRow>, EventsError> {
    let request = parse_event(text)
        .map_err(|error| EventsError::Syntax { pattern: text.to_string(), error })?;
    let encoded = encode(&request, &Processor::described_by(core), Some(core))?;
    let mut notes: Vec<String> = encoded.notes.iter().map(ToString::to_string).collect();
    if encoded.taken_alone {
        notes.push("no other general-purpose counter may count meanwhile".to_string());
    }
    if !encoded.errata.is_empty() {
        notes.push(format!("errata {}", encoded.errata.replace('|', ", ")));
    }
    let row = |choice: &events::encode::Choice| {
        let (control, counters, fixed) = match &choice.counters {
            Counters::General { counters, select, .. } => {
                (select.to_bits(core.vendor()), format!("{counters:#x}"), None)
            }
            Counters::Fixed { index, control } => {
                (u64::from(control.to_nibble()), String::new(), Some(*index))
            }
        };
        EncodedRow {
            text: text.to_string(),
            name: encoded.name.clone(),
            control: format!("{control:#x}"),
            counters,
            fixed,
            msr: choice.msr.map_or(String::new(), |m| format!("{:#x}={:#x}", m.address, m.value)),
            precise: encoded.precise,
            notes: notes.join("; "),
        }
    };
    Ok(encoded.choices.iter().map(row).collect())
}

/// One reading of a register.
#[derive(Clone, Debug, Serialize)]
pub struct DecodedRow {
    /// What to write to get the register.
    pub text: String,
    /// How near it is: `exact`, `modified`, ...
    pub closeness: &'static str,
    /// The event of the table, if it is one.
    pub event: String,
    /// Remarks on that.
    pub remarks: String,
}

/// What an event select register may stand for, the best reading first.
///
/// # Errors
/// Reserved bits are set.
pub fn decoded(
    core: &Core<'_>,
    value: u64,
    msrs: &[MsrValue],
) -> Result<Vec<DecodedRow>, EventsError> {
    let candidates = decode::general(value, msrs, core.vendor(), Some(core))?;
    let row = |candidate: decode::Candidate<'_>| {
        let event = candidate.event.map(|event| list::EventRow::of(&event, core.vendor()));
        DecodedRow {
            text: candidate.text,
            closeness: match candidate.closeness {
                Closeness::Exact => "exact",
                Closeness::Modified => "modified",
                Closeness::OtherThreshold => "other threshold",
                Closeness::MsrUnknown => "if its MSR is right",
                Closeness::UnitMasks => "unit masks",
                Closeness::Architectural => "architectural",
                Closeness::Raw => "raw",
            },
            remarks: event.as_ref().map_or(String::new(), list::EventRow::remarks),
            event: event.map_or(String::new(), |event| event.name),
        }
    };
    Ok(candidates.into_iter().map(row).collect())
}

/// A number, decimal or with `0x`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Number(pub u64);

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        value.map(Self).map_err(|_| format!("{text:?} is no number of 64 bits"))
    }
}

/// What an extra MSR holds: `0x1a6=0x10003`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Msr(pub MsrValue);

impl FromStr for Msr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, value) = text.split_once('=').ok_or("it has the form ADDRESS=VALUE")?;
        let address = address.parse::<Number>()?.0;
        let address = u32::try_from(address).map_err(|_| format!("{address:#x} is no MSR"))?;
        Ok(Self(msr::MsrValue { address, value: value.parse::<Number>()?.0 }))
    }
}

#[cfg(test)]
mod tests;
