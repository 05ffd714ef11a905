//! PERF_METRICS and the slots that it divides.
//!
//! Its fields are 255ths of all slots since both registers were at 0, so a share of what came since the last reading is known the
//! worse the longer ago that was. So each reading takes both and starts them from 0, while no counter counts (Linux does the same,
//! `intel_pmu_read_event` in `arch/x86/events/intel/core.c`). At a switch each task thus has its own slots, and the error of all
//! readings together is at most 1/255 of all slots, and a slot for each. To save and restore both registers, as SDM volume 3,
//! 20.3.9.3 has it, would round what was there before at each switch.

use super::Session;
use crate::counting::Platform;
use arch::pmu::PmuError;
use arch::pmu::driver::SLOTS;
use arch::pmu::registers::Slots;

impl Session {
    /// What came since the last time, and begins anew; `None`: nothing that is counted needs it. The counters stand still then,
    /// and whoever asks starts them again.
    pub(super) fn take_slots(
        &mut self,
        platform: &mut dyn Platform,
    ) -> Result<Option<Slots>, PmuError> {
        if !self.driver.has_metrics() || !self.loaded {
            return Ok(None);
        }
        if self.running {
            self.driver.stop(platform)?;
        }
        let slots = self.driver.slots(platform)?;
        // The counter of slots wraps no later than the register overflows, and its interrupt may have taken the status away.
        let mut active = self.active[self.group].iter();
        let wraps = platform.overflows(SLOTS);
        let wrapped = active
            .any(|active| active.count.counter() == SLOTS && active.count.folded().0 != wraps);
        self.metrics_overflowed |= wrapped || self.driver.metrics_overflowed(platform)?;
        self.driver.clear_metrics(platform)?;
        Ok(Some(slots))
    }

    /// Whether PERF_METRICS overflowed: its fields are worth nothing then.
    #[must_use]
    pub const fn metrics_overflowed(&self) -> bool {
        self.metrics_overflowed
    }
}
