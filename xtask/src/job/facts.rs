//! Fact sheets in a job: `[[facts]]`.

use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names, RawExpect};
use super::file::{FileItem, JobFile, PackedItem, Section, Text};
use super::function::Programs;
use super::memory::{self, MemoryFile};
use super::schema::{ExpectText, SizeText};
use super::workload::place;
use crate::compare::LimitTable;
use protocol::facts::Facts;
use protocol::job::Item;
use protocol::limits::{self, LimitError};
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
/// Levels of caches and TLBs whose figures can be expected.
const LEVELS: std::ops::RangeInclusive<u32> = 1..=4;

/// What the processor's caches and TLBs are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Facts")]
pub(crate) struct RawFacts {
    /// Its name. Default: `facts` and its number.
    name: Option<String>,
    /// Memory to measure in, a power of two from 8M on: the largest working set, and the more of it, the larger the caches that can
    /// be told. Default: 256M.
    #[schemars(with = "Option<SizeText>")]
    memory: Option<toml::Value>,
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
        let own = ["line", "memory cycles", "line crossing cycles", "page crossing cycles"];
        let mut whole: Vec<String> = own.map(String::from).to_vec();
        for level in LEVELS {
            whole.extend(["bytes", "ways", "cycles"].map(|what| format!("L{level} {what}")));
            for page in [4, 2048] {
                let name = format!("L{level} TLB of {page} KiB pages");
                let all = ["entries", "ways", "walk cycles"];
                whole.extend(all.map(|what| format!("{name} {what}")));
            }
        }
        let names = Names { whole, behind: &[], events: Vec::new() };
        names.check(&self.criteria).map_err(|message| self.refused("", message))
    }

    fn refused(&self, _source: &str, message: String) -> JobError {
        JobError::Facts { place: self.place.clone(), name: self.name.clone(), message }
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
        let refuse =
            |message| JobError::Facts { place: place.clone(), name: name.clone(), message };
        let bytes = match &raw.memory {
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
            memory: vec![MemoryFile::large(MEMORY, bytes)],
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
            let item = Item::Facts(Facts { name, bytes: facts.bytes });
            let wrong = |error: LimitError| facts.refused("", error.to_string());
            limits::check_item(&item).map_err(wrong)?;
            Ok((item, None))
        };
        all.iter().map(pack).collect()
    }
}
