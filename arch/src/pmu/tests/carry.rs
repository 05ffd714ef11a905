//! Events between an overflow and the moment at which the counters stand.

use super::interrupt::Processor;
use super::pmi::{ControlBlock, Interrupted, service};
use super::*;
use crate::pmu::driver::Rings;
use pmu_model::{Delta, Retirement, Ring};

const FIRST: Counter = Counter::General(0);
const PERIOD: u64 = 1000;

/// A processor whose interrupts come `skid` instructions after the overflow, and whose counters stand from there on, through twenty
/// overflows: instructions in all, and what the sampled counter makes of them: overflows, and what is owed and into a period.
fn skidding(
    (pmu, driver): (&mut Pmu, &mut Driver),
    ring: Ring,
    skid: u64,
    stand: impl FnOnce(&mut ControlBlock, &Driver),
) -> (u64, u64, u64) {
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
    (all, block.overflows(FIRST), block.owed(FIRST) + value.wrapping_sub(preset))
}

/// Whatever an overflow leaves of a counter that is known to stand belongs to the periods after it: its overflows, what is owed and
/// what it is into a period account for all, also where whole periods end before the interrupt comes. Of one that the handler stops,
/// ring 0 has the handler's own instructions.
#[test]
fn m12_what_is_counted_after_an_overflow_belongs_to_the_next_periods() {
    for (model, mut pmu, mut driver) in machines() {
        let frozen = |block: &mut ControlBlock, driver: &Driver| block.carry_over_frozen(driver);
        let stopped =
            |block: &mut ControlBlock, driver: &Driver| block.stop_in_handler(driver).unwrap();
        // An erratum asks for the periods themselves (nhm_limit_period, HSW11): all of it is owed then.
        let exact = driver
            .capabilities()
            .errata
            .iter()
            .any(|row| matches!(row.effect, crate::pmu::errata::Effect::Period(_)));
        // Half of a period is left to the next one at most.
        for (skid, carried) in [(0, 0), (1, 1), (70, 70), (326, 326), (501, 500), (2570, 500)] {
            let rest = |carries: bool| if carries { skid + 19 * (skid - carried) } else { 0 };
            let frozen_rest = if exact { 20 * skid } else { rest(true) };
            for ring in [Ring::Kernel, Ring::User] {
                let said = format!("{model:?} {ring:?} {skid}");
                let (all, overflows, rest) = skidding((&mut pmu, &mut driver), ring, skid, frozen);
                assert_eq!((overflows, all - 20 * PERIOD), (20, rest), "{said}");
                assert_eq!(rest, frozen_rest, "{said}");
                let (all, overflows, rest) = skidding((&mut pmu, &mut driver), ring, skid, stopped);
                let lost = if ring == Ring::User { 0 } else { 20 * skid };
                assert_eq!((overflows, all - 20 * PERIOD - rest), (20, lost), "{said}: stopped");
            }
            let (all, overflows, rest) =
                skidding((&mut pmu, &mut driver), Ring::Kernel, skid, |_, _| ());
            assert_eq!((overflows, rest), (20, 0), "{model:?}: counters that go on");
            assert_eq!(all, 20 * (PERIOD + skid), "{model:?}: counters that go on");
        }
    }
}
