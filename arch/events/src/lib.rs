//! PMU events of x86-64 processors: from a name to registers and counters, and back.
//!
//! The way of an event, and the module for each step:
//!
//! 1. [`tables`]: what a processor can count. Names and facts are read in place out of one block
//!    that the host packs (feature `pack`) and the target opens; [`cpu`] says which processor it is,
//!    and [`aliases`] what else its table is called.
//! 2. [`parse`]: a text becomes [`request`]s; [`nanobench`] reads that tool's files into the same.
//! 3. [`encode`]: a request becomes the ways to count it on this [`processor`], or the reason why
//!    it is not available. [`generic`] names mean the same everywhere, [`architectural`] events need no
//!    table, and [`attributes`] lists how events can be qualified.
//! 4. [`assign`]: requests get counters and MSRs, or the smallest set of them that conflicts is
//!    named; [`passes`] spreads a [`set`] that does not fit at once over the fewest passes.
//! 5. [`decode`]: registers become names again.
//!
//! The crate is pure: it reads no register and keeps no state. It needs `alloc`, not `std`.
#![cfg_attr(not(any(test, feature = "pack")), no_std)]
#![warn(missing_docs)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod aliases;
pub mod architectural;
pub mod assign;
pub mod attributes;
pub mod cpu;
pub mod decode;
pub mod encode;
pub mod energy;
pub mod event;
pub mod generic;
pub mod hybrid;
pub mod msr;
pub mod nanobench;
pub mod parse;
pub mod passes;
pub mod perf_metrics;
pub mod processor;
pub mod register;
pub mod request;
pub mod set;
pub mod tables;
pub mod uncore;

mod checksum;
mod errata;

#[cfg(feature = "pack")]
pub mod pack;

#[cfg(all(test, feature = "pack"))]
mod test_support;
