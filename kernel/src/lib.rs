//! The part of the firmware that does the work: runs the items of a job and turns what they did into
//! records. The bootable program around it is `main.rs`.
//!
//! - [`snippet`]: measuring machine code. [`statistics`]: what many runs come to.
//! - [`exact`]: counting by stepping instead of by counters.
//! - [`history`]: counting cycle by cycle.
//! - [`counting`]: counting over longer work, by sets of events.
//! - [`tasks`]: running tasks that are switched between.
//! - [`bring_up`]: what can be found out about a machine.
//! - [`processors`]: the same on several processors at once.
//! - [`events`]: the event tables that come with a job.
//! - [`sampling`]: where a workload is when events happen.
//! - [`run`]: the loop over a job's items. [`report`]: records on their way out.
//! - [`screen`]: the same in short for somebody who stands in front of the machine.
//!
//! `docs/architecture.md` tells the way of one measurement through the code.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

extern crate alloc;

pub mod bring_up;
pub mod conformance;
pub mod console;
pub mod counting;
pub mod energy;
pub mod events;
pub mod exact;
pub mod heartbeat;
pub mod history;
pub mod machine;
pub mod memory;
pub mod processors;
pub mod random;
pub mod report;
pub mod run;
pub mod sampling;
pub mod screen;
pub mod snippet;
pub mod statistics;
pub mod tasks;
pub mod uncore;
