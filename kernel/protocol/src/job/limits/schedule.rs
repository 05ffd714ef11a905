//! Bounds of the times at which sets are bound and released.

use super::{LimitError, range};
use crate::job::count::{Bind, Count, CountSet, When};
use crate::job::workload::{MAX_LIMIT_US, Workload};

/// Times for which a set had the counters of a processor, for a record: some 200 bytes each on the serial line.
pub const MAX_BINDINGS: usize = 256;

/// Checks the schedules of the sets of `count`, whose tasks have been checked.
pub(super) fn check(count: &Count) -> Result<(), LimitError> {
    let moments = || count.sets.iter().flat_map(|set| set.schedule.moments());
    for when in moments() {
        if let When::Microseconds(us) = when {
            range("at-us or until-us", us, 1, MAX_LIMIT_US)?;
            if count.workload.tick_ns == 0 {
                return Err(LimitError::TimeWithoutTick);
            }
        }
    }
    // Both take effect at ticks.
    let ends_too_early = |set: &CountSet| {
        let (Some(at), Some(until)) = (set.schedule.at, set.schedule.until) else { return false };
        match (at.tick(count.workload.tick_ns), until.tick(count.workload.tick_ns)) {
            (Some(at), Some(until)) => until <= at,
            _ => at == until,
        }
    };
    if count.sets.iter().any(ends_too_early) {
        return Err(LimitError::BoundForNoTime);
    }
    let scheduled = count.sets.iter().any(|set| set.schedule.is_given());
    if scheduled && count.interval_ns > 0 {
        return Err(LimitError::SeriesOfScheduled);
    }
    let by_marker = moments().any(|when| matches!(when, When::Marker(_)));
    let spread = count.sets.iter().find(|set| is_spread(&set.bind, &count.workload));
    match spread.filter(|_| by_marker) {
        Some(set) => Err(LimitError::MarkerOfSeveral(set.name.clone().into_owned())),
        None => Ok(()),
    }
}

/// Whether it needs the counters of several processors.
fn is_spread(bind: &Bind, workload: &Workload) -> bool {
    match bind {
        Bind::System => workload.cpus().len() > 1,
        Bind::AllProcessors => true,
        Bind::Processor(_) | Bind::Core(..) => false,
        Bind::Tasks(tasks) => {
            let mut cpus = tasks.iter().map(|&task| workload.cpu_of(task.into()));
            let first = cpus.next();
            cpus.any(|cpu| Some(cpu) != first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::count::{CountRequest, CountSet, Schedule};
    use crate::job::workload::Task;
    use crate::job::workload::tests::task;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn i6_c10_a_schedule_has_ticks_an_end_behind_its_beginning_and_one_processor_for_markers() {
        let set = |bind, at, until| CountSet {
            name: "s".into(),
            requests: vec![CountRequest { event: "cycles".into(), ..CountRequest::default() }],
            bind,
            schedule: Schedule { at, until, wait: false },
            ..CountSet::default()
        };
        let count = |sets: &[CountSet<'static>]| Count {
            sets: sets.to_vec(),
            workload: Workload {
                tasks: vec![task("a", None), Task { cpu: Some(1), ..task("b", None) }],
                tick_ns: 1_000_000,
                jitter: None,
            },
            ..Count::default()
        };
        let (time, marker) = (When::Microseconds(7), When::Marker(7));
        let one = Bind::Tasks(vec![1]);
        let good = [
            set(one.clone(), Some(marker), Some(time)),
            set(Bind::Processor(0), None, Some(marker)),
            set(one.clone(), Some(time), None),
        ];
        assert_eq!(check(&count(&good)), Ok(()));
        assert_eq!(check(&count(&[set(Bind::System, Some(time), None)])), Ok(()));
        let after = |us| Some(When::Microseconds(us));
        assert_eq!(check(&count(&[set(Bind::System, after(1_000), after(1_001))])), Ok(()));
        let zero = Some(When::Microseconds(0));
        let (all, both) = (Bind::AllProcessors, Bind::Tasks(vec![0, 1]));
        let waits = Schedule { wait: true, ..Schedule::default() };
        let waiting = CountSet { schedule: waits, ..set(one.clone(), None, None) };
        for (bad, part) in [
            (count(&[set(one.clone(), zero, None)]), "at-us or until-us is 0"),
            (
                count(&[set(one.clone(), Some(marker), Some(marker))]),
                "released at the tick or marker",
            ),
            // Both of the first tick, and the wrong way round.
            (count(&[set(one.clone(), after(100), after(200))]), "released at the tick or marker"),
            (
                count(&[set(one.clone(), after(5_000), after(200))]),
                "released at the tick or marker",
            ),
            (count(&[set(one.clone(), None, Some(marker)), set(all, None, None)]), "set `s`"),
            (count(&[set(Bind::System, Some(marker), None)]), "several processors"),
            (count(&[set(both, Some(marker), None)]), "several processors"),
            (Count { interval_ns: 1, ..count(&[waiting]) }, "interval-ns"),
            (
                Count {
                    workload: Workload { tick_ns: 0, ..count(&[]).workload },
                    ..count(&[set(one, None, Some(time))])
                },
                "tick-ns is 0",
            ),
        ] {
            let error = check(&bad).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn i6_a_time_is_the_first_tick_behind_it() {
        let tick = |us| When::Microseconds(us).tick(30_000);
        assert_eq!([1, 30, 31, 60, 61].map(tick), [1, 1, 2, 2, 3].map(Some));
        assert_eq!((When::Marker(3).tick(1), When::Microseconds(1).tick(0)), (None, None));
        assert_eq!(When::Microseconds(MAX_LIMIT_US).tick(1_000), Some(MAX_LIMIT_US));
    }
}
