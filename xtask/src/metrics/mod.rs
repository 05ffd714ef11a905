//! Metrics: figures that a formula makes of the counts of several events.
//!
//! [`table`] has perfmon's metrics and our own, [`names`] finds those that are requested, [`formula`] reads and evaluates
//! what they are made of, [`request`] says which events they need, [`plan`] puts these into the fewest passes,
//! and [`evaluate`] makes rows of a report's counts (those of tasks as `counted` has them, those of several processors as `on_processors` has,
//! those of histories as `histories` has), which [`tree`] puts in order and leads down.

mod beside;
mod counted;
pub mod evaluate;
pub mod formula;
mod histories;
pub mod names;
mod on_processors;
pub mod plan;
mod reach;
pub(crate) mod render;
pub mod request;
pub(crate) mod shares;
pub mod table;
pub mod tree;

pub use evaluate::{ItemMetrics, MetricRow, RetiredRow};
pub use names::{Asked, MetricError};
pub use request::{Ask, Target};
