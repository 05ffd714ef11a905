//! The parts together: from a retired instruction to what the PMU is told.

use super::cache::{Access, L1d, Llc, Prefetch};
use super::predictor::Predictor;
use super::tlb::Tlb;
use crate::branch::Branch;
use crate::delta::Delta;
use crate::occurrence::Occurrence;
use crate::{Ring, Timing};

/// A retired instruction, as the one who stepped it saw it.
#[derive(Clone, Copy, Debug)]
pub struct Retired<'a> {
    /// The ring in which it ran.
    pub ring: Ring,
    /// Its branch, if it is one. [`Branch::mispredicted`] and [`Branch::cycles`] are filled in.
    pub branch: Option<Branch>,
    /// The address behind it, which a call pushes.
    pub next: u64,
    /// Its data accesses, in order.
    pub accesses: &'a [Access],
}

/// Predictor, first-level cache and TLBs of one logical processor.
#[derive(Clone, Debug, Default)]
pub struct Core {
    /// The branch predictor.
    pub predictor: Predictor,
    /// The TLBs.
    pub tlb: Tlb,
    l1d: L1d,
    prefetch: Prefetch,
    /// Cycles since the last taken branch, for the branch records.
    since_branch: u64,
}

impl Core {
    /// A core with everything empty.
    #[must_use]
    pub const fn new(prefetch: Prefetch) -> Self {
        Self {
            predictor: Predictor::new(),
            tlb: Tlb::new(),
            l1d: L1d::new(),
            prefetch,
            since_branch: 0,
        }
    }

    /// Runs an instruction through the model. Returns what to report, and its branch with
    /// misprediction and cycles filled in: give the branch to [`crate::Pmu::record_branch`] first,
    /// add [`Occurrence::LbrInsert`] if that says so, then the delta to [`crate::Pmu::advance`].
    pub fn retire(
        &mut self,
        retired: &Retired<'_>,
        llc: &mut Llc,
        timing: &Timing,
    ) -> (Delta, Option<Branch>) {
        let mut delta = Delta::step(retired.ring);
        for access in retired.accesses {
            self.tlb.access(access, &mut delta);
            self.l1d.access(access, llc, self.prefetch, &mut delta);
        }
        let mut branch = retired.branch;
        if let Some(branch) = &mut branch {
            branch.mispredicted = self.predictor.branch(
                branch.from,
                branch.to,
                retired.next,
                branch.kind,
                branch.taken,
            );
            delta.add_branch(branch);
        }
        self.since_branch = self.since_branch.saturating_add(timing.cycles(&delta));
        if let Some(branch) = &mut branch
            && branch.taken
        {
            branch.cycles = self.since_branch;
            self.since_branch = 0;
        }
        (delta, branch)
    }

    /// CLFLUSH of a physical address. Reports [`Occurrence::ClFlush`] if a delta is given.
    pub fn clflush(&mut self, physical: u64, llc: &mut Llc, delta: Option<&mut Delta>) {
        self.l1d.flush_line(physical);
        llc.flush_line(physical);
        if let Some(delta) = delta {
            delta.add(Occurrence::ClFlush, 1);
        }
    }

    /// WBINVD or INVD.
    pub fn flush_caches(&mut self, llc: &mut Llc) {
        self.l1d.flush();
        llc.flush();
    }

    /// INVLPG of a linear address.
    pub fn invlpg(&mut self, linear: u64) {
        self.tlb.invlpg(linear);
    }

    /// All translations go.
    pub fn flush_tlb(&mut self) {
        self.tlb.flush();
    }
}
