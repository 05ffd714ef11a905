//! Counts of tasks as metrics take them: of all that ran, and of each task. Each set has its own.

use protocol::job::criteria::TSC;
use protocol::record::{
    Aggregates, CountResult, CountValue, CountedEnergy, CountedEvent, CountedUncore, Counting,
    EnergyReading, Metric, Series, SnippetResult, TasksResult, Uncounted, Verdict,
};

/// What the ticks are called in which the uncore counted, for metrics of nothing but that and time: a set counts for a little less.
pub(super) const UNCORE_TICKS: &str = "tsc, uncore";

/// Whose counts a metric is of: a name, and which value of an event.
type Whose<'a> = (String, Box<dyn Fn(&CountedEvent) -> Option<CountValue> + 'a>);

/// The figures of a set, or of an item without sets, and of its tasks, one after the other, as those of one run.
#[must_use]
pub(super) fn figures(count: &CountResult, set: Option<usize>) -> Vec<SnippetResult> {
    let (name, counted) = match set.map(|number| count.sets.get(number)) {
        None => {
            let (events, uncounted) = (&count.events[..], count.uncounted.clone());
            (count.name.clone(), Counted { events, uncounted })
        }
        Some(Some(set)) => {
            let uncounted = [&count.uncounted[..], &set.uncounted].concat();
            (format!("{}, {}", count.name, set.name), Counted { events: &set.events, uncounted })
        }
        Some(None) => return Vec::new(),
    };
    let mut all: Vec<Whose> = vec![(name.clone(), Box::new(|event| Some(event.sum)))];
    for (index, task) in count.tasks.iter().enumerate() {
        let of_task = move |event: &CountedEvent| event.tasks.get(index).copied();
        all.push((format!("{name}, task {}", task.name), Box::new(of_task)));
    }
    let of = |(place, (name, value)): (usize, Whose)| {
        figures_of(count, &counted, name, &*value, place == 0)
    };
    all.into_iter().enumerate().map(of).collect()
}

/// What a set counted.
struct Counted<'a> {
    events: &'a [CountedEvent],
    uncounted: Vec<Uncounted>,
}

/// Whether a set, or an item without sets, counted everything that ran, and not only a task or a processor.
pub(super) fn is_of_all(count: &CountResult, set: Option<usize>) -> bool {
    const ALL: [&str; 2] = ["the system", "all processors"];
    let bind = match set {
        Some(number) => count.sets.get(number).map(|set| &*set.bind),
        None => count.bind.as_deref(),
    };
    bind.is_none_or(|bind| ALL.contains(&bind))
}

/// The figures of tasks of which nothing but energy and the uncore is known.
#[must_use]
pub(super) fn of_run(ran: &TasksResult) -> SnippetResult {
    let metrics = of_energy(&ran.energy).into_iter().chain(of_uncore(&ran.uncore)).collect();
    let uncounted = ran.uncounted.clone();
    result(ran.item, ran.name.clone(), metrics, uncounted, (ran.emulated, ran.tsc))
}

fn figures_of(
    count: &CountResult,
    counted: &Counted,
    name: String,
    value: &dyn Fn(&CountedEvent) -> Option<CountValue>,
    is_whole: bool,
) -> SnippetResult {
    let mut metrics = Vec::new();
    // The time that the set counted, of this task or of all: the same of each event, or the longest.
    let values = counted.events.iter().filter_map(value);
    if let Some(ticks) = values.map(|value| value.enabled).max() {
        metrics.push(metric(TSC, ticks as f64, None));
    }
    let mut uncounted = counted.uncounted.clone();
    for event in counted.events {
        let Some(value) = value(event) else { continue };
        match value.scaled {
            Some(scaled) => {
                let counting = Counting {
                    name: event.name.clone(),
                    counter: event.counter.clone(),
                    pass: event.group,
                    remarks: event.remarks.clone(),
                    ..Counting::default()
                };
                metrics.push(metric(&event.event, scaled as f64, Some(counting)));
            }
            None => uncounted.push(Uncounted {
                event: event.event.clone(),
                reason: "it had no counter during this".to_string(),
            }),
        }
    }
    match is_whole {
        true => {
            metrics.extend(of_energy(&count.energy));
            metrics.extend(of_uncore(&count.uncore));
        }
        false => {
            let energy = count.energy.iter().map(|one| (&one.event, "energy is of all that ran"));
            let uncore = count.uncore.iter();
            let uncore = uncore.map(|one| (&one.event, "the uncore is of all that ran"));
            for (event, what) in energy.chain(uncore) {
                // Of several packages once.
                if uncounted.iter().all(|one| one.event != *event) {
                    let reason = format!("{what}, and not of a task");
                    uncounted.push(Uncounted { event: event.clone(), reason });
                }
            }
        }
    }
    result(count.item, name, metrics, uncounted, (count.emulated, count.tsc))
}

/// Energy of everything that ran: the sum of all packages.
pub(super) fn of_energy(all: &[CountedEnergy]) -> Vec<Metric> {
    let mut sums: Vec<Metric> = Vec::new();
    for one in all {
        let same = sums.iter_mut().find(|other| other.event == one.event);
        if let Some(sum) = same {
            let joules = sum.value.median + one.joules;
            sum.value = metric(&one.event, joules, None).value;
            continue;
        }
        let (name, counter) = (one.event.clone(), one.register.clone());
        let counting = Counting { name, counter, ..Counting::default() };
        sums.push(Metric {
            energy: Some(EnergyReading {
                unit: one.unit,
                resolution: one.resolution,
                ticks: [0, one.ticks],
                update: one.update,
                ..EnergyReading::default()
            }),
            ..metric(&one.event, one.joules, Some(counting))
        });
    }
    sums
}

/// Events of the uncore, of everything that ran: the sum of all packages; and the ticks meanwhile.
pub(super) fn of_uncore(all: &[CountedUncore]) -> Vec<Metric> {
    let mut sums: Vec<Metric> = Vec::new();
    for (event, count) in CountedUncore::sums(all) {
        // Those of a package alone have another name than the event.
        let mut same = all.iter().filter(|one| one.event == event).peekable();
        let Some(first) = same.peek() else { continue };
        let (name, counter) = (first.name.clone(), first.counter.clone());
        let units = same.map(|one| one.units).sum();
        let counting = Counting { name, counter, units, ..Counting::default() };
        sums.push(metric(&event, count as f64, Some(counting)));
    }
    let ticks = all.first().map(|one| metric(UNCORE_TICKS, one.ticks as f64, None));
    sums.into_iter().chain(ticks).collect()
}

/// Figures of one run.
pub(super) fn result(
    item: u32,
    name: String,
    metrics: Vec<Metric>,
    uncounted: Vec<Uncounted>,
    (emulated, tsc): (bool, [u64; 2]),
) -> SnippetResult {
    SnippetResult {
        item,
        name,
        verdict: Verdict::None,
        misses: Vec::new(),
        per: 1,
        // None of its own: there is no spread.
        runs: 0,
        metrics,
        uncounted,
        planning: 0,
        controls: Vec::new(),
        restored: Vec::new(),
        unwatched: 0,
        smis: 0,
        emulated,
        tsc,
    }
}

/// A figure of one run, which began at 0.
pub(super) fn metric(event: &str, value: f64, counting: Option<Counting>) -> Metric {
    let nothing = Series { min: 0, max: 0, distinct: 1, values: None };
    let all = Series { min: value as i64, max: value as i64, ..nothing.clone() };
    Metric {
        event: event.to_string(),
        value: Aggregates { min: value, median: value, mean: value, max: value },
        deterministic: false,
        series: [nothing, all],
        counting,
        energy: None,
        retired: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn s3_a_count_has_figures_of_all_that_ran_and_of_each_task() {
        let value = |raw: u64, counted: u64| {
            let scaled = (counted > 0).then_some(raw * 100 / counted.max(1));
            CountValue { raw, scaled, counted, enabled: 100 }
        };
        let event = CountedEvent {
            event: "cycles".to_string(),
            group: 2,
            sum: value(30, 100),
            kernel: value(9, 100),
            tasks: vec![value(21, 50), value(0, 0)],
            ..CountedEvent::default()
        };
        let task = |name: &str| {
            serde_json::from_value(json!({"name": name, "entry": "0x0", "end": "exit", "turns": 1,
                "switches": 1, "time": 1, "value": "0x0", "memory_crc32": "0x0"}))
            .expect("a task")
        };
        let energy = protocol::record::CountedEnergy {
            event: "energy-pkg".to_string(),
            joules: 2.5,
            ..Default::default()
        };
        let of_package = |reader, count| CountedUncore {
            event: "reads".to_string(),
            units: 28,
            count,
            ticks: 120,
            reader,
            ..CountedUncore::default()
        };
        let count = CountResult {
            uncore: vec![of_package(0, 5), of_package(4, 6)],
            item: 3,
            name: "c".to_string(),
            tasks: vec![task("a"), task("b")],
            events: vec![event],
            energy: vec![energy],
            ..CountResult::default()
        };
        let [all, a, b] = &figures(&count, None)[..] else {
            panic!("one of all, one of each task")
        };
        let of = |result: &SnippetResult, event: &str| {
            let found = result.metrics.iter().find(|one| one.event == event)?;
            Some((found.value.median, found.counting.as_ref().map(|counting| counting.pass)))
        };
        assert_eq!((all.item, &*all.name, &*a.name), (3, "c", "c, task a"));
        assert_eq!(of(all, "cycles"), Some((30.0, Some(2))));
        assert_eq!(
            (of(all, "energy-pkg"), of(all, TSC)),
            (Some((2.5, Some(0))), Some((100.0, None)))
        );
        // Of both packages, with the units of both, and the time in which they were counted.
        let reads = all.metrics.iter().find(|one| one.event == "reads").expect("reads");
        assert_eq!((reads.value.median, reads.counting.as_ref().unwrap().units), (11.0, 56));
        assert_eq!(of(all, UNCORE_TICKS), Some((120.0, None)));
        assert_eq!(of(a, "reads"), None);
        // Scaled by the task's own time; what had no counter meanwhile has no figure, and nor has a task's energy.
        assert_eq!(of(a, "cycles"), Some((42.0, Some(2))));
        let said = |result: &SnippetResult| -> Vec<String> {
            result.uncounted.iter().map(|one| format!("{}: {}", one.event, one.reason)).collect()
        };
        let not_of_a_task = [
            "energy-pkg: energy is of all that ran, and not of a task",
            "reads: the uncore is of all that ran, and not of a task",
        ];
        assert_eq!(said(a), not_of_a_task);
        assert_eq!((of(b, "cycles"), said(b).len()), (None, 3));
    }
}
