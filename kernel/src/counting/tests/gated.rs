//! A job that counts between two addresses of one task: only that task's instructions between them.

use super::jobs::{event, item};
use super::*;
use crate::counting::gate::IN_RING_0;
use crate::counting::job::{CountRun, Sets, plan, whole};
use protocol::count::{Count, GateAct, GatePoint};
use protocol::record::CountGate;

/// Counting starts 0x10 bytes into the third task and stops 0x20 bytes into it.
fn gated(events: &[&str]) -> Count<'static> {
    let point = |offset, act| GatePoint { task: 2, offset, act };
    let gate = vec![point(0x10, GateAct::Start), point(0x20, GateAct::Stop)];
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
        let (task, registers) = run.place(&[0x1000, 0x2000, 0x3000]).unwrap().unwrap();
        assert_eq!((task, registers.addresses()), (2, [0x3010, 0x3020, 0, 0]), "{model:?}");
        assert_eq!(run.place(&[0x1000]), Ok(None), "{model:?}: its task is not in memory");
        let bench = &mut bench;
        run.start(bench).unwrap();
        bench.run(Ring::User, 9);
        run.switched(None, Some(2), bench).unwrap();
        bench.run(Ring::User, 5);
        assert!(run.trapped(START, bench).unwrap(), "{model:?}");
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
        assert!(!run.trapped(0, bench).unwrap(), "{model:?}: another's exception");
        assert!(run.trapped(STOP, bench).unwrap(), "{model:?}");
        bench.run(Ring::User, 8);
        // It did not count when it lost the processor: it does not either when it has it back.
        run.switched(Some(2), Some(0), bench).unwrap();
        run.switched(Some(0), Some(2), bench).unwrap();
        bench.run(Ring::User, 3);
        assert!(run.trapped(START, bench).unwrap(), "{model:?}");
        bench.run(Ring::User, 7);
        run.stop(bench).unwrap();
        bench.run(Ring::User, 1_000);
        let result = whole(&job, sets, vec![(0, run.finish(bench).unwrap())]);
        assert_eq!(result.events[0].sum.raw, 40 + 30 + 7, "{model:?}");
        assert_eq!(result.gate, Some(CountGate { task: 2, starts: 2, stops: 1 }), "{model:?}");
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
        run.place(&[0, 0, 0x3000]).unwrap();
        run.start(&mut bench).unwrap();
        run.switched(None, Some(2), &mut bench).unwrap();
        assert!(run.trapped(START, &mut bench).unwrap());
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

#[test]
fn m14_between_addresses_the_request_that_counts_ring_0_is_left_out() {
    for (model, _, _, known) in machines() {
        let job = gated(&["r00c0:u", "r003c:u", "r00c0"]);
        let planned = plan(&job.all_sets()[0], &known);
        let left: Vec<_> =
            planned.uncounted.iter().map(|one| (&one.event[..], &one.reason[..])).collect();
        assert_eq!(left, [("r00c0", IN_RING_0)], "{model:?}");
        assert_eq!(planned.set.unwrap().requests().len(), 2, "{model:?}");
        // Without a gate it is counted.
        let job = Count { gate: vec![], ..job };
        assert!(plan(&job.all_sets()[0], &known).uncounted.is_empty(), "{model:?}");
    }
}
