//! Keeping the handler's own work out of the counts.

use super::ControlBlock;
use super::assembly::{STOPPED, TAIL, stopped_one_by_one};
use crate::pmu::FreezeKind;
use crate::pmu::capabilities::Capabilities;
use crate::pmu::driver::{Driver, PmuError, Write};
use crate::pmu::registers::GlobalStatus;
use core::fmt;

/// What counters do while an overflow is handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handling {
    /// They go on: those that count ring 0 count the handler.
    Counted,
    /// The processor freezes them.
    Frozen {
        /// Instructions of the handler's end that they see, if they count ring 0; `None`: it is not known.
        seen: Option<u64>,
    },
    /// The handler stops them.
    Stopped {
        /// Instructions of the handler that they see, likewise.
        seen: Option<u64>,
    },
}

impl Handling {
    pub(super) fn of(block: &ControlBlock) -> Self {
        // The common stub and compiled code stand around the Rust handler: nobody counted those instructions.
        let known = |seen| (!block.needs_service()).then_some(seen);
        match (block.stop.msr != 0, block.stops, block.resume.msr != 0) {
            (true, ..) => Self::Stopped { seen: known(STOPPED) },
            (_, 1.., _) => Self::Stopped { seen: known(stopped_one_by_one(block.stops.into())) },
            (_, _, true) => Self::Frozen { seen: known(TAIL) },
            _ => Self::Counted,
        }
    }

    /// Instructions of the handler that a counter of ring 0 sees at each interrupt; `None`: many, or not known.
    #[must_use]
    pub const fn seen(self) -> Option<u64> {
        match self {
            Self::Counted => None,
            Self::Frozen { seen } | Self::Stopped { seen } => seen,
        }
    }
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self {
            Self::Counted => return f.write_str("counters go on, ring 0 counts the handler"),
            Self::Frozen { .. } => "frozen by the processor",
            Self::Stopped { .. } => "stopped by the handler",
        };
        match self.seen() {
            Some(seen) => write!(f, "{how}, {seen} instructions of ring 0 counted an interrupt"),
            None => write!(f, "{how}, the handler's ends are counted in ring 0"),
        }
    }
}

impl ControlBlock {
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
    /// go on as the last. Without a global control it does so one by one.
    ///
    /// # Errors
    /// Nothing is programmed.
    pub fn stop_in_handler(&mut self, driver: &Driver) -> Result<(), PmuError> {
        let gate = driver.gate();
        let (&[on, ..], &[off, ..]) = (gate.on(), gate.off()) else {
            return Err(PmuError::Unsupported("counter that is programmed and could be stopped"));
        };
        if driver.layout().global.is_none() {
            self.gate = gate;
            self.stops = gate.on().len() as u32;
            return Ok(());
        }
        (self.stop, self.resume) = (off, on);
        Ok(())
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
