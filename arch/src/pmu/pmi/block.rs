//! What the handler needs, worked out beforehand.

use crate::pmu::FreezeKind;
use crate::pmu::capabilities::{Capabilities, Counter};
use crate::pmu::driver::{Driver, PmuError, Write};
use crate::pmu::registers::GlobalStatus;

/// One counter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Slot {
    /// The counter's MSR, to be set to `preset` at each overflow; 0: it just goes on.
    pub reload: u32,
    reserved: u32,
    /// Where it starts from.
    pub preset: u64,
    /// How often it overflowed.
    pub overflows: u64,
    /// MSR to look at for an overflow, where there is no status register; 0: the counter is not in use.
    pub look_at: u32,
    reserved_2: u32,
}

/// What one PMI leaves in the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Sample {
    /// The instruction at which the interrupt came.
    pub rip: u64,
    /// The counters that had overflowed, as bits of the global status.
    pub status: u64,
    /// The TSC.
    pub tsc: u64,
}

/// Bits of the global registers.
const SLOTS: usize = 64;

/// What one processor's handler works with. The assembly of `entry` reads it by offset.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct ControlBlock {
    /// Status register; 0: there is none.
    pub(super) status: u32,
    /// Register that clears it.
    pub(super) clear: u32,
    /// Bits of the status that are counters of ours; never the frozen ones.
    pub(super) mask: u64,
    /// Lets the counters go on: a register, 0 if nothing has to be done, and its value.
    pub(super) resume: Write,
    /// Stops the counters at the beginning: likewise.
    pub(super) stop: Write,
    /// Address of the APIC's page; 0: x2APIC.
    pub(super) apic: u64,
    /// LVTPC without its mask bit.
    pub(super) lvt: u32,
    /// LVTPC stays unmasked at delivery: AMD's.
    pub(super) stays_unmasked: bool,
    /// The interrupt is an NMI, and gets no EOI.
    pub(super) nmi: u32,
    /// PMIs that found an overflow.
    pub pmis: u64,
    /// Interrupts that found none.
    pub spurious: u64,
    /// Overflows that came while an interrupt was being handled, and were found before its end.
    pub back_to_back: u64,
    /// Samples that did not fit the log.
    pub dropped: u64,
    /// Where the next sample goes; equal to `end`: the log is full.
    pub(super) cursor: u64,
    /// Behind the log; 0: there is none.
    pub(super) end: u64,
    /// Top bit of the counters, for processors without a status register.
    pub(super) top: u64,
    /// Its number in the upper half of RDMSR's result.
    pub(super) top_in_edx: u32,
    pub(super) slots: [Slot; SLOTS],
}

const NO_WRITE: Write = Write::new(crate::msr::Msr(0), 0);
const NO_SLOT: Slot =
    Slot { reload: 0, reserved: 0, preset: 0, overflows: 0, look_at: 0, reserved_2: 0 };

impl ControlBlock {
    /// A block that finds every interrupt spurious.
    pub const EMPTY: Self = Self {
        status: 0,
        clear: 0,
        mask: 0,
        resume: NO_WRITE,
        stop: NO_WRITE,
        apic: 0,
        lvt: 0,
        stays_unmasked: false,
        nmi: 0,
        pmis: 0,
        spurious: 0,
        back_to_back: 0,
        dropped: 0,
        cursor: 0,
        end: 0,
        top: 0,
        top_in_edx: 0,
        slots: [NO_SLOT; SLOTS],
    };

    /// The block for the counters that `driver` has programmed: overflows are counted, counters go on from where
    /// they are.
    #[must_use]
    pub fn of(driver: &Driver) -> Self {
        let has = driver.capabilities();
        let mut block = Self::EMPTY;
        if let Some(global) = driver.layout().global {
            block.status = global.status.0;
            block.clear = global.clear.0;
        }
        // Without a status register only counters that are reloaded tell by their top bit that they overflowed.
        block.mask = if block.status == 0 { 0 } else { driver.programmed() };
        block.top = (u64::MAX >> (64 - has.general_bits.clamp(1, 64)) >> 1) + 1;
        block.stays_unmasked = !has.is_intel();
        block.top_in_edx = has.general_bits.clamp(33, 64) - 33;
        for counter in has.counters().filter(|counter| driver.programmed() & counter.bit() != 0) {
            block.slots[counter.index()].look_at = driver.layout().counter(counter).0;
        }
        block
    }

    /// Counter `counter` starts again from `preset` at each overflow.
    ///
    /// # Errors
    /// The counter is not programmed.
    pub fn reload(
        &mut self,
        driver: &Driver,
        counter: Counter,
        preset: u64,
    ) -> Result<(), PmuError> {
        if driver.programmed() & counter.bit() == 0 {
            return Err(PmuError::NoCounter(counter));
        }
        let slot = &mut self.slots[counter.index()];
        slot.reload = driver.layout().counter(counter).0;
        slot.preset = preset;
        self.mask |= counter.bit();
        Ok(())
    }

    /// To go with a freeze: the handler lets the counters go on before it ends. A streamlined freeze ends when its
    /// bits are cleared, a legacy one when the enables are set again.
    pub fn resume_in_handler(&mut self, driver: &Driver) {
        let Some(global) = driver.layout().global else { return };
        self.resume = match driver.capabilities().freeze {
            FreezeKind::Streamlined => Write::new(global.clear, frozen_bits(driver.capabilities())),
            FreezeKind::None | FreezeKind::Legacy => driver.gate().on()[0],
        };
    }

    /// For processors that cannot freeze: the handler stops the counters as the first thing it does, and lets them
    /// go on as one of the last. Needs a global control.
    ///
    /// # Errors
    /// There is none.
    pub fn stop_in_handler(&mut self, driver: &Driver) -> Result<(), PmuError> {
        if driver.layout().global.is_none() {
            return Err(PmuError::Unsupported("global control to stop counters with"));
        }
        self.stop = driver.gate().off()[0];
        self.resume = driver.gate().on()[0];
        Ok(())
    }

    /// Writes samples to `log` until it is full, and counts what does not fit. The log has to outlive the block's use.
    pub fn log_to(&mut self, log: &mut [Sample]) {
        let range = log.as_mut_ptr_range();
        self.cursor = range.start as u64;
        self.end = range.end as u64;
    }

    /// Samples written to a log that began at `start`.
    #[must_use]
    pub fn logged(&self, start: *const Sample) -> usize {
        (self.cursor as usize).saturating_sub(start as usize) / size_of::<Sample>()
    }

    /// How often a counter overflowed.
    #[must_use]
    pub fn overflows(&self, counter: Counter) -> u64 {
        self.slots[counter.index()].overflows
    }
}

/// The frozen bits, where the status has them.
fn frozen_bits(has: &Capabilities) -> u64 {
    match has.freeze {
        FreezeKind::Streamlined => {
            (GlobalStatus::LBR_FROZEN | GlobalStatus::COUNTERS_FROZEN).bits()
        }
        FreezeKind::None | FreezeKind::Legacy => 0,
    }
}

/// Offsets for the assembly.
pub(super) mod offset {
    use super::{ControlBlock, Slot};
    use core::mem::offset_of;

    pub const STATUS: usize = offset_of!(ControlBlock, status);
    pub const CLEAR: usize = offset_of!(ControlBlock, clear);
    pub const MASK: usize = offset_of!(ControlBlock, mask);
    pub const RESUME: usize = offset_of!(ControlBlock, resume);
    pub const STOP: usize = offset_of!(ControlBlock, stop);
    pub const APIC: usize = offset_of!(ControlBlock, apic);
    pub const LVT: usize = offset_of!(ControlBlock, lvt);
    pub const NMI: usize = offset_of!(ControlBlock, nmi);
    pub const PMIS: usize = offset_of!(ControlBlock, pmis);
    pub const SPURIOUS: usize = offset_of!(ControlBlock, spurious);
    pub const BACK_TO_BACK: usize = offset_of!(ControlBlock, back_to_back);
    pub const DROPPED: usize = offset_of!(ControlBlock, dropped);
    pub const CURSOR: usize = offset_of!(ControlBlock, cursor);
    pub const END: usize = offset_of!(ControlBlock, end);
    pub const TOP_IN_EDX: usize = offset_of!(ControlBlock, top_in_edx);
    pub const RELOAD: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, reload);
    pub const PRESET: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, preset);
    pub const OVERFLOWS: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, overflows);
    /// A slot is 2^5 bytes, which the assembly shifts by.
    const _: () = assert!(size_of::<Slot>() == 32);
}
