//! The parts together: from a retired instruction to what the PMU is told.

use super::cache::{self, Access, L1d, Llc, Prefetch};
use super::predictor::{Predictor, Resolved};
use super::sink::{Sink, Tee};
use super::tlb::Tlb;
use crate::Ring;
use crate::branch::Branch;
use crate::delta::Delta;
use crate::occurrence::Occurrence;
use crate::qualify::Qualifiers;

/// The parts that see what retires. The others keep their state, and what they would tell is not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Caches and TLBs.
    pub memory: bool,
    /// The predictor: without it each branch counts as one that went where it was predicted to go.
    pub predictor: bool,
}

impl Parts {
    /// All of them.
    pub const ALL: Self = Self { memory: true, predictor: true };
}

/// A retired instruction, as the one who stepped it saw it.
#[derive(Clone, Copy, Debug)]
pub struct Retired<'a> {
    /// The ring in which it ran.
    pub ring: Ring,
    /// Its branch, if it is one. [`Branch::mispredicted`] is filled in.
    pub branch: Option<Branch>,
    /// The address after it, which a call pushes.
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
    /// In place of all these, if there are parameters.
    #[cfg(feature = "hierarchy")]
    shaped: Option<alloc::boxed::Box<super::Hierarchy>>,
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
            #[cfg(feature = "hierarchy")]
            shaped: None,
        }
    }

    /// Gives it other caches and TLBs, which are empty, and another predictor; `None`: those that it has without parameters.
    #[cfg(feature = "hierarchy")]
    pub fn shape(&mut self, parameters: Option<&super::Parameters>) {
        self.shaped = parameters.map(|all| alloc::boxed::Box::new(super::Hierarchy::new(all)));
        let all = parameters.unwrap_or(&super::Parameters::DEFAULT);
        self.predictor.keep_returns(all.returns);
        self.predictor.keep_targets(all.btb);
    }

    /// Whether it has those of parameters, to which every access matters.
    #[must_use]
    #[inline]
    pub const fn is_shaped(&self) -> bool {
        #[cfg(feature = "hierarchy")]
        return self.shaped.is_some();
        #[cfg(not(feature = "hierarchy"))]
        false
    }

    /// An access of an instruction that retires.
    #[inline]
    pub fn access(&mut self, access: &Access, llc: &mut Llc, parts: Parts, sink: &mut impl Sink) {
        cache::note(access, sink);
        if !parts.memory {
            return;
        }
        #[cfg(feature = "hierarchy")]
        if let Some(shaped) = &mut self.shaped {
            return shaped.access(access, sink);
        }
        if !access.is_split() && self.is_recent(access.linear, access.physical) {
            // Nothing would move.
            return cache::note_hit(access.kind, sink);
        }
        self.tlb.access(access, sink);
        self.l1d.access(access, llc, self.prefetch, sink);
    }

    /// An instruction fetches a line of code, see `Hierarchy::fetch`: without parameters nothing sees it.
    #[cfg(feature = "hierarchy")]
    pub fn fetch(&mut self, line: u64, sink: &mut impl Sink) {
        self.shaped.iter_mut().for_each(|shaped| shaped.fetch(line, sink));
    }

    /// An unconditional direct jump or call, see `Hierarchy::jump`: without parameters nothing sees it.
    #[cfg(feature = "hierarchy")]
    pub fn jump(&mut self, place: u64, sink: &mut impl Sink) {
        self.shaped.iter_mut().for_each(|shaped| shaped.jump(place, sink));
    }

    /// The front end delivers an instruction, see `Hierarchy::deliver`: without parameters nothing sees it.
    #[cfg(feature = "hierarchy")]
    pub fn deliver(&mut self, place: u64, bytes: u64, sink: &mut impl Sink) {
        self.shaped.iter_mut().for_each(|shaped| shaped.deliver(place, bytes, sink));
    }

    /// An instruction begins, before its accesses: only a window, see [`super::window`], sees it.
    #[cfg(feature = "hierarchy")]
    pub fn begin(&mut self, step: super::window::Step, sink: &mut impl Sink) {
        self.shaped.iter_mut().for_each(|shaped| shaped.begin(step, sink));
    }

    /// Whether an access within this line would find it and its translation where the last access to their sets left
    /// them, so that no state would change: then it counts as a hit of the first level, and nothing more.
    #[must_use]
    #[inline]
    pub fn is_recent(&self, linear: u64, physical: u64) -> bool {
        !self.is_shaped()
            && self.l1d.is_newest(physical)
            && self.tlb.is_newest(linear / super::PAGE_BYTES)
    }

    /// An access within the line that was the last but one of its set in the first level, and in the page that was the last of its
    /// set in the TLB: it counts as a hit of the first level, and all that moves is the order of these two lines. The set is the same by
    /// linear and by physical address.
    #[inline]
    pub fn exchange_recent(&mut self, linear: u64) {
        self.l1d.exchange_newest(linear);
    }

    /// A branch that retires; true if it was mispredicted. Wholly in its caller, which often knows the kind.
    #[inline(always)]
    pub fn branch(&mut self, branch: &Resolved, parts: Parts, sink: &mut impl Sink) -> bool {
        let mispredicted = parts.predictor && self.predictor.branch(branch);
        sink.add(Occurrence::of(branch.kind, branch.taken, branch.backward, mispredicted), 1);
        mispredicted
    }

    /// Runs an instruction through the model. Returns what to report, and its branch with
    /// misprediction filled in: fill in the cycles since the last record, give the branch to
    /// [`crate::Pmu::record_branch`] first, add [`Occurrence::LbrInsert`] if that says so, then the delta to
    /// [`crate::Pmu::advance`].
    pub fn retire(
        &mut self,
        retired: &Retired<'_>,
        llc: &mut Llc,
        parts: Parts,
    ) -> (Delta, Option<Branch>) {
        let mut delta = Delta::step(retired.ring);
        for access in retired.accesses {
            self.access(access, llc, parts, &mut delta);
        }
        let mut branch = retired.branch;
        if let Some(branch) = &mut branch {
            let resolved = Resolved::of(branch, retired.next);
            branch.mispredicted = self.branch(&resolved, parts, &mut delta);
        }
        (delta, branch)
    }

    /// The same for an instruction that holds the checks of qualifiers, but for that of data; with what passes of it, nothing if it
    /// does not.
    pub fn retire_qualified(
        &mut self,
        retired: &Retired<'_>,
        llc: &mut Llc,
        parts: Parts,
        qualifiers: &Qualifiers,
    ) -> (Delta, Option<Branch>, Delta) {
        let mut delta = Delta::step(retired.ring);
        let mut passed = Delta::bulk(retired.ring, 0);
        let mut passes = !qualifiers.checks_data();
        for access in retired.accesses {
            if qualifiers.touches(access.linear, access.bytes) {
                passes = true;
                self.access(access, llc, parts, &mut Tee(&mut delta, &mut passed));
            } else {
                self.access(access, llc, parts, &mut delta);
            }
        }
        passed.instructions = passes.into();
        let mut branch = retired.branch;
        if let Some(branch) = &mut branch {
            let resolved = Resolved::of(branch, retired.next);
            branch.mispredicted = match passes {
                true => self.branch(&resolved, parts, &mut Tee(&mut delta, &mut passed)),
                false => self.branch(&resolved, parts, &mut delta),
            };
        }
        (delta, branch, passed)
    }

    /// CLFLUSH of a physical address. Reports [`Occurrence::ClFlush`] if a delta is given.
    pub fn clflush(&mut self, physical: u64, llc: &mut Llc, delta: Option<&mut Delta>) {
        #[cfg(feature = "hierarchy")]
        self.shaped.iter_mut().for_each(|shaped| shaped.flush_line(physical));
        self.l1d.flush_line(physical);
        llc.flush_line(physical);
        if let Some(delta) = delta {
            delta.add(Occurrence::ClFlush, 1);
        }
    }

    /// WBINVD or INVD.
    pub fn flush_caches(&mut self, llc: &mut Llc) {
        #[cfg(feature = "hierarchy")]
        self.shaped.iter_mut().for_each(|shaped| shaped.flush_caches());
        self.l1d.flush();
        llc.flush();
    }

    /// INVLPG of a linear address.
    pub fn invlpg(&mut self, linear: u64) {
        #[cfg(feature = "hierarchy")]
        self.shaped.iter_mut().for_each(|shaped| shaped.invlpg(linear));
        self.tlb.invlpg(linear);
    }

    /// All translations go.
    pub fn flush_tlb(&mut self) {
        #[cfg(feature = "hierarchy")]
        self.shaped.iter_mut().for_each(|shaped| shaped.flush_tlb());
        self.tlb.flush();
    }
}
