//! The suite with bounds that it measures first.

use super::*;
use crate::conformance::bounds::{Measured, RUNS};

/// Runs checks on a model; the bounds are measured first.
fn measured(
    model: Model,
    fault: Option<Mutation>,
    job: &Conformance,
) -> (Vec<Measured>, Vec<Made>, Suite) {
    let mut host = Host::new(model);
    host.pmu.set_mutation(fault);
    host.pmu.reset();
    let has = find(&mut host).unwrap();
    let found = Ownership::claim(&mut host, &has);
    let subject = Subject { pmu: Ok(&has), found: &found, tried: None, hypervisor: None };
    let (mut bounds, mut made) = (vec![], vec![]);
    let mut note = |one| bounds.push(one);
    let suite = run_measured(job, 0, &subject, &mut host, Some(&mut note), |check| {
        made.push(check.clone());
    });
    (bounds, made, suite)
}

#[test]
fn x10_an_exact_processor_measures_bounds_of_nothing_and_passes_by_them() {
    for model in Model::ALL.into_iter().filter(|&model| model != Model::None) {
        let (bounds, made, suite) = measured(model, None, &all());
        let names: Vec<&str> = bounds.iter().map(|one| one.name).collect();
        let (latency, others): (Vec<_>, Vec<_>) =
            bounds.iter().partition(|one| one.name == "latency.interrupt");
        assert!(latency.iter().all(|one| one.bound.is_none()), "{model:?}");
        for one in &others {
            assert_eq!(one.values, [0; RUNS], "{model:?} {}", one.name);
            assert_eq!(one.bound, Some(0), "{model:?} {}", one.name);
        }
        assert!(names.contains(&"skew.counters"), "{model:?}: {names:?}");
        let failed = named(&made, CheckVerdict::Fail);
        assert_eq!((suite.failed, failed), (0, vec![]), "{model:?}");
    }
}

#[test]
fn x10_what_is_measured_hides_no_fault() {
    // Those that change what is measured: counts, and when an interrupt comes.
    use Mutation::*;
    let faults = [
        InstructionsOffByOne,
        OverflowOneEarly,
        LostPmi,
        PmiDropped,
        FreezeIgnored,
        FreezeLate,
        CounterStandsStill,
        AllStandStill,
        ClocksStandStill,
        CountsTwice,
        RunsBackwards,
        StuckAtMaximum,
        LosesATenth,
        Shared,
    ];
    let mut missed = vec![];
    for &(fault, model, check) in mutations::TABLE.iter().filter(|row| faults.contains(&row.0)) {
        let job = Conformance { checks: vec![Cow::Borrowed(check)], ..all() };
        let (_, made, _) = measured(model, Some(fault), &job);
        if !named(&made, CheckVerdict::Fail).contains(&check) {
            missed.push((fault, model, check));
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn the_bound_is_twice_the_greatest_value() {
    let bound = |values| Measured::new("a.b", "x", values).bound;
    assert_eq!(bound(vec![3, 9, 1]), Some(18));
    assert_eq!(bound(vec![]), None);
}
