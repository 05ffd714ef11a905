//! Counters whose values go into the records of others.

use super::*;
use crate::sampling::groups;
use arch::pmu::Counter;
use arch::pmu::find;
use arch::pmu::pebs::{DataConfig, Groups};
use pmu_model::{Delta, Mutation, Pmu as Registers_, Ring, Timing};

/// The counters of which records are to have the values, as bits.
fn planned(host: &mut Host, item: &Sampling) -> Result<u16, String> {
    let (events, _) = plan(host, item).expect("an event to sample by");
    let besides = groups::plan(&host.pmu()?, item, &events)?;
    let mut config = DataConfig::BASIC;
    besides.add(&mut config);
    Ok(config.general)
}

fn beside(text: &'static str, counters: &[&'static str]) -> Sampling<'static> {
    let counters = counters.iter().copied().map(Cow::Borrowed).collect();
    Sampling { precise: true, keep: Keep::Samples, counters, ..item(&[event(text, 77)], 10) }
}

/// The general-purpose counters that sampling itself takes, as bits: also one that counts the same without interrupts.
fn taken(host: &mut Host, item: &Sampling) -> u32 {
    let (events, _) = plan(host, item).expect("an event to sample by");
    let all = events.iter().flat_map(|one| {
        let beside = one.witness.as_ref().map(|(counter, _)| counter.bit());
        [one.counter.bit(), beside.unwrap_or(0)]
    });
    all.fold(0, |bits, bit| bits | bit) as u32
}

const SAMPLED: &str = "r00c0:counter=9";

#[test]
fn s1_records_have_every_counter_that_samples_nothing_itself() {
    let mut host = Host::new(Model::ArrowLake);
    let taken = taken(&mut host, &beside(SAMPLED, &[]));
    assert!(taken & 1 << 9 != 0 && taken & 1 << 3 == 0, "{taken:#x}");
    let free = host.driver.capabilities().general & !taken;
    let all = vec!["r00c4"; free.count_ones() as usize];
    assert_eq!(planned(&mut host, &beside(SAMPLED, &all)).map(u32::from), Ok(free));
    let more = [&all[..], &["r00c4"]].concat();
    let refused = planned(&mut host, &beside(SAMPLED, &more)).unwrap_err();
    assert!(refused.contains("no counter that goes into records is free"), "{refused}");
    // An event of one counter.
    assert_eq!(planned(&mut host, &beside(SAMPLED, &["r01d1:counter=3"])), Ok(1 << 3));
}

/// Architectural PEBS says which counters may be in records.
#[test]
fn s1_records_have_no_counter_that_may_not_be_in_them() {
    let host = |change: &dyn Fn(&mut u32)| {
        let mut pmu = Registers_::new(Model::CougarCove, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
        let mut has = find(&mut pmu).expect("a PMU");
        change(&mut has.architectural_pebs.as_mut().expect("PEBS").general);
        Host::of(pmu, has)
    };
    let taken = taken(&mut host(&|_| ()), &beside(SAMPLED, &[]));
    assert!(taken & 1 << 5 == 0, "{taken:#x}");
    let mut host = host(&|general| *general = taken | 1 << 5);
    assert_eq!(planned(&mut host, &beside(SAMPLED, &["r00c4"])), Ok(1 << 5));
    let refused = planned(&mut host, &beside(SAMPLED, &["r00c4", "r00c4"])).unwrap_err();
    assert!(refused.contains("no counter that goes into records is free"), "{refused}");
}

#[test]
fn s1_values_begin_anew_with_each_start() {
    let mut host = Host::new(Model::ArrowLake);
    let item = beside(SAMPLED, &["r00c4"]);
    let (events, _) = plan(&mut host, &item).unwrap();
    let besides = groups::plan(&host.pmu().unwrap(), &item, &events).unwrap();
    let counter = Counter::General(planned(&mut host, &item).unwrap().trailing_zeros() as u8);
    let armed = Session::arm(&mut host.pmu, &mut host.driver, &item, (events, besides), 1);
    let (mut session, mut block) = armed.unwrap();
    host.driver.write(&mut host.pmu, counter, 5).unwrap();
    session.restart(&mut host.pmu, &host.driver, &mut block).unwrap();
    assert_eq!(host.driver.read(&mut host.pmu, counter), Ok(0));
}

/// Fields begin anew as well. After an overflow of PERF_METRICS the values of the samples are doubtful, and every event says so.
#[test]
fn s1_s3_fields_in_records_begin_anew_and_are_doubted_after_an_overflow() {
    let field = |turns| Sampling {
        counters: vec!["topdown-retiring".into()],
        precise: true,
        keep: Keep::Samples,
        ..item(&[event(SAMPLED, 77)], turns)
    };
    let mut host = Host::new(Model::ArrowLake);
    let few = field(10);
    let (events, _) = plan(&mut host, &few).unwrap();
    let besides = groups::plan(&host.pmu().unwrap(), &few, &events).unwrap();
    let armed = Session::arm(&mut host.pmu, &mut host.driver, &few, (events, besides), 1);
    let (mut session, mut block) = armed.unwrap();
    host.driver.start(&mut host.pmu).unwrap();
    host.pmu.advance(&Delta::bulk(Ring::Kernel, 100));
    host.driver.stop(&mut host.pmu).unwrap();
    let slots = |host: &mut Host| host.driver.slots(&mut host.pmu).unwrap();
    assert!(slots(&mut host).of(Some(0)) > 90);
    session.restart(&mut host.pmu, &host.driver, &mut block).unwrap();
    assert_eq!(slots(&mut host), arch::pmu::registers::Slots::default());

    for (host, doubted) in [
        (Host::new(Model::ArrowLake), false),
        (Host::with(Model::ArrowLake, Mutation::MetricsOverflowEarly).unwrap(), true),
    ] {
        let mut host = host;
        let (result, _) = run(&mut host, &field(3000));
        let one = &result.events[0];
        assert!(one.samples > 0, "{one:?}");
        let says = one.remarks.iter().any(|remark| remark.contains("PERF_METRICS overflowed"));
        assert_eq!(says, doubted, "{one:?}");
    }
}

/// Where records have no general registers, only an item that asks for some is refused.
#[test]
fn c7_s1_registers_are_refused_where_records_have_none() {
    let mut pmu = Registers_::new(Model::CougarCove, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
    let mut has = find(&mut pmu).expect("a PMU");
    let contents = &mut has.architectural_pebs.as_mut().expect("PEBS").contents;
    contents.remove(arch::pmu::pebs::Contents::GENERAL);
    let mut host = Host::of(pmu, has);
    let mut item = beside(SAMPLED, &["r00c4"]);
    assert!(planned(&mut host, &item).is_ok());
    item.registers = 8;
    let refused = planned(&mut host, &item).unwrap_err();
    assert!(refused.contains("registers: this processor's PEBS records have none"), "{refused}");
}

/// What of records an item wants, and the first refusal.
fn wanted(host: &mut Host, item: &Sampling) -> Result<DataConfig, String> {
    let (events, _) = plan(host, item).expect("an event to sample by");
    let besides = groups::plan(&host.pmu()?, item, &events)?;
    let mut config = DataConfig::BASIC;
    besides.add(&mut config);
    Ok(config)
}

#[test]
fn s1_s3_fields_of_perf_metrics_are_a_group_of_records_and_take_no_general_counter() {
    for model in [Model::ArrowLake, Model::CougarCove] {
        let mut host = Host::new(model);
        let config = wanted(&mut host, &beside(SAMPLED, &["topdown-retiring", "topdown-be-bound"]));
        let config = config.unwrap_or_else(|error| panic!("{model:?}: {error}"));
        assert_eq!((config.groups, config.general), (Groups::METRICS, 0), "{model:?}");
        let config = wanted(&mut host, &beside(SAMPLED, &["topdown-retiring", "r00c4"])).unwrap();
        assert_eq!(config.groups, Groups::METRICS | Groups::COUNTERS, "{model:?}");
        assert_eq!(config.general.count_ones(), 1, "{model:?}");
        let rings = beside(SAMPLED, &["topdown-retiring", "topdown-be-bound:u"]);
        let refused = wanted(&mut host, &rings).unwrap_err();
        assert!(refused.contains("counts in the same rings for all"), "{model:?}: {refused}");
        let mut with_shares = beside(SAMPLED, &["topdown-retiring"]);
        with_shares.events.push(event("topdown-fe-bound:k", 0));
        let refused = wanted(&mut host, &with_shares).unwrap_err();
        assert!(
            refused.contains("topdown-fe-bound:k is for others than topdown-retiring"),
            "{refused}"
        );
    }
    // Architectural PEBS says whether it has them; older formats have no values at all.
    let mut pmu = Registers_::new(Model::CougarCove, pmu_model::Host::EXAMPLE, Timing::DEFAULT);
    let mut has = find(&mut pmu).expect("a PMU");
    let contents = &mut has.architectural_pebs.as_mut().expect("PEBS").contents;
    contents.remove(arch::pmu::pebs::Contents::METRICS);
    let refused = wanted(&mut Host::of(pmu, has), &beside(SAMPLED, &["topdown-retiring"]));
    let refused = refused.unwrap_err();
    assert!(refused.contains("records have no PERF_METRICS; the nearest"), "{refused}");
}
