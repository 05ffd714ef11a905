use super::*;
use crate::msr::Msr;

#[test]
fn a_machine_fresh_out_of_reset_belongs_to_nobody() {
    for (model, mut pmu, driver) in machines() {
        let own = Ownership::claim(&mut pmu, driver.capabilities());
        assert_eq!(own.conflicts, [], "{model:?}");
        if let Some(global) = driver.layout().global {
            let general = u64::from(driver.capabilities().general);
            assert_eq!(own.found(global.control), Some(general), "{model:?}");
            assert_eq!(pmu.rdmsr(global.control), Ok(0));
        }
    }
}

#[test]
fn i6_what_the_firmware_left_running_is_told_and_comes_back() {
    for (model, mut pmu, driver) in machines() {
        let (select, counter) =
            (driver.layout().select(1), driver.layout().counter(Counter::General(1)));
        let debugctl = numbers::DEBUGCTL;
        for (msr, value) in [(select, 0x0053_00c0), (counter, 0x1234), (debugctl, 1)] {
            pmu.wrmsr(msr, value).unwrap();
        }
        let before: Vec<u64> =
            [select, counter, debugctl].map(|msr| pmu.rdmsr(msr).unwrap()).to_vec();
        let own = Ownership::claim(&mut pmu, driver.capabilities());
        let left = Conflict::LeftOn { msr: select.0, value: 0x0053_00c0 };
        assert!(own.conflicts.contains(&left), "{model:?}: {:?}", own.conflicts);
        if let Some(in_use) = driver.layout().global.and_then(|global| global.in_use) {
            assert!(matches!(own.conflicts[0], Conflict::InUse(_)), "{model:?} {in_use:?}");
        }
        assert_eq!(pmu.rdmsr(select), Ok(0));
        let mut driver = driver;
        driver.reset(&mut pmu).unwrap();
        driver.program(&mut pmu, Counter::General(0), &INSTRUCTIONS).unwrap();
        driver.write(&mut pmu, Counter::General(1), 7).unwrap();
        driver.reset(&mut pmu).unwrap();
        own.restore(&mut pmu);
        let after: Vec<u64> =
            [select, counter, debugctl].map(|msr| pmu.rdmsr(msr).unwrap()).to_vec();
        assert_eq!(after, before, "{model:?}");
    }
}

/// A PMU that somebody else drives: one counter moves at each look, one select comes back.
struct ForeignDriver(Pmu, u64);

const MOVES: Msr = Msr(0x4c2);
const RETURNS: Msr = Msr(0x188);

impl Registers for ForeignDriver {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, crate::msr::Absent> {
        self.1 += 1;
        match msr {
            MOVES => Ok(self.1),
            RETURNS => Ok(0x0041_003c),
            _ => self.0.rdmsr(msr),
        }
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), crate::msr::Absent> {
        self.0.wrmsr(msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}

#[test]
fn i6_counters_that_move_by_themselves_are_told() {
    let mut pmu = ForeignDriver(machine(Model::Skylake), 0);
    let has = find(&mut pmu).unwrap();
    let own = Ownership::claim(&mut pmu, &has);
    let text: Vec<String> = own.conflicts.iter().map(ToString::to_string).collect();
    assert!(text.iter().any(|line| line.contains("MSR 0x4c2 went from")), "{text:?}");
    assert!(text.iter().any(|line| line.contains("MSR 0x188 reads 0x41003c after 0")), "{text:?}");
}

/// Notes what is written.
struct Noting(Pmu, Vec<Msr>);

impl Registers for Noting {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, crate::msr::Absent> {
        self.0.rdmsr(msr)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), crate::msr::Absent> {
        self.1.push(msr);
        self.0.wrmsr(msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, crate::msr::Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}

/// Some hypervisors complain of any write to IA32_DEBUGCTL: one that has its value already is left alone, both times.
#[test]
fn debugctl_is_not_written_with_what_it_has() {
    for (model, pmu, driver) in machines() {
        let mut noting = Noting(pmu, Vec::new());
        let own = Ownership::claim(&mut noting, driver.capabilities());
        let claimed = noting.1.len();
        own.restore(&mut noting);
        assert!(claimed > 0 && noting.1.len() > claimed, "{model:?}: others are written");
        assert!(!noting.1.contains(&numbers::DEBUGCTL), "{model:?}");
    }
}
