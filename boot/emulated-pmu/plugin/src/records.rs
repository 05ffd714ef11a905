//! Branch records.

use plugin_channel::{MAX_RECORDS, Record, Records};
use std::collections::VecDeque;

/// The records since the last exit.
#[derive(Debug, Default)]
pub struct Recorder {
    kinds: u64,
    count: u64,
    /// Instructions up to the last record.
    position: u64,
    list: VecDeque<Record>,
}

impl Recorder {
    /// The guest continues, with these kinds recorded.
    pub fn enter(&mut self, kinds: u64) {
        *self = Self { kinds, ..Self::default() };
    }

    /// Whether a kind is recorded.
    pub fn wants(&self, kind: pmu_model::BranchKind) -> bool {
        self.kinds >> kind as u64 & 1 != 0
    }

    /// A branch that was taken, as so many instructions were done since the last exit.
    pub fn record(&mut self, record: Record, instructions: u64) {
        if self.list.len() == MAX_RECORDS {
            self.list.pop_front();
        }
        let since = instructions.wrapping_sub(self.position);
        self.list.push_back(Record { instructions: since, ..record });
        self.position = instructions;
        self.count += 1;
    }

    /// The guest has left.
    pub fn exit(&mut self, records: &mut Records) {
        records.count = self.count;
        records.position = self.position;
        for (slot, record) in records.list.iter_mut().zip(self.list.drain(..)) {
            *slot = record;
        }
        self.enter(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_with_the_instructions_between_them() {
        let mut recorder = Recorder::default();
        recorder.enter(1);
        for number in 0..40 {
            recorder.record(Record { from: number, ..Record::default() }, 3 * number + 1);
        }
        let empty = [Record::default(); MAX_RECORDS];
        let mut records = Records { count: 0, position: 0, list: empty };
        recorder.exit(&mut records);
        assert_eq!((records.count, records.position), (40, 118));
        assert_eq!((records.list[0].from, records.list[31].from), (8, 39));
        assert_eq!(records.list[5].instructions, 3);
        assert!(!recorder.wants(pmu_model::BranchKind::Conditional));
    }
}
