//! The fact sheet: what a processor's caches and TLBs are, what lies between its cores, and what takes their time, measured.

use alloc::borrow::Cow;
use core::ops::{Range, RangeInclusive};
use serde::{Deserialize, Serialize};

/// A fact sheet. With [`Parts::memory`] its item has one piece of memory, in pages of 2 MiB.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Facts<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Bytes of its memory, physically contiguous: a power of two. 0 without [`Parts::memory`].
    pub bytes: u64,
    /// What is looked at.
    pub parts: Parts,
    /// How stolen time is looked for.
    pub watch: Watch,
}

/// What a fact sheet looks at.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Parts {
    /// Caches, TLBs, crossings, prefetchers and bandwidth.
    pub memory: bool,
    /// The core: predictor of branches, instruction cache, stores, widths, what is in flight, and what rare cases cost.
    pub core: bool,
    /// What lies between the processors.
    pub cores: bool,
    /// Stolen time, the timer, and what transitions cost.
    pub noise: bool,
}

/// How stolen time is looked for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Watch {
    /// Milliseconds that each processor is watched; 0: as the firmware thinks right.
    pub ms: u32,
    /// Nanoseconds from which on time between two readings of the TSC counts as stolen.
    pub threshold_ns: u32,
    /// System management interrupts to be raised meanwhile, to see that they are found.
    pub smis: u32,
}

/// Bytes that the memory can have.
pub const BYTES: Range<u64> = 8 << 20..(1 << 37) + 1;
/// Milliseconds that a processor can be watched.
pub const WATCH_MS: RangeInclusive<u32> = 0..=600_000;
/// Nanoseconds of the threshold. Two readings of the TSC are some 10 apart.
pub const THRESHOLD_NS: RangeInclusive<u32> = 50..=1_000_000_000;
/// System management interrupts that can be raised.
pub const SMIS: RangeInclusive<u32> = 0..=100;
