//! One record out of what each processor counted.

use super::Part;
use super::sets::{Sets, words};
use crate::counting::allocate::Allocation;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use protocol::count::{Bind, Count};
use protocol::record::{
    CountCpu, CountGate, CountInterval, CountResult, CountValue, CountedEvent, CountedSet, Eviction,
};

/// What a processor counted of one set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartOfSet {
    /// The set's number.
    pub number: usize,
    /// Its events; [`CountedEvent::cpus`] is empty.
    pub events: Vec<CountedEvent>,
    /// Groups that took turns.
    pub groups: u32,
    /// Passes through them.
    pub passes: u64,
}

/// Puts the parts together, in the order of their processors' numbers. Item, name, times and how the tasks ran are the
/// caller's to fill in.
#[must_use]
pub fn whole(item: &Count, sets: Sets, parts: Vec<(u16, Part)>) -> CountResult {
    let mut result = CountResult {
        ticks: parts.iter().map(|(_, part)| part.ticks).sum(),
        switches: parts.iter().map(|(_, part)| part.switches).sum(),
        readings_dropped: parts.iter().map(|(_, part)| part.readings_dropped).sum(),
        readings: parts.iter().flat_map(|(_, part)| part.readings.iter().copied()).collect(),
        dropped: parts.iter().map(|(_, part)| part.dropped).sum(),
        snapshot: parts.first().and_then(|(_, part)| part.snapshot.clone()),
        gates: gates(&parts),
        ..CountResult::default()
    };
    let mut counted: Vec<CountedSet> = Vec::new();
    let of_item = item.all_sets();
    let all = of_item.iter().zip(sets.planned).zip(&sets.allocations).enumerate();
    for (number, ((set, planned), allocation)) in all {
        let mut one = CountedSet {
            name: item.sets.get(number).map_or(item.name.to_string(), |set| set.name.to_string()),
            bind: words(set.bind, &item.workload),
            uncounted: planned.uncounted,
            refused: allocation.refusal(),
            ..CountedSet::default()
        };
        if let Allocation::Evicted { by, cpu, acquired, evicted } = *allocation {
            let by = item.sets.get(by).map_or(item.name.to_string(), |set| set.name.to_string());
            one.evicted =
                Some(Eviction { by, processor: cpu.into(), acquired, generation: evicted });
        }
        for (place, (_, part)) in parts.iter().enumerate() {
            let own = part.sets.iter().filter(|part| part.number == number);
            own.for_each(|part| add(&mut one, part, place, parts.len()));
        }
        counted.push(one);
    }
    if item.sets.is_empty() {
        let one = counted.pop().unwrap_or_default();
        (result.events, result.uncounted) = (one.events, one.uncounted);
        (result.groups, result.passes) = (one.groups, one.passes);
        result.bind = (item.bind != Bind::System).then_some(one.bind);
    } else {
        result.sets = counted;
    }
    if parts.len() > 1 || parts.first().is_some_and(|(cpu, _)| *cpu != 0) {
        let figures = parts.iter().map(|(cpu, part)| CountCpu {
            processor: u32::from(*cpu),
            ticks: part.ticks,
            switches: part.switches,
            snapshot: part.snapshot.clone(),
        });
        result.cpus = figures.collect();
    }
    let rows = |(cpu, part): (u16, Part)| {
        let of = move |row| CountInterval { processor: u32::from(cpu), ..row };
        part.intervals.into_iter().map(of)
    };
    result.intervals = parts.into_iter().flat_map(rows).collect();
    result
}

/// The gates of all tasks: each processor knows them all, and has exceptions of those that run on it.
fn gates(parts: &[(u16, Part)]) -> Vec<CountGate> {
    let mut all: Vec<CountGate> = Vec::new();
    for more in parts.iter().flat_map(|(_, part)| &part.gates) {
        match all.iter_mut().find(|gate| gate.task == more.task) {
            Some(gate) if more.taken > gate.taken => *gate = more.clone(),
            Some(_) => {}
            None => all.push(more.clone()),
        }
    }
    all
}

/// Adds what the processor at `place` of `places` counted.
fn add(set: &mut CountedSet, part: &PartOfSet, place: usize, places: usize) {
    if set.events.is_empty() {
        let empty = |event: &CountedEvent| CountedEvent {
            sum: NOTHING,
            kernel: NOTHING,
            cpus: vec![NOTHING; places],
            tasks: vec![NOTHING; event.tasks.len()],
            overflows: event.overflows.map(|_| 0),
            ..event.clone()
        };
        set.events = part.events.iter().map(empty).collect();
        (set.groups, set.passes) = (part.groups, part.passes);
    }
    // A pass is over when it is so for everybody.
    set.passes = set.passes.min(part.passes);
    for (event, more) in set.events.iter_mut().zip(&part.events) {
        for sum in [&mut event.sum, &mut event.cpus[place]] {
            *sum = plus(*sum, more.sum);
        }
        event.kernel = plus(event.kernel, more.kernel);
        for (task, more) in event.tasks.iter_mut().zip(&more.tasks) {
            *task = plus(*task, *more);
        }
        event.overflows = event.overflows.zip(more.overflows).map(|(one, more)| one + more);
    }
}

/// No count, in no time.
const NOTHING: CountValue = CountValue { raw: 0, scaled: Some(0), counted: 0, enabled: 0 };

/// Counts of different processors, or of different claims of one, each scaled by its own time.
fn plus(one: CountValue, more: CountValue) -> CountValue {
    CountValue {
        raw: one.raw.wrapping_add(more.raw),
        scaled: one.scaled.zip(more.scaled).map(|(one, more)| one.saturating_add(more)),
        counted: one.counted + more.counted,
        enabled: one.enabled + more.enabled,
    }
}
