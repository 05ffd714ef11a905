//! What a counter counted between its overflow and the moment at which it stood goes into its next period, so that periods do not
//! drift on a processor with skid (Linux, `x86_perf_event_set_period`, likewise).

use super::ControlBlock;
use super::block::Slot;
use crate::pmu::capabilities::Capabilities;
use crate::pmu::driver::Driver;
use crate::pmu::errata::Effect;

/// When a counter that has overflowed stands, and so what its value is when the handler sets it back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stands {
    /// Not before that, or periods have to be those that were set (errata): nothing is carried over.
    #[default]
    Never,
    /// The processor froze it: all of its value was counted in the interrupted code.
    Frozen,
    /// The handler stopped it: of a counter of ring 0, its value has instructions of the handler as well.
    Stopped,
}

impl Slot {
    /// Whether it is set back at each overflow.
    #[must_use]
    pub(super) const fn is_reloaded(&self) -> bool {
        self.reload != 0 || self.carry != 0
    }

    /// The bits of a value that are carried over: less than half of the period, so that what is left of it is no shorter than its
    /// half. None of a period that does not fit into the 32 bits that the handler adds.
    pub(super) fn carry_over(&mut self, stands: Stands) {
        let carries = match stands {
            Stands::Never => false,
            Stands::Frozen => true,
            Stands::Stopped => !self.ring_0,
        };
        let period = self.preset.wrapping_neg() & self.width;
        let reloaded = self.is_reloaded();
        self.carry = match u32::try_from(period) {
            Ok(period @ 4..) if carries && reloaded => (1 << (period / 2).ilog2()) - 1,
            _ => 0,
        };
        // The assembly looks only at counters of which something is carried over.
        self.reload = if reloaded && self.carry == 0 { self.look_at } else { 0 };
    }
}

impl ControlBlock {
    /// Counters that overflow stand from a freeze on until they are set back.
    pub fn carry_over_frozen(&mut self, driver: &Driver) {
        self.carry_over(driver, Stands::Frozen);
    }

    pub(super) fn carry_over(&mut self, driver: &Driver, stands: Stands) {
        self.stands = if keeps_periods(driver.capabilities()) { Stands::Never } else { stands };
        for slot in &mut self.slots {
            slot.carry_over(self.stands);
        }
    }
}

/// Whether some distances from an overflow do not work: then counters are set to those of the periods alone.
fn keeps_periods(has: &Capabilities) -> bool {
    has.errata.iter().any(|row| matches!(row.effect, Effect::Period(_)))
}
