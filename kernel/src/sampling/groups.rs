//! What PEBS records have besides: vector registers, and values of counters that count beside the sampled events.

use super::plan::architectural;
use super::shares::{self, Shares};
use super::vectors::Kinds;
use super::{Armed, Pmu, Session};
use crate::snippet::events::{self, Use};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pebs::{DataConfig, Format, Groups};
use arch::pmu::pmi::{ControlBlock, GroupLog};
use arch::pmu::{Capabilities, Counter, Driver, PmuError, Registers, Selection};
use protocol::record::Samples;
use protocol::sampling::Sampling;

/// Counters that MSR_PEBS_DATA_CFG and records of the older formats can name.
const NAMED: u32 = 0xffff;

/// A counter that counts beside the sampled events, and goes into their records.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Valued {
    event: String,
    counter: Counter,
    selection: Selection,
}

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
    for text in &item.counters {
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
            valued.push(Valued { event: one.event, counter, selection });
        }
    }
    Ok(Besides { vectors, valued, shares: shares::plan(item, pmu.known, armed)? })
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
        if !self.valued.is_empty() {
            config.groups |= Groups::COUNTERS;
            config.general = self.bits() as u16;
        }
    }

    /// The counters, as bits of the global status.
    fn bits(&self) -> u64 {
        self.valued.iter().fold(0, |bits, one| bits | one.counter.bit())
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
        let (vectors, values) = words.split_at(each - besides.valued.len());
        besides.vectors.report(vectors, chunk);
        // They stand in the order of the counters; the job's is another.
        chunk.values.extend(besides.valued.iter().map(|one| {
            let ahead = besides.bits() & (one.counter.bit() - 1);
            values[ahead.count_ones() as usize]
        }));
    }
}
