//! Counting over time: sets of events over tasks, as `perf stat` counts.

use crate::workload::Workload;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Events to count while tasks run.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Count<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What is counted.
    #[serde(borrow)]
    pub requests: Vec<CountRequest<'a>>,
    /// Whether all requests have to be counted at the same time. If not, those that do not fit take turns, at each
    /// tick of the workload.
    pub together: bool,
    /// What is done at the overflow of a request with [`CountRequest::every`].
    pub at_overflow: AtOverflow,
    /// Passes through all requests after which counting ends; 0: with the tasks.
    pub passes: u64,
    /// Time between two rows of the series of counts, in nanoseconds, rounded up to ticks; 0: no series.
    pub interval_ns: u64,
    /// Time that each task may take, in microseconds; a task that takes longer is ended.
    pub limit_us: u64,
    /// What runs.
    #[serde(borrow)]
    pub workload: Workload<'a>,
    /// Where counting starts and stops, all in one task of ring 3; only what that task does in between is counted. Empty:
    /// everything is counted, from the beginning to the end.
    pub gate: Vec<GatePoint>,
}

/// An address at which counting starts or stops, just before the instruction there.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct GatePoint {
    /// Index of the task.
    pub task: u16,
    /// Bytes from the beginning of the task's init code.
    pub offset: u64,
    /// What happens.
    pub act: GateAct,
}

/// What happens at an address.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateAct {
    /// Counting starts.
    #[default]
    Start,
    /// Counting stops.
    Stop,
}

/// One event.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CountRequest<'a> {
    /// The event, in the syntax of the crate `events`.
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    /// Where its count starts.
    pub preset: u64,
    /// Overflows after each so many events.
    pub every: Option<u64>,
    /// Requests, by their number, that count nothing before this one's first overflow.
    pub starts: Vec<u16>,
    /// Counted in every pass.
    pub correlate: bool,
}

/// What a run does when a request overflows.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtOverflow {
    /// The same requests count on.
    #[default]
    Same,
    /// The next ones count.
    Next,
    /// Nothing counts any more.
    Stop,
}
