//! Sessions as wholes: started again, refused, labelled.

use super::*;
use arch::msr::{Absent, Msr};
use arch::pmu::Capabilities;
use arch::pmu::numbers::DEBUGCTL;
use pmu_model::Pmu as Registers_;

#[test]
fn c5_a_session_starts_again_with_one_call() {
    let mut host = Host::new(Model::Skylake);
    let item = item(&[event(RETIRED, 100)], 100);
    let task = &item.workload.tasks[0];
    let (events, _) = plan(&mut host, &item).unwrap();
    let armed =
        Session::arm(&mut host.pmu, &mut host.driver, &item, (events, Besides::default()), 1);
    let (mut session, mut block) = armed.unwrap();
    host.load_task(task, &host.driver.gate());
    host.deliver(0, &block, Delivery::Fixed, None);
    for _ in 0..3 {
        host.run_task(task, true).unwrap();
        host.withdraw(0, &mut block);
        let overflows = block.slot(session.events[0].counter.index()).overflows;
        assert_eq!((overflows, block.pmis), (10, 10));
        session.restart(&mut host.pmu, &host.driver, &mut block).unwrap();
        host.deliver(0, &block, Delivery::Fixed, None);
    }
}

#[test]
fn c6_each_model_says_what_it_can_tell() {
    let said = |model| capability(Host::new(model).driver.capabilities(), false);
    assert!(said(Model::Zen2).culprit.contains("top bit"));
    assert!(said(Model::Zen2).freeze.contains("one counter after the other"));
    assert!(said(Model::Zen4).culprit.contains("status register"));
    assert!(said(Model::Skylake).freeze.contains("streamlined"));
    assert!(said(Model::Core2).freeze.contains("legacy"));
    assert!(said(Model::Skylake).skid.contains("PEBS") && said(Model::Zen4).skid.contains("IBS"));
    assert!(said(Model::Skylake).data_address.contains("loads and stores"));
    assert!(said(Model::Nehalem).data_address.contains("load-latency"));
    assert!(said(Model::Nehalem).skid.contains("without PEBS (precise)"));
    assert!(said(Model::IceLake).skid.contains("without PEBS (precise)"));
    assert!(said(Model::ArrowLake).data_address.contains("loads and stores"));
    assert!(said(Model::Zen4).data_address.contains("with IBS (precise)"));
    assert!(said(Model::Core2).data_address.starts_with("not available"));
    let emulated = capability(Host::new(Model::Zen4).driver.capabilities(), true);
    assert!(emulated.skid.starts_with("none"));
}

#[test]
fn c6_what_a_processor_lacks_is_said() {
    let said = |model, lose: fn(&mut Capabilities)| {
        let mut has = Host::new(model).driver.capabilities().clone();
        lose(&mut has);
        let said = capability(&has, false);
        (said.skid, said.data_address)
    };
    let (skid, data) = said(Model::Skylake, |has| has.pebs = false);
    assert!(skid.contains("there is no PEBS") && data.contains("no PEBS"), "{skid}; {data}");
    let (_, data) = said(Model::Nehalem, |has| has.memory.precise_stores = true);
    assert!(data.ends_with("load-latency events and precise stores"), "{data}");
    let (skid, data) = said(Model::Zen4, |has| has.ibs = None);
    assert!(skid.contains("has no IBS") && data.contains("has no IBS"), "{skid}; {data}");
    assert!(said(Model::Zen4, |_| ()).0.contains("without IBS (precise)"));
    let (_, data) = said(Model::CougarCove, |has| {
        has.architectural_pebs.as_mut().unwrap().contents.remove(arch::pmu::pebs::Contents::MEMORY);
    });
    assert_eq!(data, "not available: this processor's PEBS records have none");
}

#[test]
fn c7_what_cannot_be_sampled_is_refused_by_name() {
    assert!(refused(&item(&[event("no-such-event", 5)], 1)).contains("no-such-event"));
    assert!(refused(&item(&[event("r00c0:p", 5)], 1)).contains("too short"));
    assert!(refused(&item(&[event(RETIRED, 1 << 60)], 1)).contains("does not fit"));
    assert!(refused(&item(&[event(RETIRED, 63)], 1)).contains("at least 64"));
    let names: Vec<&'static str> = (0..13).map(|n| &*format!("r{n:02x}d1").leak()).collect();
    let many: Vec<_> = names.into_iter().map(|name| event(name, 100)).collect();
    assert!(refused(&item(&many, 1)).contains("at the same time"));
}

/// Where the samples do not come to the overflows there is no result: a figure that does not add up is none.
#[test]
fn m11_m12_samples_that_do_not_account_for_the_overflows_are_refused() {
    for (model, mut host) in hosts() {
        let item = item(&[event(RETIRED, 100)], 100);
        assert!(measure(&mut host, 0, &item, &mut (), &mut |_| ()).is_ok(), "{model:?}");
        host.forgets = true;
        let refused = measure(&mut host, 0, &item, &mut (), &mut |_| ());
        let Err(Unmeasured::Refused(text)) = refused else { panic!("{model:?}: {refused:?}") };
        assert!(text.contains("10 overflows, but 0 samples"), "{model:?}: {text}");
    }
}

/// What the emulated PMU counted says so; what the timer alone sampled is no count of it.
#[test]
fn samples_of_the_emulated_pmu_are_labelled() {
    let mut host = Host::new(Model::Skylake);
    let (result, _) = run(&mut host, &item(&[event(RETIRED, 100)], 100));
    assert!(result.emulated);
    assert_eq!(host.counts, Some(true), "each processor is to have a PMU");
    let (result, _) = run(&mut host, &Sampling { interval_ns: 100_000, ..item(&[], 1000) });
    assert!(!result.emulated && result.timer.is_some());
    assert_eq!(host.counts, Some(false), "a timer needs none");
}

/// A machine whose firmware gives one bit of DEBUGCTL back at once.
struct Cleared<'a>(&'a mut Registers_, u64);

impl Registers for Cleared<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        Registers::rdmsr(self.0, msr)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        let kept = if msr == DEBUGCTL { value & !self.1 } else { value };
        Registers::wrmsr(self.0, msr, kept)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(self.0, index)
    }
}

/// What a unit of IBS keeps: three samples without an address, two that its filter left out, and its random periods.
#[test]
fn s1_the_account_of_ibs_has_what_its_unit_kept() {
    let mut host = Host::new(Model::Zen4);
    let item = Sampling { precise: true, ..item(&[event("r00c1", 272)], 100) };
    let (events, _) = plan(&mut host, &item).unwrap();
    let remarks = events[0].remarks.clone();
    let armed = (events, Besides::default());
    let (session, mut block) =
        Session::arm(&mut host.pmu, &mut host.driver, &item, armed, 1).unwrap();
    let mut unit = block.sampling().unwrap().randomised_from(1);
    (unit.invalid, unit.filtered) = (3, 2);
    block.sample_by(unit);
    let account = crate::sampling::account::account;
    let counts = account(&mut host.pmu, &host.driver, &session, &block, None).unwrap();
    let [one] = &counts[..] else { panic!("{counts:?}") };
    assert_eq!(one.counter.as_deref(), Some("ibs_op, by operations"));
    assert_eq!((one.overflows, one.samples, one.dropped, one.lost), (3, 0, 0, 3));
    assert_eq!((one.filtered, one.ended, one.witness), (2, Some(0), Some(0)));
    assert!(one.skid.as_deref().is_some_and(|skid| skid.starts_with("0: IBS names")), "{one:?}");
    assert!(
        remarks[0].starts_with("ibs_op, by operations: it counts every ring, so"),
        "{remarks:?}"
    );
    assert_eq!(one.remarks, remarks);
}

/// Half of a freeze would leave the counters frozen, as the handler that stops them lifts none.
#[test]
fn t7_of_a_freeze_that_does_not_hold_nothing_is_left() {
    for cleared in [1 << 11, 1 << 12] {
        let mut host = Host::new(Model::Skylake);
        let item = Sampling { branches: true, ..item(&[event(RETIRED, 100)], 100) };
        let (events, _) = plan(&mut host, &item).unwrap();
        let mut registers = Cleared(&mut host.pmu, cleared);
        let events = (events, Besides::default());
        Session::arm(&mut registers, &mut host.driver, &item, events, 1).unwrap();
        assert_eq!(host.pmu.read_msr(DEBUGCTL.0).unwrap() & 0b11 << 11, 0, "{cleared:#x}");
    }
}
