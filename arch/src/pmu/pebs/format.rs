//! The formats of records.

use crate::pmu::registers::PerfCapabilities;

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
}

impl Format {
    /// The format that a processor announces, if it is one of these. Later ones (5, 6, architectural PEBS) have another
    /// debug store.
    #[must_use]
    pub const fn of(capabilities: PerfCapabilities) -> Option<Self> {
        match capabilities.pebs_format() {
            0 => Some(Self::Core),
            1 => Some(Self::Nehalem),
            2 => Some(Self::Haswell),
            3 => Some(Self::Skylake),
            4 if capabilities.contains(PerfCapabilities::PEBS_BASELINE) => Some(Self::Adaptive),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Words of 8 bytes that the largest record asked for has. Adaptive: basic group and memory.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::Core => 18,
            Self::Nehalem => 22,
            Self::Haswell => 24,
            Self::Skylake => 25,
            Self::Adaptive => 4 + 4,
        }
    }

    /// Whether records have the address of the instruction itself, and not of the one behind it.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        matches!(self, Self::Haswell | Self::Skylake | Self::Adaptive)
    }

    /// Whether records tell reliably which counters they are of. Before, the status field is that of all counters at the
    /// time (Linux, `intel_pmu_drain_pebs_nhm`), or absent.
    #[must_use]
    pub const fn names_counters(self) -> bool {
        matches!(self, Self::Skylake | Self::Adaptive)
    }

    /// General-purpose counters that can do it, out of those that there are: the first one on Core, the first four up to
    /// Skylake (SDM vol. 4, IA32_PEBS_ENABLE), then all that the debug store has a reset value for.
    #[must_use]
    pub const fn counters(self, general: u32) -> u32 {
        match self {
            Self::Core => general & 1,
            Self::Nehalem | Self::Haswell | Self::Skylake => general & 0xf,
            Self::Adaptive => general & 0xff,
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
