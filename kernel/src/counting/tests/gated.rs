//! Jobs that count between addresses of tasks: only their instructions between them.

use super::jobs::{event, item};
use super::*;
use crate::counting::gate::{BESIDE_RING_0, Begin, IN_RING_0};
use crate::counting::job::{CountRun, Sets, plan, sees_the_kernel, whole};
use arch::pmu::Deferred;
use protocol::job::count::Count;
use protocol::job::gate::{GateAct, GateAt, GateOn, GatePoint};
use protocol::record::CountGate;

fn point(task: u16, offset: u64, act: GateAct) -> GatePoint {
    GatePoint { task, at: GateAt::Code(offset), on: GateOn::Execute, act }
}

/// Tasks that begin at these addresses.
fn begins(codes: &[u64]) -> Vec<Begin> {
    codes.iter().map(|&code| Begin { code, registers: [0, 0x100, 0x200, 0x300, 0x400] }).collect()
}

/// Counting starts 0x10 bytes into the third task and stops 0x20 bytes into it.
fn gated(events: &[&str]) -> Count<'static> {
    let gate = vec![point(2, 0x10, GateAct::Start), point(2, 0x20, GateAct::Stop)];
    Count { gate, ..item(events.iter().map(|text| event(text)).collect(), 0) }
}

const START: u64 = 1;
const STOP: u64 = 2;

#[test]
fn m14_a_gate_of_a_job_counts_its_task_between_its_addresses_and_nobody_else() {
    for (model, mut bench, driver, known) in machines() {
        let job = gated(&["r00c0:u"]);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        let placed = run.place(&begins(&[0x1000, 0x2000, 0x3000])).unwrap();
        let [(task, registers)] = placed[..] else { panic!("{placed:?}") };
        assert_eq!((task, registers.addresses()), (2, [0x3010, 0x3020, 0, 0]), "{model:?}");
        assert_eq!(
            run.place(&begins(&[0x1000])),
            Ok(vec![]),
            "{model:?}: its task is not in memory"
        );
        let bench = &mut bench;
        run.start(bench).unwrap();
        bench.run(Ring::User, 9);
        run.switched(None, Some(2), bench).unwrap();
        bench.run(Ring::User, 5);
        assert!(run.trapped(START, bench).unwrap() == Some(true), "{model:?}");
        bench.run(Ring::User, 40);
        run.switched(Some(2), Some(1), bench).unwrap();
        bench.run(Ring::User, 70);
        run.switched(Some(1), None, bench).unwrap();
        run.tick(Some(1), bench).unwrap();
        bench.run(Ring::User, 600);
        run.switched(None, Some(0), bench).unwrap();
        bench.run(Ring::User, 90);
        run.switched(Some(0), Some(2), bench).unwrap();
        bench.run(Ring::User, 30);
        assert_eq!(run.trapped(0, bench).unwrap(), None, "{model:?}: another's exception");
        assert!(run.trapped(STOP, bench).unwrap() == Some(true), "{model:?}");
        bench.run(Ring::User, 8);
        // It did not count when it lost the processor: it does not either when it has it back.
        run.switched(Some(2), Some(0), bench).unwrap();
        run.switched(Some(0), Some(2), bench).unwrap();
        bench.run(Ring::User, 3);
        assert!(run.trapped(START, bench).unwrap() == Some(true), "{model:?}");
        bench.run(Ring::User, 7);
        run.stop(bench).unwrap();
        bench.run(Ring::User, 1_000);
        let result = whole(&job, sets, vec![(0, run.finish(bench).unwrap())]);
        assert_eq!(result.events[0].sum.raw, 40 + 30 + 7, "{model:?}");
        let gate = CountGate { task: 2, starts: 2, stops: 1, taken: 3, deepest: None };
        assert_eq!(result.gates, [gate], "{model:?}");
    }
}

/// An overflow that ends counting ends it for the addresses as well.
#[test]
fn m6_m14_nothing_starts_again_after_an_overflow_that_ends_counting() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = gated(&["0xc0.0x00:c=1:u"]);
        job.requests[0].every = Some(100);
        job.at_overflow = protocol::job::count::AtOverflow::Stop;
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.place(&begins(&[0, 0, 0x3000])).unwrap();
        let bench = &mut bench;
        run.start(bench).unwrap();
        run.switched(None, Some(2), bench).unwrap();
        assert_eq!(run.trapped(START, bench).unwrap(), Some(true));
        bench.run(Ring::User, 100);
        assert_ne!(std::mem::take(&mut bench.found), 0, "{model:?}: it has overflowed");
        run.interrupt(bench).unwrap();
        bench.run(Ring::User, 50);
        // The task loses the processor and gets it back, and meets both addresses again.
        run.switched(Some(2), Some(0), bench).unwrap();
        run.switched(Some(0), Some(2), bench).unwrap();
        bench.run(Ring::User, 50);
        for dr6 in [STOP, START] {
            assert_eq!(run.trapped(dr6, bench).unwrap(), Some(true));
        }
        bench.run(Ring::User, 50);
        run.stop(bench).unwrap();
        let result = whole(&job, sets, vec![(0, run.finish(bench).unwrap())]);
        let [event] = &result.events[..] else { panic!("{model:?}") };
        assert_eq!((event.sum.raw, event.overflows), (100, Some(1)), "{model:?}");
    }
}

/// Requests of a gated job take turns in the time that counts.
#[test]
fn m14_i1_requests_between_addresses_take_turns_at_ticks() {
    for (model, mut bench, driver, known) in machines() {
        let counters = driver.capabilities().general.count_ones() as usize;
        let job = gated(&vec!["0xc0.0x00:c=1:u"; counters + 1]);
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.place(&begins(&[0, 0, 0x3000])).unwrap();
        run.start(&mut bench).unwrap();
        run.switched(None, Some(2), &mut bench).unwrap();
        assert_eq!(run.trapped(START, &mut bench).unwrap(), Some(true));
        for _ in 0..10 {
            bench.run(Ring::User, 100);
            run.switched(Some(2), None, &mut bench).unwrap();
            run.tick(Some(2), &mut bench).unwrap();
            run.switched(None, Some(2), &mut bench).unwrap();
        }
        let part = run.finish(&mut bench).unwrap();
        for one in &part.sets[0].events {
            assert_eq!((one.sum.counted, one.sum.enabled), (500, 1_000), "{model:?}");
            assert_eq!((one.sum.raw, one.sum.scaled), (500, Some(1_000)), "{model:?}");
        }
        assert_eq!((part.sets[0].passes, part.ticks, part.switches), (5, 10, 21), "{model:?}");
    }
}

/// Two tasks with gates of their own, data among them, and one without: what each counts does not depend on who runs in between.
#[test]
fn m14_gates_of_several_tasks_count_each_its_own() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = gated(&["r00c0:u"]);
        let data = |task, register, offset, on, act| GatePoint {
            task,
            at: GateAt::Register(register, offset),
            on,
            act,
        };
        job.nested = true;
        job.gate.push(data(0, 4, -8, GateOn::Write(8), GateAct::Start));
        job.gate.push(data(0, 1, 2, GateOn::Access(2), GateAct::Stop));
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        let placed = run.place(&begins(&[0x1000, 0x2000, 0x3000])).unwrap();
        let addresses: Vec<_> = placed.iter().map(|(task, own)| (*task, own.addresses())).collect();
        assert_eq!(addresses, [(2, [0x3010, 0x3020, 0, 0]), (0, [0x3f8, 0x102, 0, 0])]);
        assert_eq!(placed[1].1.dr7(), 0x400 | 0b101 | 0b1001 << 16 | 0b0111 << 20);
        let bench = &mut bench;
        run.start(bench).unwrap();
        let mut current = None;
        let (mut counts, mut expected) = ([0u64; 3], [0; 3]);
        // By turns; each task starts twice, and stops twice.
        for (turn, task) in [2, 0, 1, 2, 1, 0, 2, 0, 2, 0, 1].into_iter().enumerate() {
            run.switched(current, Some(task), bench).unwrap();
            current = Some(task);
            let own = usize::from(task);
            if task != 1 {
                let dr6 = if counts[own] < 2 { START } else { STOP };
                let before = Some(task == 2);
                assert_eq!(run.trapped(dr6, bench).unwrap(), before, "{model:?}");
                counts[own] += 1;
            }
            let instructions = 10 + turn as u64;
            bench.run(Ring::User, instructions);
            expected[own] += if (1..4).contains(&counts[own]) { instructions } else { 0 };
        }
        run.switched(current, None, bench).unwrap();
        run.stop(bench).unwrap();
        let result = whole(&job, sets, vec![(0, run.finish(bench).unwrap())]);
        let tasks: Vec<u64> = result.events[0].tasks.iter().map(|value| value.raw).collect();
        assert_eq!(tasks, expected, "{model:?}");
        assert_eq!(result.events[0].sum.raw, expected.iter().sum::<u64>(), "{model:?}");
        let gate = |task| CountGate { task, starts: 1, stops: 1, taken: 4, deepest: Some(2) };
        assert_eq!(result.gates, [gate(2), gate(0)], "{model:?}");
    }
}

/// Requests of ring 0 take turns as well, and each has its own part of the kernel taken out.
#[test]
fn m14_i1_in_ring_0_requests_between_addresses_take_turns_without_the_kernel() {
    for (model, mut bench, driver, known) in machines() {
        let counters = driver.capabilities().general.count_ones() as usize;
        let job = gated(&vec!["0xc0.0x00:c=1"; counters + 1]);
        let sets = Sets::new(&job, &known, &[0]);
        bench.deferred = Some(Deferred::new(&driver));
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.place(&begins(&[0, 0, 0x3000])).unwrap();
        run.start(&mut bench).unwrap();
        run.switched(None, Some(2), &mut bench).unwrap();
        bench.leave();
        bench.run(Ring::Kernel, 7);
        bench.enter();
        assert_eq!(run.trapped(START, &mut bench).unwrap(), Some(true));
        bench.leave();
        for turn in 0..10 {
            bench.run(Ring::Kernel, 100);
            bench.enter();
            if turn % 3 == 0 {
                assert_eq!(run.trapped(START, &mut bench).unwrap(), Some(true));
                bench.leave();
                bench.enter();
            }
            run.switched(Some(2), None, &mut bench).unwrap();
            run.tick(Some(2), &mut bench).unwrap();
            run.switched(None, Some(2), &mut bench).unwrap();
            bench.leave();
        }
        bench.enter();
        let part = run.finish(&mut bench).unwrap();
        for one in &part.sets[0].events {
            assert_eq!((one.sum.raw, one.taken_out), (500, Some(49)), "{model:?}");
            assert_eq!(one.tasks[2].raw, 500, "{model:?}");
        }
        assert_eq!(part.sets[0].passes, 5, "{model:?}");
    }
}

#[test]
fn m14_between_addresses_a_period_is_counted_in_ring_3_alone() {
    for (model, _, _, known) in machines() {
        let mut job = gated(&["r00c0:u", "r00c0", "r00c0"]);
        job.requests[0].every = Some(1000);
        job.requests[1].every = Some(1000);
        let planned = plan(&job.all_sets()[0], &known);
        let left: Vec<_> =
            planned.uncounted.iter().map(|one| (&one.event[..], &one.reason[..])).collect();
        // Which of them a model has no counters for is another matter.
        assert_eq!(left[0], ("r00c0", IN_RING_0), "{model:?}");
        assert!(left.iter().skip(1).all(|(_, reason)| *reason != IN_RING_0), "{model:?}");
        // Beside one that counts ring 0 it is not counted either.
        assert_eq!(left[1], ("r00c0:u", BESIDE_RING_0), "{model:?}");
        let mut job = gated(&["r00c0:u", "r00c0:u"]);
        job.requests[0].every = Some(1000);
        let planned = plan(&job.all_sets()[0], &known);
        assert!(planned.uncounted.iter().all(|one| one.reason != BESIDE_RING_0), "{model:?}");
        // Without a gate it is counted.
        let mut job = Count { gate: vec![], ..gated(&["r00c0:u", "r00c0", "r00c0"]) };
        job.requests[0].every = Some(1000);
        let planned = plan(&job.all_sets()[0], &known);
        assert!(planned.uncounted.iter().all(|one| one.reason != IN_RING_0), "{model:?}");
    }
}

/// The kernel's way is measured beforehand, and may be shorter once: of an event that had less than is taken out nothing is left,
/// and not a number below its preset.
#[test]
fn m14_no_count_between_addresses_is_below_where_it_began() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = gated(&["0xc0.0x00:c=1"]);
        job.requests[0].preset = 1_000;
        let sets = Sets::new(&job, &known, &[0]);
        bench.deferred = Some(Deferred::new(&driver));
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.place(&begins(&[0, 0, 0x3000])).unwrap();
        run.start(&mut bench).unwrap();
        run.switched(None, Some(2), &mut bench).unwrap();
        assert_eq!(run.trapped(START, &mut bench).unwrap(), Some(true));
        bench.leave();
        bench.enter_unseen();
        run.switched(Some(2), None, &mut bench).unwrap();
        let event = run.finish(&mut bench).unwrap().sets.remove(0).events.remove(0);
        assert_eq!(event.taken_out, Some(49), "{model:?}: more than the 20 that it saw");
        assert_eq!((event.sum.raw, event.tasks[2].raw), (1_000, 0), "{model:?}");
    }
}

/// What is counted in ring 3 alone has nothing of the kernel in it, and neither has what no address starts.
#[test]
fn m14_the_kernels_way_is_taken_out_of_ring_0_between_addresses() {
    for (model, _, _, known) in machines() {
        let set = |text: &str| together(vec![Request::new(text)], &known);
        let (gated, plain) = (gated(&["r00c0"]), item(vec![event("r00c0")], 0));
        for (job, text, expected) in [
            (&gated, "r00c0", true),
            (&gated, "r00c0:u", false),
            (&plain, "r00c0", false),
            (&plain, "r00c0:u", false),
        ] {
            assert_eq!(sees_the_kernel(job, &set(text)), expected, "{model:?}: {text}");
        }
    }
}
