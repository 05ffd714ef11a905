use super::*;
use pmu_model::{Delta, Ring};
use proptest::prelude::*;

#[test]
fn every_counter_counts_between_start_and_stop_and_only_then() {
    for (model, mut pmu, mut driver) in machines() {
        let counters: Vec<Counter> = driver.capabilities().counters().collect();
        driver.reset(&mut pmu).unwrap();
        for &counter in &counters {
            driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
            driver.write(&mut pmu, counter, 0).unwrap();
        }
        pmu.advance(&Delta::bulk(Ring::User, 1000));
        driver.start(&mut pmu).unwrap();
        pmu.advance(&Delta::bulk(Ring::User, 300));
        driver.stop(&mut pmu).unwrap();
        pmu.advance(&Delta::bulk(Ring::User, 1000));
        for &counter in &counters {
            let seen = driver.read(&mut pmu, counter).unwrap();
            assert_eq!(driver.rdpmc(&mut pmu, counter), Ok(seen));
            let readable = driver.readable(&mut pmu, counter).unwrap();
            assert_eq!(pmu.rdpmc_again(readable), seen);
            match counter {
                // Reference cycles at two thirds, slots at the processor's width.
                Counter::Fixed(2) => assert_eq!(seen, 200, "{model:?}"),
                Counter::Fixed(3) => assert_eq!(seen % 300, 0, "{model:?}"),
                _ => assert_eq!(seen, 300, "{model:?}: {counter}"),
            }
        }
    }
}

#[test]
fn a_counter_that_is_not_there_is_not_readable() {
    for (_, mut pmu, driver) in machines() {
        for none in [Counter::General(31), Counter::Fixed(15)] {
            assert_eq!(driver.readable(&mut pmu, none), Err(PmuError::NoCounter(none)));
        }
    }
}

#[test]
fn i2_rings_are_told_apart() {
    for (model, mut pmu, mut driver) in machines() {
        let choices = [(Rings::USER, 7), (Rings::KERNEL, 5), (Rings::all(), 12)];
        for (rings, expected) in choices {
            driver.reset(&mut pmu).unwrap();
            let counter = Counter::General(1);
            driver.program(&mut pmu, counter, &INSTRUCTIONS.in_rings(rings)).unwrap();
            driver.write(&mut pmu, counter, 0).unwrap();
            driver.start(&mut pmu).unwrap();
            pmu.advance(&Delta::bulk(Ring::User, 7));
            pmu.advance(&Delta::bulk(Ring::Kernel, 5));
            driver.stop(&mut pmu).unwrap();
            assert_eq!(driver.read(&mut pmu, counter), Ok(expected), "{model:?} {rings:?}");
        }
    }
}

#[test]
fn a_released_counter_stands_still_and_the_others_go_on() {
    for (model, mut pmu, mut driver) in machines() {
        driver.reset(&mut pmu).unwrap();
        for n in 0..2 {
            driver.program(&mut pmu, Counter::General(n), &INSTRUCTIONS).unwrap();
            driver.write(&mut pmu, Counter::General(n), 0).unwrap();
        }
        driver.release(&mut pmu, Counter::General(0)).unwrap();
        assert_eq!(driver.programmed(), 2);
        driver.start(&mut pmu).unwrap();
        pmu.advance(&Delta::bulk(Ring::Kernel, 9));
        let seen = [0, 1].map(|n| driver.read(&mut pmu, Counter::General(n)).unwrap());
        assert_eq!(seen, [0, 9], "{model:?}");
    }
}

#[test]
fn p5_what_a_processor_lacks_is_refused_by_name() {
    for (model, mut pmu, mut driver) in machines() {
        let has = driver.capabilities().clone();
        let first = Counter::General(0);
        let mut check = |counter, selection: Selection, allowed: bool, text: &str| {
            let done = driver.program(&mut pmu, counter, &selection);
            assert_eq!(done.is_ok(), allowed, "{model:?} {text}: {done:?}");
            if let Err(error) = done {
                assert!(error.to_string().contains(text), "{error}");
            }
        };
        check(Counter::General(31), INSTRUCTIONS, false, "counter 31 does not exist");
        check(Counter::Fixed(15), INSTRUCTIONS, false, "fixed counter 15 does not exist");
        check(first, Selection { any_thread: true, ..INSTRUCTIONS }, has.any_thread, "AnyThread");
        check(first, Selection { equal: true, cmask: 1, ..INSTRUCTIONS }, has.equal, "EQ");
        check(first, Selection::of(0x187, 1), !has.is_intel(), "event 0x187");
        check(first, Selection::of(0xc4, 0x111), has.umask2, "unit mask 0x111");
        if has.fixed != 0 {
            let edge = Selection { edge: true, ..INSTRUCTIONS };
            check(Counter::Fixed(0), edge, false, "edge detection");
        }
        let extra = Some((numbers::FRONTEND, 0x11));
        let offered = has.extra.contains(&numbers::FRONTEND);
        check(first, Selection { extra, ..INSTRUCTIONS }, offered, "extra register");
    }
}

#[test]
fn p7_a_write_that_the_sign_extension_would_change_is_refused() {
    for (model, mut pmu, driver) in machines() {
        let counter = Counter::General(0);
        let mask = driver.capabilities().mask(counter);
        let narrow = matches!(model, Model::Core2 | Model::Nehalem);
        for (value, fits) in [
            (0, true),
            (0x7fff_ffff, true),
            (0x8000_0000, !narrow),
            (mask - 0x7fff_ffff, true),
            (mask - 0x8000_0000, !narrow),
            (mask + 1, false),
        ] {
            let done = driver.write(&mut pmu, counter, value);
            assert_eq!(done.is_ok(), fits, "{model:?} {value:#x}: {done:?}");
            if fits {
                assert_eq!(driver.read(&mut pmu, counter), Ok(value), "{model:?}");
            }
        }
    }
}

#[test]
fn a_gate_without_global_control_has_one_write_a_counter() {
    for (model, mut pmu, mut driver) in machines() {
        driver.reset(&mut pmu).unwrap();
        for n in 0..2 {
            driver.program(&mut pmu, Counter::General(n), &INSTRUCTIONS).unwrap();
        }
        let expected = if driver.capabilities().has_global() { 1 } else { 2 };
        let gate = driver.gate();
        assert_eq!((gate.on().len(), gate.off().len()), (expected, expected), "{model:?}");
    }
}

proptest! {
    #[test]
    fn a_preset_overflows_after_its_period(period in 1u64..100_000, which in 0..machines().count()) {
        let (model, mut pmu, mut driver) = machines().nth(which).unwrap();
        let counter = Counter::General(0);
        driver.reset(&mut pmu).unwrap();
        driver.program(&mut pmu, counter, &INSTRUCTIONS).unwrap();
        let preset = driver.preset(counter, period).unwrap();
        driver.write(&mut pmu, counter, preset).unwrap();
        driver.start(&mut pmu).unwrap();
        pmu.advance(&Delta::bulk(Ring::Kernel, period - 1));
        prop_assert_eq!(driver.status(&mut pmu).unwrap().counters(), 0, "{:?}", model);
        pmu.advance(&Delta::bulk(Ring::Kernel, 1));
        prop_assert_eq!(driver.status(&mut pmu).unwrap().counters(), 1, "{:?}", model);
        driver.stop(&mut pmu).unwrap();
        let status = driver.status(&mut pmu).unwrap();
        driver.acknowledge(&mut pmu, status).unwrap();
        if driver.capabilities().has_global() {
            prop_assert_eq!(driver.status(&mut pmu).unwrap().counters(), 0);
        }
    }

    #[test]
    fn no_selection_makes_the_driver_panic(
        event: u16, umask: u16, cmask: u8, flags: u8, n in 0u8..40, which in 0..machines().count(),
    ) {
        let (_, mut pmu, mut driver) = machines().nth(which).unwrap();
        let selection = Selection {
            edge: flags & 1 != 0, invert: flags & 2 != 0, equal: flags & 4 != 0, cmask,
            any_thread: flags & 8 != 0, interrupt: flags & 16 != 0, ..Selection::of(event, umask)
        };
        for counter in [Counter::General(n), Counter::Fixed(n)] {
            let _ = driver.program(&mut pmu, counter, &selection);
            let _ = driver.preset(counter, u64::from(event) << 32);
        }
    }
}
