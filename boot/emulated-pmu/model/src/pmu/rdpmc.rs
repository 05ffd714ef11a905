//! RDPMC.

use super::{MAX_COUNTERS, MAX_FIXED, Pmu};
use crate::error::Fault;
use crate::mutation::Mutation;

/// ECX\[31:16\] of a fixed counter.
const FIXED: u32 = 0x4000_0000;
/// ECX of PERF_METRICS.
const METRICS: u32 = 0x2000_0000;

/// Whether RDPMC may be executed: at CPL 0 always, above only with CR4.PCE set. Real mode runs at
/// CPL 0.
#[must_use]
pub const fn rdpmc_allowed(cpl: u8, cr4_pce: bool) -> bool {
    cpl == 0 || cr4_pce
}

impl Pmu {
    /// RDPMC at a privilege level: the check of [`rdpmc_allowed`], then [`Pmu::rdpmc`].
    ///
    /// # Errors
    /// The fault to raise, as #GP(0).
    pub fn rdpmc_at(&self, ecx: u32, cpl: u8, cr4_pce: bool) -> Result<u64, Fault> {
        if rdpmc_allowed(cpl, cr4_pce) || self.is(Mutation::RdpmcPrivilegeIgnored) {
            self.rdpmc(ecx)
        } else {
            Err(Fault::Privilege { cpl })
        }
    }

    /// RDPMC, once the privilege has been checked: the counter, zero-extended.
    ///
    /// Intel: ECX\[31:16\] is the type, 0 for general-purpose counters, 0x4000 for fixed ones,
    /// 0x2000 for PERF_METRICS; bit 31, the fast mode of NetBurst, is none of them. AMD: the number
    /// of a core counter.
    ///
    /// # Errors
    /// [`Fault::Rdpmc`] for an index that names nothing: #GP(0).
    pub fn rdpmc(&self, ecx: u32) -> Result<u64, Fault> {
        let value = self.counter_of(ecx).ok_or(Fault::Rdpmc { ecx })?;
        let value = value.wrapping_add(7 * u64::from(self.is(Mutation::RdpmcDiffers)));
        Ok(if self.is(Mutation::RdpmcTruncates) { u64::from(value as u32) } else { value })
    }

    fn counter_of(&self, ecx: u32) -> Option<u64> {
        let spec = self.spec();
        let present = |bitmap: u32, index: u32, most: usize| {
            let index = index as usize;
            (index < most && bitmap & 1 << index != 0).then_some(index)
        };
        let general = |index: u32| present(spec.counters(), index, MAX_COUNTERS);
        let found = match (spec.intel(), ecx & 0xFFFF_0000) {
            (Some(_), FIXED) => {
                let index = present(spec.fixed(), ecx & 0xFFFF, MAX_FIXED)?;
                return Some(self.fixed[index].value);
            }
            (Some(intel), _) if ecx == METRICS && intel.metrics > 0 => {
                return match self.is(Mutation::MetricsRdpmcAbsent) {
                    true => None,
                    false => Some(self.metrics_value()),
                };
            }
            (_, 0) => general(ecx),
            _ => None,
        };
        let index = match found {
            None if self.is(Mutation::RdpmcIndexWraps) => {
                general((ecx & 0xFFFF) % spec.counters().count_ones().max(1))
            }
            found => found,
        }?;
        Some(self.value(index))
    }
}
