//! Load latency: loads that take longer than a threshold, and where records say that their data came from (Intel SDM volume 3,
//! 20.3.1.1.2 and its successors for each processor; encodings and flags also in Linux, `arch/x86/events/intel/ds.c`).
//!
//! The processor watches some of the loads; this machine watches all. Levels and cycles follow [`crate::timing::Latency`].

use super::Pmu;
use super::gate::Which;
use super::ibs::Source;
use crate::delta::Delta;
use crate::model::{PRECISE_STORE, Pebs, Sources};
use crate::msr;
use crate::mutation::Mutation;
use crate::selector::Selector;
use crate::timing::Latency;

/// The encodings of SDM volume 3, "Data Source Encoding for Load Latency Record": the first level; the last one, without a snoop;
/// memory of this socket, in
/// the one code that every table here has for it. Lion Cove has its own.
const CODES: [u64; 3] = [1, 4, 0xA];
const LION_COVE_CODES: [u64; 3] = [1, 8, 0x11];
/// Bits of the second-level TLB's miss and of LOCK.
const FLAGS: [u32; 2] = [4, 5];
const LION_COVE_FLAGS: [u32; 2] = [10, 11];
const GRACEMONT_FLAGS: [u32; 2] = [5, 4];
/// Of a store that is not sampled for its latency: the first level had the line.
const STORE_HIT: u64 = 1;
/// Where the latency of the data alone stands.
const DATA_LATENCY_AT: u32 = 32;
/// Unit mask bits 1:0 of events of stores alone.
const STORES: u16 = 2;

impl Pmu {
    /// The event of a general-purpose counter.
    fn code_of(&self, which: Which) -> Option<(u16, u16)> {
        let Which::General(n) = which else { return None };
        let selector = Selector(self.counters[n].selector);
        Some((selector.intel_code(), selector.intel_umask()))
    }

    /// Whether a counter counts loads that take longer than the threshold.
    pub(super) fn counts_slow_loads(&self, which: Which) -> bool {
        let loads = self.pebs().and_then(|pebs| pebs.loads);
        loads.is_some() && self.code_of(which) == loads
    }

    /// Whether a counter's records state where data came from, so that caches must be modelled.
    pub(super) fn tells_source(&self, which: Which) -> bool {
        if which == Which::IbsOp {
            return self.ibs_runs(which);
        }
        let has = |pebs: &Pebs| self.code_of(which).is_some_and(|event| pebs.states_source(event));
        let store = |pebs: &Pebs| {
            self.code_of(which).is_some_and(|event| self.is_precise_store(pebs, event))
        };
        self.writes_records(which) && self.pebs().is_some_and(|pebs| has(pebs) || store(pebs))
    }

    /// Whether a counter's records state the retire latency, so that what holds instructions up must be seen.
    pub(super) fn tells_retirement(&self, which: Which) -> bool {
        let states = self.pebs().is_some_and(Pebs::states_retirement);
        states && !matches!(which, Which::IbsFetch | Which::IbsOp) && self.writes_records(which)
    }

    /// Whether records of an event state the store, as PEBS_ENABLE\[63\] says.
    pub(super) fn is_precise_store(&self, pebs: &Pebs, event: (u16, u16)) -> bool {
        pebs.precise_stores == Some(event) && self.pebs_enable & PRECISE_STORE != 0
    }

    /// Whether a counter counts slow loads, and nothing counts the event that has to run together with it.
    pub(super) fn misses_auxiliary(&self, counter: usize) -> bool {
        let auxiliary = self.pebs().and_then(|pebs| pebs.auxiliary);
        let slow = self.counts_slow_loads(Which::General(counter));
        let mut others = (0..self.counters.len()).map(Which::General);
        let runs = |one| !self.gate(one).rings.is_empty();
        let mut beside = |event| others.any(|one| self.code_of(one) == Some(event) && runs(one));
        slow && auxiliary.is_some_and(|event| !beside(event))
    }

    /// What such a counter counts of the loads that came with this delta: those that took longer than the threshold. Nothing
    /// where another event has to run together with it and does not.
    pub(super) fn slow_loads(&self, which: Which, delta: &Delta, count: u64) -> u64 {
        if count == 0 || !self.counts_slow_loads(which) {
            return count;
        }
        let missing = match which {
            Which::General(n) => self.misses_auxiliary(n),
            _ => false,
        };
        if missing && !self.is(Mutation::PebsAuxiliaryIgnored) {
            return 0;
        }
        let place = self.spec().extra.iter().position(|(number, _)| *number == msr::LOAD_LATENCY);
        let threshold = place.map_or(0, |place| self.extra[place]);
        let slow = Latency::of(delta).whole() > threshold;
        if slow || self.is(Mutation::PebsLatencyIgnored) { count } else { 0 }
    }

    /// Data source and latency of a record.
    pub(super) fn source_of(&self, pebs: &Pebs, due: u64) -> [u64; 2] {
        let store = |event| self.is_precise_store(pebs, event);
        let states = |event: &(u16, u16)| pebs.states_source(*event) || store(*event);
        let Some(event) = self.events_of(due).find(states) else {
            return [0; 2];
        };
        let seen = self.seen();
        let (codes, flags) = match pebs.sources {
            Sources::LionCove => (LION_COVE_CODES, LION_COVE_FLAGS),
            Sources::Gracemont => (CODES, GRACEMONT_FLAGS),
            Sources::Nehalem | Sources::SandyBridge => (CODES, FLAGS),
        };
        let wrong = self.is(Mutation::PebsSourceWrong);
        let level = match seen.source {
            Source::Unknown => return [0; 2],
            Source::Last if !wrong => 1,
            Source::Memory if !wrong => 2,
            Source::First | Source::Last | Source::Memory => 0,
        };
        let mut source = if pebs.has_latency(event) {
            codes[level]
        } else if level == 0 {
            STORE_HIT
        } else {
            0
        };
        // Records of stores that say whether the first level had the line say no more, but for precise stores.
        if pebs.sources != Sources::Nehalem && (pebs.has_latency(event) || store(event)) {
            source |= u64::from(seen.second_tlb_miss) << flags[0];
            source |= u64::from(seen.locked) << flags[1];
        }
        let whole = seen.latency.whole();
        let latency = match pebs.splits_latency {
            // An instruction retires in the cycle after.
            true => whole << DATA_LATENCY_AT | (whole + 1),
            false => whole,
        };
        let states = pebs.has_latency(event) && !self.is(Mutation::PebsLatencyLost);
        [source, if states { latency } else { 0 }]
    }
}

impl Pebs {
    /// Whether records of an event say where its data was: those of load and store latency; and from Haswell on those of stores
    /// say whether the first level had it, but for the small cores.
    fn states_source(&self, event: (u16, u16)) -> bool {
        let hits = self.sources != Sources::Gracemont;
        let stores = hits && self.data.contains(&event.0) && event.1 & 3 == STORES;
        self.has_latency(event) || stores
    }
}
