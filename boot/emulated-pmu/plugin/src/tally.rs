//! What a stretch of code adds to the counts.

use pmu_model::{OCCURRENCES, Occurrence};

/// Things counted: the occurrences by discriminant, and two more; then the same of what passes the qualifiers.
pub const ENTRIES: usize = 2 * QUALIFIED;
/// The first entry of what passes.
pub const QUALIFIED: usize = OCCURRENCES + 2;
/// Retired instructions that pass, but for repeated string instructions.
pub const QUALIFIED_INSTRUCTIONS: usize = QUALIFIED + INSTRUCTIONS;
/// Retired instructions, but for repeated string instructions.
pub const INSTRUCTIONS: usize = OCCURRENCES;
/// Repeated string instructions that were begun, or begun again.
pub const STRING_STARTS: usize = OCCURRENCES + 1;

/// A number of each thing counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Tally([u8; ENTRIES]);

impl Tally {
    /// Nothing.
    pub const NONE: Self = Self([0; ENTRIES]);

    /// One of an entry.
    pub fn one(entry: usize) -> Self {
        let mut tally = Self::NONE;
        tally.0[entry] = 1;
        tally
    }

    /// So many more of an entry, which has room for them.
    pub fn more(&mut self, entry: usize, count: u8) {
        self.0[entry] += count;
    }

    /// One more of an occurrence.
    pub fn count(&mut self, occurrence: Occurrence) {
        self.0[occurrence as usize] += 1;
    }

    /// Both together; `None` if that is more than one can hold.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = *self;
        for (entry, more) in sum.0.iter_mut().zip(other.0) {
            *entry = entry.checked_add(more)?;
        }
        Some(sum)
    }

    /// All of it passes the qualifiers as well, with so many instructions.
    pub fn qualify(&mut self, instructions: u8) {
        let (all, passed) = self.0.split_at_mut(QUALIFIED);
        passed.copy_from_slice(all);
        passed[INSTRUCTIONS] = instructions;
    }

    /// Whether it is nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The same without an entry, and that.
    pub fn without(&self, entry: usize) -> (Self, u64) {
        let mut rest = *self;
        let count = core::mem::take(&mut rest.0[entry]);
        (rest, count.into())
    }

    /// The entries that are not 0.
    pub fn entries(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.0.into_iter().enumerate();
        all.filter(|(_, count)| *count > 0).map(|(entry, count)| (entry, u64::from(count)))
    }
}

/// Sums of all things counted. They wrap: what was counted too early is taken back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sums(pub [u64; ENTRIES]);

impl Sums {
    /// Nothing.
    pub const NONE: Self = Self([0; ENTRIES]);

    /// Adds a tally so often.
    #[inline]
    pub fn add(&mut self, tally: &Tally, times: u64) {
        for (entry, count) in tally.entries() {
            self.0[entry] = self.0[entry].wrapping_add(count.wrapping_mul(times));
        }
    }

    /// All occurrences of a selection, as bits by discriminant.
    pub fn of(&self, selection: u64) -> u64 {
        let selected = |(index, _): &(usize, &u64)| selection >> index & 1 != 0;
        let all = self.0[..OCCURRENCES].iter().enumerate().filter(selected);
        all.fold(0, |sum, (_, count)| sum.wrapping_add(*count))
    }
}

impl pmu_model::uarch::Sink for Sums {
    #[inline]
    fn add(&mut self, occurrence: Occurrence, count: u64) {
        let slot = &mut self.0[occurrence as usize];
        *slot = slot.wrapping_add(count);
    }
}

/// Sums of something that passes the qualifiers.
#[derive(Debug)]
pub struct Passing<'a>(pub &'a mut Sums);

impl pmu_model::uarch::Sink for Passing<'_> {
    #[inline]
    fn add(&mut self, occurrence: Occurrence, count: u64) {
        pmu_model::uarch::Sink::add(self.0, occurrence, count);
        let slot = &mut self.0.0[QUALIFIED + occurrence as usize];
        *slot = slot.wrapping_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_take_back_what_was_counted() {
        let mut load = Tally::one(INSTRUCTIONS);
        load.count(Occurrence::Load);
        let mut sums = Sums::NONE;
        sums.add(&load, 3);
        sums.add(&load, u64::MAX);
        assert_eq!((sums.0[INSTRUCTIONS], sums.0[Occurrence::Load as usize]), (2, 2));
        let selection = 1 << Occurrence::Load as u64 | 1 << Occurrence::Store as u64;
        assert_eq!(sums.of(selection), 2);
        assert_eq!(sums.of(1 << Occurrence::Store as u64), 0);
    }

    #[test]
    fn a_tally_that_is_full_takes_no_more() {
        let mut sum = Tally::NONE;
        for _ in 0..255 {
            sum = sum.plus(&Tally::one(3)).expect("it fits");
        }
        assert_eq!(sum.plus(&Tally::one(3)), None);
        assert_eq!(sum.entries().collect::<Vec<_>>(), [(3, 255)]);
        assert!(Tally::NONE.is_none() && !sum.is_none());
    }
}
