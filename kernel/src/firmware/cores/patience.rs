//! Waiting for another processor, but not for ever.

use arch::time::tsc;
use core::hint::spin_loop;

/// How somebody waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Looks in a row, without anything between them. Then comes a PAUSE, by which the emulated PMU has another processor run.
    pub looks: u32,
    /// Ticks after which nobody waits any more.
    pub ticks: u64,
}

/// Looks in a row where processors run at the same time: some 10 µs, which is longer than a line is on its way. PAUSE takes up to
/// 140 cycles on some processors, by which each look would be too late.
const LOOKS: u32 = 10_000;

impl Patience {
    /// A second's. `in_turn`: one processor runs at a time.
    pub fn new(hz: u64, in_turn: bool) -> Self {
        Self { looks: if in_turn { 1 } else { LOOKS }, ticks: hz }
    }

    /// Waits until it is so. Returns whether it is.
    #[inline(always)]
    pub fn wait(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let mut begun = None;
        loop {
            for _ in 0..self.looks {
                if is_so() {
                    return true;
                }
            }
            spin_loop();
            let now = tsc::now();
            if now.wrapping_sub(*begun.get_or_insert(now)) > self.ticks {
                return false;
            }
        }
    }

    /// Lets so many ticks go by; others run meanwhile.
    pub fn pass(ticks: u64) {
        let begun = tsc::now();
        while tsc::now().wrapping_sub(begun) < ticks {
            spin_loop();
        }
    }
}
