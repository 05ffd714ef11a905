//! What a processor's data caches and TLBs are, determined from how long loads take, and from nothing else; what lies between processors
//! ([`cores`]), what takes their time ([`gaps`]), what predicts their branches ([`pipeline`]), and how fast they move data
//! ([`bandwidth`]).
//!
//! Loads follow pointers, so that each waits for the one before it. What is followed is chosen: lines of one set, pages of one set,
//! or all lines of a working set in random order.
//!
//! | figure | how | source |
//! | --- | --- | --- |
//! | latency over size | a walk in random order | R. Saavedra and A. Smith, "Measuring cache and TLB performance" (1995); `lat_mem_rd` of lmbench (L. McVoy, C. Staelin, 1996) |
//! | sets, ways | how many lines, a power of two bytes apart, are still there when all of them have come | the same, and A. Abel and J. Reineke, "nanoBench" (ISPASS 2020) |
//! | policy | whether a line is still there after a sequence of accesses to its set | A. Abel and J. Reineke, "Measurement-based modeling of the cache replacement policy" (RTAS 2013) |
//! | prefetchers | which lines are there before they are loaded, after streams of cold ones | Intel, "64 and IA-32 Architectures Optimization Reference Manual", data prefetching |
//! | TLBs | as caches, with a page in the place of a line | Saavedra and Smith |
//!
//! [`measure`] needs a [`Probe`]: the firmware's, or a model of caches in tests. The policies that are left are for the host to
//! say, by [`judge`](judge::policies).
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;

pub mod bandwidth;
pub mod cores;
pub mod gaps;
pub mod judge;
pub mod pipeline;

mod chain;
mod curve;
mod figures;
mod finder;
mod policy;
mod prefetch;
mod probe;

pub use chain::Chain;
pub use figures::measure;
pub use probe::{Flush, LARGE, Probe, Run};
