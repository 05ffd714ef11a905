//! The PMU's registers as types. Reserved and unknown bits are kept as they were read.

mod control;
mod lbr;
mod metrics;
mod select;

pub use control::{DebugCtl, FixedControl, FixedField, GlobalStatus, PerfCapabilities};
pub use lbr::{ArchLbrControl, LbrSelect};
pub use metrics::{PerfMetrics, Slots};
pub use select::{AmdSelect, EventSelect};
