//! What the handler notes of overflows, on the models.

use super::interrupt::{PERIOD, Processor, armed};
use super::pmi::{
    Bucket, ControlBlock, Handling, Interrupted, REGISTERS, Sample, TIMER_BIT, TIMER_SLOT,
    Throttle, Times, tick,
};
use super::*;
use core::sync::atomic::{AtomicU64, Ordering};

const FIRST: Counter = Counter::General(0);

/// A model with its driver, sampling every [`PERIOD`] instructions; `change` adds what is to be noted.
fn run(
    (model, mut pmu, mut driver): (Model, Pmu, Driver),
    instructions: u64,
    change: impl FnOnce(&mut ControlBlock, &Driver),
) -> (Model, Processor, Driver, ControlBlock) {
    let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
    change(&mut block, &driver);
    let mut processor = Processor::new(pmu, &driver);
    processor.run(&mut block, instructions);
    (model, processor, driver, block)
}

#[test]
fn i4_m11_each_overflow_is_sampled_dropped_or_throttled() {
    for machine in machines() {
        let mut log = [Sample::default(); 10];
        let (model, _, _, block) = run(machine, 100 * PERIOD, |block, _| block.log_to(&mut log));
        let slot = block.slot(0);
        assert_eq!((slot.overflows, slot.dropped, slot.throttled), (100, 90, 0), "{model:?}");
        assert_eq!((block.logged(log.as_ptr()), block.dropped), (10, 90), "{model:?}");
    }
}

#[test]
fn m11_a_log_that_stops_counting_holds_the_first_samples_and_nothing_is_dropped() {
    for machine in machines() {
        let mut log = [Sample::default(); 10];
        let (model, mut processor, driver, block) = run(machine, 100 * PERIOD, |block, _| {
            block.log_to(&mut log);
            block.stop_when_full();
        });
        assert!(block.stopped, "{model:?}");
        assert_eq!((block.slot(0).overflows, block.slot(0).dropped, block.dropped), (10, 0, 0));
        // The other counter stopped with it.
        let witness = driver.read(&mut processor.pmu, Counter::General(1)).unwrap();
        assert_eq!(witness, 10 * PERIOD, "{model:?}");
    }
}

#[test]
fn i5_addresses_are_counted_in_the_interrupt() {
    for machine in machines() {
        let mut buckets = [Bucket::default(); 64];
        let (model, _, _, block) =
            run(machine, 20 * PERIOD, |block, _| block.count_addresses(&mut buckets));
        let histogram = block.histogram().unwrap();
        // The model's program counts up, so each address comes once.
        let mut seen: Vec<_> = histogram.used().map(|b| (b.address, b.bit, b.count)).collect();
        seen.sort_unstable();
        let expected: Vec<_> = (1..=20).map(|n| (n * PERIOD - 1, 0, 1)).collect();
        assert_eq!((seen, histogram.elsewhere), (expected, 0), "{model:?}");
    }
}

#[test]
fn m8_throttling_doubles_the_period_and_accounts_for_what_it_leaves_out() {
    // The handler's clock stands still here, so after each three samples the period doubles.
    for machine in machines() {
        let limit = Throttle::new(1000, 2);
        let (model, mut processor, driver, block) =
            run(machine, 400 * PERIOD, |block, _| block.throttle = limit);
        let slot = block.slot(0);
        let left = driver.read(&mut processor.pmu, FIRST).unwrap();
        let period = PERIOD << slot.level;
        let into = left.wrapping_add(period) & driver.capabilities().mask(FIRST);
        assert!(
            slot.level >= 5 && block.throttle.raised == u32::from(slot.level),
            "{model:?}: {slot:?}"
        );
        // All events are in whole periods or in the one that is under way.
        let periods = slot.overflows + slot.throttled;
        assert_eq!(periods * PERIOD + into, 400 * PERIOD, "{model:?}: {slot:?}");
    }
}

#[test]
fn c5_everything_starts_again_with_one_call() {
    for machine in machines() {
        let mut log = [Sample::default(); 4];
        let (model, mut processor, driver, mut block) = run(machine, 50 * PERIOD, |block, _| {
            block.log_to(&mut log);
            block.throttle = Throttle::new(1000, 9);
        });
        assert!(block.slot(0).level > 0 && block.dropped > 0, "{model:?}");
        block.clear();
        let preset = driver.preset(FIRST, PERIOD).unwrap();
        assert_eq!((block.slot(0).preset, block.slot(0).overflows), (preset, 0), "{model:?}");
        driver.write(&mut processor.pmu, FIRST, preset).unwrap();
        processor.run(&mut block, 3 * PERIOD);
        assert_eq!((block.slot(0).overflows, block.logged(log.as_ptr())), (3, 3), "{model:?}");
    }
}

#[test]
fn i4_a_callback_hears_of_each_overflow() {
    static HEARD: AtomicU64 = AtomicU64::new(0);
    fn hear(rip: u64, status: u64) {
        assert_eq!(status, 1);
        HEARD.fetch_add(rip, Ordering::Relaxed);
    }
    let machine = machines().next().unwrap();
    run(machine, 3 * PERIOD, |block, _| block.notify(hear));
    assert_eq!(HEARD.load(Ordering::Relaxed), (1 + 2 + 3) * PERIOD - 3);
}

#[test]
fn m9_registers_of_each_sample_are_kept_beside_it() {
    let (_, mut pmu, mut driver) = machines().next().unwrap();
    let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
    let (mut log, mut registers) = ([Sample::default(); 2], [[0; REGISTERS]; 2]);
    block.log_to(&mut log);
    block.registers_to(&mut registers);
    let mut processor = Processor::new(pmu, &driver);
    processor.run(&mut block, 3 * PERIOD);
    assert_eq!(registers.map(|set| (set[0], set[15])), [1, 2].map(|n| (n * PERIOD - 1, 0)));
    let mut short = [[0; REGISTERS]; 1];
    let mut block = ControlBlock::EMPTY;
    block.log_to(&mut log);
    block.registers_to(&mut short);
    assert!(!block.needs_registers(), "registers for fewer samples than the log has are not used");
}

#[test]
fn m8_t7_a_tick_is_a_sample_and_keeps_the_counters_still() {
    for (model, mut pmu, mut driver) in machines() {
        let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
        block.stop_in_handler(&driver).unwrap();
        let (mut log, mut times) = ([Sample::default(); 2], [0; 2]);
        block.log_to(&mut log);
        block.times = Times::watching(1000, &mut times);
        let mut processor = Processor::new(pmu, &driver);
        processor.run(&mut block, 5);
        processor.order.clear();
        let from = Interrupted { rip: 99, cs: 3, ..Interrupted::default() };
        tick(&mut block, &mut processor, &from);
        processor.run(&mut block, 5);
        let seen = driver.read(&mut processor.pmu, Counter::General(1)).unwrap();
        assert_eq!((block.slot(TIMER_SLOT).overflows, seen), (1, 10), "{model:?}");
        assert_eq!((log[0].rip, log[0].status, log[0].ring()), (99, TIMER_BIT, 3));
        assert_eq!((block.times.seen(), block.times.doubled), (&[42][..], 0));
        let writes = 2 * driver.gate().on().len();
        assert_eq!((processor.order.len(), processor.ends), (writes + 1, 1), "{model:?}");
        assert!(matches!(block.handling(), Handling::Stopped { .. }));
    }
}

#[test]
fn m12_a_million_overflows_are_all_accounted_for() {
    let rounds = [
        (Model::Skylake, 1_000_000),
        (Model::Core2, 20_000),
        (Model::Zen2, 20_000),
        (Model::Zen4, 20_000),
    ];
    for (model, rounds) in rounds {
        let machine = machines().find(|(this, ..)| *this == model).unwrap();
        let kept = rounds as usize / 2;
        let mut log = vec![Sample::default(); kept];
        let (_, _, _, block) = run(machine, rounds * PERIOD + 5, |block, _| block.log_to(&mut log));
        let slot = block.slot(0);
        assert_eq!(block.logged(log.as_ptr()), kept, "{model:?}");
        assert_eq!((slot.dropped, slot.overflows), (rounds / 2, rounds), "{model:?}");
        let all_there = (1..).zip(&log).all(|(n, sample)| sample.rip == n * PERIOD - 1);
        assert!(all_there, "{model:?}");
    }
}

/// Two counters that overflow at one instruction are two overflows everywhere: in the histogram, in what a full log drops.
#[test]
fn m11_m12_overflows_at_one_instruction_are_counted_for_each_counter() {
    for (model, mut pmu, mut driver) in machines() {
        let counters = [Counter::General(0), Counter::General(1)];
        driver.reset(&mut pmu).unwrap();
        for counter in counters {
            driver.program(&mut pmu, counter, &INSTRUCTIONS.with_interrupt()).unwrap();
        }
        let mut block = ControlBlock::of(&driver);
        for counter in counters {
            let preset = driver.preset(counter, PERIOD).unwrap();
            driver.write(&mut pmu, counter, preset).unwrap();
            block.reload(&driver, counter, preset).unwrap();
        }
        let (mut log, mut buckets) = ([Sample::default(); 1], [Bucket::default(); 8]);
        block.log_to(&mut log);
        block.count_addresses(&mut buckets);
        driver.start(&mut pmu).unwrap();
        Processor::new(pmu, &driver).run(&mut block, 3 * PERIOD);
        let slots = [0, 1].map(|index| (block.slot(index).overflows, block.slot(index).dropped));
        assert_eq!((slots, block.dropped, log[0].status), ([(3, 2); 2], 2, 0b11), "{model:?}");
        let mut seen: Vec<_> =
            block.histogram().unwrap().used().map(|b| (b.bit, b.address, b.count)).collect();
        seen.sort_unstable();
        let expected: Vec<_> = [0, 1]
            .into_iter()
            .flat_map(|bit| [1, 2, 3].map(|n| (bit, n * PERIOD - 1, 1)))
            .collect();
        assert_eq!(seen, expected, "{model:?}");
    }
}

/// A tick that comes when the gate is closed, or that fills the log, lets nothing go on.
#[test]
fn t7_a_tick_does_not_start_the_counters_of_a_closed_gate() {
    for (model, mut pmu, mut driver) in machines() {
        for (rip, full, goes_on) in [(99, false, true), (0x2004, false, false), (99, true, false)] {
            let mut block = armed(&mut pmu, &mut driver, Freeze::empty());
            block.stop_in_handler(&driver).unwrap();
            let (mut log, mut times) = ([Sample::default(); 2], [0; 2]);
            block.log_to(if full { &mut log[..1] } else { &mut log[..] });
            block.stop_when_full();
            block.closes_in(&(0x2000..0x2010));
            block.times = Times::watching(1000, &mut times);
            let mut processor = Processor::new(pmu, &driver);
            driver.stop(&mut processor.pmu).unwrap();
            driver.write(&mut processor.pmu, Counter::General(1), 0).unwrap();
            let from = Interrupted { rip, cs: 3, ..Interrupted::default() };
            tick(&mut block, &mut processor, &from);
            processor.run(&mut block, 5);
            let seen = driver.read(&mut processor.pmu, Counter::General(1)).unwrap();
            assert_eq!(seen, if goes_on { 5 } else { 0 }, "{model:?} {rip:#x} {full}");
            driver.reset(&mut processor.pmu).unwrap();
            pmu = processor.pmu;
        }
    }
}
