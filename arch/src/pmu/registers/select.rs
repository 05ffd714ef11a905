//! Event select registers.

use bitflags::bitflags;

bitflags! {
    /// IA32_PERFEVTSELx (SDM vol. 3, figures 20-1 and 20-6).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct EventSelect: u64 {
        /// Counts above ring 0.
        const USR = 1 << 16;
        /// Counts in ring 0.
        const OS = 1 << 17;
        /// Counts rising edges of the condition.
        const EDGE = 1 << 18;
        /// Pin control; obsolete.
        const PIN_CONTROL = 1 << 19;
        /// An overflow raises a PMI.
        const INT = 1 << 20;
        /// Counts for all threads of the core. Versions 3 and 4.
        const ANY_THREAD = 1 << 21;
        /// The counter is on.
        const EN = 1 << 22;
        /// Inverts the comparison with the counter mask.
        const INV = 1 << 23;
        /// PEBS records of the counter have more than the basic group (SDM vol. 3, 20.9.2.1).
        const ADAPTIVE = 1 << 34;
        /// The comparison is for equality. Version 6, leaf 0x23.
        const EQ = 1 << 36;
        const _ = !0;
    }

    /// AMD's PERF_CTL and PerfEvtSel (APM vol. 2, 13.2.1).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct AmdSelect: u64 {
        /// Counts above ring 0.
        const USR = 1 << 16;
        /// Counts in ring 0.
        const OS = 1 << 17;
        /// Counts rising edges of the condition.
        const EDGE = 1 << 18;
        /// An overflow raises an interrupt.
        const INT = 1 << 20;
        /// The counter is on.
        const EN = 1 << 22;
        /// Inverts the comparison with the counter mask.
        const INV = 1 << 23;
        /// Counts in guests only.
        const GUEST_ONLY = 1 << 40;
        /// Counts in hosts only.
        const HOST_ONLY = 1 << 41;
        const _ = !0;
    }
}

impl EventSelect {
    /// Event, unit mask (bits 15:8 are UMASK2, bits 47:40 of the register) and counter mask, all else off.
    #[must_use]
    pub const fn of(event: u8, umask: u16, cmask: u8) -> Self {
        let umask = umask as u64;
        Self::from_bits_retain(
            event as u64 | (umask & 0xff) << 8 | (umask >> 8) << 40 | (cmask as u64) << 24,
        )
    }

    /// Event code.
    #[must_use]
    pub const fn event(self) -> u8 {
        self.bits() as u8
    }

    /// Unit mask; bits 15:8 are UMASK2.
    #[must_use]
    pub const fn umask(self) -> u16 {
        (self.bits() >> 8 & 0xff | (self.bits() >> 40 & 0xff) << 8) as u16
    }

    /// Counter mask.
    #[must_use]
    pub const fn cmask(self) -> u8 {
        (self.bits() >> 24) as u8
    }
}

impl AmdSelect {
    /// Event of 12 bits, the upper four in bits 35:32 of the register, unit mask and counter mask, all else off.
    #[must_use]
    pub const fn of(event: u16, umask: u8, cmask: u8) -> Self {
        let event = event as u64;
        Self::from_bits_retain(
            event & 0xff | (event >> 8 & 0xf) << 32 | (umask as u64) << 8 | (cmask as u64) << 24,
        )
    }

    /// Event code.
    #[must_use]
    pub const fn event(self) -> u16 {
        (self.bits() & 0xff | (self.bits() >> 32 & 0xf) << 8) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_manuals_draw_them() {
        let select = EventSelect::of(0xc4, 0x0111, 3) | EventSelect::EN | EventSelect::USR;
        assert_eq!(select.bits(), 0x100_0341_11c4);
        assert_eq!((select.event(), select.umask(), select.cmask()), (0xc4, 0x0111, 3));
        let select = AmdSelect::of(0x187, 1, 3) | AmdSelect::EN;
        assert_eq!(select.bits(), 0x1_0340_0187);
        assert_eq!(select.event(), 0x187);
    }

    proptest::proptest! {
        #[test]
        fn what_goes_in_comes_out(event: u8, umask: u16, cmask: u8, wide in 0u16..0x1000) {
            let select = EventSelect::of(event, umask, cmask);
            proptest::prop_assert_eq!((select.event(), select.umask(), select.cmask()), (event, umask, cmask));
            proptest::prop_assert_eq!(AmdSelect::of(wide, 0xff, cmask).event(), wide);
        }
    }
}
