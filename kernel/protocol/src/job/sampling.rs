//! Sampling: where a workload is when a counter has counted so many events, or a time has passed.

use crate::job::exact::Filter;
use crate::job::workload::{Ring, Workload};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A workload to sample, and how.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Sampling<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What is sampled by: all at once, each with its own period.
    #[serde(borrow)]
    pub events: Vec<SampledEvent<'a>>,
    /// Time between two samples that a timer takes, in nanoseconds; 0: no timer.
    pub interval_ns: u64,
    /// The work.
    #[serde(borrow)]
    pub workload: Workload<'a>,
    /// Time that each task may take, in microseconds, where a scheduler runs them and its timer does not sample; a task
    /// that takes longer is ended.
    pub limit_us: u64,
    /// What goes into the report.
    pub keep: Keep,
    /// Samples that the log holds; with [`Keep::Histogram`], different addresses that the histogram holds.
    pub capacity: u32,
    /// What happens when the log is full.
    pub on_full: OnFull,
    /// How the interrupt comes.
    pub delivery: Delivery,
    /// Whether the handler's work is kept out of the counts.
    pub freeze: Freeze,
    /// General registers that go with each sample, as bits in the order of their encoding: RAX, RCX, RDX, RBX, RSP,
    /// RBP, RSI, RDI, R8 to R15. Only with [`Keep::Samples`].
    pub registers: u16,
    /// Most samples a millisecond: what comes faster gets a longer period. 0: no limit.
    pub limit_per_ms: u32,
    /// Every event is sampled with PEBS: by records that the processor writes of the instruction itself, and not by an
    /// interrupt after it. Without it, those whose attributes say so (`:p`).
    pub precise: bool,
    /// The branches that the processor recorded before each sample are counted.
    pub branches: bool,
    /// Periods of instruction-based samples are random, with the given one as their mean.
    pub randomise: bool,
    /// Samples have the calls that led to them.
    pub call_graph: Option<CallGraph>,
    /// Vector registers that go with each sample, out of its PEBS record. Only with [`Keep::Samples`].
    pub vectors: Vec<VectorRegisters>,
    /// Events that are counted beside, and whose counters' values go with each sample, out of its PEBS record. Only with
    /// [`Keep::Samples`].
    #[serde(borrow)]
    pub counters: Vec<Cow<'a, str>>,
    /// Of which instructions the events are estimated, by the samples that are of those. Only with [`Keep::Samples`] and `precise`.
    #[serde(borrow)]
    pub only: Filter<'a>,
    /// Energy that is read before the workload runs and after it.
    #[serde(borrow)]
    pub energy: Vec<Cow<'a, str>>,
    /// Events of the uncore that are read then: one each, or several in braces that are to be counted at the same time.
    #[serde(borrow)]
    pub uncore: Vec<Cow<'a, str>>,
}

impl Sampling<'_> {
    /// Whether the tasks need a scheduler: all but a single one of ring 0 that nothing preempts.
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        match &self.workload.tasks[..] {
            [task] => {
                self.workload.tick_ns != 0
                    || task.ring == Ring::User
                    || task.parent.is_some()
                    || task.cpu.is_some_and(|cpu| cpu != 0)
            }
            _ => true,
        }
    }
}

/// Vector registers of a sample. Which of them there are is a matter of the processor's records: CPUID leaf 0x23.4 EBX.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VectorRegisters {
    /// XMM0 to XMM15.
    Xmm,
    /// YMM0 to YMM15, whole: XMM0 to XMM15 are their lower halves.
    Ymm,
    /// ZMM0 to ZMM15, whole: YMM0 to YMM15 are their lower halves.
    Zmm,
    /// ZMM16 to ZMM31.
    Hi16Zmm,
    /// The opmask registers K0 to K7.
    Opmask,
}

impl VectorRegisters {
    /// All, in the order in which samples have them.
    pub const ALL: [Self; 5] = [Self::Xmm, Self::Ymm, Self::Zmm, Self::Hi16Zmm, Self::Opmask];

    /// As jobs name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xmm => "xmm",
            Self::Ymm => "ymm",
            Self::Zmm => "zmm",
            Self::Hi16Zmm => "hi16-zmm",
            Self::Opmask => "opmask",
        }
    }

    /// How many registers, and words of 8 bytes of each.
    #[must_use]
    pub const fn shape(self) -> (usize, usize) {
        match self {
            Self::Xmm => (16, 2),
            Self::Ymm => (16, 4),
            Self::Zmm | Self::Hi16Zmm => (16, 8),
            Self::Opmask => (8, 1),
        }
    }

    /// The name of the `n`-th of its registers: letters and the first one's number, to which n is added.
    #[must_use]
    pub const fn register(self) -> (&'static str, usize) {
        match self {
            Self::Xmm => ("xmm", 0),
            Self::Ymm => ("ymm", 0),
            Self::Zmm => ("zmm", 0),
            Self::Hi16Zmm => ("zmm", 16),
            Self::Opmask => ("k", 0),
        }
    }
}

/// Where the calls that led to a sample come from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CallGraph {
    /// Branch records in call-stack mode: Intel's, from Haswell on.
    Lbr,
}

/// An event that is sampled by.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SampledEvent<'a> {
    /// In the syntax of the crate `events`.
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    /// How often.
    pub rate: Rate,
}

/// How often an event is sampled.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Rate {
    /// Each time after so many events.
    Period(u64),
    /// With the period that makes about so many samples a second, by a run of the workload that only counts.
    PerSecond(u32),
}

/// What is kept of the samples.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// How often each address came.
    #[default]
    Histogram,
    /// Each sample by itself.
    Samples,
}

/// What happens when the log is full.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnFull {
    /// Later samples are dropped, and counted.
    #[default]
    Drop,
    /// The counters stop.
    Stop,
}

/// How the overflow's interrupt comes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// As a vector, while interrupts are on.
    #[default]
    Fixed,
    /// As NMI, always.
    Nmi,
}

/// Whether the handler's work is kept out of the counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// By the processor where it can, else by the handler.
    #[default]
    Auto,
    /// By the handler, which stops the counters.
    Software,
    /// It is counted in ring 0, as on a system that does not care.
    Off,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::job::workload::tests::any_workload;
    use proptest::prelude::*;

    prop_compose! {
        fn any_event()(event in ".{0,20}", period: bool, n: u32) -> SampledEvent<'static> {
            let rate = if period { Rate::Period(n.into()) } else { Rate::PerSecond(n) };
            SampledEvent { event: Cow::Owned(event), rate }
        }
    }

    prop_compose! {
        pub fn any_sampling()(
            name in ".{0,40}", events in prop::collection::vec(any_event(), 0..5), interval_ns: u64,
            workload in any_workload(), samples: bool, capacity: u32, stop: bool, nmi: bool,
            registers: u16, limit_per_ms: u32, limit_us: u64, precise: bool, branches: bool,
            stacks: bool, randomise: bool,
            vectors in prop::collection::vec(prop::sample::select(&VectorRegisters::ALL[..]), 0..6), counters in prop::collection::vec(".{0,20}", 0..4),
            energy in prop::collection::vec(".{0,20}", 0..3), uncore in prop::collection::vec(".{0,20}", 0..3),
        ) -> Sampling<'static> {
            Sampling {
                name: Cow::Owned(name), events, interval_ns, workload, capacity, registers, limit_per_ms, limit_us,
                precise, branches, randomise,
                call_graph: stacks.then_some(CallGraph::Lbr),
                vectors, counters: counters.into_iter().map(Cow::Owned).collect(),
                keep: if samples { Keep::Samples } else { Keep::Histogram },
                on_full: if stop { OnFull::Stop } else { OnFull::Drop },
                delivery: if nmi { Delivery::Nmi } else { Delivery::Fixed },
                freeze: Freeze::Software,
                only: Filter::default(),
                energy: energy.into_iter().map(Cow::Owned).collect(),
                uncore: uncore.into_iter().map(Cow::Owned).collect(),
            }
        }
    }
}
