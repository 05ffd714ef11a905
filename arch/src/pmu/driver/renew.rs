//! What Nehalem's and Westmere's counters need before they get an event: errata AAK100, AAP53 and BD53.
//!
//! A counter may count wrongly unless four certain events, which count nothing of use, were in the four event selects before, and
//! the counters were enabled once with them. Source: Linux, `intel_pmu_nhm_workaround` in `arch/x86/events/intel/core.c`, which does
//! so whenever it adds an event.

use super::{Driver, PmuError, read, write};
use crate::msr::Msr;
use crate::pmu::access::Registers;
use crate::pmu::capabilities::Counter;
use crate::pmu::errata::Effect;
use crate::pmu::numbers;

/// The event selects, of counters 0 to 3: events B5, D2 and twice B1 in both rings, enabled.
const SELECTS: [u64; 4] = [0x43_00b5, 0x43_00d2, 0x43_00b1, 0x43_00b1];
/// Their bits in the global control.
const COUNTERS: u64 = 0b1111;

impl Driver {
    /// Whether counters have to be renewed before they get an event.
    #[must_use]
    pub fn has_to_renew(&self) -> bool {
        self.capabilities.errata.iter().any(|row| row.effect == Effect::Enabling)
    }

    /// Does it, where the processor needs it. Everything is as it was then; counters that run miss the events of this time.
    ///
    /// # Errors
    /// A register refuses.
    pub(super) fn renew(&self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        let all = (0..4).map(Counter::General);
        let (Some(global), true) = (self.layout.global, self.has_to_renew()) else { return Ok(()) };
        // One of them was recorded with fewer.
        if all.clone().any(|counter| !self.capabilities.has(counter)) {
            return Ok(());
        }
        // None may overflow after it was read.
        let control = read(registers, global.control)?;
        write(registers, global.control, 0)?;
        let mut kept = [[0; 2]; 4];
        for (kept, counter) in kept.iter_mut().zip(all.clone()) {
            *kept = [read(registers, self.select(counter))?, self.read(registers, counter)?];
            // Of a counter that nobody uses nothing needs to be kept; any other value could not be written back.
            if self.settable(counter, kept[1]).is_err() {
                if kept[0] != 0 {
                    return write(registers, global.control, control);
                }
                kept[1] = 0;
            }
        }
        if self.records != 0 {
            write(registers, numbers::PEBS_ENABLE, 0)?;
        }
        for (select, counter) in SELECTS.into_iter().zip(all.clone()) {
            write(registers, self.select(counter), select)?;
            self.write(registers, counter, 0)?;
        }
        write(registers, global.control, COUNTERS)?;
        write(registers, global.control, 0)?;
        for ([select, value], counter) in kept.into_iter().zip(all) {
            self.write(registers, counter, value)?;
            write(registers, self.select(counter), select)?;
        }
        if self.records != 0 {
            write(registers, numbers::PEBS_ENABLE, self.records)?;
        }
        write(registers, global.control, control)
    }

    fn select(&self, counter: Counter) -> Msr {
        let (Counter::General(n) | Counter::Fixed(n)) = counter;
        self.layout.select(n)
    }
}
