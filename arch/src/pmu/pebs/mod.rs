//! Precise event-based sampling (PEBS): the processor itself writes a record of the instruction that an event belongs
//! to, with its registers and, for accesses, the data's address (SDM vol. 3, 18.4.9 and 20.3; layouts of the record
//! formats as Linux has them, `arch/x86/events/intel/ds.c`).
//!
//! - [`Format`]: which records a processor writes, and [`decode`] for all of them; pure.
//! - [`DataConfig`]: the groups that are requested from format 4 on, and [`Adaptive`]: a record with them; pure.
//! - [`Contents`] and [`Architectural`]: the same of architectural PEBS, which has the groups in a register of each counter.
//! - [`Store`]: where records go, with the counters' reset values: the debug store, or the buffer of architectural PEBS.
//! - [`Drain`]: what a handler takes records out with, without lock or allocation.
//!
//! A counter of a period of n starts from `-(n - 1)`: the event that makes it overflow arms it, and the record is of the
//! next one (SDM vol. 3, 20.3.1.1.1). The driver switches PEBS on for a counter that is programmed with
//! [`Selection::precise`](crate::pmu::Selection); such a counter raises no interrupt of its own. The buffer does, when
//! it reaches its threshold: status bit 62, or 54 of architectural PEBS.

mod adaptive;
mod architectural;
mod buffer;
mod config;
mod drain;
mod format;
mod groups;
mod record;
mod store;
pub mod vectors;

pub use adaptive::{Adaptive, BranchRecord, General, Snapshot};
pub use architectural::Architectural;
pub use buffer::{BufferBase, BufferIndex};
pub use config::{DataConfig, Groups};
pub use drain::{Drain, Port, Taken};
pub use format::{Format, counters_of};
pub use groups::{Contents, Offer};
pub use record::{Access, Malformed, Record, decode};
pub use store::Store;
pub use vectors::BeyondXmm;

#[cfg(test)]
mod tests;
