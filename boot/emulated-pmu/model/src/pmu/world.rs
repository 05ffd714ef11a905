//! SVM, as far as the PMU and CPUID know of it.

use super::gate::Which;
use super::{Needs, Pmu};
use crate::cpuid::CpuidResult;
use crate::model::SvmFeatures;
use crate::world::{GUEST_ONLY, HOST_ONLY, World};
use crate::{Delta, Occurrence, Ring, Selector};

impl Pmu {
    /// Offers SVM, if the model has it: CPUID reports it, and event selects keep HostOnly and GuestOnly.
    pub fn offer_svm(&mut self) {
        self.offers_svm = self.svm().is_some();
    }

    /// Whether SVM is offered.
    #[must_use]
    pub const fn offers_svm(&self) -> bool {
        self.offers_svm
    }

    fn svm(&self) -> Option<&'static SvmFeatures> {
        self.spec().amd().and_then(|amd| amd.svm.as_ref())
    }

    /// Leaf 0x8000_000A.
    pub(crate) fn svm_leaf(&self) -> CpuidResult {
        const REVISION: u32 = 1;
        match self.svm().filter(|_| self.offers_svm) {
            Some(svm) => CpuidResult {
                eax: REVISION,
                ebx: svm.asids,
                ecx: 0,
                edx: svm.features & SvmFeatures::OFFERED,
            },
            None => CpuidResult::default(),
        }
    }

    /// Somebody else executes from now on. A counter that does not count there sees its condition end. Returns what is needed
    /// from now on.
    pub fn enter_world(&mut self, world: World) -> Needs {
        self.world = world;
        for n in 0..self.counters.len() {
            if self.gate(Which::General(n)).rings.is_empty() {
                self.counters[n].pause();
            }
        }
        self.needs()
    }

    /// Who executes.
    #[must_use]
    pub const fn world(&self) -> World {
        self.world
    }

    /// Whether a counter with this event select counts for whoever executes. Elsewhere the bits are unit masks of Intel's.
    pub(super) fn counts_here(&self, selector: Selector) -> bool {
        !self.offers_svm || self.world.counts(selector)
    }

    /// What VMRUN itself counts for a guest that begins in `ring`: a far branch, as kvm-unit-tests has seen it (x86/pmu.c,
    /// `adjust_events_range`). Report it when the guest's world has begun.
    #[must_use]
    pub fn entry(ring: Ring) -> Delta {
        Delta::bulk(ring, 0).with(Occurrence::FarBranch, 1)
    }

    /// Bits of an event select that software may set.
    pub(super) fn selector_bits(&self) -> u64 {
        let worlds = if self.offers_svm { HOST_ONLY | GUEST_ONLY } else { 0 };
        self.spec().selector_mask | worlds
    }
}
