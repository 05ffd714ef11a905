use super::*;
use crate::counting::job::{CountRun, Planned, Sets, plan as plan_set, whole};
use protocol::job::LoopCounter;
use protocol::job::count::{self, Bind, CountRequest};
use protocol::job::workload::{self, Task, Workload};
use protocol::record::CountResult;

pub(super) fn task(name: &'static str, parent: Option<u16>) -> Task<'static> {
    Task {
        name: name.into(),
        init: [][..].into(),
        body: [0x90][..].into(),
        turns: 1,
        loop_counter: LoopCounter::R15,
        extended_state: false,
        ring: workload::Ring::User,
        parent,
        cpu: None,
        core: None,
        cpus: None,
        outlives: false,
        program: None,
        bits: protocol::bits::Bits::SixtyFour,
    }
}

pub(super) fn item(
    requests: Vec<CountRequest<'static>>,
    interval_ns: u64,
) -> count::Count<'static> {
    count::Count {
        nested: false,
        name: "job".into(),
        requests,
        together: false,
        at_overflow: count::AtOverflow::Same,
        passes: 0,
        interval_ns,
        limit_us: 1,
        workload: Workload {
            tasks: vec![task("a", None), task("b", None), task("child", Some(0))],
            tick_ns: 1_000_000,
            jitter: None,
        },
        bind: Bind::System,
        alone: false,
        sets: vec![],
        gate: vec![],
        energy: vec![],
        uncore: vec![],
        console: false,
    }
}

fn plan(item: &count::Count, known: &Known) -> Planned {
    plan_set(&item.all_sets()[0], known)
}

pub(super) fn event(text: &str) -> CountRequest<'static> {
    CountRequest { event: text.to_string().into(), ..CountRequest::default() }
}

/// Three tasks of known length under preemption at uneven ticks; the kernel takes some instructions at each.
fn run(
    item: &count::Count,
    bench: &mut FakeMachine,
    driver: &Driver,
    known: &Known,
) -> CountResult {
    let sets = Sets::new(item, known, &[0]);
    let mut run = CountRun::begin(item, sets.shares(0), driver, bench).unwrap();
    run.start(bench).unwrap();
    let mut left = [30_000u64, 20_000, 7_000];
    run.created(0, None);
    run.created(1, None);
    run.created(2, Some(0));
    let mut turn = 0u64;
    while left.iter().any(|&left| left > 0) {
        let task = (turn % 3) as usize;
        turn += 1;
        if left[task] == 0 {
            continue;
        }
        run.switched(None, Some(task as u16), bench).unwrap();
        let mut slice = left[task].min(300 + turn * 37 % 200);
        left[task] -= slice;
        while slice > 0 {
            let until = bench.pmu.until_overflow(pmu_model::RingMask::BOTH).unwrap_or(u64::MAX);
            let part = slice.min(until.max(1));
            bench.run(Ring::User, part);
            slice -= part;
            if std::mem::take(&mut bench.found) != 0 {
                run.interrupt(bench).unwrap();
            }
        }
        run.switched(Some(task as u16), None, bench).unwrap();
        bench.run(Ring::Kernel, 11);
        if left[task] == 0 {
            run.exited(task as u16, (task == 2).then_some(0), bench).unwrap();
        }
        run.tick(Some(task as u16), bench).unwrap();
    }
    whole(item, sets, vec![(0, run.finish(bench).unwrap())])
}

#[test]
fn i8_t9_tasks_of_known_length_are_exact_and_add_up_to_the_machine() {
    for (model, mut bench, driver, known) in machines() {
        let job = item(vec![event("r00c0:u"), event("r00c0")], 0);
        let result = run(&job, &mut bench, &driver, &known);
        // The child's are in its parent's as well.
        let tasks =
            |event: usize| result.events[event].tasks.iter().map(|v| v.raw).collect::<Vec<_>>();
        assert_eq!(tasks(0), [37_000, 20_000, 7_000], "{model:?}");
        assert_eq!(tasks(1), tasks(0), "{model:?}");
        assert_eq!(result.events[0].kernel.raw, 0);
        assert_eq!(result.events[1].kernel.raw, 11 * result.ticks, "{model:?}");
        assert_eq!(result.events[1].sum.raw, 57_000 + 11 * result.ticks, "{model:?}");
        assert_eq!((result.groups, result.switches), (1, 2 * result.ticks));
    }
}

/// 40 events on the counters that there are: what the scaled counts may be off by is what the time slices are uneven
/// by. Each alone is exact: that is the other run.
#[test]
fn i1_forty_events_are_within_a_bound_of_each_alone() {
    for (model, mut bench, driver, known) in machines() {
        let forty = vec![event("0xc0.0x00:c=1:u"); 40];
        let result = run(&item(forty, 0), &mut bench, &driver, &known);
        let counters = driver.capabilities().general.count_ones();
        assert_eq!(result.groups, 40_u32.div_ceil(counters), "{model:?}");
        let alone = run(&item(vec![event("0xc0.0x00:c=1:u")], 0), &mut bench, &driver, &known);
        let exact = alone.events[0].sum.raw;
        assert_eq!(exact, 57_000);
        for one in &result.events {
            let scaled = one.sum.scaled.unwrap();
            // The kernel's 11 instructions at each tick, which are not counted, spread as evenly as the slices.
            assert!(scaled.abs_diff(exact) * 100 < exact, "{model:?}: {scaled} of {exact}");
            assert!(one.sum.counted * u64::from(result.groups) < one.sum.enabled * 2);
        }
        let raw: u64 = result.events.iter().map(|one| one.sum.raw).sum();
        assert!(raw < exact * 41, "{model:?}");
    }
}

#[test]
fn the_series_adds_up_to_the_sum_and_rows_beyond_its_end_are_counted() {
    for (model, mut bench, driver, known) in machines() {
        // A row every three ticks.
        let job = item(vec![event("r00c0"), event("r00c0:u")], 2_500_000);
        let result = run(&job, &mut bench, &driver, &known);
        // One more for what came after the last tick.
        assert_eq!(result.intervals.len() as u64, result.ticks / 3 + 1, "{model:?}");
        for (number, one) in result.events.iter().enumerate() {
            let all: u64 = result.intervals.iter().map(|row| row.raw[number]).sum();
            assert_eq!(all, one.sum.raw, "{model:?}");
            // Each task's own: the child's are in the child's column, as it ran, and not in its parent's.
            let of = |task: usize| {
                result.intervals.iter().map(|row| row.tasks[task][number]).sum::<u64>()
            };
            assert_eq!([of(0), of(1), of(2)], [30_000, 20_000, 7_000], "{model:?}");
        }
        // In each row the kernel has what is left.
        for row in &result.intervals {
            let tasks: u64 = row.tasks.iter().map(|task| task[0]).sum();
            assert!(tasks <= row.raw[0], "{model:?}: {row:?}");
        }
        assert!(result.intervals.windows(2).all(|pair| pair[0].tsc <= pair[1].tsc));
        assert_eq!(result.dropped, 0);
    }
}

#[test]
fn m3_m6_triggers_and_overflows_of_a_job() {
    for (model, mut bench, driver, known) in machines() {
        let first = CountRequest { every: Some(10_000), starts: vec![1], ..event("r00c0:u") };
        let result = run(&item(vec![first, event("r00c0:u")], 0), &mut bench, &driver, &known);
        let sums = [0, 1].map(|n| result.events[n].sum.raw);
        assert_eq!(sums, [57_000, 47_000], "{model:?}");
        assert_eq!((result.events[0].overflows, result.events[1].overflows), (Some(5), None));
    }
}

#[test]
fn c7_i4_a_period_that_the_handler_fills_is_refused_with_the_least_and_in_ring_3_it_is_not() {
    for (model, _, _, known) in machines() {
        let request = |text, every| CountRequest { every: Some(every), ..event(text) };
        let refused = |request, at_overflow| {
            let job = count::Count { at_overflow, ..item(vec![request], 0) };
            plan(&job, &known).uncounted.into_iter().map(|one| one.reason).collect::<Vec<_>>()
        };
        let [reason] = &refused(request("r00c0", 499), count::AtOverflow::Same)[..] else {
            panic!("{model:?}")
        };
        assert!(reason.contains("every is 499") && reason.contains("the least is 500"), "{reason}");
        for (request, at_overflow) in [
            (request("r00c0", 500), count::AtOverflow::Same),
            (request("r00c0:u", 1), count::AtOverflow::Next),
            // Nothing counts after the first one.
            (request("r00c0", 1), count::AtOverflow::Stop),
        ] {
            assert_eq!(refused(request, at_overflow), [""; 0], "{model:?}");
        }
    }
}

#[test]
fn c7_m1_what_cannot_be_counted_is_left_out_with_its_reason() {
    for (model, _, driver, known) in machines() {
        let first = CountRequest { every: Some(500), starts: vec![1, 2], ..event("r00c0") };
        let job = item(vec![first, event("no_such"), event("r003c"), event("fixed9")], 0);
        let planned = plan(&job, &known);
        let left: Vec<&str> = planned.uncounted.iter().map(|one| one.event.as_str()).collect();
        assert_eq!(left, ["no_such", "fixed9"], "{model:?}");
        let set = planned.set.unwrap();
        assert_eq!(set.requests()[0].starts, [1]);
        // All at once, but too many.
        let many = driver.capabilities().general.count_ones() as usize + 1;
        let job = count::Count {
            together: true,
            ..item(
                vec![event("0xc4.0x00"); many + driver.capabilities().fixed.count_ones() as usize],
                0,
            )
        };
        let planned = plan(&job, &known);
        assert_eq!((planned.set, planned.uncounted.len()), (None, job.requests.len()), "{model:?}");
        let nothing = plan(&item(vec![event("no_such")], 0), &known);
        assert_eq!((nothing.set, nothing.uncounted.len()), (None, 1));
    }
}

/// What a job says of a request reaches the set: a correlate is counted in every pass, a preset is where the count begins.
#[test]
fn m4_c5_a_jobs_requests_keep_their_correlate_and_their_preset() {
    for (model, mut bench, driver, known) in machines() {
        let counters = driver.capabilities().general.count_ones() as usize;
        let mut requests = vec![event("0xc0.0x00:c=1:u"); 2 * counters];
        requests[1].correlate = true;
        requests[2].preset = 1_000_000;
        let result = run(&item(requests, 0), &mut bench, &driver, &known);
        assert!(result.groups > 1, "{model:?}");
        let correlate = &result.events[1].sum;
        assert_eq!((correlate.raw, correlate.counted), (57_000, correlate.enabled), "{model:?}");
        let [other, from] = [0, 2].map(|index| result.events[index].sum.raw);
        assert!(other < 57_000, "{model:?}: it took turns");
        assert!((1_000_000..1_057_000).contains(&from), "{model:?}: {from}");
        // What it counted is scaled, and what it counted from is not.
        let sum = &result.events[2].sum;
        let scaled = sum.scaled.expect("it had a counter");
        let counted = u128::from(sum.raw - 1_000_000) * u128::from(sum.enabled);
        let expected = 1_000_000 + (counted / u128::from(sum.counted)) as u64;
        assert!(scaled.abs_diff(expected) <= 1, "{model:?}: {scaled}, {expected}");
    }
}

/// At an overflow a job's set goes on, gives the next group its turn, or stops.
#[test]
fn m6_a_job_does_at_an_overflow_what_it_says() {
    for (model, mut bench, driver, known) in machines() {
        let mut sum = |at_overflow, bind: &Bind| {
            let every = CountRequest { every: Some(10_000), ..event("0xc0.0x00:c=1:u") };
            let bind = bind.clone();
            let job = count::Count { at_overflow, bind, ..item(vec![every], 0) };
            let result = run(&job, &mut bench, &driver, &known);
            (result.events[0].sum.raw, result.events[0].overflows)
        };
        let all = Bind::System;
        assert_eq!(sum(count::AtOverflow::Same, &all), (57_000, Some(5)), "{model:?}");
        // One group: the next one is the same, in another pass.
        assert_eq!(sum(count::AtOverflow::Next, &all), (57_000, Some(5)), "{model:?}");
        // It has stopped for good, although tasks that it follows get the processor again.
        for bind in [all, Bind::Tasks(vec![0])] {
            let counted = sum(count::AtOverflow::Stop, &bind);
            assert_eq!(counted, (10_000, Some(1)), "{model:?}: {bind:?}");
        }
    }
}

/// More ticks than there are rows: what there is no room for is counted.
#[test]
fn a_series_that_is_too_long_says_how_many_rows_it_lost() {
    for (model, mut bench, driver, known) in machines() {
        // 5,000 figures are 25 rows of 50 for all and for each of three tasks.
        let job = item(vec![event("0xc0.0x00:c=1:u"); 50], 1);
        let result = run(&job, &mut bench, &driver, &known);
        assert_eq!(result.intervals.len(), 25, "{model:?}");
        assert_eq!(result.dropped, result.ticks + 1 - 25, "{model:?}");
        assert!(result.dropped > 1, "{model:?}");
    }
}

/// A job's snapshot lies between start and stop, and nothing after the stop is counted.
#[test]
fn i10_a_jobs_snapshot_ends_where_counting_does() {
    for (model, mut bench, driver, known) in machines() {
        bench.clocks = true;
        let job = item(vec![event("r00c0")], 0);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        bench.run(Ring::User, 500);
        bench.to_come = 2;
        run.switched(None, Some(0), &mut bench).unwrap();
        run.stop(&mut bench).unwrap();
        bench.run(Ring::Kernel, 9_000);
        let part = run.finish(&mut bench).unwrap();
        assert_eq!(part.sets[0].events[0].sum.raw, 500, "{model:?}");
        let seen = part.snapshot.unwrap();
        assert_eq!(
            (seen.tsc, seen.aperf, seen.mperf),
            (500, Some(1_000), Some(1_500)),
            "{model:?}"
        );
        assert_eq!((seen.smis, seen.switches, seen.width), (Some(0), 1, 0), "{model:?}");
        let taken: Vec<_> = seen.interrupts.iter().map(|one| (one.vector, one.count)).collect();
        assert_eq!(taken, [(14, 2)], "{model:?}: vectors of which none came are not named");
    }
}

/// A task's number may be used again: the counts are those of the task that has it now.
#[test]
fn i8_a_task_that_is_created_again_counts_from_zero() {
    for (model, mut bench, driver, known) in machines() {
        let job = item(vec![event("r00c0:u")], 0);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        for instructions in [100, 30] {
            run.created(1, None);
            run.switched(None, Some(1), &mut bench).unwrap();
            bench.run(Ring::User, instructions);
            run.switched(Some(1), None, &mut bench).unwrap();
            run.exited(1, None, &mut bench).unwrap();
        }
        let part = run.finish(&mut bench).unwrap();
        let event = &part.sets[0].events[0];
        assert_eq!((event.tasks[1].raw, event.sum.raw), (30, 130), "{model:?}");
    }
}

/// A system management interrupt runs no handler of the kernel: their number alone shows that one came into the snapshot.
#[test]
fn i10_a_jobs_snapshot_begins_again_where_an_smi_came_in_between() {
    for (model, mut bench, driver, known) in machines() {
        bench.clocks = true;
        let job = item(vec![event("r00c0")], 0);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        // Their number is looked at three times in a try. None comes behind the first look of the second one.
        bench.smis_to_come = 4;
        let part = run.finish(&mut bench).unwrap();
        let seen = part.snapshot.unwrap();
        assert_eq!((seen.retries, seen.smis), (1, Some(4)), "{model:?}");
    }
}

#[test]
fn i8_who_runs_is_known_and_a_switch_between_two_who_are_counted_alike_is_short() {
    for (model, mut bench, driver, known) in machines() {
        let job = item(vec![event("r00c0:u")], 0);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        (0..3).for_each(|task| run.created(task, None));
        assert_eq!(run.current(), None, "{model:?}");
        run.switched(None, Some(2), &mut bench).unwrap();
        assert_eq!(run.current(), Some(2), "{model:?}");
        bench.run(Ring::User, 10);
        run.switched(Some(2), Some(1), &mut bench).unwrap();
        let has_status = driver.layout().global.is_some();
        assert_eq!(run.switched_planned(1, 2, &mut bench), has_status, "{model:?}");
        assert_eq!(run.current(), Some(if has_status { 2 } else { 1 }), "{model:?}");
    }
}

/// Behind the end the counters stand still and have no event, whoever ran last.
#[test]
fn c10_a_job_leaves_the_counters_to_others() {
    for (model, mut bench, driver, known) in machines() {
        let job =
            count::Count { bind: Bind::Tasks(vec![1]), ..item(vec![event("0xc0.0x00:c=1:u")], 0) };
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        run.created(1, None);
        run.switched(None, Some(1), &mut bench).unwrap();
        bench.run(Ring::User, 10);
        let counter = arch::pmu::Counter::General(0);
        let layout = driver.layout();
        let read = |bench: &mut FakeMachine| {
            [layout.select(0), layout.counter(counter)]
                .map(|msr| arch::pmu::Registers::rdmsr(bench, msr).unwrap())
        };
        let [select, ran] = read(&mut bench);
        assert!(select != 0 && ran == 10, "{model:?}: {select:#x}, {ran}");
        let part = run.finish(&mut bench).unwrap();
        assert_eq!(part.sets[0].events[0].sum.raw, 10, "{model:?}");
        bench.run(Ring::User, 90);
        assert_eq!(read(&mut bench), [0, 10], "{model:?}");
    }
}

/// A row of a series is made in an interrupt: what its registers refuse ends the count, and is no row of zeros.
#[test]
fn m6_a_register_that_refuses_a_row_is_told() {
    for (model, mut bench, driver, known) in machines() {
        let job = item(vec![event("0xc0.0x00:c=1:u")], 1_000_000);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        bench.gone = Some(driver.layout().counter(arch::pmu::Counter::General(0)));
        let told = run.tick(None, &mut bench).unwrap_err();
        assert!(told.to_string().contains("read"), "{model:?}: {told}");
    }
}
