//! Buffers of counts, and what is done with them.

use super::set::Set;
use alloc::vec;
use alloc::vec::Vec;
use thiserror::Error;

/// What one request came to. As long as a power of two, so that a read goes through many with one index.
#[repr(align(32))]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Count {
    /// Events, while it had a counter.
    pub raw: u64,
    /// Ticks of the TSC during which it had one.
    pub counted: u64,
    /// Ticks during which its set counted.
    pub enabled: u64,
}

impl Count {
    /// The count that the whole time would have given, if the event came as often in the rest of it. `None`: it
    /// never had a counter while the set counted.
    #[must_use]
    pub fn scaled(&self) -> Option<u64> {
        if self.counted == self.enabled {
            return Some(self.raw);
        }
        if self.counted == 0 {
            return None;
        }
        let (raw, counted) = (u128::from(self.raw), u128::from(self.counted));
        let scaled = (raw * u128::from(self.enabled) + counted / 2) / counted;
        Some(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// The same of a count that began at `preset`, which no time gives.
    #[must_use]
    pub fn scaled_from(&self, preset: u64) -> Option<u64> {
        let counted = Self { raw: self.raw.wrapping_sub(preset), ..*self };
        Some(counted.scaled()?.wrapping_add(preset))
    }

    /// Adds what lies between two of the same request.
    #[inline]
    pub(super) fn add_between(&mut self, from: &Self, to: &Self) {
        self.raw = self.raw.wrapping_add(to.raw.wrapping_sub(from.raw));
        self.counted = self.counted.wrapping_add(to.counted.wrapping_sub(from.counted));
        self.enabled = self.enabled.wrapping_add(to.enabled.wrapping_sub(from.enabled));
    }

    /// The share of the time during which it was counted, in parts of a million.
    #[must_use]
    pub fn share(&self) -> u32 {
        if self.enabled == 0 {
            return 0;
        }
        let share = u128::from(self.counted) * 1_000_000 / u128::from(self.enabled);
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

/// Buffers that do not belong together.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[error("the counts are of set {found}, not of set {expected}")]
pub struct Mismatch {
    /// The set that the buffer belongs to.
    pub expected: u64,
    /// The set of the other one.
    pub found: u64,
}

/// The counts of a set at one time, or what lies between two times.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Counts {
    set: u64,
    /// How often the set had been changed or evicted when it was sampled.
    pub generation: u64,
    /// The TSC when it was sampled.
    pub tsc: u64,
    counts: Vec<Count>,
}

impl Counts {
    /// A buffer for a set, all zero.
    #[must_use]
    pub fn new(set: &Set) -> Self {
        let counts = vec![Count::default(); set.requests().len()];
        Self { set: set.id(), generation: 0, tsc: 0, counts }
    }

    /// One count for each request, in their order.
    #[must_use]
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    pub(super) fn counts_mut(&mut self) -> &mut [Count] {
        &mut self.counts
    }

    /// Whether it is that set's, by its number.
    #[inline]
    pub(super) const fn is_of(&self, set: u64) -> bool {
        self.set == set
    }

    pub(super) fn fits(&self, set: &Set) -> Result<(), Mismatch> {
        match self.is_of(set.id()) {
            true => Ok(()),
            false => Err(Mismatch { expected: self.set, found: set.id() }),
        }
    }

    /// Everything to 0.
    pub fn zero(&mut self) {
        (self.generation, self.tsc) = (0, 0);
        self.counts.fill(Count::default());
    }

    /// Takes the other's counts. Allocates nothing.
    ///
    /// # Errors
    /// They are another set's.
    pub fn copy(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.each(other, |count, other| *count = *other)?;
        (self.generation, self.tsc) = (other.generation, other.tsc);
        Ok(())
    }

    /// Adds the other's counts. Generation and time are those of the later one.
    ///
    /// # Errors
    /// They are another set's.
    pub fn add(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, u64::wrapping_add)
    }

    /// Subtracts the other's counts, modulo 2^64. Generation and time are those of the later one.
    ///
    /// # Errors
    /// They are another set's.
    pub fn subtract(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, u64::wrapping_sub)
    }

    /// Adds what lies between two samples of the same set.
    pub(super) fn add_between(&mut self, from: &Self, to: &Self) {
        for ((count, from), to) in self.counts.iter_mut().zip(&from.counts).zip(&to.counts) {
            count.add_between(from, to);
        }
        (self.generation, self.tsc) = (to.generation, to.tsc);
    }

    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        self.each(other, |count, other| {
            count.raw = with(count.raw, other.raw);
            count.counted = with(count.counted, other.counted);
            count.enabled = with(count.enabled, other.enabled);
        })?;
        self.generation = self.generation.max(other.generation);
        self.tsc = self.tsc.max(other.tsc);
        Ok(())
    }

    fn each(
        &mut self,
        other: &Self,
        mut with: impl FnMut(&mut Count, &Count),
    ) -> Result<(), Mismatch> {
        if self.set != other.set {
            return Err(Mismatch { expected: self.set, found: other.set });
        }
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            with(count, other);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[test]
    fn i1_scaled_counts_are_rounded_to_the_nearest() {
        let scaled = |raw, counted, enabled| Count { raw, counted, enabled }.scaled();
        // 13.33, 7.5, 6.67: cut off, the last two would be 7 and 6.
        assert_eq!(scaled(10, 3, 4), Some(13));
        assert_eq!(scaled(5, 2, 3), Some(8));
        assert_eq!(scaled(2, 3, 10), Some(7));
        assert_eq!(scaled(7, 0, 5), None, "never counted");
        assert_eq!(scaled(7, 5, 5), Some(7), "the whole time");
    }
}
