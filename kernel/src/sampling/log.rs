//! The single samples of a log, as records.

use super::parts::Part;
use super::{Session, groups, memory};
use alloc::vec::Vec;
use arch::pmu::data_source::Datum;
use arch::pmu::pmi::{self, ControlBlock};
use protocol::hex::Hex;
use protocol::job::sampling::Sampling;
use protocol::record::Samples;

/// Samples of one record, without registers.
const CHUNK: usize = 1000;

/// Index of the event that a bit of the status stands for.
pub(super) fn events_of(session: &Session, status: u64) -> u32 {
    let counters = session.events.iter().map(|one| one.counter.index());
    let slots = counters.chain([pmi::TIMER_SLOT]).enumerate();
    slots.fold(0, |bits, (index, slot)| bits | ((status >> slot & 1) as u32) << index)
}

/// Sources and latencies of single samples, where they are told.
fn told(chunk: &mut Samples, block: &ControlBlock, data: &[Datum]) {
    if data.iter().any(|one| one.latency != 0) {
        chunk.latencies = data.iter().map(|one| one.latency).collect();
    }
    if !data.iter().any(Datum::is_told) {
        return;
    }
    for one in data {
        let source = memory::source(block, one).map_or(0, |name| {
            let known = chunk.source_names.iter().position(|known| *known == name);
            let place = known.unwrap_or_else(|| {
                chunk.source_names.push(name);
                chunk.source_names.len() - 1
            });
            place as u32 + 1
        });
        chunk.sources.push(source);
    }
}

/// Single samples of a processor, in records that stay well below the longest line. `before`: how many of others were told. Returns
/// how many are told then.
pub(super) fn chunks(
    (index, before): (u32, u64),
    item: &Sampling,
    part: &Part,
    report: &mut dyn FnMut(Samples),
) -> u64 {
    let Part { cpu, session, block } = part;
    let wanted: Vec<usize> = (0..16).filter(|n| item.registers >> n & 1 != 0).collect();
    let retires = session.events.iter().any(|one| block.retired(one.counter.index()).is_some());
    let besides = session.besides.reported_words() + usize::from(retires);
    let size = CHUNK / (1 + wanted.len() + besides + 3 * usize::from(!session.data().is_empty()));
    let mut first = 0;
    for samples in session.samples(block).chunks(size) {
        let number = before + first as u64;
        let mut chunk = Samples { item: index, first: number, cpu: *cpu, ..Samples::default() };
        let mut last = [0; 2];
        let compatibility = (0..).zip(samples).filter(|(_, sample)| sample.is_compatibility());
        chunk.compatibility = compatibility.map(|(index, _)| index).collect();
        for sample in samples {
            let task = 4 * sample.task + u32::from(sample.ring());
            let events = events_of(session, sample.status);
            chunk.push(&mut last, sample.rip, sample.tsc, events, task);
        }
        if retires {
            chunk.retire_latencies = samples.iter().map(|sample| sample.retire_latency).collect();
        }
        if chunk.tasks.iter().all(|&task| task == 0) {
            chunk.tasks.clear();
        }
        if let Some(sets) = session.registers().get(first..first + samples.len()) {
            let each = |set: &[u64; pmi::REGISTERS]| -> Vec<Hex> {
                wanted.iter().map(|&n| Hex(set[n])).collect()
            };
            chunk.registers = sets.iter().flat_map(each).collect();
        }
        if let Some(data) = session.data().get(first..first + samples.len())
            && data.iter().any(|one| one.address != 0)
        {
            chunk.data = data.iter().map(|one| Hex(one.address)).collect();
            told(&mut chunk, block, data);
        }
        groups::told(&mut chunk, session, first, samples.len());
        first += samples.len();
        report(chunk);
    }
    before + first as u64
}
