//! One event of a perfmon file, and the row that it becomes.

use super::fixed::{self, Numbering};
use crate::cpu::Vendor;
use crate::event::{MAX_WAYS, Precise, Way};
use crate::msr;
use crate::pack::sheet::parse;
use crate::pack::{Row, RowError};
use crate::parse::parse_event;
use crate::request::Base;
use serde_json::{Map, Value};

/// An event as the file has it.
pub(super) struct Entry {
    index: usize,
    pub(super) name: String,
    fields: Map<String, Value>,
}

impl Entry {
    /// # Errors
    /// It is not an object, or has no name that is a text.
    pub(super) fn read(index: usize, value: Value) -> Result<Self, RowError> {
        let wrong = |value: &Value, why| RowError::new(index, "", "EventName", &text(value), why);
        let Value::Object(fields) = value else {
            return Err(wrong(&value, "an event is an object with an EventName"));
        };
        match fields.get("EventName") {
            Some(Value::String(name)) => Ok(Self { index, name: name.clone(), fields }),
            Some(other) => Err(wrong(other, "a name must be a string")),
            None => Err(wrong(&Value::Null, "it is missing")),
        }
    }

    /// Whether it is an event of the core; others have a `Unit`.
    pub(super) fn is_core(&self) -> bool {
        let unit = self.text("Unit");
        unit.is_empty() || unit.eq_ignore_ascii_case("core") || unit.starts_with("cpu_")
    }

    /// A field as text: perfmon writes numbers as strings, others as numbers.
    fn text(&self, field: &str) -> String {
        self.fields.get(field).map_or(String::new(), text)
    }

    pub(super) fn wrong(&self, field: &'static str, value: &str, why: &str) -> RowError {
        RowError::new(self.index, &self.name, field, value, why)
    }

    fn list(&self, field: &'static str, most: u64) -> Result<Vec<u64>, RowError> {
        let text = self.text(field);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Option<Vec<u64>> = text.split(',').map(|part| parse(part.trim())).collect();
        match numbers {
            None => Err(self.wrong(field, &text, "this is not a list of numbers")),
            Some(numbers) if numbers.iter().any(|number| *number > most) => {
                let why = format!("a number is too large: the maximum is {most:#x}");
                Err(self.wrong(field, &text, &why))
            }
            Some(numbers) => Ok(numbers),
        }
    }

    fn number(&self, field: &'static str, most: u64) -> Result<u64, RowError> {
        match self.list(field, most)?[..] {
            [] => Ok(0),
            [one] => Ok(one),
            _ => Err(self.wrong(field, &self.text(field), "one number is expected")),
        }
    }

    fn flag(&self, field: &'static str) -> Result<bool, RowError> {
        self.number(field, 1).map(|value| value == 1)
    }

    /// Event code and unit mask, if they are one each.
    pub(super) fn code(&self) -> Option<(u64, u64)> {
        let event = self.number("EventCode", u64::MAX).ok()?;
        Some((event, self.number("UMask", u64::MAX).ok()?))
    }

    /// `0,1,2,3`, with hyper-threading off where both are told.
    fn counters(&self) -> (&'static str, String) {
        match self.text("CounterHTOff").as_str() {
            "" => ("Counter", self.text("Counter")),
            other => ("CounterHTOff", other.to_string()),
        }
    }

    /// The number of the fixed counter, as the file counts them: `Fixed counter 0`, or 32 and
    /// above in the layout of IA32_PERF_GLOBAL_CTRL, which counts from 0.
    pub(super) fn fixed_number(&self) -> Option<Result<u64, RowError>> {
        let (field, text) = self.counters();
        if let Some(number @ 32..=47) = parse(text.trim()) {
            return Some(Ok(number - 32));
        }
        let lower = text.to_ascii_lowercase();
        let number = lower.strip_prefix("fixed counter")?;
        let why = "a fixed counter has a number from 0 to 15";
        let fitting = parse(number.trim()).filter(|number| *number <= 16);
        Some(fitting.ok_or_else(|| self.wrong(field, &text, why)))
    }

    /// The row of a table.
    ///
    /// # Errors
    /// The field that is not understood, does not fit, or contradicts another.
    pub(super) fn row(&self, vendor: Vendor, numbering: Numbering) -> Result<Row, RowError> {
        let name = self.spelled()?;
        let mut row = Row {
            name,
            ways: self.ways(vendor)?,
            cmask: self.number("CounterMask", 0xff)? as u8,
            invert: self.flag("Invert")?,
            edge: self.flag("EdgeDetect")?,
            any_thread: self.flag("AnyThread")?,
            msr_value: self.number("MSRValue", u64::MAX)?,
            precise: match self.number("PEBS", 2)?.max(self.number("Precise", 1)?) {
                0 => Precise::No,
                1 => Precise::Capable,
                _ => Precise::Only,
            },
            data_address: self.flag("Data_LA")?,
            taken_alone: self.flag("TakenAlone")?,
            deprecated: self.flag("Deprecated")?,
            errata: self.errata(),
            ..Row::default()
        };
        let (field, text) = self.counters();
        match self.fixed_number() {
            None => row.counters = self.mask(field, &text)?,
            Some(number) => {
                let index = fixed::index(self, number?, numbering)
                    .map_err(|why| self.wrong(field, &text, why))?;
                row.fixed = Some(index);
                // The tables' convention: a code that is never programmed.
                row.ways = vec![Way { event: 0, umask: u16::from(index) + 1, msr: None }];
            }
        }
        row.check(vendor).map_err(|misfit| self.wrong(misfit.field, &misfit.value, misfit.why))?;
        Ok(row)
    }

    /// The name in characters that lists of events have: others become `_`.
    fn spelled(&self) -> Result<String, RowError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-=:".contains(c);
        let name: String = self.name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        if !self.name.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
            || !name.contains(|c: char| c.is_ascii_alphanumeric())
        {
            let why = "a name has printable ASCII characters, and at least one letter";
            return Err(self.wrong("EventName", &self.name, why));
        }
        // `RFACE` would be read as a raw code, and `7X` as a function word.
        match parse_event(&name).map(|request| (request.base, request.pmu)) {
            Ok((Base::Name(_), None)) => Ok(name),
            _ => Ok(format!("event_{name}")),
        }
    }

    fn errata(&self) -> String {
        match self.text("Errata").as_str() {
            "" | "0" | "null" => String::new(),
            errata => {
                // It is shown next to counts, so it must not contain terminal control characters.
                let shown: String = errata.chars().flat_map(char::escape_debug).collect();
                shown.split(',').map(str::trim).collect::<Vec<_>>().join("|")
            }
        }
    }

    fn mask(&self, field: &'static str, text: &str) -> Result<u32, RowError> {
        let mut mask = 0;
        for part in text.split(',') {
            match parse(part.trim()) {
                Some(counter) if counter < 32 => mask |= 1 << counter,
                _ => {
                    let why = "this is not a list of counters: numbers from 0 to 31 and commas";
                    return Err(self.wrong(field, text, why));
                }
            }
        }
        Ok(mask)
    }

    /// The ways to program it. Of several codes in addition to fewer MSRs, those count that look at an MSR
    /// which is named: Silvermont's `UMask` `0x01,0x02` with `MSRIndex` `0x1a6` is unit mask 0x01.
    fn ways(&self, vendor: Vendor) -> Result<Vec<Way>, RowError> {
        let (most_event, most_umask) = match vendor {
            Vendor::Intel => (0xff, 0xffff),
            Vendor::Amd => (0xfff, 0xff),
        };
        let extension = self.number("UMaskExt", 0xff)?;
        let or_zero = |list: Vec<u64>| if list.is_empty() { vec![0] } else { list };
        let events = or_zero(self.list("EventCode", most_event)?);
        let umasks = or_zero(self.list("UMask", most_umask)?);
        let mut msrs = self.list("MSRIndex", u64::from(u32::MAX - 1))?;
        msrs.retain(|msr| *msr != 0);
        let count = events.len().max(umasks.len());
        let fits = |length: usize| length == count || length == 1;
        if !fits(events.len()) || !fits(umasks.len()) || count > MAX_WAYS {
            let why = "EventCode and UMask have different numbers of values, or more than four";
            return Err(self.wrong("UMask", &self.text("UMask"), why));
        }
        let at = |list: &[u64], index: usize| *list.get(index).unwrap_or(&list[0]);
        let code = |index| Way {
            event: at(&events, index) as u16,
            umask: (at(&umasks, index) | extension << 8) as u16,
            msr: None,
        };
        let codes: Vec<Way> = (0..count).map(code).collect();
        if msrs.is_empty() {
            return Ok(codes);
        }
        let named = |msr: u32| msrs.contains(&u64::from(msr));
        if msrs.len() == count {
            // In the order given, unless the codes are known to look at these MSRs the other way
            // round.
            let known: Vec<Way> = codes.iter().filter_map(looking).collect();
            if known.len() == count && known.iter().all(|way| way.msr.is_some_and(named)) {
                return Ok(known);
            }
            let pair = |(way, msr): (Way, &u64)| Way { msr: Some(*msr as u32), ..way };
            return Ok(codes.into_iter().zip(&msrs).map(pair).collect());
        }
        let looking: Vec<Way> =
            codes.iter().filter_map(looking).filter(|way| way.msr.is_some_and(named)).collect();
        if looking.is_empty() {
            let why = "it does not match EventCode and UMask: no code is known to use it";
            return Err(self.wrong("MSRIndex", &self.text("MSRIndex"), why));
        }
        Ok(looking)
    }
}

/// A code with the MSR that it is known to look at.
fn looking(code: &Way) -> Option<Way> {
    msr::usual(code).map(|address| Way { msr: Some(address), ..*code })
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_string(),
        Value::Bool(on) => u8::from(*on).to_string(),
        other => other.to_string(),
    }
}
