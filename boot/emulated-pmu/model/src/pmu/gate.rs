//! Which counters count now.

use super::counter::{Context, Counter, Gate};
use super::{MAX_COUNTERS, MAX_FIXED, Pmu};
use crate::RingMask;
use crate::bits::bits_of;
use crate::mutation::Mutation;
use crate::occurrence::Bulk;
use crate::selection::Selection;
use crate::selector::{Selector, Threshold, bits};

/// What fixed counter n counts; the fourth came with Ice Lake, those of slots by their use with Skymont (SDM vol. 3, fixed-function
/// counters).
const FIXED_EVENTS: [Selection; MAX_FIXED] = [
    Selection::bulk(Bulk::Instructions),
    Selection::bulk(Bulk::Cycles),
    Selection::bulk(Bulk::ReferenceClock),
    Selection::bulk(Bulk::Slots),
    Selection::bulk(Bulk::BadSpeculationSlots),
    Selection::NOTHING,
    // Micro-operations, of which an instruction has one.
    Selection::bulk(Bulk::Instructions),
];

/// Bits of the general-purpose counters in the global registers, and where those of the fixed ones begin.
const GENERAL: u64 = (1 << MAX_COUNTERS) - 1;
const FIXED: u32 = 32;

/// A counter, by its place in the global registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    General(usize),
    Fixed(usize),
    /// The unit of instruction-based sampling that counts fetches.
    IbsFetch,
    /// The one that counts cycles or operations.
    IbsOp,
}

impl Which {
    /// Its bit in the global registers.
    pub(crate) const fn bit(self) -> u64 {
        match self {
            Self::General(n) => 1 << n,
            Self::Fixed(n) => 1 << (FIXED as usize + n),
            // In no register: only in the masks of this crate.
            Self::IbsFetch => 1 << 60,
            Self::IbsOp => 1 << 61,
        }
    }
}

impl Pmu {
    /// The counters of the model, and the units of instruction-based sampling that run.
    pub(super) fn each(&self) -> impl Iterator<Item = Which> + use<> {
        self.each_of(u64::MAX)
    }

    /// Those of them that are enabled, in some ring. Whether they count is for [`Self::gate`] to say.
    pub(super) fn each_on(&self) -> impl Iterator<Item = Which> + use<> {
        self.each_of(self.on())
    }

    /// Those of a mask.
    pub(super) fn each_of(&self, mask: u64) -> impl Iterator<Item = Which> + use<> {
        let general = bits_of(u64::from(self.spec().counters()) & mask & GENERAL);
        let fixed = bits_of(u64::from(self.spec().fixed()) & mask >> FIXED);
        let [fetch, op] = [Which::IbsFetch, Which::IbsOp]
            .map(|unit| (mask & unit.bit() != 0 && self.ibs_runs(unit)).then_some(unit));
        general
            .map(Which::General)
            .chain(fixed.map(Which::Fixed))
            .chain([fetch, op].into_iter().flatten())
    }

    /// The counters that are enabled by themselves and by the global control, as bits, and both units; with a planted fault, all.
    pub(super) fn on(&self) -> u64 {
        let units = Which::IbsFetch.bit() | Which::IbsOp.bit();
        if self.planted.any() {
            return u64::MAX;
        }
        let global = match self.is_frozen() {
            true => 0,
            false if self.has_global() => self.global_control,
            false => u64::MAX,
        };
        let of = |spec: u32, bits: u64| bits_of(u64::from(spec) & bits);
        let general = of(self.spec().counters(), global & GENERAL)
            .filter(|n| Selector(self.counters[*n].selector).enabled())
            .map(|n| Which::General(n).bit());
        let fixed = of(self.spec().fixed(), global >> FIXED)
            .filter(|n| self.fixed_field(*n) & 3 != 0)
            .map(|n| Which::Fixed(n).bit());
        general.chain(fixed).fold(units, |on, bit| on | bit)
    }

    /// Instructions pass, one or more, while nothing counts them: then conditions end, and no more happens. Otherwise, `false`, they
    /// have to be reported.
    pub fn pass_unseen(&mut self) -> bool {
        let counts_them = self.hwcr & super::write::HWCR_IRPERF != 0 || self.planted.any();
        let seen = counts_them || self.each_on().next().is_some();
        if !seen {
            self.pause(u64::MAX);
        }
        !seen
    }

    /// Instructions pass the counters of a mask without being counted.
    pub(super) fn pause(&mut self, mask: u64) {
        let of = |counters: &mut [Counter], mask: u64| {
            for (n, counter) in counters.iter_mut().enumerate() {
                if mask >> n & 1 != 0 {
                    counter.pause();
                }
            }
        };
        of(&mut self.counters, mask & GENERAL);
        of(&mut self.fixed, mask >> FIXED);
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context { timing: &self.timing, width_slots: self.spec().width, planted: self.planted }
    }

    /// A counter counts if its own enable and its bit of the global control are set, in the rings
    /// that it is told, unless the counters are frozen.
    pub(super) fn gate(&self, which: Which) -> Gate {
        if matches!(which, Which::IbsFetch | Which::IbsOp) {
            return Self::ibs_gate();
        }
        if !self.globally_enabled(which) || self.is_frozen() {
            return Gate::default();
        }
        let (enabled, rings, interrupt) = match which {
            Which::General(n) => {
                let selector = Selector(self.counters[n].selector);
                let enabled = selector.enabled() && self.counts_here(selector);
                (enabled, selector.rings(), selector.interrupt())
            }
            Which::Fixed(n) => {
                let field = self.fixed_field(n);
                let rings = RingMask::new(field & 2 != 0, field & 1 != 0);
                (!rings.is_empty(), rings, field & 8 != 0)
            }
            Which::IbsFetch | Which::IbsOp => return Self::ibs_gate(),
        };
        self.planted_gate(which, enabled, Gate { rings, interrupt })
    }

    fn globally_enabled(&self, which: Which) -> bool {
        !self.has_global()
            || self.global_control & which.bit() != 0
            || which == Which::General(1) && self.is(Mutation::GlobalEnableIgnored)
    }

    /// The gate of a counter that is enabled or not, with the planted fault, if any.
    fn planted_gate(&self, which: Which, enabled: bool, gate: Gate) -> Gate {
        let enabled = match which {
            Which::General(_) => enabled || self.is(Mutation::EnableBitIgnored),
            Which::Fixed(n) => enabled && !(n == 2 && self.is(Mutation::Fixed2Dead)),
            Which::IbsFetch | Which::IbsOp => enabled,
        };
        let rings = RingMask::new(
            gate.rings.user || self.is(Mutation::UserFilterIgnored),
            gate.rings.kernel || self.is(Mutation::KernelFilterIgnored),
        );
        let kept = gate.interrupt && !self.is(Mutation::LostPmi);
        Gate {
            rings: if enabled { rings } else { RingMask::NONE },
            interrupt: kept || self.is(Mutation::PmiWithoutInt),
        }
    }

    /// What a counter counts, and the condition it is put through.
    pub(super) fn event(&self, which: Which) -> (Selection, Option<Threshold>) {
        match which {
            Which::Fixed(n) => (FIXED_EVENTS[n].on_ports(self.timing.ports), None),
            Which::IbsFetch | Which::IbsOp => (self.ibs_event(which), None),
            Which::General(n) => {
                let counter = &self.counters[n];
                let mut selector = counter.selector;
                if self.is(Mutation::CmaskIgnored) {
                    selector &= !(0xFF << bits::CMASK_SHIFT);
                }
                if self.is(Mutation::InvertIgnored) {
                    selector &= !bits::INV;
                }
                if self.is(Mutation::EdgeIgnored) {
                    selector &= !bits::EDGE;
                }
                // Bit 36 is EQ on version 6 alone; elsewhere the selector's mask keeps it 0.
                let threshold = Selector(selector).threshold();
                (counter.meaning.selection().on_ports(self.timing.ports), threshold)
            }
        }
    }
}
