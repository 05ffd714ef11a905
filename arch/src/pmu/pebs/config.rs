//! MSR_PEBS_DATA_CFG: the groups of an adaptive record.

use super::{Format, architectural, vectors};
use bitflags::bitflags;

/// Words of 8 bytes of each group: basic, memory, general registers, vector registers, one branch, the counters' header.
pub(super) const BASIC_WORDS: usize = 4;
pub(super) const MEMORY_WORDS: usize = 4;
pub(super) const GENERAL_WORDS: usize = 18;
pub(super) const VECTOR_WORDS: usize = 32;
pub(super) const BRANCH_WORDS: usize = 3;
pub(super) const COUNTER_HEADER_WORDS: usize = 2;
/// Slots and metrics.
pub(super) const METRICS_WORDS: usize = 2;

/// Bits 31:24: branch records, less one.
const BRANCHES_AT: u32 = 24;
/// Bits 47:32 and 55:48: the counters whose values are wanted.
const GENERAL_AT: u32 = 32;
const FIXED_AT: u32 = 48;

bitflags! {
    /// The groups that a record can have in addition to the basic one (SDM vol. 3, 20.9.2.3; Linux, `PEBS_DATACFG_*`).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Groups: u32 {
        /// Data address, source, latency, transactions.
        const MEMORY = 1 << 0;
        /// Flags, address of the next instruction, general registers.
        const GENERAL = 1 << 1;
        /// XMM0 to XMM15.
        const VECTORS = 1 << 2;
        /// Branch records.
        const BRANCHES = 1 << 3;
        /// Values of counters. Format 6.
        const COUNTERS = 1 << 4;
        /// PERF_METRICS with its slots. Format 6.
        const METRICS = 1 << 5;
        /// Upper halves of YMM0 to YMM15. This and those below: architectural records alone, no bits of MSR_PEBS_DATA_CFG.
        const YMM_UPPER = 1 << 8;
        /// Opmask registers K0 to K7.
        const MASKS = 1 << 9;
        /// Upper halves of ZMM0 to ZMM15.
        const ZMM_UPPER = 1 << 10;
        /// ZMM16 to ZMM31.
        const ZMM_HIGH = 1 << 11;
    }
}

impl Groups {
    /// Vector registers beyond XMM, which architectural records alone have.
    pub const BEYOND_XMM: Self =
        Self::YMM_UPPER.union(Self::MASKS).union(Self::ZMM_UPPER).union(Self::ZMM_HIGH);
    /// Every group of vector registers.
    pub const ANY_VECTORS: Self = Self::VECTORS.union(Self::BEYOND_XMM);
}

/// MSR_PEBS_DATA_CFG (SDM vol. 4). It holds for all counters whose adaptive bit is set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DataConfig {
    /// The groups.
    pub groups: Groups,
    /// Branch records, 1 to 256, where the group is requested; the newest first.
    pub branches: u16,
    /// General-purpose counters whose values are wanted, as a bitmap of 16.
    pub general: u16,
    /// Fixed counters, as a bitmap of 8.
    pub fixed: u8,
}

impl DataConfig {
    /// The basic group alone.
    pub const BASIC: Self = Self { groups: Groups::empty(), branches: 0, general: 0, fixed: 0 };
    /// What samples need: the data access and the general registers.
    pub const SAMPLES: Self = Self { groups: Groups::MEMORY.union(Groups::GENERAL), ..Self::BASIC };

    /// The register's value. Fields of groups that are not requested are 0; groups that it cannot name are left out.
    #[must_use]
    pub const fn bits(self) -> u64 {
        let mut bits = self.groups.difference(Groups::BEYOND_XMM).bits() as u64;
        if self.groups.contains(Groups::BRANCHES) {
            let entries = if self.branches == 0 { 1 } else { self.branches };
            bits |= ((entries - 1) as u64 & 0xff) << BRANCHES_AT;
        }
        if self.groups.contains(Groups::COUNTERS) {
            bits |= (self.general as u64) << GENERAL_AT | (self.fixed as u64) << FIXED_AT;
        }
        bits
    }

    /// What a value requests; `None` if it has a bit that no format knows.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        const FIELDS: u64 = 0xff << BRANCHES_AT | 0xffff << GENERAL_AT | 0xff << FIXED_AT;
        let rest = bits & !FIELDS;
        if rest > u32::MAX as u64 {
            return None;
        }
        let Some(groups) = Groups::from_bits(rest as u32) else { return None };
        if groups.intersects(Groups::BEYOND_XMM) {
            return None;
        }
        let has_branches = groups.contains(Groups::BRANCHES);
        let has_counters = groups.contains(Groups::COUNTERS);
        Some(Self {
            groups,
            branches: if has_branches { (bits >> BRANCHES_AT & 0xff) as u16 + 1 } else { 0 },
            general: if has_counters { (bits >> GENERAL_AT) as u16 } else { 0 },
            fixed: if has_counters { (bits >> FIXED_AT) as u8 } else { 0 },
        })
    }

    /// Whether records of `format` have every group of it.
    #[must_use]
    pub const fn fits(self, format: Format) -> bool {
        format.groups().contains(self.groups)
    }

    /// Words of an architectural record with these groups: an even number, as the index counts pairs.
    #[must_use]
    pub const fn architectural_words(self) -> usize {
        let mut words = architectural::HEADER_WORDS + architectural::BASIC_WORDS;
        if self.groups.contains(Groups::MEMORY) {
            words += architectural::MEMORY_WORDS;
        }
        if self.groups.contains(Groups::GENERAL) {
            words += architectural::REGISTER_WORDS;
        }
        if self.groups.intersects(Groups::ANY_VECTORS) {
            words += architectural::STATE_WORDS + vectors::words(self.groups);
        }
        if self.groups.contains(Groups::BRANCHES) {
            words += architectural::LAST_BRANCH_WORDS;
        }
        (words + self.repeated_words()).next_multiple_of(2)
    }

    /// Words of a record with these groups.
    #[must_use]
    pub const fn words(self) -> usize {
        let mut words = BASIC_WORDS;
        if self.groups.contains(Groups::MEMORY) {
            words += MEMORY_WORDS;
        }
        if self.groups.contains(Groups::GENERAL) {
            words += GENERAL_WORDS;
        }
        if self.groups.contains(Groups::VECTORS) {
            words += VECTOR_WORDS;
        }
        words + self.repeated_words()
    }

    /// Words of the branches and of the counters' groups.
    const fn repeated_words(self) -> usize {
        let mut words = 0;
        if self.groups.contains(Groups::BRANCHES) {
            let entries = if self.branches == 0 { 1 } else { self.branches };
            words += BRANCH_WORDS * entries as usize;
        }
        if self.groups.intersects(Groups::COUNTERS.union(Groups::METRICS)) {
            words += COUNTER_HEADER_WORDS;
        }
        if self.groups.contains(Groups::COUNTERS) {
            words += (self.general.count_ones() + self.fixed.count_ones()) as usize;
        }
        if self.groups.contains(Groups::METRICS) {
            words += METRICS_WORDS;
        }
        words
    }
}
