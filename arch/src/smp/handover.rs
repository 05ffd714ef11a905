//! Who may touch something that processors hand to each other, such as the registers of a task.

use super::sync::{AtomicU32, Ordering, constructor};

/// Nobody has it.
const NOBODY: u32 = 0;

/// Says which processor has something, one at most.
#[derive(Debug)]
pub struct Handover(AtomicU32);

impl Handover {
    constructor! {
        /// Nobody has it.
        pub fn new() -> Self {
            Self(AtomicU32::new(NOBODY))
        }
    }

    /// Processor `place` wants it. Returns whether it has it now, and then sees whatever the one before did with it; so does one
    /// that has it already. A processor may ask as often as it likes, and never waits.
    pub fn take(&self, place: usize) -> bool {
        let own = place as u32 + 1;
        match self.0.compare_exchange(NOBODY, own, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(now) => now == own,
        }
    }

    /// The one that has it has done with it: the next one may come.
    pub fn give_up(&self) {
        self.0.store(NOBODY, Ordering::Release);
    }

    /// Whether nobody has it, or processor `place` does.
    pub fn is_free_for(&self, place: usize) -> bool {
        [NOBODY, place as u32 + 1].contains(&self.0.load(Ordering::Relaxed))
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self::new()
    }
}
