//! The PMU's state, and how it starts.

mod access;
mod adaptive;
mod advance;
mod arch_pebs;
mod branches;
mod counter;
mod energy;
mod fragments;
mod freeze;
mod gate;
mod horizon;
mod ibs;
mod latency;
mod needs;
mod pebs;
mod rdpmc;
mod read;
mod uncore;
mod world;
mod write;

pub use access::Effects;
pub use advance::Outcome;
pub use horizon::Limit;
pub use ibs::{PageSize, Sampled};
pub use needs::{Needs, Silence, Unknown};
pub use pebs::{GuestMemory, Retirement};
pub use rdpmc::rdpmc_allowed;
pub(crate) use write::checked;

use crate::host::Host;
use crate::lbr::Lbr;
use crate::metrics::Metrics;
use crate::model::{Model, Spec, Vendor};
use crate::mutation::{Mutation, Planted};
use crate::qualify::Qualifiers;
use crate::recording::Recording;
use crate::timing::Timing;
use crate::world::World;
use arch_pebs::ArchPebs;
use counter::Counter;
use ibs::Ibs;

/// General-purpose counters that the state has room for.
pub(crate) const MAX_COUNTERS: usize = 10;
/// Fixed counters that the state has room for.
pub(crate) const MAX_FIXED: usize = 7;
/// Extra registers that the state has room for.
pub(crate) const MAX_EXTRA: usize = 4;

/// The performance monitoring unit of one logical processor.
#[derive(Clone, Debug)]
pub struct Pmu {
    model: Model,
    spec: &'static Spec,
    recording: Option<&'static Recording>,
    host: Host,
    timing: Timing,
    counters: [Counter; MAX_COUNTERS],
    fixed: [Counter; MAX_FIXED],
    fixed_control: u64,
    global_control: u64,
    status: u64,
    debugctl: u64,
    misc_enable: u64,
    hwcr: u64,
    instructions_retired: u64,
    extra: [u64; MAX_EXTRA],
    metrics: Metrics,
    lbr: Lbr,
    ds_area: u64,
    pebs_enable: u64,
    pebs_data_config: u64,
    arch_pebs: ArchPebs,
    /// Groups of architectural PEBS that the machine beneath cannot fill.
    withheld_groups: u64,
    ibs: Ibs,
    qualifiers: Qualifiers,
    has_qualifiers: bool,
    /// Counters whose next event makes a PEBS record.
    armed: u64,
    /// For planted faults: records written, instructions seen, or interrupts requested.
    records: u64,
    /// Planted faults: PMIs are requested for ever, and instructions until a freeze that comes late.
    storms: bool,
    freezes_in: u16,
    planted: Planted,
    offers_svm: bool,
    world: World,
    /// The guest's TSC as it was told last.
    time: u64,
    uncore: uncore::Uncore,
}

impl Pmu {
    /// A PMU as it comes out of RESET, in a processor like `model` on top of `host`.
    #[must_use]
    pub fn new(model: Model, host: Host, timing: Timing) -> Self {
        Self::of(model, model.spec(), None, host, timing)
    }

    /// The PMU of a recorded processor, as it comes out of RESET.
    #[must_use]
    pub fn recorded(recording: &'static Recording, host: Host, timing: Timing) -> Self {
        Self::of(recording.nearest(), recording.spec(), Some(recording), host, timing)
    }

    fn of(
        model: Model,
        spec: &'static Spec,
        recording: Option<&'static Recording>,
        host: Host,
        timing: Timing,
    ) -> Self {
        let mut pmu = Self {
            model,
            spec,
            recording,
            host,
            timing,
            counters: [Counter::RESET; MAX_COUNTERS],
            fixed: [Counter::RESET; MAX_FIXED],
            fixed_control: 0,
            global_control: 0,
            status: 0,
            debugctl: 0,
            misc_enable: 0,
            hwcr: 0,
            instructions_retired: 0,
            extra: [0; MAX_EXTRA],
            metrics: Metrics::default(),
            lbr: Lbr::RESET,
            ds_area: 0,
            pebs_enable: 0,
            pebs_data_config: 0,
            arch_pebs: ArchPebs::RESET,
            withheld_groups: 0,
            ibs: Ibs::RESET,
            qualifiers: Qualifiers::RESET,
            has_qualifiers: true,
            armed: 0,
            records: 0,
            storms: false,
            freezes_in: 0,
            planted: Planted::default(),
            offers_svm: false,
            world: World::default(),
            time: 0,
            uncore: uncore::Uncore::RESET,
        };
        pmu.reset();
        pmu
    }

    /// RESET: the global control enables every general-purpose counter and no fixed one, so that
    /// software for version 1 works; everything else is 0 (Intel SDM volume 3, table of states
    /// after reset; AMD's global control likewise). ARCH_LBR_DEPTH starts at the greatest depth.
    pub fn reset(&mut self) {
        let spec = self.spec();
        self.counters = [Counter::RESET; MAX_COUNTERS];
        self.fixed = [Counter::RESET; MAX_FIXED];
        self.fixed_control = 0;
        self.global_control = u64::from(spec.counters());
        if self.is(Mutation::GlobalControlResetsToZero) {
            self.global_control = 0;
        } else if self.is(Mutation::GlobalControlResetsToAll) {
            self.global_control = spec.global_mask();
        }
        self.status = 0;
        self.debugctl = 0;
        self.misc_enable = self.misc_enable_of(self.host.misc_enable);
        self.hwcr = self.host.hwcr & !write::HWCR_IRPERF;
        self.instructions_retired = 0;
        self.extra = [0; MAX_EXTRA];
        self.metrics = Metrics::default();
        self.lbr = Lbr::reset(spec);
        (self.ds_area, self.pebs_enable, self.armed) = (0, 0, 0);
        self.pebs_data_config = 0;
        self.arch_pebs = ArchPebs::RESET;
        self.ibs = Ibs::RESET;
        self.qualifiers = Qualifiers::RESET;
        self.uncore = uncore::Uncore::RESET;
        (self.storms, self.freezes_in) = (false, 0);
    }

    /// INIT: leaves every register of the PMU as it is (Intel SDM volume 3, table of states after
    /// INIT), so that a processor started by INIT and SIPI may find live counters.
    pub const fn init(&mut self) {}

    /// The model that is presented; of a recorded processor, the one whose behaviour it has.
    #[must_use]
    pub const fn model(&self) -> Model {
        self.model
    }

    /// The recorded processor that is presented, if it is one.
    #[must_use]
    pub const fn recording(&self) -> Option<&'static Recording> {
        self.recording
    }

    /// What the counters that are qualified count.
    #[must_use]
    pub const fn qualifiers(&self) -> &Qualifiers {
        &self.qualifiers
    }

    /// Whether there are registers of qualifiers, which no processor has: there are unless this takes them away.
    pub const fn set_qualifiers(&mut self, present: bool) {
        self.has_qualifiers = present;
    }

    /// See [`Pmu::set_qualifiers`].
    #[must_use]
    pub const fn has_qualifiers(&self) -> bool {
        self.has_qualifiers
    }

    /// The rule of time.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// What was told of the machine beneath.
    pub(crate) const fn host(&self) -> &Host {
        &self.host
    }

    /// Facts of the processor that is presented.
    #[must_use]
    pub const fn spec(&self) -> &'static Spec {
        self.spec
    }

    pub(crate) fn is_amd(&self) -> bool {
        matches!(&self.spec().identity, Some(identity) if identity.vendor == Vendor::Amd)
    }

    pub(crate) fn is(&self, mutation: Mutation) -> bool {
        self.planted.is(mutation)
    }

    /// Plants a fault, or takes it out. It acts from now on; plant it and then [`Pmu::reset`] for
    /// one that concerns the state after RESET.
    #[cfg(feature = "mutations")]
    pub const fn set_mutation(&mut self, mutation: Option<Mutation>) {
        self.planted = Planted::new(mutation);
    }

    /// Whether a PMI comes as an interrupt of vector 0: a planted fault, for whoever delivers it.
    #[must_use]
    #[inline]
    pub fn has_wrong_vector(&self) -> bool {
        self.is(Mutation::PmiWrongVector)
    }

    /// Width of the general-purpose counters in bits.
    pub(crate) fn counter_bits(&self) -> u8 {
        self.spec().width_bits() - u8::from(self.is(Mutation::CounterTooNarrow))
    }

    /// Width of the fixed counters in bits.
    pub(crate) fn fixed_bits(&self) -> u8 {
        self.spec().intel().map_or(48, |intel| intel.fixed_width)
    }

    /// Whether there are a global control and a global status.
    pub(crate) fn has_global(&self) -> bool {
        match self.spec().amd() {
            Some(amd) => amd.v2,
            None => self.spec().intel().is_some_and(|intel| intel.version >= 2),
        }
    }

    /// Whether a PMI freezes through status bits 58 and 59 (Intel version 4, AMD PerfMonV2), rather
    /// than by clearing enables.
    pub(crate) fn freezes_by_status(&self) -> bool {
        match self.spec().intel() {
            Some(intel) => intel.version >= 4,
            None => self.has_global(),
        }
    }
}
