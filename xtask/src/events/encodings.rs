//! From an event as it is written to registers, and from a register back to events.

use super::check::OFFERED;
use super::{EventsError, list, wildcards};
use events::cpu::Vendor;
use events::decode::{self, Closeness};
use events::encode::{Choice, Counters, EncodeError, Encoded, Refusal, encode};
use events::generic::NAMES;
use events::hybrid::check_list;
use events::msr::{self, MsrValue};
use events::parse::{parse_event, parse_list};
use events::processor::Processor;
use events::register::EventSelect;
use events::tables::{Core, nearest};
use serde::Serialize;
use std::str::FromStr;

/// One way to count a written event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EncodedRow {
    /// The event as written.
    pub text: String,
    /// The number of the group in braces that it is of, from 1.
    pub group: Option<usize>,
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
    /// PEBS level requested, 0 to 3.
    pub precise: u8,
    /// What else to know, joined by semicolons.
    pub notes: String,
    /// Why it cannot be counted here; the rest is empty then.
    pub refused: String,
}

/// The ways to count the events of `text`, one or a list, on the processor that the table describes. Of a list, an
/// event that is not available is a row with the reason.
///
/// # Errors
/// It is not an event's form and no list; or a single event that this processor cannot count; why.
pub fn encoded(core: &Core<'_>, text: &str) -> Result<Vec<EncodedRow>, EventsError> {
    let expanded = wildcards::expand(core, text)?;
    let items = parse_list(&expanded)
        .map_err(|error| EventsError::Syntax { pattern: text.to_string(), error })?;
    check_list(&items)?;
    let single = items.len() == 1 && items[0].requests.len() == 1;
    let processor = Processor::described_by(core);
    let mut rows = Vec::new();
    let mut groups = 0;
    for item in &items {
        let grouped = item.requests.len() > 1;
        groups += usize::from(grouped);
        for request in &item.requests {
            let group = grouped.then_some(groups);
            match encode(request, &processor, Some(core)) {
                Ok(encoded) => rows.extend(rows_of(&encoded, group, core)),
                Err(error) if single => return Err(with_generic(error).into()),
                Err(error) => rows.push(EncodedRow {
                    text: request.text.clone(),
                    group,
                    refused: with_generic(error).reason.to_string(),
                    ..EncodedRow::default()
                }),
            }
        }
    }
    Ok(rows)
}

/// The refusal of an unknown name; where the table has none that is near it, with the generic names that are.
pub(super) fn with_generic(mut error: EncodeError) -> EncodeError {
    if let Refusal::UnknownEvent { name, nearest: near, .. } = &mut error.reason
        && near.is_empty()
    {
        let names = nearest(NAMES.into_iter(), name, OFFERED);
        *near = names.into_iter().map(String::from).collect();
    }
    error
}

fn rows_of(encoded: &Encoded, group: Option<usize>, core: &Core<'_>) -> Vec<EncodedRow> {
    let mut notes: Vec<String> = encoded.notes.iter().map(ToString::to_string).collect();
    if encoded.taken_alone {
        notes.push("no other general-purpose counter may count meanwhile".to_string());
    }
    if !encoded.errata.is_empty() {
        notes.push(format!("errata {}", encoded.errata.replace('|', ", ")));
    }
    for choice in &encoded.choices {
        if let Counters::Metric { field, .. } = choice.counters {
            notes.push(format!(
                "field {field} of MSR_PERF_METRICS, known to 1/255 of the slots of fixed counter 3"
            ));
        }
    }
    let row = |choice: &Choice| {
        let (counters, fixed) = match &choice.counters {
            Counters::General { counters, .. } => (format!("{counters:#x}"), None),
            Counters::Fixed { index, .. } => (String::new(), Some(*index)),
            // Of the slots of that counter.
            Counters::Metric { .. } => (String::new(), Some(3)),
        };
        EncodedRow {
            text: encoded.text.clone(),
            group,
            name: encoded.name.clone(),
            control: control_of(choice, core.vendor()),
            counters,
            fixed,
            msr: msr_of(choice),
            precise: encoded.precise,
            notes: notes.join("; "),
            refused: String::new(),
        }
    };
    encoded.choices.iter().map(row).collect()
}

/// What a choice's control register takes.
pub(super) fn control_of(choice: &Choice, vendor: Vendor) -> String {
    match &choice.counters {
        Counters::General { select, .. } => format!("{:#x}", select.to_bits(vendor)),
        Counters::Fixed { control, .. } | Counters::Metric { control, .. } => {
            format!("{:#x}", control.to_nibble())
        }
    }
}

/// The extra MSR that a choice writes, and its value.
pub(super) fn msr_of(choice: &Choice) -> String {
    choice.msr.map_or(String::new(), |m| format!("{:#x}={:#x}", m.address, m.value))
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
    /// Fields in which the register that the text gets differs from the one read, joined by commas: no text of an
    /// event can say them.
    pub differs: String,
    /// Why this processor does not count the text as it is; empty: it does.
    pub refused: String,
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
    let processor = Processor::described_by(core);
    let refused = |text: &str| {
        let request = parse_event(text).map_err(|error| error.to_string());
        let encoded = request.and_then(|request| {
            encode(&request, &processor, Some(core)).map_err(|error| error.reason.to_string())
        });
        encoded.err().unwrap_or_default()
    };
    let row = |candidate: decode::Candidate<'_>| {
        let fields: Vec<&str> = EventSelect::fields(candidate.differs, core.vendor()).collect();
        let event = candidate.event.map(|event| list::EventRow::of(&event, core.vendor()));
        DecodedRow {
            refused: refused(&candidate.text),
            differs: fields.join(", "),
            text: candidate.text,
            closeness: match candidate.closeness {
                Closeness::Exact => "exact",
                Closeness::Modified => "modified",
                Closeness::OtherThreshold => "other threshold",
                Closeness::MsrUnknown => "if its MSR is right",
                Closeness::UnitMasks => "unit masks",
                Closeness::Architectural => "architectural",
                Closeness::Raw => "raw",
                Closeness::Word => "function word",
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
        value.map(Self).map_err(|_| format!("{text:?} is not a number of 64 bits"))
    }
}

/// What an extra MSR holds: `0x1a6=0x10003`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Msr(pub MsrValue);

impl FromStr for Msr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, value) = text.split_once('=').ok_or("it must have the form ADDRESS=VALUE")?;
        let address = address.parse::<Number>()?.0;
        let address = u32::try_from(address).map_err(|_| format!("{address:#x} is not an MSR"))?;
        Ok(Self(msr::MsrValue { address, value: value.parse::<Number>()?.0 }))
    }
}

#[cfg(test)]
mod tests;
