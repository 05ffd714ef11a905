//! Retire latencies: cycles from the retirement of the instruction before to that of a record's own (Linux, `PERF_CAP_PEBS_TIMING_INFO`
//! and the retire latency of `perf script`). Records of PEBS state them in 16 bits.

use super::block::{ControlBlock, SLOTS, Sample};
use crate::pmu::pebs::Taken;

/// What the records of a counter state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retired {
    /// Records that state it.
    pub records: u64,
    /// Their cycles together.
    pub cycles: u64,
    /// The longest of them.
    pub longest: u16,
}

impl Retired {
    /// One more record.
    pub fn add(&mut self, latency: u16) {
        self.records += 1;
        self.cycles += u64::from(latency);
        self.longest = self.longest.max(latency);
    }
}

/// One for each bit of the global status.
pub type RetiredByCounter = [Retired; SLOTS];

impl ControlBlock {
    /// Adds up the retire latencies of records in `sums`, which has to outlive the block's use.
    pub fn sum_retired(&mut self, sums: &mut RetiredByCounter) {
        self.retired = sums;
    }

    /// What the records of the counter with this bit of the global status state; `None`: their latencies are not added up.
    #[must_use]
    pub fn retired(&self, index: usize) -> Option<Retired> {
        // SAFETY: `sum_retired` took a reference to as many that outlives this.
        (!self.retired.is_null()).then(|| unsafe { (*self.retired)[index] })
    }

    /// Everything to 0.
    pub(super) fn clear_retired(&mut self) {
        if !self.retired.is_null() {
            // SAFETY: as in `retired`.
            unsafe { *self.retired = [Retired::default(); SLOTS] };
        }
    }

    /// Notes the latency of a record of these counters, whose sample went to `cursor`, if that is not the log's end still.
    #[inline]
    pub(super) fn note_retired(&mut self, cursor: u64, taken: &Taken<'_>) {
        let Some(latency) = taken.retire_latency.filter(|_| !self.retired.is_null()) else {
            return;
        };
        let mut left = taken.counters;
        while left != 0 {
            // SAFETY: as in `retired`; a bit of 64.
            unsafe { (*self.retired)[left.trailing_zeros() as usize].add(latency) };
            left &= left - 1;
        }
        if self.cursor != cursor {
            // SAFETY: `note` wrote a sample there just now.
            unsafe { (*(cursor as *mut Sample)).retire_latency = latency };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmu::pebs::{BeyondXmm, Record};

    #[test]
    fn s1_latencies_are_added_up_by_counter_and_stand_with_their_samples() {
        let record = Record { ip: 0, counters: 0b101, registers: None, access: None, tsc: None };
        let of = |counters, retire_latency| Taken {
            record,
            counters,
            branches: &[],
            vectors: None,
            beyond: BeyondXmm::default(),
            snapshot: None,
            retire_latency,
        };
        let (mut log, mut sums) = ([Sample::default(); 2], [Retired::default(); SLOTS]);
        let mut block = ControlBlock::EMPTY;
        block.log_to(&mut log);
        let first = block.cursor;
        block.note_retired(first, &of(1, Some(7)));
        assert_eq!(block.retired(0), None, "nobody asked for them");
        block.sum_retired(&mut sums);
        // The first is sampled, the second found the log full, the third states none.
        block.cursor += size_of::<Sample>() as u64;
        block.note_retired(first, &of(0b101, Some(0xFFFF)));
        block.note_retired(block.cursor, &of(0b100, Some(3)));
        block.note_retired(first, &of(0b100, None));
        let sum = |records, cycles, longest| Some(Retired { records, cycles, longest });
        assert_eq!(
            [0, 1, 2].map(|n| block.retired(n)),
            [sum(1, 0xFFFF, 0xFFFF), sum(0, 0, 0), sum(2, 0x1_0002, 0xFFFF)]
        );
        block.clear_retired();
        assert_eq!(block.retired(2), sum(0, 0, 0));
        assert_eq!(log.map(|sample| sample.retire_latency), [0xFFFF, 0]);
    }
}
