//! What the registers, as they stand, ask of whoever runs the guest.

use super::Pmu;
use super::freeze::DEBUGCTL_BTF;
use super::gate::Which;
use super::write::HWCR_IRPERF;
use crate::events::Meaning;
use crate::occurrence::{Bulk, Occurrence};
use crate::selection::Selection;
use crate::selector::{Selector, Threshold};
use crate::timing::MISPREDICTED;
use crate::{Model, Ring, RingMask};

/// What Nehalem's counters are programmed with before their events, because of erratum AAK100 (Linux, `intel_pmu_nhm_workaround`). No
/// table has these events.
const RENEWING: [u64; 3] = [0x43_00B5, 0x43_00D2, 0x43_00B1];

/// What must be reported so that every counter that runs now counts rightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Running counters that follow instructions alone, as bits of the global registers.
    pub bulk: u64,
    /// Running counters that count single occurrences.
    pub stepped: u64,
    /// The occurrences that those count.
    pub occurrences: Selection,
    /// A running counter tells some kind of branch that was predicted from the same mispredicted, or branches are recorded.
    pub tells_misses: bool,
    /// A running counter tells conditional jumps that were taken from those that were not, in either direction.
    pub tells_taken: bool,
    /// Those of `stepped` that deltas of several instructions do not serve, as bits: a threshold over occurrences of which
    /// an instruction may have several, or with EDGE; or a sum of occurrences and amounts.
    pub unspread: u64,
    /// A counter runs in one ring only, or tells rings apart: every guest run in a ring must be
    /// reported as a delta of its own. Otherwise any ring will do.
    pub ring_split: bool,
    /// The rings in which anything runs that is reported in bulk or stepped.
    pub rings: RingMask,
    /// The rings in which instructions must be stepped: those of the counters of single occurrences. Elsewhere
    /// [`crate::Delta::bulk`] is exact. Branch records request both, as a branch may lead from one to the other.
    pub stepped_rings: RingMask,
    /// Branch records are being written: report taken branches with [`Pmu::record_branch`].
    pub branch_records: bool,
    /// DEBUGCTL.BTF is set: TF traps on branches, which the caller has to arrange.
    pub branch_trap: bool,
    /// A counter that runs writes PEBS records, of which the instruction's addresses are wanted.
    pub precise: bool,
    /// A running counter counts only what passes the qualifiers: report with [`Pmu::advance_qualified`].
    pub qualified: bool,
    /// What passes depends on the addresses of accesses.
    pub qualified_data: bool,
    /// Something runs that cannot overflow: PERF_METRICS, the instructions-retired counter.
    pub free_running: bool,
}

impl Needs {
    /// Occurrences that a hypervisor sees without stepping, as it intercepts them.
    const INTERCEPTED: Selection = Selection::of(&[Occurrence::Interrupt, Occurrence::Cpuid]);

    /// What states where an access found its data and its translation.
    const SOURCES: Selection = {
        use Occurrence::*;
        Selection::of(&[
            LoadL1Hit,
            LoadLlcHit,
            LoadLlcMiss,
            StoreL1Hit,
            StoreLlcHit,
            StoreLlcMiss,
            LoadStlbHit,
            StoreStlbHit,
            LoadWalk,
            StoreWalk,
            Locked,
        ])
    };

    /// Whether instructions must be stepped. If not, [`crate::Delta::bulk`] at full speed is
    /// exact (with the intercepted occurrences added where they happen).
    #[must_use]
    pub fn stepping(&self) -> bool {
        self.branch_records || self.occurrences.without(Self::INTERCEPTED).has_occurrences()
    }

    /// The same of an instruction in `ring`.
    #[must_use]
    pub fn stepping_in(&self, ring: Ring) -> bool {
        self.stepped_rings.contains(ring)
    }

    /// Whether a branch predictor must be asked.
    #[must_use]
    pub const fn predictor(&self) -> bool {
        self.branch_records || self.tells_misses
    }

    /// Whether it matters where conditional jumps went.
    #[must_use]
    pub const fn taken(&self) -> bool {
        self.predictor() || self.tells_taken
    }

    /// Whether retired branches are counted.
    #[must_use]
    pub fn branches(&self) -> bool {
        self.branch_records || self.occurrences.and(Selection::BRANCHES).has_occurrences()
    }

    /// Whether data accesses are counted, in whatever way.
    #[must_use]
    pub fn accesses(&self) -> bool {
        use Occurrence::*;
        self.qualified_data
            || self.memory()
            || self.splits()
            || self.wants(&[Load, Store, LoadStore, Locked])
    }

    /// Whether accesses that cross a cache line are told from others.
    #[must_use]
    pub fn splits(&self) -> bool {
        self.wants(&[Occurrence::SplitLoad, Occurrence::SplitStore])
    }

    /// Whether data addresses must be run through caches and TLBs.
    #[must_use]
    pub fn memory(&self) -> bool {
        use Occurrence::*;
        self.wants(&[
            LoadL1Hit,
            LoadLlcHit,
            LoadLlcMiss,
            StoreL1Hit,
            StoreLlcHit,
            StoreLlcMiss,
            L1Fill,
            LlcReference,
            LlcMiss,
            LoadStlbHit,
            StoreStlbHit,
            LoadWalk,
            StoreWalk,
            LoadL2Hit,
            StoreL2Hit,
            MemoryStall,
        ])
    }

    /// Whether micro-operations must be given ports.
    #[must_use]
    pub const fn ports(&self) -> bool {
        self.occurrences.has_ports()
    }

    fn wants(&self, list: &[Occurrence]) -> bool {
        self.occurrences.and(Selection::of(list)).has_occurrences()
    }
}

/// Whether a delta of several instructions gives what their own would.
fn is_spread(selection: Selection, threshold: Option<Threshold>) -> bool {
    let alone = !selection.has_any_bulk();
    let rare = selection.is_branches();
    alone && threshold.is_none_or(|threshold| !threshold.edge && rare)
}

/// Why a counter counts nothing, whatever the guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The model does not know the event.
    Unknown,
    /// The event exists, but not on this counter.
    WrongCounter,
    /// The event exists, but in this machine it never happens: what it is about is not modelled.
    Never,
    /// Another event must be counted together with it, and is not.
    Alone,
}

/// A running or waiting counter that counts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The counter.
    pub counter: usize,
    /// Its event select register.
    pub selector: Selector,
    /// Why.
    pub why: Silence,
}

impl Pmu {
    /// What must be reported from now on. It changes with a write, and with a freeze.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let mut needs = Needs {
            branch_records: self.records_branches(),
            branch_trap: self.debugctl & DEBUGCTL_BTF != 0,
            free_running: self.hwcr & HWCR_IRPERF != 0 || self.global_control & 1 << 48 != 0,
            ..Needs::default()
        };
        for which in self.each() {
            let rings = self.gate(which).rings;
            // Most counters stand still at most exits: what they would count is not looked up.
            if rings.is_empty() {
                continue;
            }
            let (selection, threshold) = self.event(which);
            // Inverted, what never happens counts every cycle.
            let inverted = threshold.is_some_and(|threshold| threshold.invert);
            if selection == Selection::NOTHING && !inverted {
                continue;
            }
            needs.rings = needs.rings.or(rings);
            needs.precise |= self.writes_records(which);
            needs.ring_split |= rings != RingMask::BOTH
                || selection.has_bulk(Bulk::UserCycles)
                || selection.has_bulk(Bulk::KernelCycles);
            if self.tells_source(which) {
                needs.occurrences = needs.occurrences.or(Needs::SOURCES);
                if which == Which::IbsOp {
                    // What became of a branch.
                    needs.occurrences = needs.occurrences.or(Selection::BRANCHES);
                    needs.tells_misses = true;
                    needs.tells_taken = true;
                }
                needs.stepped_rings = needs.stepped_rings.or(rings);
            }
            if self.tells_retirement(which) {
                let stalls = Needs::SOURCES.or(MISPREDICTED).or(self.timing.waits());
                needs.occurrences = needs.occurrences.or(stalls);
                needs.tells_misses = true;
                needs.stepped_rings = needs.stepped_rings.or(rings);
            }
            if selection.without(Needs::INTERCEPTED).has_occurrences() {
                needs.stepped_rings = needs.stepped_rings.or(rings);
            }
            let qualified = self.qualifiers.selects(which.bit());
            if qualified {
                needs.qualified = true;
                needs.qualified_data |= self.qualifiers.checks_data();
                needs.stepped_rings = needs.stepped_rings.or(rings);
            }
            let waits = self.timing.waits_of(selection);
            if waits.has_occurrences() {
                // Cycles are sums then, which no count of instructions tells beforehand.
                needs.stepped_rings = needs.stepped_rings.or(rings);
                needs.stepped |= which.bit();
                needs.tells_misses = true;
                needs.occurrences = needs.occurrences.or(waits).or(selection.only_occurrences());
                if threshold.is_some() || self.writes_records(which) || selection.has_occurrences()
                {
                    needs.unspread |= which.bit();
                }
            } else if qualified || selection.has_occurrences() {
                needs.stepped |= which.bit();
                needs.tells_misses |= selection.tells_misses();
                needs.tells_taken |= selection.tells_taken();
                let records = self.writes_records(which);
                let ports = selection.has_ports() && (threshold.is_some() || records);
                let spread = match qualified {
                    // How far it is to an overflow is not known beforehand.
                    true => threshold.is_none() && !records && !self.gate(which).interrupt,
                    false => is_spread(selection, threshold),
                };
                if ports || !spread || self.counts_slow_loads(which) {
                    needs.unspread |= which.bit();
                }
                needs.occurrences = needs.occurrences.or(selection.only_occurrences());
            } else {
                needs.bulk |= which.bit();
            }
        }
        let metrics = self.metrics_rings();
        if !metrics.is_empty() {
            let occurrences = crate::metrics::occurrences(self.metrics_fields());
            needs.rings = needs.rings.or(metrics);
            needs.stepped_rings = needs.stepped_rings.or(metrics);
            needs.occurrences = needs.occurrences.or(occurrences);
            (needs.tells_misses, needs.tells_taken) = (true, true);
            needs.ring_split |= metrics != RingMask::BOTH;
        }
        let apart = self.uncore_selection();
        if apart.has_occurrences() {
            (needs.rings, needs.stepped_rings) = (RingMask::BOTH, RingMask::BOTH);
            needs.occurrences = needs.occurrences.or(apart);
            needs.free_running = true;
        }
        if needs.branch_records {
            needs.stepped_rings = RingMask::BOTH;
        }
        needs
    }

    /// Counters that are programmed with an event which the model cannot count there, or which never happens in it, so
    /// that a debug port can name them. They count nothing.
    pub fn unknown_events(&self) -> impl Iterator<Item = Unknown> {
        self.counters.iter().enumerate().filter_map(|(counter, state)| {
            let selector = Selector(state.selector);
            // Nobody counts these.
            if self.model == Model::Nehalem && RENEWING.contains(&state.selector) {
                return None;
            }
            let never =
                |selection: Selection| selection.on_ports(self.timing.ports) == Selection::NOTHING;
            let why = match state.meaning {
                Meaning::Unknown => Silence::Unknown,
                Meaning::WrongCounter => Silence::WrongCounter,
                // Inverted it counts the cycles in which it does not happen: all.
                Meaning::Known(selection)
                    if never(selection)
                        && !selector.threshold().is_some_and(|threshold| threshold.invert) =>
                {
                    Silence::Never
                }
                Meaning::Known(_) if self.misses_auxiliary(counter) => Silence::Alone,
                Meaning::Unused | Meaning::Known(_) => return None,
            };
            Some(Unknown { counter, selector, why })
        })
    }
}
