//! When sets had the counters: a table of their times, who waits, and who was told that a count was no longer its own.

use super::right_but;
use crate::primitives::table::empty;
use comfy_table::Table;
use protocol::record::{BindMoment, CountBinding, CountResult, CountedSet, StaleReading};

/// The head of [`rows_of_bindings`].
pub(crate) const BINDINGS: [&str; 8] =
    ["set", "cpu", "bound at", "waited since", "until", "evicted by", "generation", "counts"];

/// A row for each time for which a set had the counters of a processor.
pub(crate) fn rows_of_bindings(count: &CountResult) -> Vec<[String; 8]> {
    let of_set = |set: &CountedSet| {
        let row = |binding: &CountBinding| {
            let until = binding.until.as_ref();
            let counts = set.events.iter().zip(&binding.raw);
            let counts: Vec<String> =
                counts.map(|(event, raw)| format!("{} {raw}", event.event)).collect();
            let generation = match binding.evicted {
                Some(evicted) => format!("{} to {evicted}", binding.generation),
                None => binding.generation.to_string(),
            };
            [
                set.name.clone(),
                binding.processor.to_string(),
                moment(count, &binding.since),
                binding.waited.as_ref().map_or(String::new(), |waited| moment(count, waited)),
                until.map_or_else(|| "the end".to_string(), |until| moment(count, until)),
                binding.evicted_by.clone().unwrap_or_default(),
                generation,
                counts.join(", "),
            ]
        };
        set.bindings.iter().map(row).collect::<Vec<_>>()
    };
    count.sets.iter().flat_map(of_set).collect()
}

pub(super) fn table(count: &CountResult) -> Option<Table> {
    let rows = rows_of_bindings(count);
    if rows.is_empty() {
        return None;
    }
    let mut table = empty();
    right_but(&mut table, &BINDINGS.map(String::from), BINDINGS.len());
    for row in rows {
        table.add_row(row);
    }
    Some(table)
}

/// A moment in words.
fn moment(count: &CountResult, moment: &BindMoment) -> String {
    let BindMoment { tsc, us, due_us, tick, marker, task } = *moment;
    let us = us.map_or(String::new(), |us| format!(" ({us} µs)"));
    let due = due_us.map_or(String::new(), |us| format!(" for {us} µs"));
    let task = task.and_then(|task| count.tasks.get(usize::from(task)));
    match (marker, task) {
        (Some(marker), Some(task)) => format!("marker {marker} of {}, TSC {tsc}{us}", task.name),
        (Some(marker), None) => format!("marker {marker}, TSC {tsc}{us}"),
        (None, _) if tick == 0 => "the start".to_string(),
        (None, _) => format!("tick {tick}{due}, TSC {tsc}{us}"),
    }
}

/// Sets that wait for the counters at the end, each in a sentence.
pub(crate) fn waiting(count: &CountResult) -> impl Iterator<Item = String> + '_ {
    count.sets.iter().filter_map(|set| {
        let since = moment(count, set.waiting.as_ref()?);
        Some(format!("{} waits for the counters to the end, since {since}", set.name))
    })
}

/// Tasks that read what was no longer their count, each in a sentence.
pub(crate) fn stale(count: &CountResult) -> impl Iterator<Item = String> + '_ {
    count.stale.iter().map(|reading| {
        let StaleReading { task, set, tsc, acquired, generation } = *reading;
        let task = count.tasks.get(usize::from(task)).map_or("", |task| &*task.name);
        let set = count.sets.get(set as usize).map_or("", |set| &*set.name);
        format!(
            "{task} was told at TSC {tsc} that the count of {set} that it read is stale: acquired in generation {acquired}, \
             ended in generation {generation}"
        )
    })
}
