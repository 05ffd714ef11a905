//! The formats of records.

use super::{DataConfig, Groups};
use crate::pmu::registers::PerfCapabilities;

/// Family 6: Silvermont, Airmont, Knights Landing and Mill, Goldmont.
const COUNTER_0_ALONE: [u32; 11] =
    [0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d, 0x75, 0x57, 0x85, 0x5c, 0x5f];

/// General-purpose counters that can write records on a model of Intel's family 6, whatever the format: counter 0 on those that
/// have the later formats for it alone (SDM vol. 3, PEBS of the Silvermont and Goldmont microarchitectures; Linux,
/// `intel_slm_pebs_event_constraints` and `intel_glm_pebs_event_constraints`), all on the others.
#[must_use]
pub fn counters_of(model: u32) -> u32 {
    if COUNTER_0_ALONE.contains(&model) { 1 } else { u32::MAX }
}

/// Format of the records, as IA32_PERF_CAPABILITIES\[11:8\] have it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// 0, Core: flags, address and registers.
    Core,
    /// 1, Nehalem to Ivy Bridge: and status, data address, data source, latency.
    Nehalem,
    /// 2, Haswell and Broadwell, Silvermont: and the instruction's own address, transactions.
    Haswell,
    /// 3, Skylake, Goldmont: and the TSC.
    Skylake,
    /// 4, Ice Lake and later: groups, of which MSR_PEBS_DATA_CFG chooses; PEBS works on every counter.
    Adaptive,
    /// 5: the same records; the debug store has reset values for 32 general-purpose counters.
    Adaptive32,
    /// 6, Lunar Lake, Arrow Lake: and groups with values of counters.
    Snapshot,
    /// 15, Panther Lake, Clearwater Forest, Diamond Rapids: architectural PEBS. Each counter's own register chooses groups, and a
    /// register names the buffer.
    Architectural = 15,
}

impl Format {
    /// All that go through the debug store, by their numbers.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Nehalem,
        Self::Haswell,
        Self::Skylake,
        Self::Adaptive,
        Self::Adaptive32,
        Self::Snapshot,
    ];

    /// The format that a processor announces, if it goes through the debug store. Architectural PEBS (15) takes more than
    /// this: leaf 0x23.
    #[must_use]
    pub const fn of(capabilities: PerfCapabilities) -> Option<Self> {
        let baseline = capabilities.contains(PerfCapabilities::PEBS_BASELINE);
        match capabilities.pebs_format() {
            0 => Some(Self::Core),
            1 => Some(Self::Nehalem),
            2 => Some(Self::Haswell),
            3 => Some(Self::Skylake),
            4 if baseline => Some(Self::Adaptive),
            5 if baseline => Some(Self::Adaptive32),
            6 if baseline => Some(Self::Snapshot),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Whether records consist of groups.
    #[must_use]
    pub const fn has_groups(self) -> bool {
        self.is_adaptive() || matches!(self, Self::Architectural)
    }

    /// Whether records consist of groups that MSR_PEBS_DATA_CFG chooses, for all counters.
    #[must_use]
    pub const fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive | Self::Adaptive32 | Self::Snapshot)
    }

    /// The groups that records can have in addition to the basic one; none before format 4.
    #[must_use]
    pub const fn groups(self) -> Groups {
        match self {
            Self::Core | Self::Nehalem | Self::Haswell | Self::Skylake => Groups::empty(),
            Self::Adaptive | Self::Adaptive32 => {
                Self::Snapshot.groups().difference(Groups::COUNTERS.union(Groups::METRICS))
            }
            Self::Snapshot => Groups::all().difference(Groups::BEYOND_XMM),
            // Leaf 0x23.4 says which of them.
            Self::Architectural => Groups::all(),
        }
    }

    /// Words of 8 bytes that a record has. Where it has groups: with those that samples need.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::Core => 18,
            Self::Nehalem => 22,
            Self::Haswell => 24,
            Self::Skylake => 25,
            Self::Adaptive | Self::Adaptive32 | Self::Snapshot => DataConfig::SAMPLES.words(),
            Self::Architectural => DataConfig::SAMPLES.architectural_words(),
        }
    }

    /// Whether records have the address of the instruction itself, and not of the one after it.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Core | Self::Nehalem)
    }

    /// Whether records tell reliably which counters they are of. Before, the status field is that of all counters at the
    /// time (Linux, `intel_pmu_drain_pebs_nhm`), or absent.
    #[must_use]
    pub const fn names_counters(self) -> bool {
        !matches!(self, Self::Core | Self::Nehalem | Self::Haswell)
    }

    /// General-purpose counters that can do it, out of those that there are: the first one on Core, the first four up to
    /// Skylake (SDM vol. 4, IA32_PEBS_ENABLE), then all that the debug store has a reset value for. Some processors have
    /// fewer: [`counters_of`].
    #[must_use]
    pub const fn counters(self, general: u32) -> u32 {
        match self {
            Self::Core => general & 1,
            Self::Nehalem | Self::Haswell | Self::Skylake => general & 0xf,
            Self::Adaptive => general & 0xff,
            Self::Adaptive32 | Self::Snapshot | Self::Architectural => general,
        }
    }

    /// Fixed counters that can do it: all that the debug store has a reset value for, from format 4 on (SDM vol. 3,
    /// 20.9.1, extended PEBS).
    #[must_use]
    pub const fn fixed_counters(self, fixed: u32) -> u32 {
        match self {
            Self::Adaptive => fixed & 0xf,
            Self::Adaptive32 | Self::Snapshot | Self::Architectural => fixed & 0xffff,
            _ => 0,
        }
    }

    /// Reset values for general-purpose counters in the debug store, in front of those of the fixed ones (Linux,
    /// `MAX_PEBS_EVENTS_FMT4` and `MAX_PEBS_EVENTS`).
    #[must_use]
    pub const fn general_resets(self) -> usize {
        match self {
            Self::Adaptive32 | Self::Snapshot | Self::Architectural => 32,
            _ => 8,
        }
    }

    /// Whether Core's PEBS has the event (SDM vol. 3, table 20-83): it holds where no table of events came along.
    #[must_use]
    pub const fn core_has(event: u16, umask: u16) -> bool {
        matches!(
            (event, umask),
            (0xc0 | 0xc5, 0)
                | (0xc1, 0xfe)
                | (0xc7, 0x1f)
                | (0xcb, 0x01 | 0x02 | 0x04 | 0x08 | 0x10)
        )
    }
}
