//! What does not go with a task to another processor.

use super::LimitError;
use crate::job::affinity::refuse_moving;
use crate::job::count::Count;
use crate::job::sampling::Sampling;

/// Refuses what a count cannot have of tasks that move.
pub(super) fn check_count(count: &Count) -> Result<(), LimitError> {
    let sets = count.all_sets();
    let mut requests = sets.iter().flat_map(|set| set.requests);
    let refused = if requests.any(|one| one.every.is_some() || one.preset != 0) {
        "cpus is given, but every and preset are of one processor's counter, which does not move with the task"
    } else if count.passes > 0 {
        "cpus is given, but passes ends counting on one processor by itself, and the task goes on elsewhere"
    } else if count.interval_ns > 0 {
        "cpus is given, but rows of the series (interval-ns) end at the ticks of one processor"
    } else if count.console {
        "cpus is given, but the console is one processor's"
    } else if count.sets.iter().any(|set| set.schedule.is_given()) {
        "cpus is given, but sets with at, until or wait come and go at the ticks and markers of one processor"
    } else if !count.gate.is_empty() {
        "cpus is given, but the debug registers of start-at and stop-at are one processor's"
    } else {
        return Ok(());
    };
    refuse_moving(&count.workload, refused)
}

/// Tasks that are sampled stay where they are.
pub(super) fn check_sampling(sampling: &Sampling) -> Result<(), LimitError> {
    let why = "cpus is given, but the log and the counters' periods of a sample are one processor's: give cpu";
    refuse_moving(&sampling.workload, why)
}

#[cfg(test)]
mod tests {
    use crate::job::affinity::Affinity;
    use crate::job::count::{Count, CountRequest, CountSet, Schedule};
    use crate::job::limits::check_count;
    use crate::job::workload::tests::task;
    use crate::job::workload::{Task, Workload};
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn i8_c3_what_does_not_move_with_a_task_is_refused_by_its_name() {
        let request = |every, preset| CountRequest {
            event: "instructions:u".into(),
            every,
            preset,
            starts: vec![],
            correlate: false,
        };
        let tasks = vec![Task { cpus: Some(Affinity::Any), ..task("goes", None) }];
        let good = Count {
            name: "c".into(),
            requests: vec![request(None, 0)],
            limit_us: 1,
            workload: Workload { tasks, tick_ns: 1_000_000, jitter: None },
            ..Count::default()
        };
        assert_eq!(check_count(&good), Ok(()));
        for (bad, part) in [
            (Count { requests: vec![request(Some(1), 0)], ..good.clone() }, "every and preset"),
            (Count { requests: vec![request(None, 1)], ..good.clone() }, "every and preset"),
            (Count { passes: 1, ..good.clone() }, "passes ends counting"),
            (Count { interval_ns: 1, ..good.clone() }, "interval-ns"),
            (Count { console: true, ..good.clone() }, "the console"),
            (
                Count {
                    requests: vec![],
                    sets: vec![CountSet {
                        name: "s".into(),
                        requests: vec![request(None, 0)],
                        schedule: Schedule { wait: true, ..Schedule::default() },
                        ..CountSet::default()
                    }],
                    ..good.clone()
                },
                "at, until or wait",
            ),
        ] {
            let error = check_count(&bad).unwrap_err().to_string();
            assert!(error.starts_with("task 0 (`goes`): cpus is given, but"), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }
}
