//! What is announced against what is there, on sound models and on ones with a planted fault.

use super::*;
use crate::pmu::trial;
use pmu_model::Mutation;

fn tried(model: Model, fault: Option<Mutation>) -> Result<Capabilities, Missing> {
    let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT);
    pmu.set_mutation(fault);
    pmu.reset();
    find(&mut pmu).and_then(|has| trial::run(&has, &mut pmu))
}

/// What is left, and what was said.
fn left(model: Model, fault: Mutation) -> (Capabilities, Vec<String>) {
    let has = tried(model, Some(fault)).unwrap_or_else(|missing| panic!("{fault:?}: {missing}"));
    let said = has.faults.iter().map(ToString::to_string).collect();
    (has, said)
}

#[test]
fn c6_on_a_sound_pmu_everything_stays_as_it_is_announced() {
    for (model, mut pmu, driver) in machines() {
        let announced = driver.capabilities();
        assert_eq!(trial::run(announced, &mut pmu).as_ref(), Ok(announced), "{model:?}");
        // Nothing counts any more, and nothing is left behind.
        let mut driver = Driver::new(announced.clone());
        assert_eq!(driver.status(&mut pmu).unwrap().counters(), 0, "{model:?}");
        driver.reset(&mut pmu).unwrap();
    }
}

#[test]
fn a_counter_that_does_not_count_rightly_is_not_used() {
    use Mutation::{CounterStandsStill, CountsTwice, RunsBackwards, StuckAtMaximum};
    for (fault, said) in [
        (CounterStandsStill, "counter 0 is not used: it stood still while 2009 instructions ran"),
        (CountsTwice, "counter 0 is not used: it counted 4018 where the code has 2009"),
        (
            RunsBackwards,
            "counter 0 is not used: it counted 281474976708647 where the code has 2009",
        ),
        (
            StuckAtMaximum,
            "counter 1 is not used: it reads 0xffffffffffff after 0x2a5a5a5a was written",
        ),
    ] {
        let (has, faults) = left(Model::Skylake, fault);
        let (dead, alive) = if fault == StuckAtMaximum { (1, 0) } else { (0, 1) };
        assert_eq!((has.general, has.fixed), (0xff & !(1 << dead), 0x7));
        assert_eq!(faults, [said]);
        assert!(has.given_up(Counter::General(dead)).is_some());
        assert!(has.given_up(Counter::General(alive)).is_none());
    }
    let (has, faults) = left(Model::Skylake, Mutation::Fixed2Dead);
    assert_eq!((has.general, has.fixed), (0xff, 0x3), "{faults:?}");
    let (has, _) = left(Model::Zen4, CounterStandsStill);
    assert_eq!((has.general, has.freeze), (0x3e, FreezeKind::Streamlined));
}

#[test]
fn registers_that_hold_values_and_never_count_are_no_pmu() {
    for model in [Model::Core2, Model::Skylake, Model::K10, Model::Zen4] {
        let missing = tried(model, Some(Mutation::AllStandStill)).unwrap_err();
        assert!(
            missing.to_string().contains("none can be relied on: counter 0: it stood still"),
            "{missing}"
        );
    }
}

#[test]
fn events_that_nothing_counts_are_named() {
    let (has, faults) = left(Model::Skylake, Mutation::ClocksStandStill);
    assert_eq!((has.general, has.fixed), (0xff, 0x1));
    let still = "it stood still while 2009 instructions ran";
    assert_eq!(
        faults,
        [
            format!("fixed counter 1 is not used: {still}"),
            format!("fixed counter 2 is not used: {still}"),
            format!("cycles (event 0x3c, unit mask 0x00) are not counted: {still}"),
            format!("reference cycles (event 0x3c, unit mask 0x01) are not counted: {still}"),
        ]
    );
    let (has, faults) = left(Model::Haswell, Mutation::ReferenceStandsStill);
    assert_eq!((has.fixed, faults.len()), (0x3, 2), "{faults:?}");
}

#[test]
fn i4_a_freeze_is_used_only_if_it_freezes() {
    for model in [Model::Core2, Model::Haswell, Model::Skylake, Model::Zen4] {
        for (fault, part) in [
            (Mutation::FreezeIgnored, "the counters went on to the end"),
            (Mutation::FreezeRefused, "writing 0x1000 to MSR 0x1d9 raised an exception"),
            (Mutation::FreezeLate, "although one overflowed after 100"),
        ] {
            let (has, faults) = left(model, fault);
            assert_eq!(has.freeze, FreezeKind::None, "{model:?} {fault:?}");
            let [said] = &faults[..] else { panic!("{model:?} {fault:?}: {faults:?}") };
            let begins = "freezing of the counters on a PMI is not used: ";
            assert!(said.starts_with(begins) && said.contains(part), "{model:?}: {said}");
            assert_eq!((has.general, has.no_overflow), (announced(model).general, 0));
        }
    }
    // It takes every counter along.
    let missing = tried(Model::Skylake, Some(Mutation::NeverUnfreezes)).unwrap_err();
    assert!(matches!(missing, Missing::Unreliable { .. }), "{missing}");
}

fn announced(model: Model) -> Capabilities {
    find(&mut machine(model)).unwrap()
}

#[test]
fn a_missing_register_costs_its_feature_and_nothing_else() {
    let whole = announced(Model::Skylake);
    let (has, faults) = left(Model::Skylake, Mutation::PebsEnableAbsent);
    assert_eq!(faults, ["MSR 0x3f1 does not exist: PEBS is not used"]);
    assert!(whole.pebs && !has.pebs);
    assert_eq!((has.general, has.fixed, has.freeze), (whole.general, whole.fixed, whole.freeze));
    let (has, faults) = left(Model::Skylake, Mutation::DebugControlAbsent);
    assert_eq!(faults, ["MSR 0x1d9 does not exist: nothing is frozen on a PMI"]);
    assert_eq!(
        (has.general, has.fixed, has.freeze),
        (whole.general, whole.fixed, FreezeKind::None)
    );
    // Without the global registers the enables of the event selects start and stop.
    let (has, faults) = left(Model::Skylake, Mutation::GlobalStatusAbsent);
    assert!(faults[0].starts_with("MSR 0x38e does not exist"), "{faults:?}");
    assert_eq!((has.general, has.fixed, has.has_global()), (whole.general, 0, false), "{faults:?}");
}

#[test]
fn i3_a_counter_whose_status_does_not_tell_is_not_sampled_by() {
    let (has, faults) = left(Model::Skylake, Mutation::StatusBitNeverSets);
    assert_eq!((has.no_overflow, has.freeze), (1, FreezeKind::Streamlined), "{faults:?}");
    assert!(faults[0].contains("counter 0") && faults[0].contains("does not show its overflow"));
    let (has, _) = left(Model::Skylake, Mutation::StatusClearStuck);
    assert_eq!(has.no_overflow, has.counter_bits());
    // It counts all the same, and is not programmed to interrupt.
    let mut pmu = machine(Model::Skylake);
    let mut driver = Driver::new(has);
    let first = Counter::General(0);
    driver.program(&mut pmu, first, &INSTRUCTIONS).unwrap();
    let refused = driver.program(&mut pmu, first, &INSTRUCTIONS.with_interrupt()).unwrap_err();
    assert!(refused.to_string().contains("interrupt at its overflow"), "{refused}");
}

#[test]
fn rdpmc_that_reads_something_else_is_named() {
    let (has, faults) = left(Model::Skylake, Mutation::RdpmcDiffers);
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!(fault, "RDPMC cannot be relied on: it reads 0x7e0 of counter 0, RDMSR 0x7d9");
    // Nothing of the driver reads counts by it.
    assert_eq!((has.general, has.fixed), (0xff, 0x7));
}

/// A machine whose accesses are counted.
struct Counted {
    pmu: Pmu,
    accesses: u64,
    instructions: u64,
}

impl Registers for Counted {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.pmu, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: crate::msr::Msr) -> Result<u64, crate::msr::Absent> {
        self.accesses += 1;
        Registers::rdmsr(&mut self.pmu, msr)
    }
    fn wrmsr(&mut self, msr: crate::msr::Msr, value: u64) -> Result<(), crate::msr::Absent> {
        self.accesses += 1;
        Registers::wrmsr(&mut self.pmu, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
        self.accesses += 1;
        Registers::rdpmc(&mut self.pmu, index)
    }
}

impl trial::TrialMachine for Counted {
    fn run(&mut self, gate: &Gate, turns: u64) {
        self.instructions += 2 * turns;
        trial::TrialMachine::run(&mut self.pmu, gate, turns);
    }
    fn run_until(
        &mut self,
        on_overflow: &crate::pmu::stop_on_overflow::StopOnOverflow,
        turns: u64,
    ) {
        self.instructions += 2 * turns;
        trial::TrialMachine::run_until(&mut self.pmu, on_overflow, turns);
    }
}

#[test]
fn every_boot_pays_for_the_trial_and_it_is_short() {
    for model in [Model::Core2, Model::Skylake, Model::K10, Model::Zen4] {
        let mut machine = Counted { pmu: machine(model), accesses: 0, instructions: 0 };
        let has = find(&mut machine).unwrap();
        machine.accesses = 0;
        trial::run(&has, &mut machine).unwrap();
        println!("{model:?}: {} accesses, {} instructions", machine.accesses, machine.instructions);
        assert!(machine.accesses <= 300, "{model:?}: {}", machine.accesses);
        assert!(machine.instructions <= 6_500, "{model:?}: {}", machine.instructions);
    }
}

#[test]
fn no_fault_makes_the_trial_fail_itself() {
    for model in [Model::Core2, Model::ArrowLake, Model::K10, Model::Zen4] {
        for fault in Mutation::ALL {
            match tried(model, Some(fault)) {
                Ok(has) => assert!(has.general != 0, "{model:?} {fault:?}"),
                Err(missing) => assert!(!missing.to_string().is_empty()),
            }
        }
    }
}

/// A machine that refuses RDPMC, or to let anything count.
struct Refuses {
    pmu: Pmu,
    rdpmc: bool,
    control: Option<crate::msr::Msr>,
    runs: u64,
}

impl Registers for Refuses {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.pmu, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: crate::msr::Msr) -> Result<u64, crate::msr::Absent> {
        Registers::rdmsr(&mut self.pmu, msr)
    }
    fn wrmsr(&mut self, msr: crate::msr::Msr, value: u64) -> Result<(), crate::msr::Absent> {
        if self.control == Some(msr) && value != 0 {
            return Err(crate::msr::Absent);
        }
        Registers::wrmsr(&mut self.pmu, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
        if self.rdpmc {
            return Err(crate::msr::Absent);
        }
        Registers::rdpmc(&mut self.pmu, index)
    }
}

impl trial::TrialMachine for Refuses {
    fn run(&mut self, gate: &Gate, turns: u64) {
        self.runs += 1;
        trial::TrialMachine::run(&mut self.pmu, gate, turns);
    }
    fn run_until(
        &mut self,
        on_overflow: &crate::pmu::stop_on_overflow::StopOnOverflow,
        turns: u64,
    ) {
        self.runs += 1;
        trial::TrialMachine::run_until(&mut self.pmu, on_overflow, turns);
    }
}

#[test]
fn rdpmc_that_raises_an_exception_cannot_be_relied_on() {
    let refuses = |rdpmc| Refuses { pmu: machine(Model::Skylake), rdpmc, control: None, runs: 0 };
    let faults = |rdpmc| {
        let mut machine = refuses(rdpmc);
        let has = find(&mut machine).unwrap();
        trial::run(&has, &mut machine).unwrap().faults
    };
    assert_eq!(faults(false), []);
    let refused = faults(true);
    assert!(matches!(refused[..], [Fault::Rdpmc { .. }]), "{refused:?}");
}

/// A gate that raises an exception is found where that does no harm: the loop, around which nothing would catch it, is not
/// run.
#[test]
fn a_gate_that_is_refused_is_never_opened_around_code() {
    for (model, control) in
        [(Model::Skylake, numbers::GLOBAL_CTRL), (Model::Zen4, numbers::AMD_GLOBAL_CTL)]
    {
        let (pmu, control) = (machine(model), Some(control));
        let mut machine = Refuses { pmu, rdpmc: false, control, runs: 0 };
        let has = find(&mut machine).unwrap();
        let tried = trial::run(&has, &mut machine);
        assert!(matches!(tried, Err(Missing::Unreliable { .. })), "{model:?}: {tried:?}");
        assert_eq!(machine.runs, 0, "{model:?}");
    }
}

/// A processor with the fixed counters 4 and 5 of Skymont (leaf 0xA ECX), which count what this code does not raise: 0.
struct Standing(Pmu, [u64; 2]);

impl Standing {
    fn place(msr: u32) -> Option<usize> {
        [0x309 + 4, 0x309 + 5].iter().position(|one| *one == msr)
    }
}

impl Registers for Standing {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        let found = Registers::cpuid(&self.0, leaf, subleaf);
        if leaf == 0xa {
            raw_cpuid::CpuIdResult { ecx: found.ecx | 0b11_0000, ..found }
        } else {
            found
        }
    }
    fn rdmsr(&mut self, msr: crate::msr::Msr) -> Result<u64, crate::msr::Absent> {
        match Self::place(msr.0) {
            Some(place) => Ok(self.1[place]),
            None => Registers::rdmsr(&mut self.0, msr),
        }
    }
    fn wrmsr(&mut self, msr: crate::msr::Msr, value: u64) -> Result<(), crate::msr::Absent> {
        const OTHERS: u64 = 0b11 << 36;
        if let Some(place) = Self::place(msr.0) {
            self.1[place] = value;
            return Ok(());
        }
        // The model has neither their enables nor their controls.
        let value = match msr {
            numbers::GLOBAL_CTRL | numbers::GLOBAL_OVF_CTRL => value & !OTHERS,
            numbers::FIXED_CTR_CTRL => value & 0xffff,
            _ => value,
        };
        Registers::wrmsr(&mut self.0, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
        match index.checked_sub(0x4000_0004) {
            Some(place @ 0..2) => Ok(self.1[place as usize]),
            _ => Registers::rdpmc(&mut self.0, index),
        }
    }
}

impl trial::TrialMachine for Standing {
    fn run(&mut self, gate: &Gate, turns: u64) {
        let gate = gate.on().iter().zip(gate.off()).fold(Gate::EMPTY, |all, (on, off)| {
            all.with(crate::msr::Msr(on.msr), on.value & !(0b11 << 36), off.value)
        });
        trial::TrialMachine::run(&mut self.0, &gate, turns);
    }
    fn run_until(
        &mut self,
        on_overflow: &crate::pmu::stop_on_overflow::StopOnOverflow,
        turns: u64,
    ) {
        trial::TrialMachine::run_until(&mut self.0, on_overflow, turns);
    }
}

#[test]
fn a_counter_that_may_stand_still_is_no_fault_if_it_does() {
    let mut machine = Standing(machine(Model::IceLake), [0; 2]);
    let has = find(&mut machine).unwrap();
    assert_eq!(has.fixed, 0b11_1111);
    let has = trial::run(&has, &mut machine).unwrap();
    let given_up: Vec<_> = has.faults.iter().map(ToString::to_string).collect();
    assert!(
        !given_up.iter().any(|said| said.contains("is not used: it stood still")),
        "{given_up:?}"
    );
    // One that counts there is one as well, if it does not run backwards.
    assert_eq!(has.fixed & 0b11_0000, 0b11_0000);
}
