//! PERF_METRICS in sets: each task's shares of its own slots.

use super::super::contexts::Contexts;
use super::super::job::{CountRun, Sets, plan};
use super::super::owner::{Ask, Force, Owner, Right, Scope};
use super::jobs::{event, item};
use super::*;
use crate::snippet::measure::METRICS_OVERFLOWED;
use arch::pmu::Rings;
use pmu_model::{Delta, Occurrence, RingMask};
use protocol::job::count::{AtOverflow as OfJob, CountRequest, SetOf};

/// Slots, and what became of them: retiring, bad speculation, front end, back end.
const FIRST_LEVEL: [&str; 5] =
    ["fixed3", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];

/// Those that have the register, and the slots of their cycles.
fn with_metrics() -> impl Iterator<Item = (u64, FakeMachine, Driver, Known<'static>)> {
    machines().filter(|(.., driver, _)| driver.capabilities().metrics).map(
        |(model, bench, driver, known)| {
            let width = u64::from(model.spec().width);
            (width, bench, driver, known)
        },
    )
}

fn first_level(rings: Rings) -> Vec<Request> {
    FIRST_LEVEL.map(|text| Request::new(text).in_rings(rings)).into()
}

/// So many instructions of which all are branches that are taken, or none is.
fn code(ring: Ring, instructions: u64, taken: bool) -> Delta {
    let all = Delta::bulk(ring, instructions);
    if taken { all.with(Occurrence::JccTakenBackward, instructions) } else { all }
}

#[test]
fn s3_each_task_has_the_shares_of_its_own_slots() {
    let mut seen = 0;
    for (width, mut bench, driver, known) in with_metrics() {
        let set = together(first_level(Rings::all()), &known);
        let mut contexts = Contexts::new(Owner::new(Ok(()), 2), 2);
        let ask = Ask { scope: Scope::System, right: Right::Any, force: Force::Ask };
        let claim =
            contexts.bind(set, Run::default(), driver, ask, &mut bench).expect("counters for all");
        let mut truth = [[0; 2]; 3];
        let mut running = None;
        for turn in 1..400_u64 {
            let next = [None, Some(0), Some(1)][(turn * 7 % 3) as usize];
            match (running, next) {
                (Some(from), Some(to)) if contexts.switched_planned(from, to, &mut bench) => {}
                (from, to) => contexts.switched(from, to, &mut bench).expect("a switch"),
            }
            running = next;
            let instructions = turn * 31 % 97 + turn * turn;
            let ring = if next.is_some() { Ring::User } else { Ring::Kernel };
            // The second task branches all the time, and nobody else does.
            bench.execute(&code(ring, instructions, next == Some(1)));
            let whose = &mut truth[next.map_or(2, usize::from)];
            *whose = [whose[0] + instructions, whose[1] + 1];
        }
        let mut all = contexts.tasks(&claim, &mut bench).expect("counts").to_vec();
        all.push(contexts.kernel(&claim, &mut bench).expect("counts").clone());
        for (place, (counts, [instructions, turns])) in all.iter().zip(truth).enumerate() {
            let raw: Vec<u64> = counts.counts().iter().map(|count| count.raw).collect();
            let [slots, retiring, bad, front, back] = raw[..] else { panic!("{raw:?}") };
            assert_eq!((slots, bad), (width * instructions, 0), "{place}: {raw:?}");
            // A field is cut off to 255ths of the slots of a turn, a share of it to a slot.
            let known_to = slots / 255 + turns;
            let others = slots - instructions;
            let (of_front, of_back) = if place == 1 { (others, 0) } else { (0, others) };
            for (share, truth) in [(retiring, instructions), (front, of_front), (back, of_back)] {
                assert!(share.abs_diff(truth) <= known_to, "{place}: {share} of {truth}: {raw:?}");
            }
            assert_eq!(if place == 1 { back } else { front }, back.min(front), "{raw:?}");
        }
        // What belongs to nobody but the code that runs is no other's.
        assert!(all[0].counts()[3].raw == 0 && all[2].counts()[3].raw == 0, "{all:?}");
        let mut sum = Counts::new(contexts.session(&claim).expect("a session").set());
        let session = contexts.session(&claim).expect("a session");
        session.sample(&mut bench, &mut sum).expect("counts");
        for (index, count) in sum.counts().iter().enumerate() {
            let parts: u64 = all.iter().map(|counts| counts.counts()[index].raw).sum();
            assert_eq!(count.raw, parts, "{}", FIRST_LEVEL[index]);
        }
        assert!(!session.metrics_overflowed());
        seen += 1;
    }
    assert!(seen >= 3, "Ice Lake, Sapphire Rapids and Arrow Lake have it: {seen}");
}

#[test]
fn s3_groups_with_shares_take_turns_with_others() {
    for (width, mut bench, driver, known) in with_metrics() {
        let mut requests = first_level(Rings::USER);
        requests.extend((0..20).map(|_| instructions().in_rings(Rings::USER)));
        let set = Set::build(requests, Sharing::InTurns, &known).expect("a set");
        let groups = set.groups().len();
        assert!(groups > 1);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).expect("bound");
        session.start(&mut bench).expect("started");
        for _ in 0..4 * groups {
            bench.run_for(&mut session, Ring::User, 1000);
            session.slice(&mut bench).expect("a turn");
        }
        session.stop(&mut bench).expect("stopped");
        let mut counts = Counts::new(session.set());
        session.sample(&mut bench, &mut counts).expect("counts");
        let [slots, retiring, _, front, _] = [0, 1, 2, 3, 4].map(|n: usize| counts.counts()[n]);
        // A tick an instruction.
        assert_eq!(slots.raw, width * slots.counted);
        assert!(slots.counted >= 4000 && slots.counted < slots.enabled, "{slots:?}");
        let own = slots.counted;
        assert!(own - retiring.raw <= slots.raw / 255 + 4 && front.raw == 0, "{retiring:?}");
    }
}

#[test]
fn s3_shares_of_unknown_slots_are_marked() {
    for (_, mut bench, driver, known) in with_metrics() {
        let set = together(first_level(Rings::USER), &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).expect("bound");
        session.start(&mut bench).expect("started");
        bench.run_for(&mut session, Ring::User, 1 << 44);
        raw(&mut session, &mut bench);
        assert!(!session.metrics_overflowed());
        // Five or six times as many slots.
        bench.run_for(&mut session, Ring::User, 1 << 46);
        raw(&mut session, &mut bench);
        assert!(session.metrics_overflowed());
        session.restart(&mut bench).expect("restarted");
        bench.run_for(&mut session, Ring::User, 1000);
        raw(&mut session, &mut bench);
        assert!(!session.metrics_overflowed(), "it has begun anew");
        // Before the session hears of the interrupt, the status is gone; the slots have wrapped all the same.
        let mut left = 1_u64 << 46;
        while left > 0 {
            let until = bench.pmu.until_overflow(RingMask::BOTH).unwrap_or(u64::MAX);
            let part = left.min(until.max(1));
            bench.run(Ring::User, part);
            left -= part;
        }
        bench.pmu.write_msr(arch::pmu::numbers::GLOBAL_OVF_CTRL.0, 1 << 48).unwrap();
        raw(&mut session, &mut bench);
        assert!(session.metrics_overflowed());
    }
}

/// A job says it of the shares alone, and only if it was so.
#[test]
fn s3_a_job_marks_shares_of_unknown_slots_and_nothing_else() {
    for (_, mut bench, driver, known) in with_metrics() {
        let mut marks = |instructions: u64| {
            let job = item(vec![event("topdown-retiring:u"), event("instructions:u")], 0);
            let sets = Sets::new(&job, &known, &[0]);
            let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
            run.start(&mut bench).unwrap();
            run.switched(None, Some(0), &mut bench).unwrap();
            bench.run(Ring::User, instructions);
            run.switched(Some(0), None, &mut bench).unwrap();
            run.stop(&mut bench).unwrap();
            let part = run.finish(&mut bench).unwrap();
            // In the same group, and no share.
            assert_eq!(part.sets[0].events[1].sum.raw, instructions);
            let events = part.sets.into_iter().flat_map(|set| set.events);
            let marked = events.map(|one| one.remarks.iter().any(|it| it == METRICS_OVERFLOWED));
            marked.collect::<Vec<bool>>()
        };
        assert_eq!(marks(1000), [false, false]);
        assert_eq!(marks(1 << 46), [true, false]);
    }
}

#[test]
fn s3_what_shares_cannot_be_is_refused_by_name() {
    for (_, _, _, known) in with_metrics() {
        let said = |requests: Vec<Request>| {
            Set::build(requests, Sharing::Together, &known).expect_err("refused").to_string()
        };
        let every = |text: &str| Request { every: Some(1000), ..Request::new(text) };
        for requests in [
            vec![every("topdown-retiring")],
            vec![every("fixed3"), Request::new("topdown-retiring")],
        ] {
            let error = said(requests);
            assert!(error.contains("attribute every: PERF_METRICS is read together"), "{error}");
        }
        let apart = said(vec![
            Request::new("topdown-retiring").in_rings(Rings::USER),
            Request::new("topdown-be-bound"),
        ]);
        assert!(apart.contains("request 1 (topdown-be-bound): PERF_METRICS and slots"), "{apart}");
        // Between addresses what the kernel comes to is taken out of ring 0, and of shares it cannot be.
        let of = |events: &[&'static str]| {
            let request = |event: &&'static str| CountRequest {
                event: (*event).into(),
                preset: 0,
                every: None,
                starts: Vec::new(),
                correlate: false,
            };
            let requests: Vec<CountRequest> = events.iter().map(request).collect();
            let item = SetOf {
                requests: &requests,
                together: true,
                bind: &protocol::job::count::Bind::System,
                alone: false,
                force: false,
                schedule: Default::default(),
                at_overflow: OfJob::Same,
                gated: true,
            };
            plan(&item, &known)
        };
        let planned = of(&["topdown-retiring:u", "instructions"]);
        let reasons: Vec<&str> = planned.uncounted.iter().map(|one| &*one.reason).collect();
        assert!(reasons[..].iter().all(|why| why.contains("in ring 3 only")), "{reasons:?}");
        assert_eq!((reasons.len(), planned.events), (1, vec![1]));
        assert_eq!(of(&["topdown-retiring:u", "instructions:u"]).uncounted, []);
    }
}
