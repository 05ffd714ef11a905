//! The fields of an event select register: `IA32_PERFEVTSELn` and AMD's `PERF_CTLn`.

use crate::RingMask;

/// Bits of an event select register that both vendors share.
pub mod bits {
    /// Count above CPL 0.
    pub const USR: u64 = 1 << 16;
    /// Count at CPL 0.
    pub const OS: u64 = 1 << 17;
    /// Count rising edges of the condition instead of cycles.
    pub const EDGE: u64 = 1 << 18;
    /// Pin control, of the P6 family; nothing here.
    pub const PIN_CONTROL: u64 = 1 << 19;
    /// Request a performance monitoring interrupt at overflow.
    pub const INT: u64 = 1 << 20;
    /// Count for both threads of the core (Intel, version 3).
    pub const ANY_THREAD: u64 = 1 << 21;
    /// Enable.
    pub const EN: u64 = 1 << 22;
    /// Invert the comparison with the counter mask.
    pub const INV: u64 = 1 << 23;
    /// Where the counter mask starts; 8 bits.
    pub const CMASK_SHIFT: u32 = 24;
    /// Count cycles with exactly CMASK occurrences (Intel, version 6).
    pub const EQ: u64 = 1 << 36;
}

/// An event select register's value, taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selector(pub u64);

impl Selector {
    const fn bit(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    /// The rings that the USR and OS bits choose.
    #[must_use]
    pub const fn rings(self) -> RingMask {
        RingMask::new(self.bit(bits::USR), self.bit(bits::OS))
    }

    /// EN.
    #[must_use]
    pub const fn enabled(self) -> bool {
        self.bit(bits::EN)
    }

    /// INT.
    #[must_use]
    pub const fn interrupt(self) -> bool {
        self.bit(bits::INT)
    }

    /// Event code as Intel has it, 8 bits.
    #[must_use]
    pub const fn intel_code(self) -> u16 {
        self.0 as u8 as u16
    }

    /// Unit mask as Intel has it: bits 15:8, and UMASK2 (bits 47:40, version 6) above them.
    #[must_use]
    pub const fn intel_umask(self) -> u16 {
        (self.0 >> 8) as u8 as u16 | ((self.0 >> 40) as u8 as u16) << 8
    }

    /// Event code as AMD has it, 12 bits: bits 7:0, and bits 35:32 above them.
    #[must_use]
    pub const fn amd_code(self) -> u16 {
        self.0 as u8 as u16 | ((self.0 >> 32) as u16 & 0xF) << 8
    }

    /// Unit mask as AMD has it, 8 bits.
    #[must_use]
    pub const fn amd_umask(self) -> u16 {
        (self.0 >> 8) as u8 as u16
    }

    /// The comparison that turns occurrences in a cycle into one or none, if there is one.
    #[must_use]
    pub const fn threshold(self) -> Option<Threshold> {
        let cmask = (self.0 >> bits::CMASK_SHIFT) as u8;
        let threshold = Threshold {
            cmask,
            invert: self.bit(bits::INV),
            edge: self.bit(bits::EDGE),
            equal: self.bit(bits::EQ),
        };
        if cmask == 0 && !threshold.edge && !threshold.equal { None } else { Some(threshold) }
    }
}

/// CMASK, INV, EDGE and EQ. With a mask of 0 and no edge the counter adds up occurrences and INV
/// has no effect; an edge without a mask looks at cycles with any occurrence, as if the mask were
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Occurrences in a cycle that make the condition true.
    pub cmask: u8,
    /// The condition is negated.
    pub invert: bool,
    /// Rising edges count, not cycles.
    pub edge: bool,
    /// Exactly CMASK, instead of at least.
    pub equal: bool,
}

impl Threshold {
    /// Whether a cycle with so many occurrences meets the condition.
    #[must_use]
    pub fn met(self, occurrences: u64) -> bool {
        let met = if self.equal {
            occurrences == u64::from(self.cmask)
        } else {
            occurrences >= u64::from(self.cmask.max(1))
        };
        met != self.invert
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_manuals_have_them() {
        // rr's choice for Lunar Lake: conditional branches, UMASK2 = 1.
        let intel = Selector(0x100_0051_11C4);
        assert_eq!(intel.intel_code(), 0xC4);
        assert_eq!(intel.intel_umask(), 0x111);
        assert!(intel.enabled() && intel.interrupt());
        assert_eq!(intel.rings(), RingMask::USER);
        // Event 187, unit mask 1, of AMD.
        let amd = Selector(0x1_0043_0187);
        assert_eq!((amd.amd_code(), amd.amd_umask()), (0x187, 0x01));
        assert_eq!(amd.rings(), RingMask::BOTH);
    }

    #[test]
    fn no_mask_and_no_edge_is_no_threshold() {
        assert_eq!(Selector(bits::INV).threshold(), None);
        assert!(Selector(bits::EDGE).threshold().is_some());
        assert!(Selector(1 << bits::CMASK_SHIFT).threshold().is_some());
    }

    #[test]
    fn conditions() {
        let at_least_2 = Selector(2 << bits::CMASK_SHIFT).threshold().unwrap();
        assert!(!at_least_2.met(1) && at_least_2.met(2) && at_least_2.met(3));
        let below_2 = Selector(bits::INV | 2 << bits::CMASK_SHIFT).threshold().unwrap();
        assert!(below_2.met(1) && !below_2.met(2));
        let exactly_2 = Selector(bits::EQ | 2 << bits::CMASK_SHIFT).threshold().unwrap();
        assert!(!exactly_2.met(1) && exactly_2.met(2) && !exactly_2.met(3));
        let edge = Selector(bits::EDGE).threshold().unwrap();
        assert!(!edge.met(0) && edge.met(1));
    }
}
