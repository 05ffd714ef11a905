//! The keys of `[[sample]]`, as written.

use crate::events::EventText;
use crate::job::assemble::Syntax;
use crate::job::expect::RawExpect;
use crate::job::function::{Argument, RawFiles};
use crate::job::memory::MemoryFile;
use crate::job::only::RawOnly;
use crate::job::schema::{ExpectText, FilesText, Width};
use crate::job::workload::RawTask;
use crate::limits::LimitTable;
use crate::metrics::Asked;
use protocol::bits::Bits;
use protocol::job::sampling::{CallGraph, Delivery, Freeze, Keep, OnFull, VectorRegisters};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use toml::Spanned;

/// Code that is sampled while it runs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Sample")]
pub(crate) struct RawSample {
    pub(super) name: Option<String>,
    /// The code, if there is one task.
    #[schemars(with = "Option<String>")]
    pub(super) asm: Option<Spanned<String>>,
    #[schemars(with = "Option<FilesText>")]
    pub(super) object: Option<RawFiles>,
    pub(super) function: Option<String>,
    pub(super) args: Option<Vec<Argument>>,
    pub(super) setup: Option<String>,
    pub(super) teardown: Option<String>,
    /// Code that runs once, before it.
    #[schemars(with = "Option<String>")]
    pub(super) init: Option<Spanned<String>>,
    pub(super) syntax: Option<Syntax>,
    /// How often the code runs. Default: 1.
    pub(super) turns: Option<u64>,
    #[schemars(with = "Option<Width>")]
    pub(super) bits: Option<Bits>,
    /// What samples are taken by, each with a period or a frequency; energy and events of the uncore, which are read of the whole.
    #[serde(default)]
    pub(super) events: Vec<RawEvent>,
    /// Events from one sample to the next, if an event does not say.
    pub(super) period: Option<u64>,
    /// Samples a second, if an event does not say.
    pub(super) frequency: Option<u32>,
    /// Sample by a timer, every so many nanoseconds.
    pub(super) interval_ns: Option<u64>,
    /// What is kept of the samples. Default: histogram.
    #[serde(default)]
    pub(super) keep: Keep,
    /// Entries of the log or of the histogram of each processor. Default: 4096, divided by the number of processors with a task.
    pub(super) capacity: Option<u32>,
    /// What happens when there is no room. Default: drop.
    #[serde(default)]
    pub(super) on_full: OnFull,
    /// How the interrupt comes. Default: fixed.
    #[serde(default)]
    pub(super) delivery: Delivery,
    /// How counters are kept from counting the handler. Default: auto.
    #[serde(default)]
    pub(super) freeze: Freeze,
    /// General registers that are kept with each sample.
    #[serde(default)]
    pub(super) registers: Vec<String>,
    /// Vector registers that are kept with each sample, out of PEBS records; true: XMM0 to XMM15. Default: false.
    #[serde(default)]
    pub(super) vectors: RawVectors,
    /// Events that are counted beside, and whose counters' values are kept with each sample, out of PEBS records.
    #[serde(default)]
    pub(super) counters: Vec<EventText>,
    /// Interrupts in a millisecond above which the period is made longer.
    pub(super) limit_per_ms: Option<u32>,
    /// Sample the instruction itself: by PEBS records, on AMD by IBS. Default: false.
    #[serde(default)]
    pub(super) precise: bool,
    /// Count the branches that the processor recorded before each sample. Default: false.
    #[serde(default)]
    pub(super) branches: bool,
    /// With IBS: periods are random, and the given one is their mean. Default: false.
    #[serde(default)]
    pub(super) randomise: bool,
    /// The calls that led to each sample. lbr: by branch records in call-stack mode, of Intel's processors from Haswell on.
    pub(super) call_graph: Option<CallGraph>,
    /// Estimate the events of some instructions only, by the samples that are of those. It needs precise and keep = "samples".
    pub(super) only: Option<RawOnly>,
    pub(super) tick_ns: Option<u64>,
    pub(super) jitter: Option<u64>,
    pub(super) limit_us: Option<u64>,
    #[schemars(with = "Option<ExpectText>")]
    pub(super) expect: Option<RawExpect>,
    pub(super) allow_uncounted: Option<bool>,
    pub(super) limits: Option<LimitTable>,
    /// Metrics to show: of events that are sampled, of energy, of the uncore and of PERF_METRICS.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) metrics: Vec<Asked>,
    /// Memory besides the areas of each task; all of them share it.
    #[serde(default)]
    pub(super) memory: Vec<MemoryFile>,
    /// Tasks, in place of one code.
    #[serde(default)]
    #[schemars(with = "Vec<RawTask>")]
    pub(super) task: Vec<Spanned<RawTask>>,
}

/// `"cycles"`, or with a rate of its own.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "SampledBy")]
pub(super) enum RawEvent {
    Plain(EventText),
    Own(OwnRate),
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawEvent;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an event, or a table with event, period, frequency or latency")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawEvent, E> {
                EventText::deserialize(StrDeserializer::new(text)).map(RawEvent::Plain)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawEvent, M::Error> {
                OwnRate::deserialize(MapAccessDeserializer::new(map)).map(RawEvent::Own)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// `true`, or the kinds by their names.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "true, false, or a list of xmm, ymm, zmm, hi16-zmm and opmask")]
#[schemars(inline)]
pub(super) enum RawVectors {
    /// XMM0 to XMM15, or none.
    Narrow(bool),
    /// XMM0 to XMM15, YMM0 to YMM15, ZMM0 to ZMM15, ZMM16 to ZMM31, K0 to K7.
    Kinds(Vec<VectorRegisters>),
}

impl Default for RawVectors {
    fn default() -> Self {
        Self::Narrow(false)
    }
}

impl RawVectors {
    /// The kinds.
    ///
    /// # Errors
    /// One is named twice.
    pub(super) fn decide(self) -> Result<Vec<VectorRegisters>, String> {
        let kinds = match self {
            Self::Narrow(true) => vec![VectorRegisters::Xmm],
            Self::Narrow(false) => Vec::new(),
            Self::Kinds(kinds) => kinds,
        };
        let twice = kinds.iter().enumerate().find(|(n, kind)| kinds[..*n].contains(kind));
        match twice {
            Some((_, kind)) => Err(format!("vectors names {} twice", kind.name())),
            None => Ok(kinds),
        }
    }
}

/// An event with a rate of its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "SampledEvent")]
pub(super) struct OwnRate {
    /// The event.
    pub(super) event: EventText,
    /// Events from one sample to the next.
    pub(super) period: Option<u64>,
    /// Samples a second.
    pub(super) frequency: Option<u32>,
    /// With mem-loads: of loads that take longer than so many cycles alone. Default: 3.
    pub(super) latency: Option<u32>,
}
