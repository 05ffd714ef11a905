//! What the host and the firmware say to each other.
//!
//! - [`job`]: what the host asks for, with the limits that both sides check. It knows nothing of reports.
//! - [`record`]: the report, and [`mod@line`], its form on the serial line: one JSON object per line,
//!   with sequence number and checksum.
//! - [`mod@kinds`]: the kinds of items, in one table.
//! - [`mod@verdict`] judges an item's record by what its job expects.
//! - [`mod@digest`]: what a run came to, small enough for QR codes.
//! - [`program`]: compiled code, which lies beside the job.
//! - [`ramdisk`]: the job's binary form, with magic, version and checksum.
//! - [`bits`]: 64-bit and 32-bit code. [`marker`]: where counting pauses within a snippet. [`core_kind`]: kinds of cores.
//! - [`authentication`]: the key of a boot, and the code on each line that only who has it can make.
//! - [`ktap`]: the report as the kernel's test protocol, with the records as its diagnostics.
//! - [`serial`]: which serial ports the report goes to.
//! - [`stream`]: the reader of a report, which notices every line that was lost, doubled, reordered
//!   or damaged. `docs/guide/report.md` describes the lines for other readers.
//!
//! The crate is pure: no I/O, no machine, no global state.
//!
//! `docs/architecture.md` tells the way of one measurement through the code.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;
// The table of kinds is read in other crates as well, by the same paths.
extern crate self as protocol;

pub mod authentication;
pub mod bits;
pub mod checksum;
pub mod console;
pub mod core_kind;
pub mod digest;
pub mod hex;
#[macro_use]
pub mod kinds;
pub mod job;
pub mod ktap;
pub mod line;
pub mod marker;
pub mod program;
pub mod ramdisk;
pub mod record;
pub mod serial;
pub mod stream;
pub mod verdict;

/// Version of the job and report formats. A reader refuses anything newer than itself.
pub const PROTOCOL_VERSION: u16 = 1;
