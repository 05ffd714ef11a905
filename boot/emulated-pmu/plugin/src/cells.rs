//! The words that translated code changes in place.
//!
//! A stretch of code adds 1 to the word of its tally. There are far fewer different tallies than stretches, so one addition
//! counts all that a stretch does.
//!
//! QEMU has scoreboards for this, with words for each vCPU. But with icount QEMU 10.0 takes the number of the vCPU that
//! *translates* for that of any vCPU that will execute the code, and multiplies it by the entry's size in the very place where
//! it keeps the number as a constant. So the words are the plugin's own, one set for all vCPUs, of which one is in its guest
//! at a time; the scoreboard has entries of one byte, which makes the multiplication harmless, and is a place to start from.

use crate::qemu::{Scoreboard, Word, api};
use crate::tally::{ENTRIES, Sums, Tally};
use std::collections::HashMap;

/// Words: 8 KiB.
pub const CELLS: usize = 1024;
/// What is open: [`crate::opened`].
pub const OPEN: usize = 0;
/// The address of what is open.
pub const WHAT: usize = 1;
/// Occurrences that blocks may have had since the limits were looked at, up to [`ALARM`].
pub const SPENT: usize = 2;
/// 1 if an IRET was executed since the entry.
pub const RETURNED: usize = 3;
/// The first word of a tally.
const FIRST: usize = 8;

/// The word of single instructions.
pub const SINGLE_INSTRUCTIONS: usize = FIRST + crate::tally::INSTRUCTIONS;

/// The limits must be looked at when this is spent, or where there are none, for nothing, once in so many occurrences. It
/// fits into an instruction's immediate, which translated code compares with at each block.
pub const ALARM: u64 = 1 << 30;

/// Which word is of which tally.
#[derive(Debug)]
pub struct Cells {
    score: Scoreboard,
    /// The words, which stay.
    words: *mut u64,
    list: Vec<Tally>,
    places: HashMap<Tally, usize>,
}

// SAFETY: the scoreboard is a handle, that any thread may use; the words are used by whoever is in its guest, and by QEMU's
// threads on its behalf.
unsafe impl Send for Cells {}

impl Cells {
    /// With a scoreboard of its own, and a word for one of each entry.
    pub fn make() -> Self {
        // SAFETY: the plugin is being installed.
        let score = unsafe { (api().new_scoreboard)(1) };
        Self::with(score)
    }

    fn with(score: Scoreboard) -> Self {
        let words = Box::leak(Box::new([0; CELLS])).as_mut_ptr();
        let mut cells = Self { score, words, list: Vec::new(), places: HashMap::new() };
        for entry in 0..ENTRIES {
            cells.place(Tally::one(entry));
        }
        cells
    }

    fn place(&mut self, tally: Tally) -> Option<usize> {
        if let Some(place) = self.places.get(&tally) {
            return Some(*place);
        }
        let place = FIRST + self.list.len();
        (place < CELLS).then(|| {
            self.list.push(tally);
            self.places.insert(tally, place);
            place
        })
    }

    /// The words to which a tally is added, and how much: one word, unless too many tallies have been seen.
    pub fn additions(&mut self, tally: &Tally) -> Vec<(usize, u64)> {
        if let Some(place) = self.place(*tally) {
            return vec![(place, 1)];
        }
        let single = |(entry, count)| (FIRST + entry, count);
        tally.entries().map(single).collect()
    }

    /// A word, to QEMU, in code that the vCPU `translator` translates: QEMU adds its number.
    pub fn word(&self, index: usize, translator: u32) -> Word {
        let word = self.words.wrapping_add(index) as usize;
        // SAFETY: code is translated, so there is a first vCPU.
        let base = unsafe { (api().entry)(self.score, 0) } as usize;
        Word {
            score: self.score,
            offset: word.wrapping_sub(base).wrapping_sub(translator as usize),
        }
    }

    /// All of them.
    pub fn words(&self) -> *mut u64 {
        self.words
    }

    /// Adds what the words say to `sums`, and clears them.
    pub fn collect(&self, words: &mut [u64], sums: &mut Sums) {
        for (tally, word) in self.list.iter().zip(&mut words[FIRST..]) {
            if *word != 0 {
                sums.add(tally, core::mem::take(word));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu_model::Occurrence;

    #[test]
    fn tallies_are_counted_when_the_words_run_out() {
        // SAFETY: a handle that is never used.
        let score = unsafe { core::mem::zeroed() };
        let mut cells = Cells::with(score);
        let mut words = [0; CELLS];
        let (mut sums, mut expected) = (Sums::NONE, Sums::NONE);
        for loads in 0..40 {
            for stores in 0..40 {
                let mut tally = Tally::NONE;
                (0..loads).for_each(|_| tally.count(Occurrence::Load));
                (0..stores).for_each(|_| tally.count(Occurrence::Store));
                expected.add(&tally, 1);
                for (index, more) in cells.additions(&tally) {
                    words[index] += more;
                }
            }
        }
        cells.collect(&mut words, &mut sums);
        assert_eq!(sums, expected);
        cells.collect(&mut words, &mut sums);
        assert_eq!(sums, expected, "they were cleared");
    }
}
