//! Something read on all processors at one instant.
//!
//! When all processors stand ready, the boot processor names an instant of its TSC a little ahead; each waits for it by
//! its own counter, corrected by its offset, notes its TSC, and reads. The skew is what came out of that, not a promise.

use super::rendezvous::Rendezvous;
use super::work::CallError;
use super::{Offset, count, on_all};
use crate::time::tsc;
use alloc::vec::Vec;
use core::hint::spin_loop;

/// What was read, and when.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Instant<R> {
    /// The instant that was named, of the boot processor's TSC.
    pub deadline: u64,
    /// By processor: its TSC just before it read, in the boot processor's time.
    pub tsc: Vec<u64>,
    /// What it read.
    pub values: Vec<R>,
    /// The latest of these times less the earliest.
    pub skew: u64,
}

/// The latest less the earliest; 0 of none.
#[must_use]
pub fn skew(times: &[u64]) -> u64 {
    let (first, last) = (times.iter().min(), times.iter().max());
    last.zip(first).map_or(0, |(last, first)| last - first)
}

/// So near to the instant the loop has no PAUSE any more, which takes up to 140 cycles on some processors.
const NEAR: u64 = 200;

/// Has every processor call `read` at one instant, `lead` ticks after all are ready. `offsets` are those of
/// [`super::offsets`]; a missing one counts as 0.
///
/// # Errors
/// This is not the boot processor.
pub fn at_instant<R: Send>(
    offsets: &[Offset],
    lead: u64,
    read: impl Fn(usize) -> R + Sync,
) -> Result<Instant<R>, CallError> {
    let (rendezvous, all) = (Rendezvous::new(), count());
    let found = on_all(|index| {
        let offset = offsets.get(index).map_or(0, |offset| offset.ticks);
        let name = || tsc::now() + lead;
        let name: Option<(usize, &dyn Fn() -> u64)> = (index == 0).then_some((all, &name));
        let instant = rendezvous.meet(name);
        let instant = instant.wrapping_add_signed(offset);
        let mut now = tsc::now();
        while now < instant {
            if instant - now > NEAR {
                spin_loop();
            }
            now = tsc::now();
        }
        (now.wrapping_add_signed(-offset), read(index))
    })?;
    let (tsc, values): (Vec<u64>, Vec<R>) = found.into_iter().unzip();
    let skew = skew(&tsc);
    Ok(Instant { deadline: rendezvous.deadline(), tsc, values, skew })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m10_the_skew_is_the_latest_less_the_earliest() {
        assert_eq!(skew(&[105, 100, 130]), 30);
        assert_eq!((skew(&[7]), skew(&[])), (0, 0));
    }

    #[test]
    fn m10_nobody_reads_before_the_instant() {
        let found = at_instant(&[], 10_000, |index| (index, tsc::now())).unwrap();
        assert_eq!(found.values.len(), 1);
        assert!(found.tsc[0] >= found.deadline && found.values[0].1 >= found.tsc[0]);
        assert_eq!((found.values[0].0, found.skew), (0, 0));
    }
}
