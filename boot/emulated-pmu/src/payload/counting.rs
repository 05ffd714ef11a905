//! The guest's PMU, told as late as possible: while nothing but instructions is counted, and none of them is the one at
//! which a counter overflows, adding them up is enough.

use pmu_model::{Delta, Limit, Model, Outcome, Pmu, Qualifiers, Ring, RingMask, Timing};

/// The PMU, and what it has not been told yet.
pub struct Counting {
    pmu: Pmu,
    /// Instructions that have retired and are not reported, and in which ring.
    unreported: u64,
    ring: Ring,
    /// Instructions until the next overflow from now on, if that is known: in `ring`, or in any.
    left: Option<Left>,
}

fn rings(ring: Ring, split: bool) -> RingMask {
    match ring {
        _ if !split => RingMask::BOTH,
        Ring::User => RingMask::USER,
        Ring::Kernel => RingMask::KERNEL,
    }
}

#[derive(Clone, Copy, Debug)]
struct Left {
    /// `None`: nothing will overflow.
    instructions: Option<u64>,
    split: bool,
}

impl Counting {
    pub fn new(pmu: Pmu) -> Self {
        Self { pmu, unreported: 0, ring: Ring::Kernel, left: None }
    }

    /// The PMU, up to date.
    pub fn pmu(&mut self) -> &mut Pmu {
        self.flush();
        self.left = None;
        &mut self.pmu
    }

    /// The PMU, up to date, to look at.
    pub fn peek(&mut self) -> &Pmu {
        self.flush();
        &self.pmu
    }

    /// What does not depend on what was counted.
    pub fn model(&self) -> Model {
        self.pmu.model()
    }

    /// As above.
    pub fn is_recorded(&self) -> bool {
        self.pmu.recording().is_some()
    }

    /// As above.
    pub fn has_qualifiers(&self) -> bool {
        self.pmu.has_qualifiers() && self.pmu.model() != Model::None
    }

    /// What the counters that are qualified count.
    pub fn qualifiers(&self) -> &Qualifiers {
        self.pmu.qualifiers()
    }

    /// As above.
    pub fn timing(&self) -> Timing {
        *self.pmu.timing()
    }

    /// The kinds of branches that are recorded in `ring`: see [`Pmu::recorded_kinds`].
    pub fn recorded_kinds(&self, ring: Ring) -> Option<u32> {
        self.pmu.recorded_kinds(ring)
    }

    /// Counters of occurrences that may overflow in `ring`; with `split` false, in whichever. What is unreported are
    /// instructions, which do not matter to them.
    pub fn limits(&self, ring: Ring, split: bool) -> impl Iterator<Item = Limit> + '_ {
        self.pmu.limits(rings(ring, split))
    }

    /// Instructions until the next overflow, if all of them run in `ring`; with `split` false, in whichever.
    pub fn until_overflow(&mut self, ring: Ring, split: bool) -> Option<u64> {
        if let Some(left) = self.left
            && left.split == split
            && (self.ring == ring || !split)
        {
            return left.instructions;
        }
        self.flush();
        let instructions = self.pmu.until_overflow(rings(ring, split));
        self.ring = ring;
        self.left = Some(Left { instructions, split });
        instructions
    }

    /// `count` instructions retired in `ring`.
    pub fn retire(&mut self, ring: Ring, count: u64) -> Outcome {
        if let Some(left) = &mut self.left
            && (self.ring == ring || !left.split)
            && left.instructions.is_none_or(|instructions| count < instructions)
        {
            self.unreported += count;
            left.instructions = left.instructions.map(|instructions| instructions - count);
            return Outcome::default();
        }
        self.flush();
        self.left = None;
        if self.pmu.pass_unseen() {
            return Outcome::default();
        }
        self.pmu.advance(&Delta::bulk(ring, count))
    }

    fn flush(&mut self) {
        let unreported = core::mem::take(&mut self.unreported);
        if unreported > 0 && !self.pmu.pass_unseen() {
            let delta = Delta::bulk(self.ring, unreported);
            let outcome = self.pmu.advance(&delta);
            debug_assert_eq!(outcome.overflowed, 0, "no overflow among them");
        }
    }
}
