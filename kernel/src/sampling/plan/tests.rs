//! Periods of a rate, periods that errata exclude, and witnesses.

use super::period::period_for;
use super::possible::within_errata;
use super::*;
use arch::pmu::Capabilities;

#[test]
fn m8_a_rate_becomes_the_period_that_makes_it() {
    // 10^9 events a second, 1,000 samples a second.
    assert_eq!(period_for(5_000, 10_000, 2_000_000_000, 1_000), 1_000_000);
    assert_eq!(period_for(1, u64::MAX, 1, u32::MAX), 1);
    assert_eq!(period_for(u64::MAX, 1, u64::MAX, 1), u64::MAX);
}

/// Linux, `hsw_limit_period` and `bdw_limit_period`: of what the counter is set to, which with PEBS is one event less.
#[test]
fn s1_periods_that_an_erratum_is_about_are_refused() {
    use arch::cpu::Identity;
    use arch::pmu::{errata, find};
    use pmu_model::{Host, Model, Pmu as Registers, Timing};
    let has = |model, number: Option<u32>| {
        let mut registers = Registers::new(model, Host::EXAMPLE, Timing::FLAT);
        let mut has = find(&mut registers).unwrap();
        let cpuid = |leaf: u32, sub: u32| arch::pmu::Registers::cpuid(&registers, leaf, sub);
        if let Some(number) = number {
            has.errata = errata::of(&Identity { model: number, ..Identity::read(&cpuid) });
        }
        has
    };
    let (retired, cycles) = (Selection::of(0xc0, 1), Selection::of(0x3c, 0));
    let check = |has: &Capabilities, selection: Selection, period| {
        let counter = Counter::General(1);
        let one = Armed {
            event: String::new(),
            counter,
            selection,
            period,
            witness: None,
            remarks: Vec::new(),
            ibs: None,
            auxiliary: None,
        };
        within_errata(has, &one)
    };
    let haswell = has(Model::Haswell, None);
    assert!(check(&haswell, retired, 127).unwrap_err().ends_with("at least 128"));
    assert_eq!(check(&haswell, retired, 128), Ok(()));
    assert!(check(&haswell, retired.with_records(), 128).unwrap_err().ends_with("at least 129"));
    assert_eq!(check(&haswell, retired.with_records(), 129), Ok(()));
    assert_eq!(check(&haswell, cycles, 20), Ok(()));
    assert_eq!(check(&has(Model::Skylake, None), retired, 20), Ok(()));
    // The lower six bits of what a Broadwell's counter is set to have to be 0.
    let broadwell = has(Model::Haswell, Some(0x3d));
    assert_eq!(check(&broadwell, retired.with_records(), 193), Ok(()));
    let refused = check(&broadwell, retired.with_records(), 192).unwrap_err();
    assert!(refused.ends_with("at least 129, in steps of 64"), "{refused}");
    assert_eq!(check(&broadwell, retired, 192), Ok(()));
}

/// A witness counts the same event, without interrupts; an event that only some counters have gets none.
#[test]
fn m12_a_witness_is_for_events_that_any_counter_counts() {
    use arch::pmu::find;
    use pmu_model::{Host, Model, Pmu as Registers, Timing};
    let (first, second) = (Counter::General(0), Counter::General(1));
    let of_model =
        |model| find(&mut Registers::new(model, Host::EXAMPLE, Timing::DEFAULT)).unwrap();
    let witness_of = |has: &Capabilities, counter, selection: Selection, precise| {
        let selection = if precise { selection.with_records() } else { selection.with_interrupt() };
        let mut armed = [Armed {
            event: "e".to_string(),
            counter,
            selection,
            period: 100,
            witness: None,
            remarks: Vec::new(),
            ibs: None,
            auxiliary: None,
        }];
        witnesses(&mut armed, has, &[(counter, second.bit())]);
        armed[0].witness
    };
    let witness = |model, counter, selection, precise| {
        witness_of(&of_model(model), counter, selection, precise)
    };
    let of = Selection::of;
    let (intel, amd) = (Model::Skylake, Model::Zen4);
    // Fixed counters by the architectural events' codes, whatever unit mask stands there (SDM vol. 3, table 20-2).
    assert_eq!(witness(intel, Counter::Fixed(0), of(0, 3), false), Some((first, of(0xc0, 0))));
    assert_eq!(witness(intel, Counter::Fixed(1), of(0, 3), false), Some((first, of(0x3c, 0))));
    assert_eq!(witness(intel, Counter::Fixed(2), of(0, 3), false), None);
    for event in [0xc0, 0x3c, 0xc4] {
        assert_eq!(witness(intel, first, of(event, 0), false), Some((second, of(event, 0))));
    }
    for event in [0xd0, 0xc2, 0x76] {
        assert_eq!(witness(intel, first, of(event, 1), false), None, "{event:#x}");
    }
    for event in [0xc0, 0xc2, 0x76] {
        assert_eq!(witness(amd, first, of(event, 0), false), Some((second, of(event, 0))));
    }
    for event in [0x3c, 0xc4, 0x29] {
        assert_eq!(witness(amd, first, of(event, 1), false), None, "{event:#x}");
    }
    // AMD's family 15h: cycles on counters 0 to 2 alone, instructions on all.
    let bulldozer = Capabilities { cycles: 0b111, general: 0b11_1010, ..of_model(amd) };
    let on =
        |counter, event| witness_of(&bulldozer, Counter::General(counter), of(event, 0), false);
    assert_eq!(on(3, 0x76), Some((second, of(0x76, 0))));
    assert_eq!((on(1, 0x76), on(1, 0xc0)), (None, Some((Counter::General(3), of(0xc0, 0)))));
    // Zhaoxin: the code is not of cycles.
    let zhaoxin = Capabilities { cycles: 0, ..of_model(intel) };
    assert_eq!(witness_of(&zhaoxin, Counter::Fixed(1), of(0, 3), false), None);
    // A register beside the event has one value for both.
    let extra = Selection { extra: Some((arch::msr::Msr(0x1a6), 1)), ..of(0xc0, 0) };
    assert_eq!(witness(intel, first, extra, false), None);
    // With records: instructions anywhere, other events where theirs can be counted.
    assert_eq!(witness(intel, first, of(0xc0, 1), true), Some((second, of(0xc0, 0))));
    assert_eq!(witness(intel, first, of(0xd0, 0x81), true), Some((second, of(0xd0, 0x81))));
    assert_eq!(witness(intel, second, of(0xd0, 0x81), true), None, "its one counter is taken");
    // From Ice Lake on fixed counters have records.
    let fixed = |n| witness(Model::IceLake, Counter::Fixed(n), of(0, 1), true);
    assert_eq!(fixed(0), Some((first, of(0xc0, 0))));
    assert_eq!((fixed(1), fixed(2)), (Some((first, of(0x3c, 0))), None));
}
