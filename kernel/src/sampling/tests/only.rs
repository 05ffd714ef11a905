//! Events of some instructions only, estimated by their samples.

use super::*;
use crate::sampling::only;
use arch::pmu::Selection;
use protocol::job::exact::Filter;
use protocol::record::{Qualified, SampledCount};

/// Three of the ten instructions of each turn.
fn some() -> Filter<'static> {
    Filter { instructions: "3..6".parse().ok(), ..Filter::default() }
}

fn estimated(text: &'static str, period: u64, turns: u64) -> Sampling<'static> {
    let item = item(&[event(text, period)], turns);
    Sampling { precise: true, keep: Keep::Samples, capacity: 2000, only: some(), ..item }
}

fn passed(chunks: &[Samples]) -> u64 {
    let all = chunks.iter().flat_map(Samples::iter);
    all.filter(|(address, ..)| (AT + 3..AT + 6).contains(address)).count() as u64
}

#[test]
fn t8_the_share_of_samples_that_pass_is_the_estimate() {
    let (result, chunks) =
        run(&mut Host::new(Model::Skylake), &estimated("r01c0:u:k:counter=1", 77, 9000));
    let one = &result.events[0];
    let counted = one.overflows * 77 + one.rest;
    assert_eq!((one.samples, Some(counted)), (1168, one.witness));
    let passed = passed(&chunks);
    assert!((340..=360).contains(&passed), "{passed}");
    let expected = Qualified::new(["only=bytes 0x3..0x6", "PEBS"], counted, 1168, passed);
    assert_eq!(one.qualified, expected);
    let composite = |one: &SampledCount| one.remarks.iter().any(|it| it.contains("a factor in"));
    assert!(composite(one), "77 is 7 times 11: {one:?}");
    let (result, _) =
        run(&mut Host::new(Model::Skylake), &estimated("r01c0:u:k:counter=1", 79, 900));
    assert!(!composite(&result.events[0]), "{result:?}");
}

/// Those that are missing may have been of any instruction.
#[test]
fn t8_there_is_no_estimate_where_samples_are_missing() {
    let item = Sampling { capacity: 1000, ..estimated("r01c0:u:k:counter=1", 77, 9000) };
    let (result, _) = run(&mut Host::new(Model::Skylake), &item);
    let one = &result.events[0];
    assert_eq!((one.dropped, &one.qualified), (168, &None));
    let said = "only=bytes 0x3..0x6: no estimate, because 168 samples are missing";
    assert!(one.remarks.iter().any(|remark| remark == said), "{one:?}");
}

/// Also those that have no address.
#[test]
fn t8_there_is_no_estimate_where_ibs_lost_samples() {
    let mut item = estimated("r00c1", 272, 2000);
    item.workload.tasks[0].ring = TaskRing::User;
    let mut host = Host::new(Model::Zen4);
    host.invalid = 3;
    let (result, _) = run(&mut host, &item);
    let one = &result.events[0];
    assert_eq!((one.lost, one.dropped, &one.qualified), (3, 0, &None));
    assert!(one.remarks.iter().any(|it| it.contains("because 3 samples are missing")), "{one:?}");
}

#[test]
fn t8_each_event_is_estimated_by_its_own_samples() {
    let both = [event("r01c0:u:k:counter=1", 79), event("r81d0:counter=2", 71)];
    let mut item = Sampling { events: both.to_vec(), ..estimated("r00c0", 79, 2000) };
    item.workload.tasks[0].body = Cow::Borrowed(&[LOAD, 0x90, 0x90, LOAD, 0x90, 0x90]);
    let (result, _) = run(&mut Host::new(Model::Skylake), &item);
    let judged: Vec<u64> =
        result.events.iter().map(|one| one.qualified.as_ref().unwrap().samples).collect();
    assert_eq!(judged, [12_000 / 79, 4000 / 71], "{result:?}");
}

/// IBS samples every operation of ring 3 with the same chance, and a counter beside says how many there were.
#[test]
fn t8_ibs_estimates_what_ring_3_did() {
    let mut item = estimated("r00c1", 272, 20_000);
    item.workload.tasks[0].ring = TaskRing::User;
    for randomise in [false, true] {
        let item = Sampling { randomise, ..item.clone() };
        let (result, chunks) = run(&mut Host::new(Model::Zen4), &item);
        let one = &result.events[0];
        let counted = one.witness.expect("a counter beside");
        assert!(counted == 200_000 && one.samples > 600, "{one:?}");
        let passed = passed(&chunks);
        let expected = Qualified::new(["only=bytes 0x3..0x6", "IBS"], counted, one.samples, passed);
        assert_eq!(one.qualified, expected);
        let in_step = one.remarks.iter().any(|it| it.contains("give randomise = true"));
        assert_eq!(in_step, !randomise, "{one:?}");
    }
    // A counter beside counts there alone as well.
    let rings =
        |item: &Sampling| plan(&mut Host::new(Model::Zen4), item).unwrap().0[0].selection.rings;
    assert_eq!(rings(&item), arch::pmu::Rings::USER);
    assert_ne!(rings(&Sampling { only: Filter::default(), ..item }), arch::pmu::Rings::USER);
}

#[test]
fn c7_t8_what_cannot_be_estimated_is_refused_with_the_nearest() {
    let refused = |model, item: &Sampling| match plan(&mut Host::new(model), item) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{model:?}: {other:?}"),
    };
    let zen4 = |text, ring| {
        let mut item = estimated(text, 272, 10);
        item.workload.tasks[0].ring = ring;
        refused(Model::Zen4, &item)
    };
    let in_ring_0 = zen4("r00c1", TaskRing::Kernel);
    assert!(in_ring_0.contains("give [[sample.task]] with ring = 3"), "{in_ring_0}");
    for text in ["r0076", "ibs_fetch"] {
        let cycles = zen4(text, TaskRing::User);
        assert!(cycles.contains("IBS estimates operations"), "{text}: {cycles}");
    }
    let imprecise = Sampling { precise: false, ..estimated("r00c0", 77, 10) };
    let said = refused(Model::Skylake, &imprecise);
    assert!(said.contains("its samples are not precise"), "{said}");
    // What is refused for another reason is told the nearest as well, on Intel.
    let unknown = refused(Model::Skylake, &estimated("no-such", 77, 10));
    assert!(unknown.contains("only needs a precise event"), "{unknown}");
    let unknown = Sampling { only: Filter::default(), ..estimated("no-such", 77, 10) };
    assert!(!refused(Model::Skylake, &unknown).contains("only needs"), "it asks for all");
    let unknown = refused(Model::Zen4, &estimated("no-such", 77, 10));
    assert!(!unknown.contains("only needs"), "{unknown}");
}

/// By PEBS: the record has to name the instruction itself, and its data where that is asked for.
#[test]
fn c7_t8_records_have_to_tell_what_is_asked_for() {
    let by = |model, selection: Selection, only: Filter<'static>| {
        let has = Host::new(model).driver.capabilities().clone();
        let item = Sampling { only, ..estimated("r00c0", 77, 10) };
        only::check(&Selection { precise: true, ..selection }, None, &has, &item)
    };
    let check = |model, event, umask, only| by(model, Selection::of(event, umask), only);
    let data = || Filter { data: "r14:0..8".parse().ok(), ..Filter::default() };
    assert_eq!(check(Model::Skylake, 0xc0, 1, some()), Ok(()));
    let before = check(Model::Nehalem, 0xc0, 1, some()).unwrap_err();
    assert!(before.contains("came with Haswell (format 2)"), "{before}");
    let extra = Some((arch::pmu::numbers::LOAD_LATENCY, 3));
    let latency = Selection { extra, ..Selection::of(0xcd, 1) };
    let latency = by(Model::Skylake, latency, some()).unwrap_err();
    assert!(latency.contains("load latency looks at some of the loads"), "{latency}");
    for event in [0xd0, 0xd3] {
        assert_eq!(check(Model::Skylake, event, 0x81, data()), Ok(()), "{event:#x}");
    }
    assert_eq!(check(Model::Skylake, 0xc0, 1, Filter::default()), Ok(()));
    for event in [0xcf, 0xd4] {
        let none = check(Model::Skylake, event, 1, data()).unwrap_err();
        assert!(none.contains("its records have no data address"), "{event:#x}: {none}");
    }
}
