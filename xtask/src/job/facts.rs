//! Fact sheets in a job: `[[facts]]`.

mod names;

use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names, RawExpect};
use super::file::{FileItem, JobFile, PackedItem, Section, Text};
use super::function::Programs;
use super::memory::{self, MemoryFile};
use super::schema::{ExpectText, SizeText};
use super::workload::place;
use crate::limits::LimitTable;
use protocol::job::Item;
use protocol::job::facts::{Facts, Parts, Watch};
use protocol::job::limits::{self, LimitError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// The job of `--facts`.
pub(super) const JOB: &str = "name = \"facts\"\n[[facts]]\n";
/// Bytes of memory, if nobody says: 256 times the usual distance of a set's lines in the last cache but one.
const BYTES: u64 = 256 << 20;
/// What the memory is called.
const MEMORY: &str = "facts";

/// Nanoseconds from which on time counts as stolen, if nobody says: some tenfold of what an interrupt takes on real machines.
const THRESHOLD_NS: u32 = 1000;

/// A part of a fact sheet.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FactsPart")]
pub(crate) enum RawPart {
    /// Caches, TLBs, crossings, prefetchers and bandwidth.
    Memory,
    /// The core: predictor of branches, instruction cache, stores, widths, what is in flight, and what rare cases cost.
    Core,
    /// What lies between the processors.
    Cores,
    /// Stolen time, the timer, and what transitions cost.
    Noise,
}

/// What the processor's caches, TLBs and core are, what lies between processors, and what takes their time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Facts")]
pub(crate) struct RawFacts {
    /// Its name. Default: `facts` and its number.
    name: Option<String>,
    /// Memory to measure in, a power of two from 8M on: the largest working set, and the more of it, the larger the caches that can
    /// be told. Default: 256M.
    #[schemars(with = "Option<SizeText>")]
    memory: Option<toml::Value>,
    /// What is looked at: `"memory"`, `"core"`, `"cores"`, `"noise"`. Default: all of it.
    parts: Option<Vec<RawPart>>,
    /// Milliseconds for which each processor is watched for stolen time, at most 600,000. Default: 1000, and 10 with the emulated
    /// PMU, whose clock counts instructions.
    window_ms: Option<u32>,
    /// Nanoseconds from which on the time between two readings of the clock counts as stolen, from 50 on. Default: 1000.
    threshold_ns: Option<u32>,
    /// System management interrupts that are raised meanwhile on the first processor, at most 100, to see that they are found and how
    /// long they take. The machine's firmware is entered for each. Default: 0.
    smis: Option<u32>,
    #[schemars(with = "Option<ExpectText>")]
    expect: Option<RawExpect>,
    allow_uncounted: Option<bool>,
    limits: Option<LimitTable>,
}

/// An item, all decided.
#[derive(Clone, Debug)]
pub struct FactsFile {
    name: String,
    bytes: u64,
    parts: Parts,
    watch: Watch,
    memory: Vec<MemoryFile>,
    criteria: CriteriaFile,
    place: Place,
}

impl FileItem for FactsFile {
    fn place(&self, _source: &str) -> Place {
        self.place.clone()
    }

    fn criteria(&self) -> &CriteriaFile {
        &self.criteria
    }

    fn criteria_mut(&mut self) -> &mut CriteriaFile {
        &mut self.criteria
    }

    fn memory(&self) -> &[MemoryFile] {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut Vec<MemoryFile> {
        &mut self.memory
    }

    fn check_expected(&self, _source: &str) -> Result<(), JobError> {
        let whole = names::all();
        let names = Names { whole, behind: &[], events: Vec::new() };
        names.check(&self.criteria).map_err(|message| self.refused("", message))
    }

    fn refused(&self, _source: &str, message: String) -> JobError {
        JobError::of_item("facts", &self.place, &self.name, message)
    }
}

impl Section for FactsFile {
    type Raw = RawFacts;

    fn decide(
        raw: Spanned<RawFacts>,
        number: usize,
        text: &Text,
        source: &str,
    ) -> Result<Self, JobError> {
        let place = place(text, source, &raw.span());
        let raw = raw.into_inner();
        let name = raw.name.unwrap_or_else(|| format!("facts {number}"));
        let refuse = |message| JobError::of_item("facts", &place, &name, message);
        let parts = parts(raw.parts.as_deref()).map_err(refuse)?;
        if raw.memory.is_some() && !parts.memory {
            return Err(refuse(
                "memory is for the part `memory`, which is not among the parts".into(),
            ));
        }
        let given =
            [("window-ms", raw.window_ms), ("threshold-ns", raw.threshold_ns), ("smis", raw.smis)];
        if let Some((key, _)) = given.iter().find(|(_, value)| value.is_some() && !parts.noise) {
            return Err(refuse(format!(
                "{key} is for the part `noise`, which is not among the parts"
            )));
        }
        let watch = Watch {
            ms: raw.window_ms.unwrap_or(0),
            threshold_ns: raw.threshold_ns.unwrap_or(THRESHOLD_NS),
            smis: raw.smis.unwrap_or(0),
        };
        if raw.window_ms == Some(0) {
            return Err(refuse("window-ms is 0; it must be 1 to 600000".into()));
        }
        let bytes = match &raw.memory {
            None if !parts.memory => 0,
            None => BYTES,
            Some(toml::Value::Integer(number)) => {
                u64::try_from(*number).map_err(|_| refuse(format!("memory is {number}")))?
            }
            Some(toml::Value::String(text)) => memory::bytes(text).map_err(refuse)?,
            Some(other) => return Err(refuse(format!("memory is {other}; write \"256M\""))),
        };
        Ok(Self {
            name,
            bytes,
            parts,
            watch,
            memory: if parts.memory { vec![MemoryFile::large(MEMORY, bytes)] } else { Vec::new() },
            criteria: CriteriaFile::new(raw.expect, raw.allow_uncounted, raw.limits),
            place,
        })
    }

    fn pack(
        _file: &JobFile,
        all: &[Self],
        _programs: &Programs,
    ) -> Result<Vec<PackedItem>, JobError> {
        let pack = |facts: &Self| {
            let name = Cow::Owned(facts.name.clone());
            let Self { bytes, parts, watch, .. } = *facts;
            let item = Item::Facts(Facts { name, bytes, parts, watch });
            let wrong = |error: LimitError| facts.refused("", error.to_string());
            limits::check_item(&item).map_err(wrong)?;
            Ok((item, None))
        };
        all.iter().map(pack).collect()
    }
}

/// What is looked at: all of it if nobody says.
fn parts(raw: Option<&[RawPart]>) -> Result<Parts, String> {
    let Some(raw) = raw else {
        return Ok(Parts { memory: true, core: true, cores: true, noise: true });
    };
    let has = |part| raw.contains(&part);
    if raw.is_empty() {
        return Err("parts is empty; there are `memory`, `core`, `cores` and `noise`".into());
    }
    Ok(Parts {
        memory: has(RawPart::Memory),
        core: has(RawPart::Core),
        cores: has(RawPart::Cores),
        noise: has(RawPart::Noise),
    })
}

#[cfg(test)]
mod tests;
