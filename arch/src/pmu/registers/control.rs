//! Control, status and capability registers.

use bitflags::bitflags;

bitflags! {
    /// The four bits of one counter in IA32_FIXED_CTR_CTRL (SDM vol. 3, figure 20-2).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct FixedField: u8 {
        /// Counts in ring 0.
        const OS = 1 << 0;
        /// Counts above ring 0.
        const USR = 1 << 1;
        /// Counts for all threads of the core. Versions 3 and 4.
        const ANY_THREAD = 1 << 2;
        /// An overflow raises a PMI.
        const PMI = 1 << 3;
    }

    /// IA32_PERF_GLOBAL_STATUS and AMD's PerfCntrGlobalStatus, and the registers that clear and set it. Bits below
    /// 32 are general-purpose counters, from 32 on fixed ones (SDM vol. 3, 20.2.4; APM vol. 2, 13.2.1).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct GlobalStatus: u64 {
        /// PERF_METRICS overflowed.
        const METRICS = 1 << 48;
        /// The buffer of architectural PEBS has reached its threshold (Linux, `GLOBAL_STATUS_ARCH_PEBS_THRESHOLD`).
        const RECORDS = 1 << 54;
        /// Processor Trace's buffer is full.
        const TRACE = 1 << 55;
        /// The branch records stand still.
        const LBR_FROZEN = 1 << 58;
        /// The counters stand still.
        const COUNTERS_FROZEN = 1 << 59;
        /// Counts may include an enclave's.
        const ENCLAVE = 1 << 60;
        /// An uncore counter overflowed.
        const UNCORE = 1 << 61;
        /// The DS buffer is full.
        const BUFFER = 1 << 62;
        /// Something changed a condition.
        const CHANGED = 1 << 63;
        const _ = !0;
    }

    /// IA32_DEBUGCTL (SDM vol. 3, figure 18-11).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct DebugCtl: u64 {
        /// Legacy branch records are written.
        const LBR = 1 << 0;
        /// Single-stepping stops at branches only.
        const BTF = 1 << 1;
        /// A PMI freezes the branch records.
        const FREEZE_LBRS_ON_PMI = 1 << 11;
        /// A PMI freezes the counters.
        const FREEZE_PERFMON_ON_PMI = 1 << 12;
        /// Nothing is counted in system management mode.
        const FREEZE_WHILE_SMM = 1 << 14;
        const _ = !0;
    }

    /// IA32_PERF_CAPABILITIES (SDM vol. 3, figure 20-63).
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct PerfCapabilities: u64 {
        /// PEBS is trap-like.
        const PEBS_TRAP = 1 << 6;
        /// PEBS saves the architectural registers.
        const PEBS_ARCH_REGISTERS = 1 << 7;
        /// [`DebugCtl::FREEZE_WHILE_SMM`] works.
        const FREEZE_WHILE_SMM = 1 << 12;
        /// Counters can be written in full at 0x4C1.
        const FULL_WIDTH_WRITES = 1 << 13;
        /// PEBS has adaptive records and works on every counter.
        const PEBS_BASELINE = 1 << 14;
        /// MSR_PERF_METRICS exists. Clear on Alder Lake, whose P-cores have it all the same.
        const PERF_METRICS = 1 << 15;
        /// PEBS can write into Processor Trace.
        const PEBS_OUTPUT_TO_TRACE = 1 << 16;
        /// Basic groups of adaptive PEBS records have the retire latency.
        const PEBS_TIMING = 1 << 17;
        const _ = !0;
    }
}

impl GlobalStatus {
    /// The counters' bits.
    #[must_use]
    pub const fn counters(self) -> u64 {
        self.bits() & 0x0000_ffff_ffff_ffff
    }
}

impl PerfCapabilities {
    /// Format of the legacy branch records: bits 5:0.
    #[must_use]
    pub const fn lbr_format(self) -> u8 {
        (self.bits() & 0x3f) as u8
    }

    /// Format of the PEBS records: bits 11:8.
    #[must_use]
    pub const fn pebs_format(self) -> u8 {
        (self.bits() >> 8 & 0xf) as u8
    }
}

/// IA32_FIXED_CTR_CTRL: one [`FixedField`] a counter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FixedControl(pub u64);

impl FixedControl {
    /// The field of counter `index`, below 16.
    #[must_use]
    pub const fn field(self, index: u8) -> FixedField {
        FixedField::from_bits_retain((self.0 >> (4 * index) & 0xf) as u8)
    }

    /// The same with another field for counter `index`, below 16.
    #[must_use]
    pub const fn with(self, index: u8, field: FixedField) -> Self {
        let shift = 4 * index;
        Self(self.0 & !(0xf << shift) | (field.bits() as u64 & 0xf) << shift)
    }

    /// The same with the adaptive bit of counter `index`, below 8, at 32 + 4 * index: its PEBS records have more than the basic
    /// group (SDM vol. 3, 20.9.2.1).
    #[must_use]
    pub const fn with_adaptive(self, index: u8, on: bool) -> Self {
        let bit = 1 << (32 + 4 * (index & 7));
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_field_changes_its_own_bits_alone() {
        let all = FixedControl(0xffff_ffff_ffff_ffff);
        assert_eq!(all.with(2, FixedField::OS).0, 0xffff_ffff_ffff_f1ff);
        let none = FixedControl(0).with(3, FixedField::PMI | FixedField::USR);
        assert_eq!((none.0, none.field(3)), (0xa000, FixedField::PMI | FixedField::USR));
        let adaptive = none.with_adaptive(3, true);
        assert_eq!(
            (adaptive.0, adaptive.with_adaptive(3, false)),
            (0x1000_0000_a000 | 0xa000, none)
        );
    }

    #[test]
    fn capability_fields() {
        let seen = PerfCapabilities::from_bits_retain(0x3145);
        assert_eq!((seen.lbr_format(), seen.pebs_format()), (5, 1));
        assert!(seen.contains(PerfCapabilities::FULL_WIDTH_WRITES));
        assert_eq!(GlobalStatus::from_bits_retain(3 << 58 | 5 << 32).counters(), 5 << 32);
    }
}
