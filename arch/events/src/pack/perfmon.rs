//! A user's own events, in the form of Intel's perfmon files, merged over a table.
//!
//! Taken: a file with `Header` and `Events`, or a bare array. Numbers may be strings, as perfmon
//! has them, or numbers. What is not about programming the counter (descriptions, sampling periods)
//! is skipped.

use super::sheet::parse;
use super::{PackError, Row, SourceTable, Sources, row, table_name};
use crate::cpu::Vendor;
use crate::event::Precise;
use crate::tables::fold;
use serde::Deserialize;
use serde_json::Value;

/// What a merge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Events that the table did not have.
    pub added: Vec<String>,
    /// Events of the table that were replaced, because their names mean the same.
    pub replaced: Vec<String>,
    /// Events that are not the core's (they have a `Unit`), which this crate does not count.
    pub skipped: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    WithHeader {
        #[serde(rename = "Events")]
        events: Vec<Entry>,
    },
    Bare(Vec<Entry>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    event_name: String,
    #[serde(default)]
    event_code: Value,
    #[serde(default, rename = "UMask")]
    umask: Value,
    #[serde(default, rename = "UMaskExt")]
    umask_ext: Value,
    #[serde(default)]
    counter: Value,
    #[serde(default, rename = "CounterHTOff")]
    counter_ht_off: Value,
    #[serde(default)]
    counter_mask: Value,
    #[serde(default)]
    invert: Value,
    #[serde(default)]
    any_thread: Value,
    #[serde(default)]
    edge_detect: Value,
    #[serde(default, rename = "MSRIndex")]
    msr_index: Value,
    #[serde(default, rename = "MSRValue")]
    msr_value: Value,
    #[serde(default, rename = "PEBS")]
    pebs: Value,
    #[serde(default)]
    precise: Value,
    #[serde(default, rename = "Data_LA")]
    data_la: Value,
    #[serde(default)]
    taken_alone: Value,
    #[serde(default)]
    errata: Value,
    #[serde(default)]
    deprecated: Value,
    #[serde(default)]
    unit: Value,
}

impl Sources {
    /// Merges events over the table with this name, which is made if it is not there (then
    /// `processors` must be told who uses it). An event whose name means the same as one of
    /// the table's, spelling forgiven, replaces it.
    ///
    /// # Errors
    /// [`PackError::Json`] if it is no perfmon file, [`PackError::JsonField`] with the event and
    /// the field if a value is not understood. Then nothing is changed.
    pub fn merge_perfmon(&mut self, table: &str, json: &str) -> Result<Merged, PackError> {
        let entries = match serde_json::from_str(json)? {
            File::WithHeader { events } | File::Bare(events) => events,
        };
        let mut merged = Merged::default();
        let mut rows = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let unit = text(&entry.unit);
            if unit.is_empty() || unit.eq_ignore_ascii_case("core") || unit.starts_with("cpu_") {
                rows.push(entry.row(index)?);
            } else {
                merged.skipped.push(entry.event_name.clone());
            }
        }
        let name = table_name(table);
        let at = self.tables.iter().position(|table| table.name == name).unwrap_or_else(|| {
            self.tables.push(SourceTable {
                name: name.to_string(),
                vendor: Some(Vendor::Intel),
                source: "user".to_string(),
                ..SourceTable::default()
            });
            self.tables.len() - 1
        });
        for row in rows {
            self.tables[at].put(row, &mut merged);
        }
        Ok(merged)
    }
}

impl SourceTable {
    fn put(&mut self, row: Row, merged: &mut Merged) {
        let same: Vec<usize> = (0..self.rows.len())
            .filter(|index| fold::same(&self.rows[*index].name, &row.name))
            .collect();
        match same[..] {
            [] => {
                merged.added.push(row.name.clone());
                self.rows.push(row);
            }
            [first, ref rest @ ..] => {
                merged.replaced.push(self.rows[first].name.clone());
                for name in self.generics.iter_mut().flatten() {
                    if same.iter().any(|index| self.rows[*index].name == *name) {
                        name.clone_from(&row.name);
                    }
                }
                for index in rest.iter().rev() {
                    self.rows.remove(*index);
                }
                self.rows[first] = row;
            }
        }
    }
}

/// A value as text: perfmon writes numbers as strings, others as numbers.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_string(),
        Value::Bool(on) => u8::from(*on).to_string(),
        other => other.to_string(),
    }
}

impl Entry {
    fn wrong(
        &self,
        index: usize,
        field: &'static str,
        value: &Value,
        why: &'static str,
    ) -> PackError {
        PackError::JsonField {
            index,
            name: self.event_name.clone(),
            field,
            value: text(value),
            why,
        }
    }

    fn row(&self, index: usize) -> Result<Row, PackError> {
        let wrong = |field, value, why| self.wrong(index, field, value, why);
        let list = |field, value, most: u64| {
            let text = text(value);
            if text.is_empty() {
                return Ok(Vec::new());
            }
            text.split(',')
                .map(|part| parse(part.trim()).filter(|number| *number <= most))
                .collect::<Option<Vec<u64>>>()
                .ok_or_else(|| {
                    wrong(field, value, "this is no list of numbers, or one is too large")
                })
        };
        let number = |field, value, most| match list(field, value, most)?[..] {
            [] => Ok(0),
            [one] => Ok(one),
            _ => Err(wrong(field, value, "one number is expected")),
        };
        let flag = |field, value| number(field, value, 1).map(|value| value == 1);
        if self.event_name.is_empty() || !self.event_name.bytes().all(|b| b.is_ascii_graphic()) {
            let name = Value::String(self.event_name.clone());
            return Err(wrong(
                "EventName",
                &name,
                "a name has ASCII characters only, and at least one",
            ));
        }
        let extension = number("UMaskExt", &self.umask_ext, 0xff)?;
        let umasks: Vec<u64> = list("UMask", &self.umask, 0xffff)?
            .iter()
            .map(|umask| umask | extension << 8)
            .collect();
        let mut msrs = list("MSRIndex", &self.msr_index, u64::from(u32::MAX - 1))?;
        msrs.retain(|msr| *msr != 0);
        let mut ways = row::ways(
            &or_zero(list("EventCode", &self.event_code, 0xfff)?),
            &or_zero(umasks),
            &msrs,
        )
        .ok_or_else(|| {
            wrong("MSRIndex", &self.msr_index, "it does not go with EventCode and UMask")
        })?;
        let (counters, fixed) = self.counters(index)?;
        if let Some(fixed) = fixed {
            // The tables' convention: a code that is never programmed.
            ways.truncate(1);
            ways[0].event = 0;
            ways[0].umask = u16::from(fixed) + 1;
        }
        Ok(Row {
            name: self.event_name.clone(),
            ways,
            cmask: number("CounterMask", &self.counter_mask, 0xff)? as u8,
            invert: flag("Invert", &self.invert)?,
            edge: flag("EdgeDetect", &self.edge_detect)?,
            any_thread: flag("AnyThread", &self.any_thread)?,
            counters,
            fixed,
            msr_value: number("MSRValue", &self.msr_value, u64::MAX)?,
            precise: match number("PEBS", &self.pebs, 2)?.max(number("Precise", &self.precise, 1)?)
            {
                0 => Precise::No,
                1 => Precise::Capable,
                _ => Precise::Only,
            },
            data_address: flag("Data_LA", &self.data_la)?,
            taken_alone: flag("TakenAlone", &self.taken_alone)?,
            deprecated: flag("Deprecated", &self.deprecated)?,
            errata: match text(&self.errata).as_str() {
                "" | "0" | "null" => String::new(),
                errata => errata.split(',').map(str::trim).collect::<Vec<_>>().join("|"),
            },
        })
    }

    /// `0,1,2,3` or `Fixed counter 0`; with hyper-threading off where both are told.
    fn counters(&self, index: usize) -> Result<(u32, Option<u8>), PackError> {
        let value = match text(&self.counter_ht_off).as_str() {
            "" => &self.counter,
            _ => &self.counter_ht_off,
        };
        let wrong = |why| self.wrong(index, "Counter", value, why);
        let text = text(value).to_ascii_lowercase();
        if let Some(number) = text.strip_prefix("fixed counter") {
            let fixed = parse(number.trim()).filter(|fixed| *fixed < 16);
            return match fixed {
                Some(fixed) => Ok((0, Some(fixed as u8))),
                None => Err(wrong("a fixed counter has a number from 0 to 15")),
            };
        }
        let mut mask = 0;
        for part in text.split(',') {
            match parse(part.trim()) {
                Some(counter) if counter < 32 => mask |= 1 << counter,
                _ => {
                    return Err(wrong("these are no counters: numbers from 0 to 31 and commas"));
                }
            }
        }
        Ok((mask, None))
    }
}

fn or_zero(list: Vec<u64>) -> Vec<u64> {
    if list.is_empty() { vec![0] } else { list }
}
