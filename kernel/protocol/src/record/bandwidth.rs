//! How fast data are moved, as measured.

use super::Times;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// How fast data are moved between registers and memory of several sizes, in order of addresses.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthFacts {
    /// Bytes of the registers through which they are moved: 64, 32 or 16 of vector registers, 8 of general ones.
    pub width: u32,
    /// Ticks of the TSC in a second.
    pub tsc_hz: u64,
    /// Processors that were measured together; 1: none.
    pub processors: u32,
    /// They were measured one after the other, as one runs at a time.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_turn: bool,
    /// By the boot processor alone, over the size of the working set.
    pub alone: Vec<BandwidthPoint>,
    /// By all processors, each with a working set of its own.
    pub together: Vec<BandwidthSum>,
    /// What was not measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl BandwidthFacts {
    /// The point of the boot processor in the middle of a level; 0 is memory.
    #[must_use]
    pub fn of(&self, by: Moving, level: u32) -> Option<&BandwidthPoint> {
        self.alone.iter().find(|point| point.by == by && point.level == Some(level))
    }
}

/// How data are moved.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Moving {
    /// Loads.
    Read,
    /// Stores.
    Write,
    /// Loads of one half of the working set, each with a store to the other half.
    Copy,
    /// Stores with a non-temporal hint.
    NonTemporal,
}

impl Moving {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Copy, Self::NonTemporal];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::NonTemporal => "non-temporal write",
        }
    }
}

/// One working set.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthPoint {
    /// How data are moved.
    pub by: Moving,
    /// Bytes of the working set; of a copy both halves.
    pub bytes: u64,
    /// The cache in whose middle it lies, from 1; 0: memory; absent: it is a point between others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Bytes that instructions load and store in each sample.
    pub moved: u64,
    /// What each sample takes, by the timer of the sheet.
    pub cycles: Times,
    /// The same in ticks of the TSC.
    pub ticks: Times,
    /// Why the figure may be something else than the level's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

impl BandwidthPoint {
    /// Bytes in a cycle of the sheet's timer; `None`: no time passed that is seen.
    #[must_use]
    pub fn per_cycle(&self) -> Option<f64> {
        rate(self.moved, self.cycles.median)
    }

    /// Bytes in a tick of the TSC.
    #[must_use]
    pub fn per_tick(&self) -> Option<f64> {
        rate(self.moved, self.ticks.median)
    }
}

/// What all processors move at the same time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BandwidthSum {
    /// How data are moved.
    pub by: Moving,
    /// Bytes of each processor's working set.
    pub bytes: u64,
    /// The cache in whose middle it lies, from 1; 0: memory.
    pub level: u32,
    /// Bytes that each processor loads and stores in a sample.
    pub moved: u64,
    /// What each processor takes, the middle one of its samples: by a timer as that of the sheet, and in ticks of the TSC.
    pub each: Vec<[u64; 2]>,
    /// Bytes of all processors in a cycle, in thousandths: of each sample the sum of what each moves in its own time.
    pub milli_per_cycle: Times,
    /// The same in a tick of the TSC.
    pub milli_per_tick: Times,
    /// Why the figure may be something else than the level's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

fn rate(moved: u64, time: u64) -> Option<f64> {
    (time > 0).then(|| moved as f64 / time as f64)
}
