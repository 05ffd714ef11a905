//! What architectural PEBS offers, and what a counter's records are to have.
//!
//! Each group has one bit, which is the same in leaf 0x23.4 (EBX is the upper half), in IA32_PMC_GPn_CFG_C and in the header
//! of a record (Linux, `ARCH_PEBS_*` in `msr-index.h`, `struct arch_pebs_header`, and `update_pmu_cap`).

use super::{DataConfig, Groups};
use crate::pmu::capabilities::Counter;
use bitflags::bitflags;
use raw_cpuid::CpuIdResult;

/// Bits 41:40: branch records.
const BRANCHES_AT: u32 = 40;
/// What the field says: 8 or 16 records, or as many as IA32_LBR_DEPTH has.
const EIGHT: u64 = 1;
const SIXTEEN: u64 = 2;
const DEPTH: u64 = 3;

bitflags! {
    /// Groups and switches of architectural PEBS, as bits of CFG_C.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Contents: u64 {
        /// CFG_C: the counter's value may go into records that request counters.
        const ALLOW = 1 << 35;
        /// Values of general-purpose counters.
        const COUNTERS = 1 << 36;
        /// Values of fixed counters.
        const FIXED = 1 << 37;
        /// PERF_METRICS with its slots.
        const METRICS = 1 << 38;
        /// Branch records: a field of two bits.
        const BRANCHES = DEPTH << BRANCHES_AT;
        /// XMM0 to XMM15.
        const XMM = 1 << 49;
        /// Upper halves of YMM0 to YMM15.
        const YMM_UPPER = 1 << 50;
        /// Mask registers K0 to K7.
        const MASKS = 1 << 53;
        /// Upper halves of ZMM0 to ZMM15.
        const ZMM_UPPER = 1 << 54;
        /// ZMM16 to ZMM31.
        const ZMM_HIGH = 1 << 55;
        /// Flags, address, general registers.
        const GENERAL = 1 << 61;
        /// Data address, source, latency, transactions.
        const MEMORY = 1 << 62;
        /// CFG_C: the counter writes records. A record's header: the basic group.
        const BASIC = 1 << 63;
    }
}

impl Contents {
    /// Any group of vector registers.
    pub const VECTORS: Self = Self::XMM
        .union(Self::YMM_UPPER)
        .union(Self::MASKS)
        .union(Self::ZMM_UPPER)
        .union(Self::ZMM_HIGH);

    /// Each of those, as [`DataConfig`] names it.
    pub(super) const OF_VECTORS: [(Groups, Self); 5] = [
        (Groups::VECTORS, Self::XMM),
        (Groups::YMM_UPPER, Self::YMM_UPPER),
        (Groups::MASKS, Self::MASKS),
        (Groups::ZMM_UPPER, Self::ZMM_UPPER),
        (Groups::ZMM_HIGH, Self::ZMM_HIGH),
    ];

    /// Branch records that a header states: `None` if the group itself says how many.
    #[must_use]
    pub const fn branches(self) -> Option<usize> {
        match (self.bits() >> BRANCHES_AT) & DEPTH {
            DEPTH => None,
            eights => Some(8 * eights as usize),
        }
    }

    /// What CFG_C has to say for records with the groups of `config`, before PEBS is on for the counter. It starts from
    /// `reload` after each record.
    #[must_use]
    pub fn of(config: DataConfig, counter: Counter, reload: Option<u64>) -> Self {
        let mut contents = Self::empty();
        contents.set(Self::MEMORY, config.groups.contains(Groups::MEMORY));
        contents.set(Self::GENERAL, config.groups.contains(Groups::GENERAL));
        for (groups, bit) in Self::OF_VECTORS {
            contents.set(bit, config.groups.contains(groups));
        }
        contents.set(Self::METRICS, config.groups.contains(Groups::METRICS));
        let mut bits = contents.bits();
        if config.groups.contains(Groups::BRANCHES) {
            bits |= match config.branches {
                8 => EIGHT,
                16 => SIXTEEN,
                _ => DEPTH,
            } << BRANCHES_AT;
        }
        if config.groups.contains(Groups::COUNTERS) {
            let mut of_counters = Self::empty();
            of_counters.set(Self::COUNTERS, config.general != 0);
            of_counters.set(Self::FIXED, config.fixed != 0);
            of_counters.set(
                Self::ALLOW,
                match counter {
                    Counter::General(n) => u32::from(config.general).checked_shr(n.into()),
                    Counter::Fixed(n) => u32::from(config.fixed).checked_shr(n.into()),
                }
                .is_some_and(|bits| bits & 1 != 0),
            );
            bits |= of_counters.bits();
        }
        // Bits 31:0: what the counter starts from; those above are ones (Linux, `ARCH_PEBS_RELOAD`).
        Self::from_bits_retain(bits | reload.unwrap_or(0) & 0xffff_ffff)
    }
}

/// What a processor offers: leaf 0x23, sub-leaves 4 and 5.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offer {
    /// The groups of records.
    pub contents: Contents,
    /// General-purpose counters that can write records.
    pub general: u32,
    /// Fixed counters that can.
    pub fixed: u32,
    /// Those of each kind whose records are distributed precisely (`:ppp`).
    pub distribution: [u32; 2],
}

impl Offer {
    /// Out of the two sub-leaves.
    #[must_use]
    pub fn of(groups: CpuIdResult, counters: CpuIdResult) -> Self {
        Self {
            contents: Contents::from_bits_truncate(u64::from(groups.ebx) << 32),
            general: counters.eax,
            fixed: counters.ecx,
            distribution: [counters.ebx, counters.edx],
        }
    }

    /// The groups that [`DataConfig`] can request.
    #[must_use]
    pub fn groups(self) -> Groups {
        let mut groups = Groups::empty();
        groups.set(Groups::MEMORY, self.contents.contains(Contents::MEMORY));
        groups.set(Groups::GENERAL, self.contents.contains(Contents::GENERAL));
        for (group, bit) in Contents::OF_VECTORS {
            groups.set(group, self.contents.contains(bit));
        }
        // One bit of the field would be a fixed number alone, which is not requested.
        groups.set(Groups::BRANCHES, self.contents.contains(Contents::BRANCHES));
        let counters = Contents::COUNTERS.union(Contents::FIXED);
        groups.set(Groups::COUNTERS, self.contents.contains(counters));
        groups.set(Groups::METRICS, self.contents.contains(Contents::METRICS));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux, `msr-index.h`: `ARCH_PEBS_*`.
    #[test]
    fn s1_the_bits_of_cfg_c_are_where_linux_has_them() {
        let of = |groups, branches, counter, reload| {
            let config = DataConfig { groups, branches, general: 0b11, fixed: 0b1 };
            Contents::of(config, counter, reload).bits()
        };
        let (first, third) = (Counter::General(0), Counter::General(2));
        assert_eq!(of(Groups::empty(), 0, first, None), 0);
        assert_eq!(of(Groups::MEMORY, 0, first, None), 1 << 62);
        assert_eq!(of(Groups::GENERAL, 0, first, Some(0xffff_ffff_fff0)), 1 << 61 | 0xffff_fff0);
        assert_eq!(of(Groups::VECTORS, 0, first, None), 1 << 49);
        assert_eq!(of(Groups::YMM_UPPER, 0, first, None), 1 << 50);
        assert_eq!(of(Groups::MASKS, 0, first, None), 1 << 53);
        assert_eq!(of(Groups::ZMM_UPPER, 0, first, None), 1 << 54);
        assert_eq!(of(Groups::ZMM_HIGH, 0, first, None), 1 << 55);
        let branches = |count| of(Groups::BRANCHES, count, first, None) >> 40;
        assert_eq!([8, 16, 32].map(branches), [1, 2, 3]);
        assert_eq!(of(Groups::COUNTERS, 0, first, None), 0b111 << 35);
        assert_eq!(of(Groups::COUNTERS, 0, third, None), 0b11 << 36, "its own is not among them");
        assert_eq!(of(Groups::COUNTERS, 0, Counter::Fixed(0), None), 0b111 << 35);
        assert_eq!(of(Groups::METRICS, 0, first, None), 1 << 38);
        assert_eq!(Contents::BASIC.bits(), 1 << 63);
        assert_eq!(Contents::VECTORS.bits(), 0b111_0011 << 49);
    }

    #[test]
    fn s1_an_offer_is_what_sub_leaves_4_and_5_say() {
        let leaf = |eax, ebx, ecx, edx| CpuIdResult { eax, ebx, ecx, edx };
        let offer = Offer::of(leaf(0, 0x6002_0370, 0, 0), leaf(0xff, 1, 7, 1));
        assert_eq!((offer.general, offer.fixed, offer.distribution), (0xff, 7, [1, 1]));
        assert_eq!(offer.groups(), Groups::all().difference(Groups::BEYOND_XMM));
        let wide = Offer::of(leaf(0, 0x00e6_0000, 0, 0), leaf(1, 0, 0, 0));
        assert_eq!(wide.groups(), Groups::ANY_VECTORS);
        let some = Offer::of(leaf(0, 0x0024_0000, 0, 0), leaf(1, 0, 0, 0));
        assert_eq!(some.groups(), Groups::YMM_UPPER | Groups::MASKS);
        let few = Offer::of(leaf(0, 0x2000_0100, 0, 0), leaf(1, 0, 0, 0));
        assert_eq!(few.groups(), Groups::GENERAL, "a fixed number of branches alone");
    }
}
