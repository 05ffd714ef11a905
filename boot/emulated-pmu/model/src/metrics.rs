//! PERF_METRICS: where the issue slots went, as fractions of 255.
//!
//! In the model an instruction uses one slot of the cycle in which it retires. The other slots of its cycles, and all
//! slots of a cycle that waits for a load, are backend bound; the slots of a misprediction are bad
//! speculation; the front end is never the bound. After a write the register reads as written until
//! slots are counted, and from then on as the fractions of the slots since the write. It does not
//! overflow (status bit 48 is never set by the model).

use crate::timing::Stalls;

/// The register's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metrics {
    written: u64,
    slots: u64,
    retiring: u64,
    bad_speculation: u64,
    memory: u64,
    fields: u8,
}

impl Metrics {
    /// A write; the fractions start over.
    pub(crate) fn set(&mut self, value: u64) {
        *self = Self { written: value, ..Self::default() };
    }

    /// Counts the slots of some instructions and their stalls.
    pub(crate) fn add(&mut self, instructions: u64, stalls: Stalls, width: u8, fields: u8) {
        let slots = |cycles: u64| cycles.saturating_mul(u64::from(width));
        let all = instructions.saturating_add(stalls.cycles());
        self.slots = self.slots.saturating_add(slots(all));
        self.retiring = self.retiring.saturating_add(instructions);
        self.bad_speculation = self.bad_speculation.saturating_add(slots(stalls.mispredict));
        self.memory = self.memory.saturating_add(slots(stalls.memory));
        self.fields = fields;
    }

    /// Fields 0 retiring, 1 bad speculation, 2 frontend, 3 backend; and where there are eight,
    /// 4 heavy operations, 5 branch mispredictions, 6 fetch latency, 7 memory.
    pub(crate) fn value(&self) -> u64 {
        if self.slots == 0 {
            return self.written;
        }
        let part = |slots: u64| {
            let scaled = u128::from(slots) * 255 / u128::from(self.slots);
            scaled.min(255) as u64
        };
        let (retiring, bad) = (part(self.retiring), part(self.bad_speculation));
        let backend = 255u64.saturating_sub(retiring + bad);
        let level_1 = retiring | bad << 8 | backend << 24;
        if self.fields < 8 {
            return level_1;
        }
        level_1 | bad << 40 | part(self.memory).min(backend) << 56
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instruction_in_five_slots() {
        let mut metrics = Metrics::default();
        metrics.add(100, Stalls::default(), 5, 4);
        // 255 / 5 = 51; the rest is backend bound.
        assert_eq!(metrics.value(), 51 | 204 << 24);
    }

    #[test]
    fn stalls_go_to_their_cause() {
        let mut metrics = Metrics::default();
        let stalls = Stalls { mispredict: 25, memory: 50, ..Stalls::default() };
        metrics.add(25, stalls, 5, 8);
        // 500 slots: 25 retiring, 125 bad speculation, 250 memory.
        let (retiring, bad, memory) = (12, 63, 127);
        let backend = 255 - retiring - bad;
        assert_eq!(metrics.value(), retiring | bad << 8 | backend << 24 | bad << 40 | memory << 56);
    }

    #[test]
    fn reads_as_written_until_it_counts() {
        let mut metrics = Metrics::default();
        metrics.set(0x1234);
        assert_eq!(metrics.value(), 0x1234);
        metrics.add(1, Stalls::default(), 5, 4);
        assert_eq!(metrics.value() & 0xFF, 51);
    }
}
