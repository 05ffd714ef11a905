//! What Nehalem's counters need before they get an event.

use super::*;
use crate::msr::{Absent, Msr};
use crate::pmu::numbers;

/// Writes that a processor has seen, in their order.
struct Noting(Pmu, Vec<(u32, u64)>);

impl Registers for Noting {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        Registers::rdmsr(&mut self.0, msr)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.1.push((msr.0, value));
        Registers::wrmsr(&mut self.0, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}

/// The four events are in all selects, with the counters at 0, and enabled once; then everything is as it was, and the own event
/// follows.
#[test]
fn counters_of_nehalem_have_four_other_events_before_their_own() {
    let (model, pmu, mut driver) = machines().find(|one| one.0 == Model::Nehalem).unwrap();
    let mut noting = Noting(pmu, Vec::new());
    let [first, second] = [Counter::General(0), Counter::General(1)];
    driver.reset(&mut noting).unwrap();
    driver.program(&mut noting, first, &INSTRUCTIONS).unwrap();
    let preset = driver.preset(first, 1_000).unwrap();
    driver.write(&mut noting, first, preset).unwrap();
    noting.1.clear();
    driver.program(&mut noting, second, &Selection::of(0xc4, 0)).unwrap();
    let [global, select, counter] = [0x38f, 0x186, 0xc1];
    let own = |event: u64| 0x43_0000 | event;
    assert_eq!(
        noting.1,
        [
            (global, 0),
            (select, 0x43_00b5),
            (counter, 0),
            (select + 1, 0x43_00d2),
            (counter + 1, 0),
            (select + 2, 0x43_00b1),
            (counter + 2, 0),
            (select + 3, 0x43_00b1),
            (counter + 3, 0),
            (global, 0xf),
            (global, 0),
            (counter, preset),
            (select, own(0xc0)),
            (counter + 1, 0),
            (select + 1, 0),
            (counter + 2, 0),
            (select + 2, 0),
            (counter + 3, 0),
            (select + 3, 0),
            (global, 0),
            (select + 1, own(0xc4)),
        ],
        "{model:?}"
    );
    // The counter has kept its value, and nothing is pending.
    assert_eq!(driver.read(&mut noting, first), Ok(preset));
    assert_eq!(driver.status(&mut noting).map(|status| status.bits()), Ok(0));
}

#[test]
fn counters_of_other_processors_get_their_event_at_once() {
    for (model, pmu, mut driver) in machines().filter(|one| one.0 != Model::Nehalem) {
        let mut noting = Noting(pmu, Vec::new());
        driver.reset(&mut noting).unwrap();
        noting.1.clear();
        driver.program(&mut noting, Counter::General(0), &INSTRUCTIONS).unwrap();
        let control = driver.layout().global.map_or(numbers::GLOBAL_CTRL, |global| global.control);
        assert!(noting.1.iter().all(|(msr, _)| *msr != control.0), "{model:?}: {:x?}", noting.1);
        assert!(noting.1.len() <= 2, "{model:?}: {:x?}", noting.1);
    }
}
