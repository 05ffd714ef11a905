//! One record out of what each processor counted.

use super::sets::{Sets, words};
use super::{Outcome, Part};
use crate::counting::Count;
use crate::counting::allocate::Evicted;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use protocol::job::count::{self, Bind};
use protocol::record::{
    BindMoment, CountBinding, CountCpu, CountGate, CountInterval, CountResult, CountShare,
    CountValue, CountedEvent, CountedSet, Eviction,
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

/// Says of each moment of a binding how many microseconds it lies behind the beginning, by a TSC of this rate.
#[must_use]
pub fn timed(mut result: CountResult, tsc_hz: u64) -> CountResult {
    let time = |moment: &mut BindMoment| {
        let us = u128::from(moment.tsc) * 1_000_000 / u128::from(tsc_hz.max(1));
        moment.us = (moment.tick > 0 || moment.marker.is_some()).then_some(us as u64);
    };
    for set in &mut result.sets {
        set.waiting.iter_mut().for_each(time);
        for binding in &mut set.bindings {
            time(&mut binding.since);
            binding.waited.iter_mut().chain(&mut binding.until).for_each(time);
        }
    }
    result
}

/// Puts the parts together, in the order of their processors' numbers. Item, name, times and how the tasks ran are the
/// caller's to fill in.
#[must_use]
pub fn whole(item: &count::Count, sets: Sets, parts: Vec<(u16, Part)>) -> CountResult {
    let mut result = CountResult {
        ticks: parts.iter().map(|(_, part)| part.ticks).sum(),
        switches: parts.iter().map(|(_, part)| part.switches).sum(),
        readings_dropped: parts.iter().map(|(_, part)| part.readings_dropped).sum(),
        readings: parts.iter().flat_map(|(_, part)| part.readings.iter().copied()).collect(),
        dropped: parts.iter().map(|(_, part)| part.dropped).sum(),
        changed: parts.iter().flat_map(|(_, part)| part.changed.iter().cloned()).collect(),
        stale: parts.iter().flat_map(|(_, part)| part.stale.iter().copied()).collect(),
        bindings_dropped: parts.iter().map(|(_, part)| part.bindings_dropped).sum(),
        snapshot: parts.first().and_then(|(_, part)| part.snapshot.clone()),
        gates: gates(&parts),
        ..CountResult::default()
    };
    let mut counted: Vec<CountedSet> = Vec::new();
    let of_item = item.all_sets();
    let all = of_item.iter().zip(sets.planned).zip(sets.barred).enumerate();
    let name = |number: usize| {
        item.sets.get(number).map_or(item.name.to_string(), |set| set.name.to_string())
    };
    for (number, ((set, planned), barred)) in all {
        let (outcome, allocation) = (outcome(&parts, number), sets.ledger.allocation(number));
        let allocation = outcome.map_or(allocation, |outcome| &outcome.allocation);
        let evicted = match outcome {
            Some(outcome) => outcome.evicted,
            None => sets.ledger.evicted(number),
        };
        let wants = !sets.ledger.request(number).places.is_empty();
        let mut one = CountedSet {
            name: name(number),
            bind: words(set.bind, &item.workload),
            uncounted: planned.uncounted,
            refused: barred.or_else(|| allocation.refusal().filter(|_| wants)),
            waiting: outcome.and_then(|outcome| outcome.waiting),
            ..CountedSet::default()
        };
        one.evicted = evicted.map(|Evicted { by, cpu, acquired, evicted }| Eviction {
            by: name(by),
            processor: cpu.into(),
            acquired,
            generation: evicted,
        });
        let rows = parts.iter().flat_map(|(_, part)| &part.bindings);
        let own = rows.filter(|row| row.number == number);
        let named =
            own.map(|row| CountBinding { evicted_by: row.by.map(name), ..row.binding.clone() });
        one.bindings = named.collect();
        for (place, (_, part)) in parts.iter().enumerate() {
            let own = part.sets.iter().filter(|part| part.number == number);
            own.for_each(|part| add(&mut one, part, place, parts.len()));
        }
        let moves = item.workload.moves();
        one.events.iter_mut().for_each(|event| follow_tasks(event, moves));
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

/// How it stood with a set in the end, by the processor that got furthest.
fn outcome(parts: &[(u16, Part)], number: usize) -> Option<&Outcome> {
    let all = parts
        .iter()
        .flat_map(|(_, part)| part.outcomes.iter().map(move |outcome| (part.ticks, outcome)));
    let own = all.filter(|(_, outcome)| outcome.number == number);
    own.max_by_key(|(ticks, _)| *ticks).map(|(_, outcome)| outcome)
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
            shares: vec![nothing(event.tasks.len()); places],
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
        let share = &mut event.shares[place];
        for kernel in [&mut event.kernel, &mut share.kernel] {
            *kernel = plus(*kernel, more.kernel);
        }
        for tasks in [&mut event.tasks, &mut share.tasks] {
            for (task, more) in tasks.iter_mut().zip(&more.tasks) {
                *task = plus(*task, *more);
            }
        }
        event.overflows = event.overflows.zip(more.overflows).map(|(one, more)| one + more);
    }
}

/// What a task came to that moves is scaled by its time on all processors together: on one of them it may have been too short for
/// each event to have had a counter.
fn follow_tasks(event: &mut CountedEvent, moves: bool) {
    if !moves {
        event.shares.clear();
        return;
    }
    for task in &mut event.tasks {
        let CountValue { raw, counted, enabled, .. } = *task;
        task.scaled = Count { raw, counted, enabled }.scaled();
    }
}

/// No count, in no time.
const NOTHING: CountValue = CountValue { raw: 0, scaled: Some(0), counted: 0, enabled: 0 };

/// The same of the kernel and of so many tasks.
fn nothing(tasks: usize) -> CountShare {
    CountShare { kernel: NOTHING, tasks: vec![NOTHING; tasks] }
}

/// Counts of different processors, or of different claims of one, each scaled by its own time.
fn plus(one: CountValue, more: CountValue) -> CountValue {
    CountValue {
        raw: one.raw.wrapping_add(more.raw),
        scaled: one.scaled.zip(more.scaled).map(|(one, more)| one.saturating_add(more)),
        counted: one.counted + more.counted,
        enabled: one.enabled + more.enabled,
    }
}
