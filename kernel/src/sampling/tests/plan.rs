//! What a job's events become before anything is sampled.

use super::*;
use crate::sampling::parts::Every;
use protocol::record::Uncounted;

fn planned(model: Model, item: &Sampling) -> (Vec<Armed>, Vec<Uncounted>) {
    plan(&mut Host::new(model), item).expect("events to sample by")
}

#[test]
fn s1_the_event_that_ibs_samples_keeps_its_name_beside_another() {
    let (armed, left_out) =
        planned(Model::Zen4, &item(&[event("ibs_op", 272), event("r00c0", 100)], 10));
    let names: Vec<(&str, bool)> =
        armed.iter().map(|one| (one.event.as_str(), one.ibs.is_some())).collect();
    assert_eq!((names, left_out.len()), (vec![("ibs_op", true), ("r00c0", false)], 0));
}

#[test]
fn c7_s1_one_unit_samples_at_a_time() {
    let both = item(&[event("ibs_op", 272), event("ibs_fetch", 272)], 10);
    let (armed, left_out) = planned(Model::Zen4, &both);
    assert_eq!((armed.len(), armed[0].event.as_str()), (1, "ibs_op"));
    assert!(left_out[0].reason.contains("one instruction-based sample at a time"), "{left_out:?}");
}

#[test]
fn s1_random_periods_are_those_of_ibs() {
    let random = |model, text, randomise| {
        let item = Sampling { randomise, ..item(&[event(text, 272)], 10) };
        plan(&mut Host::new(model), &item)
            .map(|(armed, _)| armed[0].ibs.map(|one| one.random.is_some()))
    };
    assert_eq!(random(Model::Zen4, "ibs_op", true).unwrap(), Some(true));
    assert_eq!(random(Model::Zen4, "ibs_op", false).unwrap(), Some(false));
    let Err(Unmeasured::Refused(text)) = random(Model::Zen4, "r00c0", true) else {
        panic!("a counter has no random periods")
    };
    assert!(text.contains("randomise is for instruction-based sampling"), "{text}");
}

/// The counter that another one needs beside it counts for that alone.
#[test]
fn s1_a_witness_is_on_a_counter_that_nothing_else_takes() {
    let both = [event("mem-loads:counter=1", 64), event("r00c4:counter=2", 64)];
    let (armed, _) = planned(Model::GoldenCove, &item(&both, 10));
    let (auxiliary, _) = armed[0].auxiliary.as_ref().expect("an auxiliary event");
    let (witness, _) = armed[1].witness.as_ref().expect("a witness");
    assert!(witness != auxiliary && armed.iter().all(|one| one.counter != *witness), "{armed:?}");
}

/// Under a scheduler an interval is a number of ticks of the TSC, and is told as what it came to: both rounded.
#[test]
fn m11_an_interval_is_rounded_to_ticks_and_back() {
    let of = |interval_ns| {
        let item = Sampling { interval_ns, ..item(&[], 10) };
        let every = Every::of(&item, true, [700_000_000, 1]).unwrap().expect("an interval");
        (every.ticks, every.ns)
    };
    assert_eq!([3, 4, 1000].map(of), [(2, 3), (3, 4), (700, 1000)]);
}

/// HSD140 and the like: from 128 instructions on alone. What the counter is set to is one less for records.
#[test]
fn c5_a_period_of_a_rate_keeps_what_an_erratum_asks_for() {
    let rate = SampledEvent { rate: Rate::PerSecond(20_000_000), ..event("r01c0:counter=1", 1) };
    let item = Sampling { precise: true, ..item(&[rate], 1000) };
    let mut host = Host::new(Model::Haswell);
    let of = |host: &mut Host| plan(host, &item).expect("a period").0[0].period;
    assert_eq!(of(&mut host), 64, "the emulated PMU takes any");
    host.real = true;
    assert_eq!(of(&mut host), 129);
}
