use super::*;
use crate::msr::Msr;
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
