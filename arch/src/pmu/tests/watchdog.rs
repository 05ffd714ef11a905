use super::*;
use crate::msr::{Absent, Msr};
use crate::watchdog::Watchdog;
use pmu_model::{Delta, Ring};

#[test]
fn x1_the_watchdog_counts_inside_and_outside_the_gate_and_events_inside_alone() {
    for (model, mut pmu, mut driver) in machines() {
        driver.reset(&mut pmu).unwrap();
        let event = Counter::General(0);
        driver.program(&mut pmu, event, &INSTRUCTIONS).unwrap();
        driver.write(&mut pmu, event, 0).unwrap();
        let dog = Watchdog::program(&mut driver, &mut pmu, 5_000).expect("a free counter");
        let mask = driver.capabilities().mask(dog.counter());
        let ([on, off], limit) = dog.parts(mask);
        assert_eq!(limit, 5_000, "{model:?}");
        driver.write(&mut pmu, dog.counter(), 0).unwrap();
        let run = |pmu: &mut Pmu, write: Option<driver::Write>, instructions| {
            if let Some(one) = write {
                pmu.wrmsr(Msr(one.msr), one.value).unwrap();
            }
            pmu.advance(&Delta::bulk(Ring::Kernel, instructions));
        };
        run(&mut pmu, None, 1);
        run(&mut pmu, Some(on), 10);
        driver.start(&mut pmu).unwrap();
        run(&mut pmu, None, 100);
        driver.stop(&mut pmu).unwrap();
        run(&mut pmu, None, 1_000);
        run(&mut pmu, Some(off), 10_000);
        assert_eq!(driver.read(&mut pmu, event), Ok(100), "{model:?}");
        // Two of the model's reference cycles are three core cycles.
        let counted = if dog.counter() == Counter::Fixed(2) { 740 } else { 1_110 };
        assert_eq!(driver.read(&mut pmu, dog.counter()), Ok(counted), "{model:?}");
        assert_eq!(pmu.advance(&Delta::bulk(Ring::Kernel, 1)).overflowed, 0);
    }
}

#[test]
fn x1_without_a_free_counter_there_is_no_watchdog_and_a_limit_may_take_several_stretches() {
    for (model, mut pmu, mut driver) in machines() {
        driver.reset(&mut pmu).unwrap();
        let long = 3 << 31;
        let dog = Watchdog::program(&mut driver, &mut pmu, long).expect("a free counter");
        let (_, limit) = dog.parts(driver.capabilities().mask(dog.counter()));
        assert_eq!(limit, long, "{model:?}");
        let all: Vec<Counter> = driver.capabilities().counters().collect();
        driver.reset(&mut pmu).unwrap();
        for counter in all {
            driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
        }
        assert_eq!(Watchdog::program(&mut driver, &mut pmu, 5_000), None, "{model:?}");
    }
}

/// A processor of AMD's family 15h, of which counters 0 to 2 alone count event 0x76 (Linux, `amd_f15_PMC20`).
struct Bulldozer(Pmu);

impl Registers for Bulldozer {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        let seen = Registers::cpuid(&self.0, leaf, subleaf);
        // FX-8350.
        if leaf == 1 { raw_cpuid::CpuIdResult { eax: 0x0060_0f20, ..seen } } else { seen }
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        Registers::rdmsr(&mut self.0, msr)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        // PERF_CTL3 to 5: the event is counted as one that never happens.
        let beyond = [0xc001_0206, 0xc001_0208, 0xc001_020a].contains(&msr.0);
        let value = if beyond && value & 0xff == 0x76 { value & !0xff | 0x77 } else { value };
        Registers::wrmsr(&mut self.0, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}

#[test]
fn x1_the_watchdog_of_family_15h_counts_cycles_where_it_can_and_instructions_elsewhere() {
    let counted = |taken: u8| {
        let mut pmu = Bulldozer(machine(Model::Zen2));
        let mut driver = Driver::new(find(&mut pmu).expect("a PMU"));
        assert_eq!(driver.capabilities().version, 1, "six counters, one control each");
        driver.reset(&mut pmu).unwrap();
        for n in 0..taken {
            driver.program(&mut pmu, Counter::General(n), &INSTRUCTIONS).unwrap();
        }
        let dog = Watchdog::program(&mut driver, &mut pmu, 5_000).expect("a free counter");
        driver.write(&mut pmu, dog.counter(), 0).unwrap();
        let ([on, _], _) = dog.parts(driver.capabilities().mask(dog.counter()));
        pmu.wrmsr(Msr(on.msr), on.value).unwrap();
        pmu.0.advance(&Delta::bulk(Ring::Kernel, 100));
        (dog.counter(), driver.read(&mut pmu, dog.counter()).unwrap())
    };
    assert_eq!(counted(0), (Counter::General(2), 100));
    assert_eq!(counted(2), (Counter::General(2), 100));
    assert_eq!(counted(3), (Counter::General(5), 100), "instructions, and the last counter");
}
