//! Fields of PERF_METRICS and slots, counted while others are sampled.

use super::*;
use arch::pmu::driver::SLOTS;
use arch::pmu::registers::Slots;
use arch::pmu::{Rings, Selection};
use pmu_model::Mutation;

const FIELDS: [&str; 4] = [
    "PERF_METRICS.RETIRING",
    "PERF_METRICS.BAD_SPECULATION",
    "PERF_METRICS.FRONTEND_BOUND",
    "PERF_METRICS.BACKEND_BOUND",
];
/// Those that have the register.
const MODELS: [Model; 3] = [Model::IceLake, Model::SapphireRapids, Model::CougarCove];

fn with_fields(sampled: SampledEvent<'static>, turns: u64) -> Sampling<'static> {
    let fields = FIELDS.into_iter().chain(["slots"]).map(|text| event(text, 77));
    let events: Vec<_> = core::iter::once(sampled).chain(fields).collect();
    item(&events, turns)
}

/// Slots and shares of the same task, which nothing interrupts.
fn alone(model: Model, turns: u64) -> Slots {
    let mut host = Host::new(model);
    let rings = Rings::KERNEL | Rings::USER;
    let selection = Selection { rings, ..Selection::of(0, 0) };
    host.driver.program(&mut host.pmu, SLOTS, &selection).unwrap();
    host.driver.enable_metrics().unwrap();
    host.driver.clear_metrics(&mut host.pmu).unwrap();
    let gate = host.driver.gate();
    let task = item(&[], turns).workload.tasks.remove(0);
    host.load_task(&task, &gate);
    host.run_task(&task, false).unwrap();
    host.driver.slots(&mut host.pmu).unwrap()
}

#[test]
fn s3_shares_beside_samples_are_those_of_the_code_without_samples() {
    for model in MODELS {
        let slots = alone(model, 3000);
        assert!(slots.slots >= 30_000, "{model:?}: {slots:?}");
        let rate = SampledEvent { rate: Rate::PerSecond(1_000_000), ..event(RETIRED, 1) };
        // A run that finds the period counts none of them.
        for (sampled, overflows) in [(event(RETIRED, 77), 389), (rate, 30)] {
            let mut host = Host::new(model);
            // What the first leaves in the registers is none of the second's.
            run(&mut host, &with_fields(sampled.clone(), 500));
            let (result, _) = run(&mut host, &with_fields(sampled, 3000));
            assert_eq!(result.uncounted, [], "{model:?}");
            let [one, shares @ ..] = &result.events[..] else { panic!("{:?}", result.events) };
            assert_eq!((one.overflows, one.samples), (overflows, overflows), "{model:?}");
            let fields = [Some(0), Some(1), Some(2), Some(3), None];
            assert_eq!(shares.len(), fields.len(), "{model:?}");
            for (share, field) in shares.iter().zip(fields) {
                let accounts = [share.period, share.overflows, share.samples, share.rest];
                assert_eq!(accounts, [0; 4], "{model:?}: {share:?}");
                assert_eq!(share.witness, Some(slots.of(field)), "{model:?}: {share:?}");
                let counter = share.counter.as_ref().expect("what counts it");
                assert_eq!(counter.contains("PERF_METRICS"), field.is_some(), "{counter}");
            }
            let of_events = |row: &protocol::record::AddressCount| row.event == 0;
            assert!(result.addresses.iter().all(of_events), "{:?}", result.addresses);
        }
    }
}

/// The timer's place among the events is that of its samples, whatever is counted beside.
#[test]
fn s3_m8_shares_come_after_the_timer() {
    let mut host = Host::new(Model::IceLake);
    let item = Sampling { interval_ns: 5_000, ..with_fields(event(RETIRED, 1000), 10_000) };
    let (result, _) = run(&mut host, &item);
    let names: Vec<&str> = result.events.iter().map(|one| one.event.as_str()).collect();
    assert_eq!((names[1], &names[2..6], names[6]), ("timer", &FIELDS[..], "slots"));
    let timed = result.addresses.iter().filter(|row| row.event == 1).map(|row| row.count);
    assert_eq!(timed.sum::<u64>(), result.events[1].samples);
}

#[test]
fn s3_a_share_that_overflowed_is_no_figure_and_slots_are() {
    let mut host = Host::with(Model::IceLake, Mutation::MetricsOverflowEarly).unwrap();
    let (result, _) = run(&mut host, &with_fields(event(RETIRED, 77), 3000));
    let [one, slots] = &result.events[..] else { panic!("{:?}", result.events) };
    assert_eq!(one.overflows, 389);
    let lost: Vec<&str> = result.uncounted.iter().map(|one| one.event.as_str()).collect();
    assert_eq!(lost, FIELDS);
    for one in &result.uncounted {
        assert!(one.reason.contains("PERF_METRICS overflowed"), "{one:?}");
    }
    assert!(slots.witness.is_some_and(|count| count >= 30_000), "{slots:?}");
}

#[test]
fn c7_s3_shares_are_refused_with_the_reason() {
    // Without the register.
    let mut host = Host::new(Model::Skylake);
    let (result, _) = run(&mut host, &item(&[event(RETIRED, 77), event(FIELDS[0], 77)], 100));
    assert_eq!(result.events.len(), 1);
    let [refused] = &result.uncounted[..] else { panic!("{:?}", result.uncounted) };
    assert!(refused.reason.contains("no PERF_METRICS"), "{refused:?}");
    let refused = |events: &[SampledEvent<'static>], interval_ns| {
        let item = Sampling { interval_ns, ..item(events, 100) };
        match measure(&mut Host::new(Model::IceLake), 0, &item, &mut (), &mut |_| ()) {
            Err(Unmeasured::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    // Nothing to sample by; a timer needs no PMU, and these do.
    for interval_ns in [0, 5_000] {
        let said = refused(&[event(FIELDS[0], 77), event("slots", 77)], interval_ns);
        assert!(said.contains("no event to sample by"), "{said}");
    }
    // PERF_METRICS counts in the rings of slots.
    let said =
        refused(&[event(RETIRED, 77), event("PERF_METRICS.RETIRING:u", 77), event("slots", 77)], 0);
    assert!(said.contains("PERF_METRICS and slots count in the same rings"), "{said}");
    // So would slots in a group, whose counter the field takes.
    let said = refused(&[event("{r00c0,slots}", 77), event(FIELDS[0], 77)], 0);
    assert!(said.contains("slots: it would be sampled by in its group"), "{said}");
    // In a group, the others would be sampled by.
    let mut host = Host::new(Model::IceLake);
    let grouped = event("{instructions,PERF_METRICS.RETIRING}", 77);
    let (result, _) = run(&mut host, &item(&[event(RETIRED, 77), grouped], 100));
    let [refused] = &result.uncounted[..] else { panic!("{:?}", result.uncounted) };
    assert!(refused.reason.contains("an event of its own"), "{refused:?}");
    // By themselves slots are sampled by, as any event.
    let (result, _) = run(&mut host, &item(&[event("slots", 1_000)], 1_000));
    assert!(result.events[0].overflows > 0 && result.events[0].period == 1_000, "{result:?}");
}
