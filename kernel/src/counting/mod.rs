//! Counting over longer work than a snippet: by several parties, with more events than counters.
//!
//! - [`VirtualCounter`]: 64 bits over a hardware counter of any width, by interrupt and by read.
//! - [`Request`], [`Set`]: what is to be counted, put together first; [`Session`]: a set bound to the counters, which
//!   its groups share in turns. [`Counts`]: what came of it.
//! - [`owner`]: who may count, the system or tasks. [`contexts`]: counts that follow tasks. [`ledger`]: who of several sets
//!   has the counters when; [`allocate`]: what they ask for.
//! - [`address`]: counting between two addresses, [`gate`] of tasks, [`depth`] of one; [`taken_out`] of it is the kernel's own
//!   part. [`snapshot`]: counts and the machine's own figures in
//!   one read.
//! - [`job`]: the job kind `count`.
//! - [`Platform`]: what all of this needs of the machine beside the PMU's registers.
#![warn(missing_docs)]

pub mod access;
pub mod address;
pub mod allocate;
pub mod charged;
pub mod contexts;
mod counts;
pub mod depth;
mod error;
pub mod gate;
pub mod job;
pub mod ledger;
pub mod owner;
mod platform;
mod reading;
mod request;
pub mod session;
mod set;
pub mod snapshot;
pub mod taken_out;
mod virtual_counter;

pub use counts::{Count, Counts, Mismatch};
pub use error::{CountingError, SetError};
pub use platform::Platform;
pub use request::{AtOverflow, Notify, Request, Run};
pub use session::Session;
pub use set::{Group, Set, Sharing};
pub use virtual_counter::{Mode, VirtualCounter};

#[cfg(test)]
mod tests;
