//! Events between an overflow and the moment at which the counters stand.

use super::interrupt::Processor;
use super::pmi::{ControlBlock, Interrupted, service};
use super::*;
use crate::pmu::driver::Rings;
use pmu_model::{Delta, Retirement, Ring};

const FIRST: Counter = Counter::General(0);
const PERIOD: u64 = 1000;

/// A processor whose interrupts come `skid` instructions after the overflow, and whose counters stand from there on, through so many
/// overflows: instructions in all, and what the sampled counter makes of them.
fn skidding(
    (pmu, driver): (&mut Pmu, &mut Driver),
    ring: Ring,
    skid: u64,
    stand: impl FnOnce(&mut ControlBlock, &Driver),
) -> (u64, u64) {
    let selection = match ring {
        Ring::Kernel => INSTRUCTIONS,
        _ => INSTRUCTIONS.in_rings(Rings::USER),
    };
    driver.reset(pmu).unwrap();
    driver.program(pmu, FIRST, &selection.with_interrupt()).unwrap();
    let preset = driver.preset(FIRST, PERIOD).unwrap();
    driver.write(pmu, FIRST, preset).unwrap();
    let mut block = ControlBlock::of(driver);
    stand(&mut block, driver);
    block.reload(driver, FIRST, preset).unwrap();
    driver.start(pmu).unwrap();
    let mut processor = Processor::new(pmu.clone(), driver);
    let mut all = 0;
    let mut retire = |processor: &mut Processor, count| {
        let _ =
            model::retire(&mut processor.pmu, &Delta::bulk(ring, count), &Retirement::default());
        all += count;
    };
    for _ in 0..20 {
        let left = driver.read(&mut processor.pmu, FIRST).unwrap().wrapping_neg();
        retire(&mut processor, (left & driver.capabilities().mask(FIRST)) + skid);
        service(&mut block, &mut processor, &Interrupted::default());
    }
    let value = driver.read(&mut processor.pmu, FIRST).unwrap();
    (all, block.overflows(FIRST) * PERIOD + value.wrapping_sub(preset))
}

/// Periods of a counter that is known to stand do not drift: its overflows and what it is into a period account for all. Of one
/// that the handler stops, ring 0 has the handler's own instructions.
#[test]
fn m12_what_is_counted_after_an_overflow_belongs_to_the_next_period() {
    for (model, mut pmu, mut driver) in machines() {
        let frozen = |block: &mut ControlBlock, driver: &Driver| block.carry_over_frozen(driver);
        let stopped =
            |block: &mut ControlBlock, driver: &Driver| block.stop_in_handler(driver).unwrap();
        // An erratum asks for the periods themselves (nhm_limit_period, HSW11).
        let exact = driver
            .capabilities()
            .errata
            .iter()
            .any(|row| matches!(row.effect, crate::pmu::errata::Effect::Period(_)));
        let lost = |carries: bool| if carries && !exact { 0 } else { 20 * 70 };
        for ring in [Ring::Kernel, Ring::User] {
            let (all, seen) = skidding((&mut pmu, &mut driver), ring, 70, frozen);
            assert_eq!(all - seen, lost(true), "{model:?} {ring:?}");
            let (all, seen) = skidding((&mut pmu, &mut driver), ring, 70, stopped);
            assert_eq!(all - seen, lost(ring == Ring::User), "{model:?} {ring:?}: stopped");
        }
        let (all, seen) = skidding((&mut pmu, &mut driver), Ring::Kernel, 70, |_, _| ());
        assert_eq!(all - seen, lost(false), "{model:?}: counters that go on");
        // Less is carried over of more than a quarter of a period, so that the rest of a period is never short.
        let (all, seen) = skidding((&mut pmu, &mut driver), Ring::Kernel, 256 + 70, frozen);
        assert_eq!(all - seen, if exact { 20 * 326 } else { 20 * 256 }, "{model:?}");
    }
}
