//! PERF_METRICS: where the issue slots went, as fractions of 255.
//!
//! Each instruction uses one slot of the last of its cycles: that one retires. What becomes of the other slots of its cycles
//! is decided by the instruction:
//!
//! | instruction | its other slots are | fields |
//! | --- | --- | --- |
//! | a mispredicted branch | bad speculation | 1, and 5 branch mispredictions |
//! | a branch that was taken as predicted, far ones among them | bound by the front end | 2, and 6 fetch latency |
//! | any other | bound by the back end | 3 |
//! | any, with loads that missed the first level | as above; those of so many instructions, at most all of the back end's | 7 memory |
//!
//! The slots of stalls ([`Stalls`]) go to bad speculation, and to back end and memory. No micro-operation is heavy (field 4).
//! The four fields of the first level make 255: parts are rounded down, and the back end has what is left. After a write the register reads as
//! written until slots are counted, and from then on as the fractions of the slots since the write. With the 2^48th slot since
//! the write, one more than the counter of slots holds, it overflows: status bit 48 is set. It requests no interrupt of its own, as
//! "an overflow of fixed counter 3 should normally happen first" (SDM volume 3, 20.3.9.3).

use crate::delta::Delta;
use crate::occurrence::Occurrence;
use crate::selection::Selection;
use crate::timing::{MISPREDICTED, Stalls};

/// Branches that went where they were predicted to go, and not to the next instruction.
const REDIRECTED: Selection = {
    use Occurrence::*;
    Selection::of(&[
        JccTakenForward,
        JccTakenBackward,
        RelativeCall,
        IndirectCall,
        Return,
        RelativeJump,
        IndirectJump,
        FarBranch,
    ])
};
/// Loads that missed the first level.
const MISSED_LOADS: Selection = Selection::of(&[Occurrence::LoadLlcHit, Occurrence::LoadLlcMiss]);

/// What must be seen for so many fields.
pub(crate) const fn occurrences(fields: u8) -> Selection {
    let branches = MISPREDICTED.or(REDIRECTED);
    if fields >= 8 { branches.or(MISSED_LOADS) } else { branches }
}

/// The most slots that the register divides: as many as the counter of slots holds.
pub(crate) const MOST_SLOTS: u64 = (1 << 48) - 1;

/// How a processor's slots are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Issue slots in a cycle.
    pub width: u8,
    /// Fields of the register.
    pub fields: u8,
    /// Cycles that an instruction takes.
    pub cycles: u32,
}

/// The register's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metrics {
    written: u64,
    slots: u64,
    retiring: u64,
    bad_speculation: u64,
    frontend: u64,
    memory: u64,
    fields: u8,
}

impl Metrics {
    /// A write; the fractions start over.
    pub(crate) fn set(&mut self, value: u64) {
        *self = Self { written: value, ..Self::default() };
    }

    /// The same, but what was counted continues: a planted fault.
    pub(crate) fn set_and_go_on(&mut self, value: u64) {
        self.written = value;
    }

    /// Counts the slots of some instructions and their stalls. Whether the slots since the write went over `most`.
    pub(crate) fn add_up_to(
        &mut self,
        delta: &Delta,
        stalls: Stalls,
        shape: Shape,
        most: u64,
    ) -> bool {
        let before = self.slots;
        self.add(delta, stalls, shape);
        before <= most && self.slots > most
    }

    /// Counts the slots of some instructions and their stalls.
    fn add(&mut self, delta: &Delta, stalls: Stalls, shape: Shape) {
        let slots = |cycles: u64| cycles.saturating_mul(u64::from(shape.width));
        let others = slots(shape.cycles.into()).saturating_sub(1);
        let others_of = |selection| delta.sum(selection).saturating_mul(others);
        let all = delta.instructions.saturating_add(stalls.cycles());
        self.slots = self.slots.saturating_add(slots(all));
        self.retiring = self.retiring.saturating_add(delta.instructions);
        self.bad_speculation = self
            .bad_speculation
            .saturating_add(others_of(MISPREDICTED))
            .saturating_add(slots(stalls.mispredict));
        self.frontend = self.frontend.saturating_add(others_of(REDIRECTED));
        let memory = others_of(MISSED_LOADS).saturating_add(slots(stalls.memory));
        self.memory = self.memory.saturating_add(memory);
        self.fields = shape.fields;
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
        // A branch between two instructions (the delivery of an event) has no slots of its own.
        let retiring = part(self.retiring);
        let bad = part(self.bad_speculation).min(255 - retiring);
        let frontend = part(self.frontend).min(255 - retiring - bad);
        let backend = 255 - retiring - bad - frontend;
        let level_1 = retiring | bad << 8 | frontend << 16 | backend << 24;
        if self.fields < 8 {
            return level_1;
        }
        level_1 | bad << 40 | frontend << 48 | part(self.memory).min(backend) << 56
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ring;

    const NARROW: Shape = Shape { width: 5, fields: 4, cycles: 1 };
    const WIDE: Shape = Shape { width: 5, fields: 8, cycles: 1 };

    fn user(instructions: u64) -> Delta {
        Delta::bulk(Ring::User, instructions)
    }

    #[test]
    fn one_instruction_in_five_slots() {
        let mut metrics = Metrics::default();
        metrics.add(&user(100), Stalls::default(), NARROW);
        // 255 / 5 = 51; the rest is backend bound.
        assert_eq!(metrics.value(), 51 | 204 << 24);
    }

    #[test]
    fn stalls_go_to_their_cause() {
        let mut metrics = Metrics::default();
        let stalls = Stalls { mispredict: 25, memory: 50, ..Stalls::default() };
        metrics.add(&user(25), stalls, WIDE);
        // 500 slots: 25 retiring, 125 bad speculation, 250 memory.
        let (retiring, bad, memory) = (12, 63, 127);
        let backend = 255 - retiring - bad;
        assert_eq!(metrics.value(), retiring | bad << 8 | backend << 24 | bad << 40 | memory << 56);
    }

    #[test]
    fn s3_the_other_slots_of_an_instruction_go_where_it_says() {
        let code = user(100)
            .with(Occurrence::JccTakenBackward, 10)
            .with(Occurrence::MissedJccNotTaken, 20)
            .with(Occurrence::JccNotTaken, 5)
            .with(Occurrence::LoadLlcMiss, 30);
        // 500 slots: 100 retiring, 80 bad speculation, 40 front end, 280 back end, 120 of them memory.
        let (retiring, bad, frontend) = (51, 40, 20);
        let level_1 =
            retiring | bad << 8 | frontend << 16 | (255 - retiring - bad - frontend) << 24;
        let mut metrics = Metrics::default();
        metrics.add(&code, Stalls::default(), NARROW);
        assert_eq!(metrics.value(), level_1);
        // In whatever parts they are told.
        let mut parts = Metrics::default();
        for _ in 0..10 {
            let tenth = user(10)
                .with(Occurrence::JccTakenBackward, 1)
                .with(Occurrence::MissedJccNotTaken, 2)
                .with(Occurrence::LoadLlcMiss, 3);
            parts.add(&tenth, Stalls::default(), WIDE);
        }
        assert_eq!(parts.value(), level_1 | bad << 40 | frontend << 48 | 61 << 56);
        // Two cycles an instruction: 9 other slots each.
        let mut slow = Metrics::default();
        let stalls = Stalls { execution: 100, ..Stalls::default() };
        slow.add(&code, stalls, Shape { cycles: 2, ..NARROW });
        assert_eq!(slow.value() & 0xFF_FFFF, 25 | 45 << 8 | 22 << 16);
    }

    #[test]
    fn s3_the_first_level_is_whole_whatever_happens() {
        let mut metrics = Metrics::default();
        for step in 1..200 {
            let delta = user(step % 3)
                .with(Occurrence::FarBranch, step % 2)
                .with(Occurrence::MissedReturn, u64::from(step % 7 == 0))
                .with(Occurrence::LoadLlcHit, step % 5);
            metrics.add(&delta, Stalls::default(), WIDE);
            let field = |index: u64| metrics.value() >> (8 * index) & 0xFF;
            if step > 0 {
                assert_eq!((0..4).map(field).sum::<u64>(), 255, "step {step}");
                assert!(field(7) <= field(3) && field(5) <= field(1) && field(6) <= field(2));
            }
        }
    }

    #[test]
    fn s3_it_overflows_with_the_slot_that_the_counter_does_not_hold() {
        let mut metrics = Metrics::default();
        let mut add = |instructions| {
            let no = Stalls::default();
            metrics.add_up_to(&user(instructions), no, Shape { width: 1, ..NARROW }, MOST_SLOTS)
        };
        assert!(!add((1 << 48) - 1), "as many as it holds");
        assert!(add(1), "one more does not fit");
        assert!(!add(1), "it overflowed before");
        metrics.set(0);
        assert!(!metrics.add_up_to(&user(1), Stalls::default(), NARROW, MOST_SLOTS));
    }

    #[test]
    fn reads_as_written_until_it_counts() {
        let mut metrics = Metrics::default();
        metrics.set(0x1234);
        assert_eq!(metrics.value(), 0x1234);
        metrics.add(&user(1), Stalls::default(), NARROW);
        assert_eq!(metrics.value() & 0xFF, 51);
    }
}
