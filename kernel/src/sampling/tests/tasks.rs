//! Several tasks, as the scheduler runs them.

use super::*;

/// The item's task with others of other lengths.
fn three_tasks(item: &mut Sampling, rings: [TaskRing; 3]) {
    let task = item.workload.tasks[0].clone();
    let lens: [&[u8]; 3] = [&[0x90; 10], &[0x90; 3], &[0x90; 11]];
    item.workload.tasks = lens
        .into_iter()
        .zip(rings)
        .map(|(body, ring)| Task { body: Cow::Borrowed(body), ring, ..task.clone() })
        .collect();
}

#[test]
fn i8_each_sample_is_of_the_task_that_ran_and_none_is_lost_at_a_switch() {
    for (model, mut host) in hosts() {
        for freeze in [sampling::Freeze::Auto, sampling::Freeze::Software] {
            // 24,000 instructions.
            let mut item = Sampling { freeze, ..item(&[event(RETIRED, 71)], 1000) };
            three_tasks(&mut item, [TaskRing::Kernel, TaskRing::User, TaskRing::Kernel]);
            let (result, _) = run(&mut host, &item);
            let one = &result.events[0];
            assert_eq!((one.overflows, one.samples, one.rest), (338, 338, 2), "{model:?}");
            assert_eq!(one.witness, Some(24_000), "{model:?} {freeze:?}");
            let of = |task| {
                let rows = result.addresses.iter().filter(move |row| row.task == task);
                let code = result.code[task as usize].function.map(|at| at.0);
                rows.map(|row| {
                    assert!((code[0]..code[1]).contains(&row.address.0), "{model:?}: {row:?}");
                    row.count
                })
                .sum::<u64>()
            };
            let by_task = [of(0), of(1), of(2)];
            assert_eq!(by_task.iter().sum::<u64>(), 338, "{model:?}");
            // 10,000, 3,000 and 11,000 instructions, 71 each.
            for (seen, expected) in by_task.into_iter().zip([140, 42, 154]) {
                assert!(seen.abs_diff(expected) < 20, "{model:?}: {by_task:?}");
            }
        }
    }
}

#[test]
fn i8_a_frequency_is_found_by_a_counting_run_of_all_tasks() {
    for (model, mut host) in hosts() {
        let rate = SampledEvent { rate: Rate::PerSecond(1_000_000), ..event("r00c0:u", 1) };
        let mut item = item(&[rate], 1000);
        three_tasks(&mut item, [TaskRing::User, TaskRing::User, TaskRing::User]);
        let (result, _) = run(&mut host, &item);
        // One instruction a nanosecond, but for the scheduler's and the handler's time, which the host does not count.
        assert_eq!((result.events[0].period, result.events[0].overflows), (1000, 24), "{model:?}");
    }
}

#[test]
fn m8_the_period_is_short_again_when_the_rush_is_over() {
    for model in [Model::Core2, Model::Skylake, Model::Zen4] {
        let mut host = Host::new(model);
        // A window is 10,000 ticks, which are as many instructions.
        host.clock_hz = 10_000_000;
        // Half of the time is spent in ring 3 at first, where the event counts, and a tenth of it afterwards.
        let ring_3 = event("r00c0:u", 100);
        let mut item = Sampling { limit_per_ms: 8, ..item(&[ring_3], 0) };
        let task = item.workload.tasks[0].clone();
        let with = |ring, turns| Task { ring, turns, ..task.clone() };
        item.workload.tasks = (0..8)
            .map(|_| with(TaskRing::User, 500))
            .chain([with(TaskRing::User, 2_500)])
            .chain((0..9).map(|_| with(TaskRing::Kernel, 2_500)))
            .collect();
        let (result, _) = run(&mut host, &item);
        let one = &result.events[0];
        assert!(result.throttled >= 2 && result.eased >= 1, "{model:?}: {result:?}");
        let left = result.throttled - result.eased;
        assert_eq!(one.last_period, (left > 0).then(|| 100 << left), "{model:?}");
        assert_eq!((one.overflows + one.throttled) * 100 + one.rest, 65_000, "{model:?}");
        assert_eq!(one.witness, Some(65_000), "{model:?}");
    }
}
