//! The registers of instruction-based sampling.

use crate::msr::Msr;
use bitflags::bitflags;

/// IbsFetchCtl and IbsFetchLinAd.
const FETCH_CONTROL: Msr = Msr(0xc001_1030);
const FETCH_ADDRESS: Msr = Msr(0xc001_1031);
/// IbsOpCtl and IbsOpRip.
const OP_CONTROL: Msr = Msr(0xc001_1033);
const OP_ADDRESS: Msr = Msr(0xc001_1034);

bitflags! {
    /// CPUID leaf 0x8000001B EAX.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Features: u32 {
        /// The other bits say something.
        const VALID = 1 << 0;
        /// Fetches are sampled.
        const FETCH = 1 << 1;
        /// Operations are sampled.
        const OP = 1 << 2;
        /// The current count of operations can be read and written.
        const READ_WRITE_COUNT = 1 << 3;
        /// Operations can be counted in place of cycles.
        const COUNTS_OPS = 1 << 4;
        /// IbsBrTarget exists.
        const BRANCH_TARGET = 1 << 5;
        /// The count has 27 bits in place of 20.
        const WIDE_COUNT = 1 << 6;
        /// A sample says where its address is none.
        const CHECKS_ADDRESS = 1 << 7;
        /// IbsFetchCtlExtd exists.
        const FETCH_EXTENDED = 1 << 9;
        /// IbsOpData4 exists.
        const OP_DATA_4 = 1 << 10;
        /// Zen 4's additions: samples of misses of the third level alone, more data sources.
        const ZEN_4 = 1 << 11;
        /// Samples of loads that take long enough alone.
        const LOAD_LATENCY = 1 << 12;
        const _ = !0;
    }
}

impl Features {
    /// What CPUID leaf 0x8000001B EAX says. On the first processors of family 10h the leaf was not valid, and both units were there.
    #[must_use]
    pub const fn announced(eax: u32) -> Self {
        let features = Self::from_bits_retain(eax);
        if features.contains(Self::VALID) { features } else { Self::FETCH.union(Self::OP) }
    }
}

/// What is sampled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Operations that are dispatched.
    Op,
    /// Instruction fetches.
    Fetch,
}

impl Unit {
    /// Bit of the control register that lets the unit count: IbsOpEn, IbsFetchEn.
    pub const fn enable(self) -> u64 {
        match self {
            Self::Op => 1 << 17,
            Self::Fetch => 1 << 48,
        }
    }

    /// Bit of the control register that says that there is a sample: IbsOpVal, IbsFetchVal.
    pub const fn valid(self) -> u64 {
        match self {
            Self::Op => 1 << 18,
            Self::Fetch => 1 << 49,
        }
    }

    /// Its control register.
    #[must_use]
    pub const fn control(self) -> Msr {
        match self {
            Self::Op => OP_CONTROL,
            Self::Fetch => FETCH_CONTROL,
        }
    }

    /// The register with the sample's address.
    #[must_use]
    pub const fn address(self) -> Msr {
        match self {
            Self::Op => OP_ADDRESS,
            Self::Fetch => FETCH_ADDRESS,
        }
    }

    /// Bits of the control register that hold the current count: IbsOpCurCnt\[26:0\], of which processors with the narrow count
    /// have 20, and IbsFetchCnt\[19:4\].
    #[must_use]
    pub const fn count_bits(self) -> u64 {
        match self {
            Self::Op => 0x07ff_ffff << 32,
            Self::Fetch => 0xffff << 16,
        }
    }

    /// The current count in a value of the control register.
    #[must_use]
    pub const fn count(self, control: u64) -> u64 {
        let bits = control & self.count_bits();
        match self {
            Self::Op => bits >> 32,
            Self::Fetch => bits >> 16 << 4,
        }
    }
}

/// IbsOpData: what an operation was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OpData(pub u64);

impl OpData {
    /// Its register.
    pub const MSR: Msr = Msr(0xc001_1035);

    /// IbsOpBrnRet: it is a branch that retired. The other flags of branches mean something then.
    #[must_use]
    pub const fn is_branch(self) -> bool {
        self.0 & 1 << 37 != 0
    }

    /// IbsOpBrnMisp: the branch was mispredicted.
    #[must_use]
    pub const fn is_mispredicted(self) -> bool {
        self.0 & 1 << 36 != 0
    }

    /// IbsOpBrnTaken: it was taken.
    #[must_use]
    pub const fn is_taken(self) -> bool {
        self.0 & 1 << 35 != 0
    }

    /// IbsOpReturn: it was a return.
    #[must_use]
    pub const fn is_return(self) -> bool {
        self.0 & 1 << 34 != 0
    }

    /// IbsRipInvalid: the address is none. Of meaning with [`Features::CHECKS_ADDRESS`].
    #[must_use]
    pub const fn address_is_invalid(self) -> bool {
        self.0 & 1 << 38 != 0
    }
}

/// IbsOpData2: where its data came from.
pub(crate) const OP_DATA_2: Msr = Msr(0xc001_1036);

/// IbsOpData3: what an operation did in the data cache.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OpData3(pub u64);

impl OpData3 {
    /// Its register.
    pub const MSR: Msr = Msr(0xc001_1037);
    /// IbsDcLinAd: the linear address of the data.
    pub const LINEAR: Msr = Msr(0xc001_1038);

    /// IbsDcPhysAd: the physical one.
    pub const PHYSICAL: Msr = Msr(0xc001_1039);

    /// IbsDcPhyAddrValid: it has a physical address.
    #[must_use]
    pub const fn has_physical(self) -> bool {
        self.0 & 1 << 18 != 0
    }

    /// IbsLdOp: it loaded.
    #[must_use]
    pub const fn loads(self) -> bool {
        self.0 & 1 != 0
    }

    /// IbsStOp: it stored.
    #[must_use]
    pub const fn stores(self) -> bool {
        self.0 & 2 != 0
    }

    /// IbsDcLinAddrValid: it has a linear address.
    #[must_use]
    pub const fn has_address(self) -> bool {
        self.0 & 1 << 17 != 0
    }
}

/// IbsControl: through which entry of the extended local vector table the interrupt comes. The firmware of the machine sets it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LvtOffset(pub u64);

impl LvtOffset {
    /// Its register.
    pub const MSR: Msr = Msr(0xc001_103a);
    /// Entries that the table can have (AMD APM vol. 2, 16.4.5: APIC offsets 0x500 to 0x530).
    const ENTRIES: u64 = 4;

    /// The entry, if the register names one: LvtOffsetVal in bit 8, LvtOffset in bits 3:0.
    #[must_use]
    pub const fn entry(self) -> Option<u8> {
        let entry = self.0 & 0xf;
        if self.0 & 1 << 8 != 0 && entry < Self::ENTRIES { Some(entry as u8) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_count_is_where_the_manual_has_it() {
        assert_eq!(Unit::Op.count(0x1234_5678_9abc_def0), 0x0234_5678);
        assert_eq!(Unit::Fetch.count(0x1234_5678_9abc_def0), 0x9abc0);
        for unit in [Unit::Op, Unit::Fetch] {
            assert_eq!(unit.count_bits() & (unit.enable() | unit.valid()), 0);
        }
    }

    #[test]
    fn a_leaf_that_is_not_valid_stands_for_both_units() {
        assert_eq!(Features::announced(0), Features::FETCH | Features::OP);
        assert_eq!(Features::announced(0x3ff).bits(), 0x3ff);
    }

    /// AMD's PPR for family 19h, MSRC001_1035 and MSRC001_1037: each flag is one bit, whatever the others are.
    #[test]
    fn s1_each_flag_of_an_operation_is_its_bit_alone() {
        type Flag<T> = fn(T) -> bool;
        let of_branches: [(Flag<OpData>, u32); 5] = [
            (OpData::is_return, 34),
            (OpData::is_taken, 35),
            (OpData::is_mispredicted, 36),
            (OpData::is_branch, 37),
            (OpData::address_is_invalid, 38),
        ];
        let of_data: [(Flag<OpData3>, u32); 4] = [
            (OpData3::loads, 0),
            (OpData3::stores, 1),
            (OpData3::has_address, 17),
            (OpData3::has_physical, 18),
        ];
        for bit in 0..64 {
            for (flag, own) in of_branches {
                assert_eq!(flag(OpData(1 << bit)), bit == own, "{bit}");
                assert_eq!(flag(OpData(!(1 << bit))), bit != own, "{bit}");
            }
            for (flag, own) in of_data {
                assert_eq!(flag(OpData3(1 << bit)), bit == own, "{bit}");
                assert_eq!(flag(OpData3(!(1 << bit))), bit != own, "{bit}");
            }
        }
    }

    #[test]
    fn an_entry_is_taken_where_it_is_said_to_be_valid_and_exists() {
        let entry = |value| LvtOffset(value).entry();
        assert_eq!([entry(0x100), entry(0x103)], [Some(0), Some(3)]);
        assert_eq!([entry(0), entry(3), entry(0x104), entry(0x10f)], [None; 4]);
    }
}
