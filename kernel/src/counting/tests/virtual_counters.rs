use super::*;

const FIRST: Counter = Counter::General(0);
const SECOND: Counter = Counter::General(1);

/// Both counters programmed, the handler installed, everything started.
fn started(
    bench: &mut FakeMachine,
    driver: &mut Driver,
    mode: Mode,
) -> Result<[VirtualCounter; 2], arch::pmu::PmuError> {
    driver.program(bench, FIRST, &INSTRUCTIONS.with_interrupt())?;
    driver.program(bench, SECOND, &INSTRUCTIONS.with_interrupt())?;
    let mut block = ControlBlock::of(driver);
    let first = VirtualCounter::arm(driver, bench, FIRST, mode, 0, 0)?;
    let second = VirtualCounter::arm(driver, bench, SECOND, Mode::Free, 0, 0)?;
    if let Some(preset) = first.reload() {
        block.reload(driver, FIRST, preset)?;
        if driver.capabilities().freeze != FreezeKind::None {
            driver.set_freeze(bench, Freeze::COUNTERS)?;
            block.resume_in_handler(driver);
        }
    }
    bench.deliver(block);
    bench.instructions = [0; 2];
    driver.start(bench)?;
    Ok([first, second])
}

fn true_count(bench: &FakeMachine) -> u64 {
    bench.instructions[0] + bench.instructions[1]
}

#[test]
fn i1_p7_a_count_goes_on_beyond_the_width_of_its_counter() {
    for (model, mut bench, mut driver) in FakeMachine::all() {
        let [mut count, _] = started(&mut bench, &mut driver, Mode::Free).unwrap();
        let width = 1 << driver.capabilities().general_bits;
        for turn in 1..=1000u64 {
            bench.run(Ring::User, width - 1);
            assert_eq!(count.fold(&driver, &mut bench), Ok(turn * (width - 1)), "{model:?}");
        }
        driver.stop(&mut bench).unwrap();
        assert_eq!(count.read(&driver, &mut bench), Ok(true_count(&bench)), "{model:?}");
    }
}

#[test]
fn p7_with_a_status_register_any_number_of_wraps_is_told_by_the_interrupt() {
    for (model, mut bench, mut driver) in FakeMachine::all() {
        let [count, _] = started(&mut bench, &mut driver, Mode::Free).unwrap();
        if driver.layout().global.is_none() {
            continue;
        }
        bench.run(Ring::User, (1 << driver.capabilities().general_bits) * 700 + 5);
        assert_eq!(count.read(&driver, &mut bench), Ok(true_count(&bench)), "{model:?}");
    }
}

/// Core 2's counters take 32 bits: the longest period is 2^31. Each is read at every step, and the other counter,
/// which nobody ever writes to, tells what is true.
#[test]
fn p7_i1_32_usable_bits_wrapped_1000_times_under_read_pressure() {
    for (model, mut bench, mut driver) in FakeMachine::all() {
        let period = 1u64 << 31;
        let [count, truth] = started(&mut bench, &mut driver, Mode::Every(period)).unwrap();
        let mut reads = 0;
        while true_count(&bench) < 1000 * period {
            bench.between.extend([period / 7, 1, 0, period / 5]);
            let seen = count.read(&driver, &mut bench).unwrap();
            bench.between.clear();
            let now = truth.read(&driver, &mut bench).unwrap();
            assert!(seen <= now && now - seen < period, "{model:?}: {seen} of {now}");
            reads += 1;
        }
        assert!(reads > 2000);
        driver.stop(&mut bench).unwrap();
        let seen = [&count, &truth].map(|one| one.read(&driver, &mut bench).unwrap());
        assert_eq!(seen, [true_count(&bench); 2], "{model:?}");
        assert!(bench.overflows(FIRST) >= 1000);
    }
}

/// Readings that follow at once go on from there, also in the middle of a period.
#[test]
fn c5_a_counter_that_goes_on_within_a_period_knows_its_value() {
    for (model, mut bench, mut driver) in FakeMachine::all() {
        driver.program(&mut bench, FIRST, &INSTRUCTIONS.with_interrupt()).unwrap();
        let mode = Mode::Every(1000);
        let count = VirtualCounter::arm(&driver, &mut bench, FIRST, mode, 5300, 300).unwrap();
        let (value, before) = count.at_last_fold();
        assert_eq!(driver.read(&mut bench, FIRST), Ok(value), "{model:?}");
        assert_eq!(value.wrapping_add(before), 5300, "{model:?}");
    }
}

#[test]
fn c5_a_period_that_the_counter_cannot_take_is_refused() {
    let (_, mut bench, driver) = FakeMachine::all().next().unwrap();
    let refused = |bench: &mut FakeMachine, period| {
        VirtualCounter::arm(&driver, bench, FIRST, Mode::Every(period), 0, 0)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&mut bench, 0).contains("a period of 0"));
    assert!(refused(&mut bench, 1 << 41).contains("0x20000000000"));
    assert!(refused(&mut bench, 1 << 33).contains("32 bits"));
}

/// The counter wraps after it was read, and its bit is there when the status is: what was read is before the wrap. Read
/// a little later, interrupts still off, it is behind it.
#[test]
fn p7_a_wrap_between_the_counter_and_the_status_is_not_counted_before_it_happened() {
    for (model, mut bench, mut driver) in FakeMachine::all() {
        let [count, _] = started(&mut bench, &mut driver, Mode::Free).unwrap();
        if driver.layout().global.is_none() {
            continue;
        }
        let wrap = 1u64 << driver.capabilities().general_bits;
        bench.set_interrupts(false);
        bench.run(Ring::Kernel, wrap - 2);
        // Nothing before the overflows are looked at and the counter is read, five before anything after that.
        bench.between.extend([0, 0, 5]);
        assert_eq!(count.read(&driver, &mut bench), Ok(wrap - 2), "{model:?}");
        bench.between.clear();
        assert_eq!(count.read(&driver, &mut bench), Ok(true_count(&bench)), "{model:?}");
        bench.run(Ring::Kernel, 1_000);
        assert_eq!(count.read(&driver, &mut bench), Ok(true_count(&bench)), "{model:?}");
        bench.set_interrupts(true);
        assert_eq!(count.read(&driver, &mut bench), Ok(true_count(&bench)), "{model:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Interrupts at every point: some instructions between any two accesses of the reader, up to near a wrap, and
    /// interrupts off for some of the time.
    #[test]
    fn m12_p7_a_read_neither_loses_nor_doubles_a_wrap(
        which in 0..FakeMachine::all().count(),
        steps in prop::collection::vec((any::<bool>(), 0u64..4, prop::collection::vec(0u64..3, 0..12), any::<bool>()), 1..25),
    ) {
        let (model, mut bench, mut driver) = FakeMachine::all().nth(which).unwrap();
        let [mut count, _] = started(&mut bench, &mut driver, Mode::Free).unwrap();
        let half = 1u64 << (driver.capabilities().general_bits - 1);
        for (interrupts, before, between, fold) in steps {
            bench.set_interrupts(interrupts);
            // Near the next wrap, so that it comes between the reader's steps.
            let left = 2 * half - true_count(&bench) % (2 * half);
            let before = if before < 2 { left - before } else { before };
            bench.run(Ring::Kernel, before / 2);
            // Without a status register somebody has to look at least once in each turn of the counter.
            if driver.layout().global.is_none() {
                count.fold(&driver, &mut bench).unwrap();
            }
            bench.run(Ring::Kernel, before - before / 2);
            let earliest = true_count(&bench);
            bench.between.extend(&between);
            let seen = match fold || driver.layout().global.is_none() {
                true => count.fold(&driver, &mut bench),
                false => count.read(&driver, &mut bench),
            };
            bench.between.clear();
            let seen = seen.unwrap();
            let latest = true_count(&bench);
            prop_assert!((earliest..=latest).contains(&seen), "{:?}: {} of {}..={}", model, seen, earliest, latest);
            // An interrupt may be late, but not by half of the counter's range.
            bench.set_interrupts(true);
        }
        driver.stop(&mut bench).unwrap();
        prop_assert_eq!(count.read(&driver, &mut bench), Ok(true_count(&bench)), "{:?}", model);
    }

    /// The same with periods, and another counter in the same interrupts. Ring 3 interrupts the reader as well.
    #[test]
    fn m12_c5_periods_are_exact_whenever_they_are_read(
        which in 0..FakeMachine::all().count(), period in 50u64..400,
        steps in prop::collection::vec((0u64..500, prop::collection::vec(0u64..9, 0..12), any::<bool>()), 1..25),
    ) {
        let (model, mut bench, mut driver) = FakeMachine::all().nth(which).unwrap();
        let [mut count, _] = started(&mut bench, &mut driver, Mode::Every(period)).unwrap();
        for (before, between, fold) in steps {
            bench.run(Ring::User, before);
            let earliest = true_count(&bench);
            bench.between.extend(&between);
            let seen = match fold {
                true => count.fold(&driver, &mut bench),
                false => count.read(&driver, &mut bench),
            }.unwrap();
            bench.between.clear();
            let latest = true_count(&bench);
            prop_assert!((earliest..=latest).contains(&seen), "{:?}: {} of {}..={}", model, seen, earliest, latest);
        }
        driver.stop(&mut bench).unwrap();
        let seen = count.read(&driver, &mut bench).unwrap();
        prop_assert_eq!(seen, true_count(&bench), "{:?}", model);
        prop_assert_eq!(bench.overflows(FIRST), seen / period, "{:?}", model);
    }
}
