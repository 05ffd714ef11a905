//! What PEBS records have besides: vector registers, and values of counters that count beside the sampled events.

use super::plan::architectural;
use super::shares::{self, Shares};
use super::vectors::Kinds;
use super::{Armed, Pmu, Session};
use crate::snippet::events::{self, Use};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::driver::SLOTS;
use arch::pmu::pebs::{DataConfig, Format, Groups};
use arch::pmu::pmi::{ControlBlock, GroupLog};
use arch::pmu::registers::{GlobalStatus, PerfMetrics, Slots};
use arch::pmu::{Capabilities, Counter, Driver, PmuError, Registers, Selection};
use protocol::job::sampling::Sampling;
use protocol::record::Samples;

/// Counters that MSR_PEBS_DATA_CFG and records of the older formats can name.
const NAMED: u32 = 0xffff;

/// A counter that counts beside the sampled events, and goes into their records.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Valued {
    event: String,
    counter: Counter,
    selection: Selection,
    /// The field of PERF_METRICS that it is, whose slots are those of `counter`.
    field: Option<u8>,
}

/// PERF_METRICS among the bits of the global status.
const METRICS: u64 = GlobalStatus::METRICS.bits();

/// What an item wants of records besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Besides {
    vectors: Kinds,
    valued: Vec<Valued>,
    /// What is counted beside, and is in no record.
    pub(super) shares: Shares,
}

/// Finds what the item asks for.
///
/// # Errors
/// Records have it not, or no counter is left: what comes nearest.
pub(super) fn plan(pmu: &Pmu, item: &Sampling, armed: &[Armed]) -> Result<Besides, String> {
    let has = pmu.driver.capabilities();
    let grouped = has.pebs_format().is_some_and(Format::has_groups);
    let precise = armed.iter().any(|one| one.selection.precise);
    if item.registers != 0 && grouped && precise && !has.record_groups().contains(Groups::GENERAL) {
        return Err("registers: this processor's PEBS records have none (CPUID leaf 0x23.4 EBX[29]); the nearest is an interrupt's sample, without precise".to_string());
    }
    let vectors = Kinds::of(&item.vectors, has)?;
    if !item.vectors.is_empty() {
        check_precise("vectors", armed)?;
    }
    if !item.counters.is_empty() {
        check_counters(has)?;
        check_precise("counters", armed)?;
    }
    let taken = |counter: Counter| {
        armed.iter().any(|one| {
            let beside = [one.witness, one.auxiliary].into_iter().flatten();
            one.counter == counter || beside.into_iter().any(|(other, _)| other == counter)
        })
    };
    let named = match has.architectural_pebs {
        // The driver lets those into records whose registers it writes.
        Some(_) => has.pebs_counters(),
        None => has.general & NAMED,
    };
    let mut free: Vec<Counter> = has
        .generals()
        .filter(|&counter| u64::from(named) & counter.bit() != 0 && !taken(counter))
        .collect();
    let mut valued = Vec::new();
    let shares = shares::plan(item, pmu.known, armed)?;
    for text in &item.counters {
        if let Some(fields) = fields(pmu, text) {
            check_metrics(has, text, armed)?;
            valued.extend(fields);
            continue;
        }
        let planned = events::plan_for(Use::Beside, core::slice::from_ref(text), pmu.known);
        if let Some(refused) = planned.uncounted.first() {
            return Err(format!("counters: {}: {}", refused.event, refused.reason));
        }
        for one in planned.passes.into_iter().flatten() {
            // What a fixed counter counts a general-purpose one does as well, if its event is architectural.
            let (selection, places) = match architectural(one.counter, &one.selection) {
                Some(selection) => (selection, u64::MAX),
                None => (one.selection, one.counters),
            };
            let free_one = free.iter().position(|counter| places & counter.bit() != 0);
            let Some(place) = free_one.filter(|_| !one.merges) else {
                return Err(format!(
                    "counters: no counter that goes into records is free for {} beside the others; name fewer, or sample by fewer events",
                    one.event
                ));
            };
            let counter = free.remove(place);
            valued.push(Valued { event: one.event, counter, selection, field: None });
        }
    }
    let besides = Besides { vectors, valued, shares };
    besides.check_rings()?;
    Ok(besides)
}

/// What a text names, if those are fields of PERF_METRICS.
fn fields(pmu: &Pmu, text: &str) -> Option<Vec<Valued>> {
    let planned = events::plan_for(Use::Counting, &[Cow::Borrowed(text)], pmu.known);
    let all = planned.passes.into_iter().flatten();
    let valued = all.map(|one| Valued {
        event: one.event,
        counter: one.counter,
        selection: one.selection,
        field: one.metric,
    });
    let all: Vec<Valued> = valued.collect();
    let are_fields = !all.is_empty() && all.iter().all(|one| one.field.is_some());
    are_fields.then_some(all)
}

/// Whether records have PERF_METRICS, and nothing is sampled by the counter of its slots.
fn check_metrics(has: &Capabilities, text: &str, armed: &[Armed]) -> Result<(), String> {
    if !has.record_groups().contains(Groups::METRICS) {
        return Err(format!(
            "counters: {text}: this processor's PEBS records have no PERF_METRICS; the nearest: name it in events, for its count of everything \
             that is sampled"
        ));
    }
    match armed.iter().find(|one| one.counter == SLOTS) {
        Some(one) => Err(format!(
            "counters: {text}: {} is sampled by, on the counter of slots, which PERF_METRICS takes",
            one.event
        )),
        None => Ok(()),
    }
}

/// Whether records have values of counters.
fn check_counters(has: &Capabilities) -> Result<(), String> {
    if has.record_groups().contains(Groups::COUNTERS) {
        return Ok(());
    }
    let reason = match (has.is_intel(), has.pebs_format()) {
        (false, _) => "samples of IBS have none".to_string(),
        (true, None) => "there is no PEBS that can be used".to_string(),
        (true, Some(format)) => format!(
            "PEBS records of format {} have none, they came with format 6 (Lunar Lake, Arrow Lake) and architectural PEBS",
            format.number()
        ),
    };
    Err(format!("counters: {reason}; the nearest: an item [[count]] counts the same events"))
}

/// Whether everything that is sampled by has records.
fn check_precise(key: &str, armed: &[Armed]) -> Result<(), String> {
    match armed.iter().all(|one| one.selection.precise) {
        true => Ok(()),
        false => Err(format!(
            "{key}: they stand in PEBS records, and not every event is sampled by those: precise = true does so"
        )),
    }
}

impl Besides {
    /// Adds the groups to what records are to have.
    pub(super) fn add(&self, config: &mut DataConfig) {
        config.groups |= self.vectors.groups();
        config.groups.set(Groups::METRICS, self.fields().next().is_some());
        if self.valued.iter().any(|one| one.field.is_none()) {
            config.groups |= Groups::COUNTERS;
            config.general = self.bits() as u16;
        }
    }

    /// The counters, and PERF_METRICS, as bits of the global status.
    fn bits(&self) -> u64 {
        self.valued.iter().fold(0, |bits, one| {
            let shares = if one.field.is_some() { METRICS } else { 0 };
            bits | one.counter.bit() | shares
        })
    }

    /// Those that are fields of PERF_METRICS.
    fn fields(&self) -> impl Iterator<Item = &Valued> {
        self.valued.iter().filter(|one| one.field.is_some())
    }

    /// One counter has the slots of all fields, so all count in the same rings: those in records, and those that are read once.
    fn check_rings(&self) -> Result<(), String> {
        let Some(first) = self.fields().next() else { return Ok(()) };
        let beside = self.shares.selection().map(|(event, selection)| (event, selection.rings));
        let all = self.fields().map(|one| (&*one.event, one.selection.rings)).chain(beside);
        match all.into_iter().find(|(_, rings)| *rings != first.selection.rings) {
            Some((event, _)) => Err(format!(
                "counters: PERF_METRICS counts in the same rings for all, and {event} is for others than {}",
                first.event
            )),
            None => Ok(()),
        }
    }

    /// Whether fields in records are doubtful: after an overflow of PERF_METRICS they are of no known slots.
    ///
    /// # Errors
    /// The status cannot be read.
    pub(super) fn doubt(
        &self,
        registers: &mut dyn Registers,
        driver: &Driver,
    ) -> Result<Option<String>, PmuError> {
        let overflowed = self.fields().next().is_some() && driver.metrics_overflowed(registers)?;
        Ok(overflowed.then(|| {
            "PERF_METRICS overflowed meanwhile, so its fields in the samples are of no known slots from then on".to_string()
        }))
    }

    /// Programs the counters.
    ///
    /// # Errors
    /// The PMU refuses.
    pub(super) fn program(
        &self,
        registers: &mut dyn Registers,
        driver: &mut Driver,
    ) -> Result<(), PmuError> {
        for one in &self.valued {
            driver.program(registers, one.counter, &one.selection)?;
        }
        if self.fields().next().is_some() {
            driver.enable_metrics()?;
        }
        self.shares.program(registers, driver)
    }

    /// Sets them to 0.
    ///
    /// # Errors
    /// The PMU refuses.
    pub(super) fn clear(
        &self,
        registers: &mut dyn Registers,
        driver: &Driver,
    ) -> Result<(), PmuError> {
        self.valued.iter().try_for_each(|one| driver.write(registers, one.counter, 0))?;
        if self.fields().next().is_some() {
            driver.clear_metrics(registers)?;
        }
        self.shares.clear(registers, driver)
    }

    /// Makes room for so many samples, and names it to the block.
    pub(super) fn keep(&self, words: &mut Vec<u64>, samples: usize, block: &mut ControlBlock) {
        let each = self.words();
        if each > 0 {
            *words = alloc::vec![0; each * samples];
            block.groups_to(words, self.vectors.groups(), self.bits());
        }
    }

    /// Words that are kept of a sample.
    fn words(&self) -> usize {
        GroupLog::words(self.vectors.groups(), self.bits())
    }

    /// Words of a sample in the report.
    pub(super) fn reported_words(&self) -> usize {
        self.vectors.reported_words() + self.valued.len()
    }

    /// What the counters count, as the job has it.
    pub(super) fn names(&self) -> Vec<String> {
        self.valued.iter().map(|one| one.event.clone()).collect()
    }
}

/// Adds what was kept of `count` samples from `first` on to their chunk.
pub(super) fn told(chunk: &mut Samples, session: &Session, first: usize, count: usize) {
    let (besides, each) = (&session.besides, session.besides.words());
    let Some(kept) = session.groups.get(first * each..(first + count) * each) else { return };
    for words in kept.chunks_exact(each.max(1)) {
        let (vectors, values) = words.split_at(each - besides.bits().count_ones() as usize);
        besides.vectors.report(vectors, chunk);
        // They stand in the order of the counters; the job's is another.
        let kept = |bit: u64| values[(besides.bits() & (bit - 1)).count_ones() as usize];
        chunk.values.extend(besides.valued.iter().map(|one| match one.field {
            None => kept(one.counter.bit()),
            field => {
                Slots { slots: kept(SLOTS.bit()), shares: PerfMetrics(kept(METRICS)) }.of(field)
            }
        }));
    }
}
