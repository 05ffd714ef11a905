//! What a performance monitoring interrupt stops.
//!
//! Versions 2 and 3 clear enables: all of GLOBAL_CTRL, and DEBUGCTL.LBR. Version 4 and AMD's
//! PerfMonV2 leave the enables and set status bits, which stop everything until software clears
//! them. Both act when the interrupt is requested, that is at the overflow.

use super::Pmu;
use crate::mutation::Mutation;

/// DEBUGCTL\[0\].
pub(crate) const DEBUGCTL_LBR: u64 = 1 << 0;
/// DEBUGCTL\[1\]: single-step on branches.
pub(crate) const DEBUGCTL_BTF: u64 = 1 << 1;
/// DEBUGCTL\[11\]: a PMI freezes the branch records.
const FREEZE_LBRS_ON_PMI: u64 = 1 << 11;
/// DEBUGCTL\[12\]: a PMI freezes the counters.
pub(super) const FREEZE_PERFMON_ON_PMI: u64 = 1 << 12;
/// Status bit 58.
pub(crate) const LBR_FROZEN: u64 = 1 << 58;
/// Status bit 59.
pub(crate) const COUNTERS_FROZEN: u64 = 1 << 59;

impl Pmu {
    /// Whether a PMI will stop the counters.
    pub(super) fn freeze_is_armed(&self) -> bool {
        self.debugctl & FREEZE_PERFMON_ON_PMI != 0 && !self.is(Mutation::FreezeIgnored)
    }

    /// Whether the counters stand still until status bit 59 is cleared.
    pub(super) fn is_frozen(&self) -> bool {
        self.freezes_by_status() && self.status & COUNTERS_FROZEN != 0
    }

    /// Whether the branch records stand still until status bit 58 is cleared.
    pub(super) fn records_are_frozen(&self) -> bool {
        self.freezes_by_status() && self.status & LBR_FROZEN != 0
    }

    /// The planted fault of a freeze that comes late: so many instructions have gone by.
    pub(super) fn freeze_late(&mut self, instructions: u64) {
        if !self.is(Mutation::FreezeLate) || self.freezes_in == 0 {
            return;
        }
        let instructions = instructions.try_into().unwrap_or(u16::MAX);
        self.freezes_in = self.freezes_in.saturating_sub(instructions);
        if self.freezes_in == 0 {
            self.freeze();
        }
    }

    /// Stops the counters.
    fn freeze(&mut self) {
        if self.freezes_by_status() {
            self.status |= COUNTERS_FROZEN;
        } else {
            self.global_control = 0;
        }
    }

    /// Acts on a PMI that is being requested.
    pub(super) fn freeze_on_pmi(&mut self) {
        /// Instructions.
        const LATE: u16 = 400;
        let late = self.is(Mutation::FreezeLate) && self.freeze_is_armed();
        if late {
            self.freezes_in = LATE;
        }
        let counters = self.freeze_is_armed() && !late;
        let records =
            self.debugctl & FREEZE_LBRS_ON_PMI != 0 && !self.is(Mutation::LbrFreezeIgnored);
        if counters {
            self.freeze();
        }
        if self.freezes_by_status() {
            self.status |= u64::from(records) * LBR_FROZEN;
        } else if records {
            self.debugctl &= !DEBUGCTL_LBR;
        }
    }

    /// A #DB is being delivered: it turns the branch records and single-stepping on branches off
    /// (Intel SDM volume 3, on IA32_DEBUGCTL). Architectural LBRs continue.
    pub fn debug_exception(&mut self) {
        self.debugctl &= !(DEBUGCTL_LBR | DEBUGCTL_BTF);
    }
}
