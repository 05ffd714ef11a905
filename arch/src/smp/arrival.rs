//! Whether a processor that was called came in time. One that comes too late must touch nothing.

use super::sync::{AtomicU32, Ordering};

/// Called, and not seen yet.
const CALLED: u32 = 0;
/// Here, and setting itself up.
const SETTING_UP: u32 = 1;
/// Waits for work.
const READY: u32 = 2;
/// Its local APIC cannot be used.
const BROKEN: u32 = 3;
/// Nobody waits for it any more.
const GIVEN_UP: u32 = 4;

/// How far a processor that was called has come.
pub(crate) struct Arrival(AtomicU32);

/// What the boot processor finds when it stops waiting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Arrived {
    /// It waits for work.
    Ready,
    /// It has stopped, as its local APIC cannot be used.
    Broken,
    /// It is setting itself up still. It will wait for work that nobody gives.
    Late,
    /// It has not come, and stops if it does.
    Absent,
}

impl Arrival {
    /// Called.
    pub(crate) fn called() -> Self {
        Self(AtomicU32::new(CALLED))
    }

    /// The processor is here. Returns whether it may set itself up: the first that asks may, unless nobody waits any more.
    pub(crate) fn arrive(&self) -> bool {
        self.0.compare_exchange(CALLED, SETTING_UP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// It is set up, or cannot be.
    pub(crate) fn settle(&self, usable: bool) {
        self.0.store(if usable { READY } else { BROKEN }, Ordering::Release);
    }

    /// Whether it has settled.
    pub(crate) fn has_settled(&self) -> bool {
        matches!(self.0.load(Ordering::Acquire), READY | BROKEN)
    }

    /// Stops waiting.
    pub(crate) fn close(&self) -> Arrived {
        let (from, to) = (CALLED, GIVEN_UP);
        match self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Arrived::Absent,
            Err(READY) => Arrived::Ready,
            Err(BROKEN) => Arrived::Broken,
            Err(_) => Arrived::Late,
        }
    }
}
