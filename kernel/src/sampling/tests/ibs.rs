//! Which requests a unit of IBS serves, and what its registers are told.

use super::*;
use crate::sampling::ibs::{
    IbsEvent, MIN_PERIOD, arm, counter, disarm, nearest, possible, requested,
};
use arch::msr::{Absent, Msr};
use arch::pmu::Capabilities;
use arch::pmu::ibs::{Features, Unit};
use arch::pmu::pmi::Filter;

/// What a text asks of Zen 4: the unit, and whether by operations.
fn asked(text: &str, precise: bool) -> Option<Result<(Unit, bool), String>> {
    let host = Host::new(Model::Zen4);
    let answer = requested(text, precise, &host.known, host.driver.capabilities());
    answer.map(|answer| answer.map(|one| (one.unit, one.operations)))
}

#[test]
fn s1_a_unit_is_asked_for_by_its_name_or_by_precision() {
    let cycles = Some(Ok((Unit::Op, false)));
    assert_eq!((asked(" ibs_op ", false), asked("ibs_op", true)), (cycles.clone(), cycles.clone()));
    assert_eq!(asked("ibs_fetch", false), Some(Ok((Unit::Fetch, false))));
    assert_eq!(asked("r00c1:pp", false), Some(Ok((Unit::Op, true))));
    assert_eq!((asked("r0076:p", false), asked("r0076", true)), (cycles.clone(), cycles.clone()));
    for text in ["cycles:p", "cycles:ppp"] {
        assert_eq!(asked(text, false), cycles, "{text}");
    }
    // Other words after a name ask for no precision.
    for text in ["r0076", "cycles", "cycles:u", "cycles:pppp", "cycles:px"] {
        assert_eq!(asked(text, false), None, "{text}");
    }
}

/// The name of what was counted, as in perf.
#[test]
fn s1_each_unit_has_its_name() {
    let names = ["ibs_op", "r00c1:p", "ibs_fetch"].map(|text| {
        let host = Host::new(Model::Zen4);
        counter(requested(text, false, &host.known, host.driver.capabilities()).unwrap().unwrap())
    });
    assert_eq!(names, ["ibs_op, by cycles", "ibs_op, by operations", "ibs_fetch"]);
}

#[test]
fn c7_s1_what_no_unit_counts_is_refused() {
    for (text, part) in [
        ("r0076:u:p", "IBS counts in every ring"),
        ("r00c1:k:p", "IBS counts in every ring"),
        ("r0076:c=1:p", "not by `r0076:c=1:p`"),
        ("r0076:e:p", "not by `r0076:e:p`"),
        ("r00c0:p", "not by `r00c0:p`"),
        ("r0176:p", "not by `r0176:p`"),
    ] {
        let refused = asked(text, false).expect("asked for").unwrap_err();
        assert!(refused.contains(part), "{text}: {refused}");
    }
}

#[test]
fn s1_periods_begin_at_the_least_and_are_multiples_of_16() {
    let mut host = Host::new(Model::Zen4);
    let event = requested("ibs_op", true, &host.known, host.driver.capabilities());
    let event = event.unwrap().unwrap();
    let mut pmu = host.pmu().unwrap();
    assert!(possible(&mut pmu, event, MIN_PERIOD).is_ok());
    let short = possible(&mut pmu, event, MIN_PERIOD - 1).unwrap_err();
    assert!(short.contains("a period of 255 is too short"), "{short}");
    assert_eq!([1, 255, 256, 271, 272, 1000].map(nearest), [256, 256, 256, 256, 272, 992]);
}

#[test]
fn s1_some_operations_are_sampled_by_operations_where_those_are_counted() {
    let mut has = Host::new(Model::Zen4).driver.capabilities().clone();
    let of = |has: &Capabilities| IbsEvent::of_operations(Filter::Stores, has);
    let by = |operations| {
        Some(IbsEvent { unit: Unit::Op, operations, filter: Some(Filter::Stores), random: None })
    };
    assert_eq!(of(&has), by(true));
    has.ibs = Some((Features::VALID | Features::OP).bits());
    assert_eq!(of(&has), by(false));
    has.ibs = None;
    assert_eq!(of(&has), None);
}

/// A unit that a task left on, and what is written to it.
struct Left(u64, Vec<(u32, u64)>);

impl Registers for Left {
    fn cpuid(&self, _: u32, _: u32) -> raw_cpuid::CpuIdResult {
        raw_cpuid::CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
    }
    fn rdmsr(&mut self, _: Msr) -> Result<u64, Absent> {
        Ok(self.0)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.1.push((msr.0, value));
        Ok(())
    }
    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}

/// IbsOpCtl: the maximum count in bits 15:0, enabled by bit 17. With erratum 420 the count goes first.
#[test]
fn t7_a_unit_that_was_left_on_is_switched_off() {
    let mut host = Host::new(Model::Zen4);
    let item = Sampling { precise: true, ..item(&[event("r00c1", 272)], 100) };
    let (events, _) = plan(&mut host, &item).unwrap();
    let mut has = host.driver.capabilities().clone();
    for (erratum, writes) in
        [(false, vec![(0xc001_1033, 0)]), (true, vec![(0xc001_1033, 1 << 17), (0xc001_1033, 0)])]
    {
        has.ibs_erratum_420 = erratum;
        let mut left = Left(1 << 17 | 1 << 18 | 0x1234, Vec::new());
        disarm(&mut left, &has, &events).unwrap();
        assert_eq!(left.1, writes, "{erratum}");
    }
}

/// A count that cannot be written back begins anew with each period; that of fetches always can.
#[test]
fn s1_a_stopped_period_goes_on_where_the_count_can_be_written() {
    for (text, can, kept) in [
        ("ibs_op", true, true),
        ("ibs_op", false, false),
        ("ibs_fetch", true, true),
        ("ibs_fetch", false, true),
    ] {
        let mut host = Host::new(Model::Zen4);
        let item = Sampling { precise: true, ..item(&[event(text, 272)], 100) };
        let (events, _) = plan(&mut host, &item).unwrap();
        let mut has = host.driver.capabilities().clone();
        let all = Features::from_bits_retain(has.ibs.unwrap());
        has.ibs = Some(if can { all } else { all - Features::READ_WRITE_COUNT }.bits());
        let driver = Driver::new(has);
        let mut block = ControlBlock::of(&driver);
        arm(&mut host.pmu, &driver, &events[0], &mut block).unwrap();
        let kept = format!("keeps_count: {kept}");
        let sampling = format!("{:?}", block.sampling());
        assert!(sampling.contains(&kept), "{text}, {can}: {sampling}");
    }
}

/// The gate around a task that is called would not stop the unit.
#[test]
fn s1_a_task_that_ibs_samples_runs_under_the_scheduler() {
    let sampled = |precise| {
        let mut host = Host::new(Model::Zen4);
        run(&mut host, &Sampling { precise, ..item(&[event("r00c1", 272)], 100) });
        host.vectors.len()
    };
    assert_eq!([false, true].map(sampled), [1, 0], "runs of a task that was called");
}

/// A sample of a branch says where it was and what became of it; what finds no place is counted.
#[test]
fn s1_branches_that_ibs_sampled_have_their_outcome() {
    let sampled = |capacity| {
        let mut item = Sampling { precise: true, capacity, ..item(&[event("r00c1", 272)], 6000) };
        item.workload.tasks[0].body = Cow::Borrowed(&[JUMP; 10]);
        run(&mut Host::new(Model::Zen4), &item).0
    };
    let result = sampled(64);
    let all: u64 = result.outcomes.iter().map(|one| one.count).sum();
    assert!(all > 100 && all == result.events[0].samples, "{result:?}");
    assert!(result.outcomes.iter().all(|one| one.taken == one.count), "{result:?}");
    assert_eq!(result.outcomes_elsewhere, 0);
    let result = sampled(1);
    let [one] = &result.outcomes[..] else { panic!("{result:?}") };
    assert!(result.outcomes_elsewhere > 0, "{result:?}");
    assert_eq!(one.count + result.outcomes_elsewhere, all, "{result:?}");
}

/// A log has room for what each sample says of its data.
#[test]
fn s1_single_samples_of_ibs_have_data() {
    let mut item =
        Sampling { precise: true, keep: Keep::Samples, ..item(&[event("r00c1", 272)], 900) };
    item.workload.tasks[0].body = Cow::Borrowed(&[LOAD; 10]);
    let (result, chunks) = run(&mut Host::new(Model::Zen4), &item);
    let data: usize = chunks.iter().map(|chunk| chunk.data.len()).sum();
    assert!(data > 10 && data as u64 == result.events[0].samples, "{result:?}");
}

#[test]
fn c7_s1_what_goes_not_with_ibs_is_refused() {
    let said = |change: fn(&mut Sampling<'static>), plain_apic| {
        let mut item = Sampling { precise: true, ..item(&[event("r00c1", 272)], 10) };
        change(&mut item);
        let mut host = Host::new(Model::Zen4);
        host.plain_apic = plain_apic;
        plan(&mut host, &item).map(|(_, left_out)| left_out.first().map(|one| one.reason.clone()))
    };
    let refused = |change, plain_apic| match said(change, plain_apic) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(said(|_| (), false).unwrap(), None);
    assert!(refused(|item| item.limit_per_ms = 5, false).contains("limit-per-ms cannot change"));
    let lvt = refused(|_| (), true);
    assert!(lvt.contains("the local APIC has no extended LVT entry"), "{lvt}");
    assert_eq!(said(|item| item.delivery = sampling::Delivery::Nmi, false).unwrap(), None);
    let two = said(
        |item| {
            item.precise = false;
            item.events = vec![event("ibs_op", 272), event("r00c0", 100)];
            item.delivery = sampling::Delivery::Nmi;
        },
        false,
    );
    let reason = two.unwrap().expect("left out");
    assert!(reason.contains("as an NMI it cannot be told from"), "{reason}");
}
