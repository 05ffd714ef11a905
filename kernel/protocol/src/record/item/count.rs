//! Events that are counted while tasks run.

use super::head;
use super::tasks::{of_energy, of_moves, of_uncore};
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{CountResult, CountValue, CountedEvent, ItemRecord, TaskResult, Uncounted};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl ItemRecord for CountResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Count(_))
    }

    fn figures(&self) -> Vec<Figure> {
        let number = |value: u64| Some(value as f64);
        let mut all = Vec::from([
            figure("ticks", number(self.ticks)),
            figure("switches", number(self.switches)),
        ]);
        for gate in &self.gates {
            // One gate is the item's; of several each has its task's name.
            let of = match self.tasks.get(usize::from(gate.task)) {
                Some(task) if self.gates.len() > 1 => format!(", task {}", task.name),
                _ => String::new(),
            };
            all.push(figure(format!("starts{of}"), number(gate.starts)));
            all.push(figure(format!("stops{of}"), number(gate.stops)));
            let deepest =
                gate.deepest.map(|deepest| figure(format!("deepest{of}"), number(deepest)));
            all.extend(deepest);
        }
        let own = (!self.events.is_empty()).then_some((
            "",
            &self.events[..],
            [self.groups.into(), self.passes],
        ));
        let sets = self.sets.iter().filter(|set| !set.events.is_empty());
        let sets = sets.map(|set| (&*set.name, &set.events[..], [set.groups.into(), set.passes]));
        all.extend(of_moves(&self.tasks));
        for (set, events, [groups, passes]) in own.into_iter().chain(sets) {
            let set = if set.is_empty() { String::new() } else { format!("{set}: ") };
            all.push(figure(format!("{set}groups"), number(groups)));
            all.push(figure(format!("{set}passes"), number(passes)));
            events.iter().for_each(|event| of_event(self, &set, event, &mut all));
        }
        all.extend(of_energy(&self.energy));
        all.extend(of_uncore(&self.uncore));
        let readings = self.named_readings().into_iter();
        all.extend(readings.map(|(name, value)| figure(name, scaled(&value))));
        let bindings = self.named_bindings().into_iter();
        all.extend(bindings.map(|(name, value)| figure(name, number(value))));
        all
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        let mut all = self.uncounted.clone();
        for set in &self.sets {
            all.extend(set.uncounted.iter().cloned());
            // One that has counted has its counts.
            if !set.events.is_empty() {
                continue;
            }
            let lost = match (&set.evicted, &set.refused) {
                (Some(eviction), _) => Some(format!("evicted by {}", eviction.by)),
                (None, refused) => refused.as_ref().map(|why| format!("refused: {why}")),
            };
            let event = format!("set {}", set.name);
            all.extend(lost.map(|reason| Uncounted { event, reason }));
        }
        all
    }

    fn tasks(&self) -> &[TaskResult] {
        &self.tasks
    }
}

fn scaled(value: &CountValue) -> Option<f64> {
    value.scaled.map(|scaled| scaled as f64)
}

/// An event of a count: all of it, and everybody's part. Names are those of the CSV.
fn of_event(count: &CountResult, set: &str, event: &CountedEvent, all: &mut Vec<Figure>) {
    let name = |whose: &str| format!("{set}{}{whose}", event.event);
    all.push(figure(name(""), scaled(&event.sum)));
    all.push(figure(name(", kernel"), scaled(&event.kernel)));
    if let Some(overflows) = event.overflows {
        all.push(figure(name(", overflows"), overflows as f64));
    }
    for (cpu, value) in count.cpus.iter().zip(&event.cpus) {
        all.push(figure(name(&format!(", cpu {}", cpu.processor)), scaled(value)));
    }
    for (task, value) in count.tasks.iter().zip(&event.tasks) {
        all.push(figure(name(&format!(", task {}", task.name)), scaled(value)));
    }
    for (whose, value) in count.shares_of(event) {
        all.push(figure(name(&whose), scaled(&value)));
    }
}
