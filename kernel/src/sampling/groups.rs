//! What PEBS records have besides: vector registers, and values of counters that count beside the sampled events.

use super::plan::architectural;
use super::{Armed, Pmu, Session};
use crate::snippet::events::{self, Use};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pebs::{DataConfig, Format, Groups};
use arch::pmu::pmi::{ControlBlock, GroupLog};
use arch::pmu::{Capabilities, Counter, Driver, PmuError, Registers, Selection};
use protocol::record::{Hex, Samples};
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
    vectors: bool,
    valued: Vec<Valued>,
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
    if !item.vectors && item.counters.is_empty() {
        return Ok(Besides::default());
    }
    let keys = [(item.vectors, Groups::VECTORS), (!item.counters.is_empty(), Groups::COUNTERS)];
    for (_, group) in keys.into_iter().filter(|(wanted, _)| *wanted) {
        check(group, has, armed)?;
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
    Ok(Besides { vectors: item.vectors, valued })
}

/// Whether the records of what is sampled by have the group.
fn check(group: Groups, has: &Capabilities, armed: &[Armed]) -> Result<(), String> {
    let (key, nearest) = match group {
        Groups::VECTORS => ("vectors", "registers has the general ones"),
        _ => ("counters", "an item [[count]] counts the same events"),
    };
    if !has.record_groups().contains(group) {
        let came = match group {
            Groups::VECTORS => "with format 4 (Ice Lake)",
            _ => "with format 6 (Lunar Lake, Arrow Lake) and architectural PEBS",
        };
        let reason = match (has.is_intel(), has.pebs_format()) {
            (false, _) => "samples of IBS have none".to_string(),
            (true, None) => "there is no PEBS that can be used".to_string(),
            (true, Some(format)) => {
                format!("PEBS records of format {} have none, they came {came}", format.number())
            }
        };
        return Err(format!("{key}: {reason}; the nearest: {nearest}"));
    }
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
        if self.vectors {
            config.groups |= Groups::VECTORS;
        }
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
        Ok(())
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
        self.valued.iter().try_for_each(|one| driver.write(registers, one.counter, 0))
    }

    /// Makes room for so many samples, and names it to the block.
    pub(super) fn keep(&self, words: &mut Vec<u64>, samples: usize, block: &mut ControlBlock) {
        let each = GroupLog::words(self.vectors, self.bits());
        if each > 0 {
            *words = alloc::vec![0; each * samples];
            block.groups_to(words, self.vectors, self.bits());
        }
    }

    /// Words of a sample.
    pub(super) fn words(&self) -> usize {
        GroupLog::words(self.vectors, self.bits())
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
        chunk.vectors.extend(vectors.iter().copied().map(Hex));
        // They stand in the order of the counters; the job's is another.
        chunk.values.extend(besides.valued.iter().map(|one| {
            let ahead = besides.bits() & (one.counter.bit() - 1);
            values[ahead.count_ones() as usize]
        }));
    }
}
