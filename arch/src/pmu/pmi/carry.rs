//! What a counter counted between its overflow and the moment at which it stood goes into its next periods, so that periods do not
//! drift on a processor with skid (Linux, `x86_perf_event_set_period`, likewise). So (overflows + whole periods owed) x period + what
//! is left is all that it counted, however late an interrupt comes.

use super::ControlBlock;
use super::block::Slot;
use crate::pmu::capabilities::Capabilities;
use crate::pmu::driver::Driver;
use crate::pmu::errata::Effect;

/// When a counter that has overflowed stands, and so what its value is when the handler sets it back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stands {
    /// Not before that: nothing is carried over.
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
        self.preset != 0
    }

    /// Whether its value at an overflow was all counted in the interrupted code, so that none of it may be lost.
    const fn owes(&self) -> bool {
        self.is_reloaded() && self.reload == 0
    }

    /// Events that were counted since its overflows and that no period has had yet: they came in more than the half of a period that
    /// an overflow may leave to the next one. Whole periods of them had no overflow of their own.
    #[must_use]
    pub const fn owed(&self) -> u64 {
        if self.owes() { self.owed } else { 0 }
    }

    /// What is carried over: no more than half of the period, so that what is left of it is no shorter than its half. Nothing if
    /// periods have to be those that were set; the rest is owed.
    pub(super) fn carry_over(&mut self, stands: Stands, keeps_periods: bool) {
        let owes = match stands {
            Stands::Never => false,
            Stands::Frozen => true,
            Stands::Stopped => !self.ring_0,
        };
        let half = (self.preset.wrapping_neg() & self.width) / 2;
        self.carry = match owes && !keeps_periods && self.is_reloaded() {
            true => u32::try_from(half).unwrap_or(u32::MAX),
            false => 0,
        };
        // The assembly looks only at the values of counters that owe.
        self.reload = if self.is_reloaded() && !owes { self.look_at } else { 0 };
    }

    /// What the counter, whose value is `value` at an overflow, is set to.
    #[inline]
    pub(super) fn next(&mut self, value: u64) -> u64 {
        let over = self.owed.wrapping_add(value);
        let carried = over.min(self.carry.into());
        self.owed = over - carried;
        self.preset + carried
    }
}

impl ControlBlock {
    /// Counters that overflow stand from a freeze on until they are set back.
    pub fn carry_over_frozen(&mut self, driver: &Driver) {
        self.carry_over(driver, Stands::Frozen);
    }

    pub(super) fn carry_over(&mut self, driver: &Driver, stands: Stands) {
        (self.stands, self.keeps_periods) = (stands, keeps_periods(driver.capabilities()));
        for slot in &mut self.slots {
            slot.carry_over(self.stands, self.keeps_periods);
        }
    }
}

/// Whether some distances from an overflow do not work: then counters are set to those of the periods alone.
fn keeps_periods(has: &Capabilities) -> bool {
    has.errata.iter().any(|row| matches!(row.effect, Effect::Period(_)))
}
