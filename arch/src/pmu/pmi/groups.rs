//! What records have too, for each sample of the log: vector registers, and values of counters.

use super::block::{ControlBlock, Sample};
use crate::pmu::driver::SLOTS;
use crate::pmu::pebs::{Groups, Snapshot, Taken, vectors};
use crate::pmu::registers::GlobalStatus;

/// Where they go: so many words for each sample.
#[derive(Clone, Copy, Debug)]
pub struct GroupLog {
    at: *mut u64,
    /// Groups of vector registers.
    vectors: Groups,
    /// Counters whose values are wanted, as bits of the global status: PERF_METRICS as well, whose slots are fixed counter 3.
    counters: u64,
}

impl GroupLog {
    /// Nothing is kept.
    pub(super) const NONE: Self =
        Self { at: core::ptr::null_mut(), vectors: Groups::empty(), counters: 0 };

    /// Words of each sample: first the `vectors` in the order of [`vectors::GROUPS`], then the counters in the order of their bits.
    #[must_use]
    pub const fn words(vectors: Groups, counters: u64) -> usize {
        vectors::words(vectors) + counters.count_ones() as usize
    }

    /// Writes those of a record to `place`, which has as many words. What it lacks is 0.
    fn write(&self, place: &mut [u64], taken: &Taken<'_>) {
        place.fill(0);
        let (mut vectors, values) = place.split_at_mut(vectors::words(self.vectors));
        if !vectors.is_empty() {
            for ((group, words), all) in
                vectors::GROUPS.iter().zip(taken.beyond.with(taken.vectors))
            {
                if self.vectors.contains(*group) {
                    let (own, rest) = vectors.split_at_mut(*words);
                    if let Some(all) = all {
                        own.copy_from_slice(all);
                    }
                    vectors = rest;
                }
            }
        }
        let Some(Snapshot { general, fixed, values: all, metrics }) = taken.snapshot else {
            return;
        };
        let mut keep = |bit: u64, value: u64| {
            if self.counters & bit != 0 {
                values[(self.counters & (bit - 1)).count_ones() as usize] = value;
            }
        };
        let mut there = u64::from(fixed) << 32 | u64::from(general);
        for &value in all {
            let bit = there & there.wrapping_neg();
            there ^= bit;
            keep(bit, value);
        }
        if let Some([slots, shares]) = metrics {
            keep(SLOTS.bit(), slots);
            keep(GlobalStatus::METRICS.bits(), shares);
        }
    }
}

impl ControlBlock {
    /// Keeps the groups of `vectors` and values of `counters` (bits of the global status) of each sample in `words`, which has
    /// [`GroupLog::words`] for each sample of the log and has to outlive the block's use. A shorter one is not used.
    pub fn groups_to(&mut self, words: &mut [u64], vectors: Groups, counters: u64) {
        let samples = (self.end - self.start) as usize / size_of::<Sample>();
        if words.len() >= samples * GroupLog::words(vectors, counters) {
            self.groups = GroupLog { at: words.as_mut_ptr(), vectors, counters };
        }
    }

    /// Keeps the groups of a record whose sample went to `cursor`; nothing if it found the log full.
    #[inline]
    pub(super) fn keep_groups(&mut self, cursor: u64, taken: &Taken<'_>) {
        let log = self.groups;
        if log.at.is_null() || self.cursor == cursor {
            return;
        }
        let count = GroupLog::words(log.vectors, log.counters);
        let index = (cursor - self.start) as usize / size_of::<Sample>();
        // SAFETY: `groups_to` made sure that there are words for each sample, and the cursor lay within the log.
        let place = unsafe { core::slice::from_raw_parts_mut(log.at.add(index * count), count) };
        log.write(place, taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::pebs::{BeyondXmm, Record};

    const NONE: Groups = Groups::empty();

    #[test]
    fn s1_a_sample_has_the_registers_and_counters_that_are_wanted_of_its_record() {
        let all: [u64; 32] = core::array::from_fn(|n| n as u64);
        let record = Record { ip: 0, counters: 1, registers: None, access: None, tsc: None };
        let snapshot =
            Snapshot { general: 0b1011, fixed: 0b10, values: &[10, 11, 13, 31], metrics: None };
        let taken = Taken {
            record,
            counters: 1,
            branches: &[],
            vectors: Some(&all),
            beyond: BeyondXmm::default(),
            snapshot: Some(snapshot),
            retire_latency: None,
        };
        let written = |vectors, counters, taken: &Taken<'_>| {
            let mut words = alloc::vec![99; GroupLog::words(vectors, counters)];
            GroupLog { at: core::ptr::null_mut(), vectors, counters }.write(&mut words, taken);
            words
        };
        assert_eq!(written(NONE, 0b1010, &taken), [11, 13]);
        assert_eq!(written(NONE, 1 << 33 | 0b101, &taken), [10, 0, 31], "counter 2 is not in it");
        let both = written(Groups::VECTORS, 0b1, &taken);
        assert_eq!((&both[..32], both[32]), (&all[..], 10));
        // Slots and their shares are a group of their own, also where fixed counter 3 is no value.
        let metrics = Some([600, 0x3366]);
        let with =
            Taken { snapshot: taken.snapshot.map(|has| Snapshot { metrics, ..has }), ..taken };
        assert_eq!(written(NONE, 1 << 48 | 1 << 35 | 0b10, &with), [11, 600, 0x3366]);
        assert_eq!(written(NONE, 1 << 48 | 1 << 35 | 0b10, &taken), [11, 0, 0]);
        assert_eq!(written(NONE, 0b10, &with), [11]);
        let neither = Taken { vectors: None, snapshot: None, ..taken };
        assert_eq!(written(Groups::VECTORS, 0b1, &neither), [0; 33]);
    }

    /// Each group has its place after those that are wanted; what the record lacks is 0.
    #[test]
    fn s1_a_sample_has_the_groups_beyond_xmm_that_are_wanted_of_its_record() {
        let (xmm, upper) = ([1; 32], [2; 32]);
        let (masks, zmm, high) = ([3; 8], [4; 64], [5; 128]);
        let beyond = BeyondXmm {
            ymm_upper: Some(&upper),
            masks: Some(&masks),
            zmm_upper: Some(&zmm),
            zmm_high: Some(&high),
        };
        let taken = Taken {
            record: Record { ip: 0, counters: 1, registers: None, access: None, tsc: None },
            counters: 1,
            branches: &[],
            vectors: Some(&xmm),
            beyond,
            snapshot: Some(Snapshot { general: 1, fixed: 0, values: &[9], metrics: None }),
            retire_latency: None,
        };
        let written = |vectors, taken: &Taken<'_>| {
            let mut words = alloc::vec![99; GroupLog::words(vectors, 1)];
            GroupLog { at: core::ptr::null_mut(), vectors, counters: 1 }.write(&mut words, taken);
            words
        };
        let parts = [&xmm[..], &upper, &masks, &zmm, &high];
        for bits in 0..32usize {
            let wanted = (0..5).filter(|n| bits >> n & 1 != 0);
            let groups = wanted.clone().fold(NONE, |all, n| all | vectors::GROUPS[n].0);
            let all: Vec<u64> = wanted.flat_map(|n| parts[n]).chain(&[9]).copied().collect();
            assert_eq!(written(groups, &taken), all, "{groups:?}");
        }
        let few = Taken { beyond: BeyondXmm { ymm_upper: None, ..beyond }, ..taken };
        let some = written(Groups::YMM_UPPER | Groups::MASKS, &few);
        assert_eq!((&some[..32], &some[32..]), (&[0; 32][..], &[3, 3, 3, 3, 3, 3, 3, 3, 9][..]));
    }

    #[test]
    fn s1_words_for_fewer_samples_than_the_log_has_are_not_used() {
        let mut log = [Sample::default(); 3];
        for (words, used) in [(3 * 34, true), (3 * 34 - 1, false), (3 + 34, false)] {
            let mut words = vec![0; words];
            let mut block = ControlBlock::EMPTY;
            block.log_to(&mut log);
            block.groups_to(&mut words, Groups::VECTORS, 0b11);
            assert_eq!(!block.groups.at.is_null(), used, "{}", words.len());
        }
    }
}
