//! The driver against the register-level model.

use super::*;
use crate::pmu::model::EnergyFiltering;
use pmu_model::{Host, Model, Mutation, Pmu, Timing};

fn pmu(model: Model, fault: Option<Mutation>) -> Pmu {
    let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT);
    pmu.set_mutation(fault);
    pmu
}

#[test]
fn s4_each_model_has_the_domains_that_its_manual_has() {
    use Domain::{Cores, Graphics, Memory, Package, Platform};
    let all = [Package, Cores, Graphics, Memory, Platform];
    for (model, unit, domains) in [
        (Model::Haswell, 14, &all[..4]),
        (Model::Skylake, 14, &all[..]),
        (Model::IceLake, 14, &all),
        (Model::SapphireRapids, 14, &[Package, Cores, Memory, Platform]),
        (Model::Gracemont, 14, &all),
        (Model::Zen2, 16, &all[..2]),
        (Model::Zen4, 16, &all[..2]),
    ] {
        let energy = Energy::probe(&mut pmu(model, None)).unwrap();
        assert_eq!(energy.domains().collect::<Vec<_>>(), domains, "{model:?}");
        assert_eq!(energy.unit(Package), unit, "{model:?}");
        let joules = model == Model::SapphireRapids;
        assert_eq!(energy.unit(Platform), if joules { 0 } else { unit }, "{model:?}");
    }
}

#[test]
fn s4_what_cannot_be_told_is_named() {
    let error = |model, fault| Energy::probe(&mut pmu(model, fault)).unwrap_err();
    assert_eq!(error(Model::Nehalem, None), NoEnergy::Faults(0x606));
    assert_eq!(error(Model::K10, None), NoEnergy::Denied);
    assert_eq!(error(Model::Skylake, Some(Mutation::EnergyUnitLost)), NoEnergy::NoUnit(0x606));
    let absent = Some(Mutation::EnergyRegistersAbsent);
    assert_eq!(error(Model::Zen4, absent), NoEnergy::Faults(0xc001_0299));
    let zen = Energy::probe(&mut pmu(Model::Zen4, None)).unwrap();
    assert_eq!(zen.register(Domain::Memory), Err(NoDomain::OfIntel));
    let haswell = Energy::probe(&mut pmu(Model::Haswell, None)).unwrap();
    assert_eq!(haswell.register(Domain::Platform), Err(NoDomain::Faults(0x64d)));
    let mut late = pmu(Model::Haswell, None);
    late.set_time(pmu_model::model::energy::WRAP << pmu_model::model::energy::UPDATE);
    let silent = Energy::probe(&mut late).unwrap();
    assert_eq!(silent.register(Domain::Package), Err(NoDomain::Silent(0x611)));
}

/// SDM vol. 4: MSR 0xBC is there where IA32_ARCH_CAPABILITIES[11] says so, which CPUID leaf 7 announces.
#[test]
fn s4_energy_filtering_is_noticed_where_it_is_announced_and_on() {
    let filtered = |model, bits| {
        Energy::probe(&mut EnergyFiltering(pmu(model, None), bits)).unwrap().is_filtered()
    };
    assert!(filtered(Model::Skylake, [true; 3]));
    for off in 0..3 {
        let mut bits = [true; 3];
        bits[off] = false;
        assert!(!filtered(Model::Skylake, bits), "{bits:?}");
    }
    assert!(!filtered(Model::Zen4, [true; 3]));
}

/// A processor of 1 GHz on which a look at the clock takes 100 ns.
struct Clocked {
    pmu: Pmu,
    energy: Energy,
    time: u64,
}

impl Clocked {
    fn new(model: Model, time: u64) -> Self {
        let mut pmu = pmu(model, None);
        let energy = Energy::probe(&mut pmu).unwrap();
        Self { pmu, energy, time }
    }
}

impl Source for Clocked {
    fn read(&mut self, Place { domain, .. }: Place) -> u32 {
        self.pmu.set_time(self.time);
        self.pmu.rdmsr(self.energy.register(domain).unwrap()).unwrap() as u32
    }
    fn now(&mut self) -> u64 {
        self.time += 100;
        self.time
    }
    fn hz(&self) -> u64 {
        1_000_000_000
    }
    fn energy(&self) -> &Energy {
        &self.energy
    }
}

const UPDATE: u64 = 1 << pmu_model::model::energy::UPDATE;

#[test]
fn s4_an_interval_begins_at_an_update_and_knows_its_step() {
    let mut source = Clocked::new(Model::Skylake, 12_345_678);
    let domains = [Domain::Package, Domain::Memory].map(Place::from);
    let mut interval = Interval::begin(&domains, &mut source).unwrap();
    assert!(source.time % UPDATE < 10_000, "not at an update");
    source.time += 3 * UPDATE;
    interval.end(&mut source);
    let [package, memory] = interval.parts() else { panic!() };
    assert_eq!([package.units(), package.step], [3 * 256, 256]);
    assert_eq!([memory.units(), memory.step], [3 * 32, 32]);
    assert!(interval.update().abs_diff(UPDATE) < 10_000 && interval.ticks() >= 3 * UPDATE);
    // Less than an update later nothing is seen.
    let mut short = Interval::begin(&domains, &mut source).unwrap();
    source.time += UPDATE / 2;
    short.end(&mut source);
    assert_eq!(short.parts()[0].units(), 0);
}

/// The package moves every millisecond, the memory in the middle of every second one.
struct Phases(u64, Energy);

impl Source for Phases {
    fn read(&mut self, place: Place) -> u32 {
        match place.domain {
            Domain::Memory => 7 * ((self.0 + 500_000) / 2_000_000) as u32,
            _ => 100 * (self.0 / 1_000_000) as u32,
        }
    }
    fn now(&mut self) -> u64 {
        self.0 += 100;
        self.0
    }
    fn hz(&self) -> u64 {
        1_000_000_000
    }
    fn energy(&self) -> &Energy {
        &self.1
    }
}

/// An idle machine, on which everything runs from a moment on: its register then moves ten times as far each millisecond.
struct Loaded {
    time: u64,
    from: u64,
    energy: Energy,
}

impl Source for Loaded {
    fn read(&mut self, _: Place) -> u32 {
        let busy = self.time.saturating_sub(self.from) / 1_000_000;
        (10 * (self.time.min(self.from) / 1_000_000) + 100 * busy) as u32
    }
    fn now(&mut self) -> u64 {
        self.time += 100;
        self.time
    }
    fn hz(&self) -> u64 {
        1_000_000_000
    }
    fn energy(&self) -> &Energy {
        &self.energy
    }
}

#[test]
fn s4_a_step_is_what_an_update_under_load_is() {
    let energy = Energy::probe(&mut pmu(Model::Skylake, None)).unwrap();
    let mut source = Loaded { time: 0, from: u64::MAX, energy };
    let mut interval = Interval::begin(&[Domain::Package.into()], &mut source).unwrap();
    assert_eq!(interval.parts()[0].step, 10);
    source.from = source.time;
    source.time += 10_000_000;
    interval.end(&mut source);
    let part = &interval.parts()[0];
    assert!(part.units() >= 900 && part.step.abs_diff(100) <= 10, "{part:?}");
}

#[test]
fn s4_a_register_that_moves_at_other_moments_knows_its_own_step() {
    let energy = Energy::probe(&mut pmu(Model::Skylake, None)).unwrap();
    for start in (0..40).map(|part| part * 100_000) {
        let mut source = Phases(start, energy);
        // Of equal units the last one is waited for: the quick one, between whose updates the memory may not move.
        let domains = [Domain::Memory, Domain::Package].map(Place::from);
        let mut interval = Interval::begin(&domains, &mut source).unwrap();
        source.0 += 10_000_000;
        interval.end(&mut source);
        let steps: Vec<u64> = interval.parts().iter().map(|part| part.step).collect();
        assert_eq!(steps, [7, 100], "from {start}");
        let [memory, package] = interval.parts() else { panic!() };
        assert!(package.units().abs_diff(1000) <= 100, "{package:?}");
        assert!(memory.units().abs_diff(35) <= 7, "{memory:?}");
    }
}

#[test]
fn s4_an_interval_goes_over_a_wrap() {
    let before = (pmu_model::model::energy::WRAP - 10) * UPDATE;
    let mut source = Clocked::new(Model::Zen4, before);
    let mut interval = Interval::begin(&[Domain::Package.into()], &mut source).unwrap();
    let high = source.read(Domain::Package.into());
    source.time += 20 * UPDATE;
    interval.end(&mut source);
    assert!(source.read(Domain::Package.into()) < high, "it did not wrap");
    assert_eq!(interval.parts()[0].units(), 20 * 1024);
    assert!(!interval.is_late());
}

#[test]
fn s4_a_register_that_may_have_wrapped_twice_is_not_believed() {
    for (seconds, late) in [(30, false), (33, true)] {
        for kept in [false, true] {
            let mut source = Clocked::new(Model::Zen4, 0);
            let mut interval = Interval::begin(&[Domain::Package.into()], &mut source).unwrap();
            for _ in 0..seconds {
                source.time += 1_000_000_000;
                if kept {
                    interval.keep(&mut source);
                }
            }
            interval.end(&mut source);
            assert_eq!(interval.is_late(), late && !kept, "{seconds} s");
        }
    }
}

#[test]
fn s4_a_register_that_stands_still_is_named() {
    let mut source = Clocked::new(Model::Skylake, 0);
    source.pmu.set_mutation(Some(Mutation::EnergyStandsStill));
    let still = Interval::begin(&[Domain::Package.into()], &mut source).unwrap_err();
    assert!(
        still.to_string().starts_with("the register does not change: it read 0xfff"),
        "{still}"
    );
}

#[test]
fn s4_the_memory_of_old_servers_has_a_unit_of_its_own() {
    /// A Skylake server as far as its identity goes.
    struct Server(Pmu);
    impl Registers for Server {
        fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
            let found = Registers::cpuid(&self.0, leaf, subleaf);
            if leaf == 1 { raw_cpuid::CpuIdResult { eax: 0x0005_0654, ..found } } else { found }
        }
        fn rdmsr(&mut self, msr: Msr) -> Result<u64, crate::msr::Absent> {
            Registers::rdmsr(&mut self.0, msr)
        }
        fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), crate::msr::Absent> {
            Registers::wrmsr(&mut self.0, msr, value)
        }
        fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
            Registers::rdpmc(&mut self.0, index)
        }
    }
    let energy = Energy::probe(&mut Server(pmu(Model::Skylake, None))).unwrap();
    assert_eq!([Domain::Package, Domain::Memory].map(|domain| energy.unit(domain)), [14, 16]);
}

/// A clock that a look moves by a tick, and a register that moves when it is set.
struct Halted {
    time: u64,
    value: u32,
    reads: u64,
    energy: Energy,
}

impl Source for Halted {
    fn read(&mut self, _: Place) -> u32 {
        self.reads += 1;
        self.value
    }
    fn now(&mut self) -> u64 {
        self.time += 1;
        self.time
    }
    fn hz(&self) -> u64 {
        1_000_000
    }
    fn energy(&self) -> &Energy {
        &self.energy
    }
}

#[test]
fn s4_a_register_that_stands_still_is_given_up_after_a_tenth_of_a_second() {
    let energy = Energy::probe(&mut pmu(Model::Skylake, None)).unwrap();
    let mut source = Halted { time: 0, value: 5, reads: 0, energy };
    let still = Interval::begin(&[Domain::Package.into()], &mut source).unwrap_err();
    assert_eq!((still.reads, still.ms), (5, 100));
    assert!((100_000..101_000).contains(&source.time), "{}", source.time);
}

/// Half of the ticks in which a register can wrap, and twice as many from one look to the next at most.
#[test]
fn s4_registers_are_read_again_when_they_could_wrap_and_not_before() {
    let mut source = Clocked::new(Model::Zen4, 0);
    let mut interval = Interval::begin(&[Domain::Package.into()], &mut source).unwrap();
    let gap = Meter::seconds(source.energy.unit(Domain::Package)) * 1_000_000_000 / 2;
    let first = interval.clone();
    source.time += gap / 2;
    interval.keep(&mut source);
    assert_eq!(interval, first, "nothing is read yet");
    source.time += gap / 2;
    interval.keep(&mut source);
    assert_ne!(interval, first);
    let read = source.time;
    for (ticks, late) in [(2 * gap + 1, false), (2 * gap + 2, true)] {
        let mut later = interval.clone();
        // The look itself takes 100.
        source.time = read + ticks - 100;
        later.end(&mut source);
        assert_eq!(later.is_late(), late, "{ticks}");
    }
}

#[test]
fn s4_each_domain_that_has_nothing_yet_is_told_as_silent() {
    /// A processor whose registers of cores and memory read 0.
    struct Quiet(Pmu);
    impl Registers for Quiet {
        fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
            Registers::cpuid(&self.0, leaf, subleaf)
        }
        fn rdmsr(&mut self, msr: Msr) -> Result<u64, crate::msr::Absent> {
            let found = Registers::rdmsr(&mut self.0, msr)?;
            Ok(if matches!(msr.0, 0x639 | 0x619) { 0 } else { found })
        }
        fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), crate::msr::Absent> {
            Registers::wrmsr(&mut self.0, msr, value)
        }
        fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
            Registers::rdpmc(&mut self.0, index)
        }
    }
    let energy = Energy::probe(&mut Quiet(pmu(Model::Skylake, None))).unwrap();
    assert_eq!(energy.register(Domain::Cores), Err(NoDomain::Silent(0x639)));
    assert_eq!(energy.register(Domain::Memory), Err(NoDomain::Silent(0x619)));
    assert_eq!(energy.register(Domain::Package), Ok(Msr(0x611)));
}
