//! A line that processors hand to each other, or all change at once.

use super::patience::Patience;
use arch::time::tsc;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use protocol::record::LineAccess;

/// A word with a line of its own, and with the neighbour that some prefetchers bring along.
#[repr(align(128))]
pub struct Line(pub AtomicU64);

impl Line {
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

/// Waits for `value` and makes it one more. Returns whether it came.
#[inline(always)]
fn hand(by: LineAccess, line: &Line, value: u64, patience: &Patience) -> bool {
    let word = &line.0;
    let is_there = || word.load(Ordering::Relaxed) == value;
    match by {
        LineAccess::Plain => {
            let came = patience.wait(is_there);
            if came {
                word.store(value + 1, Ordering::Relaxed);
            }
            came
        }
        LineAccess::Xadd => {
            let came = patience.wait(is_there);
            if came {
                xadd(word);
            }
            came
        }
        LineAccess::Cmpxchg => patience.wait(|| cmpxchg(word, value)),
    }
}

/// LOCK XADD of 1: what a compiler makes of an addition whose result nobody wants has another opcode.
#[inline(always)]
fn xadd(word: &AtomicU64) {
    // SAFETY: an aligned word that all change atomically.
    unsafe {
        asm!("lock xadd [{}], {}", in(reg) word.as_ptr(), inout(reg) 1_u64 => _, options(nostack));
    }
}

/// LOCK CMPXCHG of `value` by one more; whether it was there.
#[inline(always)]
fn cmpxchg(word: &AtomicU64, value: u64) -> bool {
    word.compare_exchange(value, value + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// The side that begins and has the clock: ticks of each sample. `None`: the other one did not answer.
pub fn begin(
    by: LineAccess,
    line: &Line,
    (samples, rounds): (&mut [u64], u32),
    patience: &Patience,
) -> bool {
    let mut value = 0;
    for sample in samples {
        let begun = tsc::now();
        for _ in 0..rounds {
            if !hand(by, line, value, patience) {
                return false;
            }
            value += 2;
        }
        // The last answer.
        if !patience.wait(|| line.0.load(Ordering::Relaxed) == value) {
            return false;
        }
        *sample = tsc::now().wrapping_sub(begun);
    }
    true
}

/// The side that answers so often. Returns whether it was asked so often.
pub fn answer(by: LineAccess, line: &Line, rounds: u64, patience: &Patience) -> bool {
    (0..rounds).all(|round| hand(by, line, 2 * round + 1, patience))
}

/// Changes the line so often, whatever others do. Returns the instructions that it took.
pub fn change(by: LineAccess, line: &Line, changes: u32) -> u64 {
    let word = &line.0;
    let mut tries = 0;
    for turn in 0..changes {
        match by {
            LineAccess::Plain => word.store(turn.into(), Ordering::Relaxed),
            LineAccess::Xadd => xadd(word),
            LineAccess::Cmpxchg => {
                // What it finds is what it expects the next time.
                let mut value = word.load(Ordering::Relaxed);
                while let Err(found) =
                    word.compare_exchange(value, value + 1, Ordering::Relaxed, Ordering::Relaxed)
                {
                    value = found;
                    tries += 1;
                }
            }
        }
    }
    // The last stores are on their way still.
    core::sync::atomic::fence(Ordering::SeqCst);
    tries + u64::from(changes)
}
