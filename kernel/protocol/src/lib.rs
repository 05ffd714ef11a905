//! What the host and the firmware say to each other.
//!
//! - [`job`]: the work that the host packs beside the kernel, and [`limits`], which both sides check.
//! - [`bits`]: 64-bit and 32-bit code. [`control`]: what a snippet asks of the machine. [`marker`]: where counting pauses within it.
//! - [`criteria`]: what an item has to come to, and [`mod@verdict`], which judges it.
//! - [`mod@count`]: what is counted over tasks. [`exact`]: what is counted by stepping. [`history`]: what is counted cycle by
//!   cycle.
//! - [`mod@digest`]: what a run came to, small enough for QR codes.
//! - [`program`]: compiled code, which lies beside the job.
//! - [`requirement`]: what the code of items needs of the processor.
//! - [`ramdisk`]: the job's binary form, with magic, version and checksum.
//! - [`record`]: the report, and [`mod@line`], its form on the serial line: one JSON object per line,
//!   with sequence number and checksum.
//! - [`authentication`]: the key of a boot, and the code on each line that only who has it can make.
//! - [`mod@kinds`]: the kinds of items, in one table.
//! - [`ktap`]: the report as the kernel's test protocol, with the records as its diagnostics.
//! - [`serial`]: which serial ports the report goes to.
//! - [`workload`]: tasks, for counting and sampling. [`sampling`]: where they are when events happen.
//! - [`stream`]: the reader of a report, which notices every line that was lost, doubled, reordered
//!   or damaged. `docs/guide/report.md` describes the lines for other readers.
//!
//! The crate is pure: no I/O, no machine, no global state.
//!
//! `docs/architecture.md` tells the way of one measurement through the code.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;

pub mod affinity;
pub mod authentication;
pub mod bits;
pub mod checksum;
pub mod console;
pub mod control;
pub mod core_kind;
pub mod count;
pub mod criteria;
pub mod digest;
pub mod exact;
pub mod facts;
pub mod gate;
pub mod history;
pub mod job;
#[macro_use]
pub mod kinds;
pub mod ktap;
pub mod limits;
pub mod line;
pub mod marker;
pub mod memory;
pub mod program;
pub mod ramdisk;
pub mod record;
pub mod requirement;
pub mod sampling;
pub mod serial;
pub mod stream;
pub mod verdict;
pub mod workload;

/// Version of the job and report formats. A reader refuses anything newer than itself.
pub const PROTOCOL_VERSION: u16 = 1;
