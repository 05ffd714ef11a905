use super::*;
use crate::msr::Msr;
use crate::pmu::stop_on_overflow::{Stop, StopOnOverflow};
use pmu_model::{Branch, BranchKind, Delta, Mutation, Occurrence, Ring};

/// A jump every third instruction, a load every fourth.
fn instruction(at: u64) -> Delta {
    let mut delta = Delta::step(Ring::Kernel);
    if at.is_multiple_of(3) {
        let (from, to) = (at, at + 2);
        let kind = BranchKind::RelativeJump;
        let ring = Ring::Kernel;
        let branch = Branch { from, to, kind, taken: true, mispredicted: false, ring, cycles: 1 };
        delta.add_branch(&branch);
    }
    if at.is_multiple_of(4) {
        delta.add(Occurrence::Load, 1);
    }
    delta
}

/// Runs `length` instructions while the gate is open. At the interrupt the handler makes its writes, if it is to.
fn run(pmu: &mut Pmu, on_overflow: &StopOnOverflow, length: u64) -> u64 {
    let mut interrupts = 0;
    let write = |pmu: &mut Pmu, one: &driver::Write| pmu.wrmsr(Msr(one.msr), one.value).unwrap();
    on_overflow.gate().on().iter().for_each(|one| write(pmu, one));
    for at in 1..=length {
        if pmu.advance(&instruction(at)).pmi {
            interrupts += 1;
            if on_overflow.stop() == Stop::Handler {
                pmu.advance(&Delta::bulk(Ring::Kernel, 3));
                for one in on_overflow.gate().off() {
                    // The write itself is counted by what it stops.
                    pmu.advance(&Delta::bulk(Ring::Kernel, 4));
                    write(pmu, one);
                }
            }
        }
    }
    on_overflow.gate().off().iter().for_each(|one| write(pmu, one));
    interrupts
}

/// Cycles on one counter, instructions and branches on others; the clock is one of the three.
fn programmed(pmu: &mut Pmu, driver: &mut Driver, clock: usize) -> [Counter; 3] {
    let intel = driver.capabilities().is_intel();
    let events = if intel {
        [Selection::of(0x3c, 0), INSTRUCTIONS, Selection::of(0xc4, 0)]
    } else {
        [Selection::of(0x76, 0), INSTRUCTIONS, Selection::of(0xc2, 0)]
    };
    let mut generals = driver.capabilities().generals();
    let counters = [(); 3].map(|()| generals.next());
    // Two counters: cycles are fixed then.
    let counters = match counters {
        [Some(a), Some(b), Some(c)] => [a, b, c],
        [Some(a), Some(b), None] => [Counter::Fixed(1), a, b],
        _ => panic!("{counters:?}"),
    };
    driver.reset(pmu).unwrap();
    for (index, (counter, selection)) in counters.into_iter().zip(events).enumerate() {
        let selection = if index == clock { selection.with_interrupt() } else { selection };
        driver.program(pmu, counter, &selection).unwrap();
    }
    counters
}

/// Each model, each of its ways, each of the three events as the clock, and every number of them.
#[test]
fn m16_everything_stops_at_the_nth_event_of_the_clock_for_every_n() {
    const LENGTH: u64 = 60;
    let mut ways_seen = Vec::new();
    for (model, mut pmu, mut driver) in machines() {
        for &stop in StopOnOverflow::ways(&driver) {
            ways_seen.push(stop);
            for clock in 0..3 {
                let counters = programmed(&mut pmu, &mut driver, clock);
                let mut on_overflow =
                    StopOnOverflow::new(&driver, &mut pmu, counters[clock], stop).unwrap();
                if driver.layout().global.is_none() {
                    let Counter::General(own) = counters[clock] else { panic!("no fixed ones") };
                    let own = driver.layout().select(own).0;
                    let ends =
                        [on_overflow.gate().on(), on_overflow.gate().off()].map(|side| side.last());
                    assert!(ends.iter().all(|one| one.is_some_and(|one| one.msr == own)));
                }
                let whole = if clock == 2 { LENGTH / 3 } else { LENGTH };
                for n in 1..=whole + 2 {
                    for counter in counters {
                        driver.write(&mut pmu, counter, 0).unwrap();
                    }
                    on_overflow.set(&driver, &mut pmu, n).unwrap();
                    let interrupts = run(&mut pmu, &on_overflow, LENGTH);
                    assert_eq!(interrupts, u64::from(n <= whole), "{model:?} {stop:?}");
                    let at = if clock == 2 { 3 * n } else { n }.min(LENGTH);
                    let truth = [at, at, at / 3];
                    for (index, counter) in counters.into_iter().enumerate() {
                        let mut seen = driver.read(&mut pmu, counter).unwrap();
                        if index == clock {
                            seen = on_overflow.counted(seen);
                        }
                        // The handler has no branches.
                        if n <= whole && index < 2 {
                            seen -= on_overflow.handling(&driver, counter);
                        }
                        assert_eq!(seen, truth[index], "{model:?} {stop:?} {clock} {n} {counter}");
                    }
                }
            }
        }
    }
    assert!(ways_seen.contains(&Stop::Freeze) && ways_seen.contains(&Stop::Handler));
}

#[test]
fn m16_a_way_that_the_processor_lacks_and_a_clock_that_is_not_programmed_are_refused() {
    for (model, mut pmu, mut driver) in machines() {
        let [clock, ..] = programmed(&mut pmu, &mut driver, 0);
        let frozen = StopOnOverflow::new(&driver, &mut pmu, clock, Stop::Freeze).map(|_| ());
        match driver.capabilities().freeze {
            FreezeKind::None => {
                assert_eq!(StopOnOverflow::ways(&driver), [Stop::Handler], "{model:?}");
                let error = frozen.unwrap_err();
                assert!(error.to_string().contains("freezing of counters"), "{model:?}: {error}");
            }
            _ => assert_eq!(frozen, Ok(()), "{model:?}"),
        }
        driver.reset(&mut pmu).unwrap();
        let error = StopOnOverflow::new(&driver, &mut pmu, clock, Stop::Handler).unwrap_err();
        assert_eq!(error, PmuError::NoCounter(clock));
    }
}

#[test]
fn m16_a_clock_cannot_be_set_back_by_nothing_or_by_more_than_it_has() {
    let (_, mut pmu, mut driver) = machines().next().unwrap();
    let [clock, ..] = programmed(&mut pmu, &mut driver, 0);
    let mut on_overflow =
        StopOnOverflow::new(&driver, &mut pmu, clock, StopOnOverflow::ways(&driver)[0]).unwrap();
    for (events, reason) in [(0, "never ends"), (u64::MAX, "does not fit")] {
        let error = on_overflow.set(&driver, &mut pmu, events).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// What a processor would show that announces the freeze and does not do it, as some hypervisors.
#[test]
fn m16_a_freeze_that_does_not_freeze_shows_in_the_counts() {
    let mut pmu = machine(Model::Skylake);
    let mut driver = Driver::new(find(&mut pmu).unwrap());
    pmu.set_mutation(Some(Mutation::FreezeIgnored));
    let [clock, instructions, _] = programmed(&mut pmu, &mut driver, 0);
    let mut on_overflow = StopOnOverflow::new(&driver, &mut pmu, clock, Stop::Freeze).unwrap();
    driver.write(&mut pmu, instructions, 0).unwrap();
    on_overflow.set(&driver, &mut pmu, 5).unwrap();
    run(&mut pmu, &on_overflow, 60);
    assert_eq!(driver.read(&mut pmu, instructions), Ok(60));
}
