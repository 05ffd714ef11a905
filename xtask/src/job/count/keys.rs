//! The keys of `[[count]]`, as written.

use super::event::RawEvent;
use super::gate::RawPoint;
use crate::job::bind::RawBind;
use crate::job::expect::RawExpect;
use crate::job::memory::MemoryFile;
use crate::job::schema::{BindText, CountedText, ExpectText, PointText};
use crate::job::workload::RawTask;
use crate::limits::LimitTable;
use crate::metrics::Asked;
use protocol::job::count::AtOverflow;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

/// Events that are counted while tasks run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Count")]
pub(crate) struct RawCount {
    /// Its name. Default: `count` and its number.
    pub(super) name: Option<String>,
    /// What is counted: events, or tables with what follows from their overflows.
    #[serde(default)]
    #[schemars(with = "Vec<CountedText>")]
    pub(super) events: Vec<RawEvent>,
    /// Refuse events that do not fit at once. Default: false.
    #[serde(default)]
    pub(super) together: bool,
    /// For whom it is counted. Default: system.
    #[schemars(with = "Option<BindText>")]
    pub(super) bind: Option<Spanned<RawBind>>,
    /// Of tasks that are bound: whether children that they start are counted too. Default: true.
    pub(super) inherit: Option<bool>,
    /// What an overflow does. Default: same.
    #[serde(default)]
    pub(super) at_overflow: AtOverflow,
    /// Passes after which counting ends. Default: 0, never.
    #[serde(default)]
    pub(super) passes: u64,
    /// Nanoseconds from one row of the series to the next. Default: 0, no series.
    #[serde(default)]
    pub(super) interval_ns: u64,
    pub(super) tick_ns: Option<u64>,
    pub(super) jitter: Option<u64>,
    pub(super) limit_us: Option<u64>,
    /// Sets with events of their own, bound one after the other before the tasks start, or while they run.
    #[serde(default)]
    #[schemars(with = "Vec<RawSet>")]
    pub(super) set: Vec<Spanned<RawSet>>,
    /// Whether lines of the serial line are taken while it runs, which start, stop, read and change sets. Default: false.
    #[serde(default)]
    pub(super) console: bool,
    /// Addresses of tasks where counting starts, such as `task:label+8`: four of each task.
    #[serde(default)]
    #[schemars(with = "Vec<PointText>")]
    pub(super) start_at: Vec<Spanned<RawPoint>>,
    /// Addresses where it stops.
    #[serde(default)]
    #[schemars(with = "Vec<PointText>")]
    pub(super) stop_at: Vec<Spanned<RawPoint>>,
    /// Whether counting stops only after as many stops as there were starts. Default: false.
    #[serde(default)]
    pub(super) nested: bool,
    #[schemars(with = "Option<ExpectText>")]
    pub(super) expect: Option<RawExpect>,
    /// Metrics to show, of everything that ran and of each task; with sets, of each set.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) metrics: Vec<Asked>,
    pub(super) allow_uncounted: Option<bool>,
    pub(super) limits: Option<LimitTable>,
    /// Memory besides the areas of each task; all of them share it.
    #[serde(default)]
    pub(super) memory: Vec<MemoryFile>,
    /// The tasks, parents before their children.
    #[serde(default)]
    #[schemars(with = "Vec<RawTask>")]
    pub(super) task: Vec<Spanned<RawTask>>,
}

/// A set of events that is bound by itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Set")]
pub(super) struct RawSet {
    /// Its name. Default: `set` and its number.
    pub(super) name: Option<String>,
    /// What is counted: events, or tables with what follows from their overflows.
    #[schemars(with = "Vec<CountedText>")]
    pub(super) events: Vec<RawEvent>,
    #[serde(default)]
    pub(super) together: bool,
    #[schemars(with = "Option<BindText>")]
    pub(super) bind: Option<Spanned<RawBind>>,
    pub(super) inherit: Option<bool>,
    /// Evict sets that are bound already. Default: false.
    #[serde(default)]
    pub(super) force: bool,
    /// Microseconds after which it is bound, at a tick. Default: before the tasks start.
    #[schemars(with = "Option<u64>")]
    pub(super) at_us: Option<Spanned<u64>>,
    /// In place of that: it is bound when a task executes `int 0x86` with this number in EAX, each time.
    #[schemars(with = "Option<u64>")]
    pub(super) at_marker: Option<Spanned<u64>>,
    /// Microseconds after which it gives the counters back, at a tick. Default: with the end of the tasks.
    #[schemars(with = "Option<u64>")]
    pub(super) until_us: Option<Spanned<u64>>,
    /// In place of that: it gives them back at this marker, each time.
    #[schemars(with = "Option<u64>")]
    pub(super) until_marker: Option<Spanned<u64>>,
    /// Metrics to show of it, of everything that it counted and of each task.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) metrics: Vec<Asked>,
    /// Get the counters when they are given back, if others have them or take them. Default: false.
    #[serde(default)]
    pub(super) wait: bool,
}
