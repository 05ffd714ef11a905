//! Overflows.

use super::{Driver, PmuError, read, write};
use crate::pmu::access::Registers;
use crate::pmu::capabilities::Counter;
use crate::pmu::registers::GlobalStatus;

impl Driver {
    /// Which counters overflowed, and what is frozen.
    ///
    /// Without a status register: a programmed counter whose top bit is clear is taken as overflowed, since a preset
    /// (see [`Driver::preset`]) has it set.
    ///
    /// # Errors
    /// A register cannot be read.
    pub fn status(&self, registers: &mut dyn Registers) -> Result<GlobalStatus, PmuError> {
        if let Some(global) = self.layout.global {
            let status = read(registers, global.status)?;
            // Zen 4 may set reserved bits (Linux, `arch/x86/events/amd/core.c`).
            let known = match self.capabilities.is_intel() {
                true => u64::MAX,
                false => self.capabilities.counter_bits() | FROZEN.bits(),
            };
            // A bit that cannot be cleared says nothing.
            let known = known & !self.capabilities.no_overflow;
            return Ok(GlobalStatus::from_bits_retain(status & known));
        }
        let mut status = 0;
        for counter in self.capabilities.generals() {
            let Counter::General(n) = counter else { continue };
            let top = (self.capabilities.mask(counter) >> 1) + 1;
            if self.selects[usize::from(n)] != 0 && self.read(registers, counter)? & top == 0 {
                status |= counter.bit();
            }
        }
        Ok(GlobalStatus::from_bits_retain(status))
    }

    /// Clears bits of the status. Clearing a frozen bit lets counters or branch records continue.
    ///
    /// # Errors
    /// The register refuses.
    pub fn acknowledge(
        &self,
        registers: &mut dyn Registers,
        bits: GlobalStatus,
    ) -> Result<(), PmuError> {
        match self.layout.global {
            Some(global) => write(registers, global.clear, bits.bits()),
            None => Ok(()),
        }
    }
}

/// Both frozen bits.
pub(super) const FROZEN: GlobalStatus =
    GlobalStatus::LBR_FROZEN.union(GlobalStatus::COUNTERS_FROZEN);
