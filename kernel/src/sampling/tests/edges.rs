//! The shortest period, the way in which interrupts come, and what stops the counters, where no other test stands at the
//! edge.

use super::*;
use arch::pmu::FreezeKind;
use protocol::job::sampling::Delivery as Way;

/// Two events have each their own samples, single ones as well as counted ones.
#[test]
fn i4_single_samples_are_those_of_their_event() {
    for (model, mut host) in hosts() {
        let branches = if host.driver.capabilities().is_intel() { "r003c" } else { "r0076" };
        let mut item = item(&[event(RETIRED, 100), event(branches, 333)], 1000);
        (item.keep, item.capacity) = (Keep::Samples, 4000);
        let (result, chunks) = run(&mut host, &item);
        let all: Vec<_> = chunks.iter().flat_map(Samples::iter).collect();
        for (bit, one) in (0..).zip(&result.events) {
            let of = all.iter().filter(|(_, _, events, _)| events >> bit & 1 != 0).count() as u64;
            assert!(one.overflows > 0, "{model:?}: {one:?}");
            assert_eq!(
                (one.samples, one.dropped, of),
                (one.overflows, 0, one.overflows),
                "{model:?}"
            );
        }
    }
}

/// In ring 3 alone any period will do: the handler is not counted. A record takes an event to be armed by.
#[test]
fn m8_a_period_of_one_is_taken_in_ring_3_and_of_two_with_records() {
    let with = |text, period| {
        let mut item = item(&[event(text, period)], 3);
        item.workload.tasks[0].ring = TaskRing::User;
        item.capacity = 1024;
        item
    };
    for (model, mut host) in hosts() {
        let (result, _) = run(&mut host, &with("r00c0:u", 1));
        assert_eq!((result.events[0].period, &result.uncounted), (1, &vec![]), "{model:?}");
    }
    let precise = |period| Sampling { precise: true, ..with("r00c0:u", period) };
    let (result, _) = run(&mut Host::new(Model::Core2), &precise(2));
    assert_eq!(result.events[0].period, 2);
    let Err(Unmeasured::Refused(text)) =
        measure(&mut Host::new(Model::Core2), 0, &precise(1), &mut (), &mut |_| ())
    else {
        panic!("a period of 1 leaves nothing between two records")
    };
    assert!(text.contains("a period of 1 is too short: at least 2 is needed"), "{text}");
}

/// Without a table it is the processor that knows which of its events are precise.
#[test]
fn c7_an_event_that_is_not_precise_is_refused_without_a_table_too() {
    let item = Sampling { precise: true, ..item(&[event("r00c4", 100)], 1000) };
    let said = match measure(&mut Host::new(Model::Core2), 0, &item, &mut (), &mut |_| ()) {
        Err(Unmeasured::Refused(text)) => text,
        Ok(result) => result.uncounted.iter().map(|one| one.reason.as_str()).collect(),
        Err(other) => panic!("{other:?}"),
    };
    assert!(said.contains("event 0xc4/0x00 is not precise on this processor"), "{said}");
}

/// The rate that takes just the shortest period is had without a remark.
#[test]
fn m8_the_rate_of_the_shortest_period_is_no_rate_too_high() {
    for (model, mut host) in hosts() {
        // One instruction a nanosecond.
        let rate = Rate::PerSecond((1_000_000_000 / MIN_PERIOD) as u32);
        let (result, _) =
            run(&mut host, &item(&[SampledEvent { rate, ..event(RETIRED, 1) }], 1000));
        let one = &result.events[0];
        assert_eq!((one.period, &one.remarks), (MIN_PERIOD, &vec![]), "{model:?}");
        // The task was called both times, by no scheduler.
        assert_eq!(host.vectors, [false, true], "{model:?}");
    }
}

/// Interrupts are on in the task if something comes as a vector: the counters' interrupt, or the timer's.
#[test]
fn m9_interrupts_are_on_where_something_comes_as_a_vector() {
    for (delivery, interval_ns, on) in
        [(Way::Fixed, 0, true), (Way::Nmi, 0, false), (Way::Nmi, 100_000, true)]
    {
        let mut host = Host::new(Model::Skylake);
        let item = Sampling { delivery, interval_ns, ..item(&[event(RETIRED, 100)], 100) };
        run(&mut host, &item);
        assert_eq!(host.vectors, [on], "{delivery:?} {interval_ns}");
    }
}

/// What stops the counters while an interrupt is handled, by what the processor can do and by what the item asks for.
#[test]
fn t7_the_processor_freezes_where_it_can_and_the_item_lets_it() {
    for (model, mut host) in hosts() {
        let freezes = host.driver.capabilities().freeze != FreezeKind::None;
        for (freeze, wanted) in [
            (
                sampling::Freeze::Auto,
                if freezes { "frozen by the processor" } else { "stopped by the handler" },
            ),
            (sampling::Freeze::Software, "stopped by the handler"),
            (sampling::Freeze::Off, "counters go on"),
        ] {
            let (result, _) =
                run(&mut host, &Sampling { freeze, ..item(&[event(RETIRED, 100)], 100) });
            assert!(
                result.handling.starts_with(wanted),
                "{model:?} {freeze:?}: {}",
                result.handling
            );
            // A timer alone has no counters to stop.
            let timer = Sampling { freeze, interval_ns: 100_000, ..item(&[], 1000) };
            let (result, _) = run(&mut host, &timer);
            assert!(
                result.handling.starts_with("counters go on"),
                "{model:?}: {}",
                result.handling
            );
        }
    }
}

/// Without a PMU a timer samples, and nothing else does.
#[test]
fn m8_without_a_pmu_there_is_the_timer_or_a_reason() {
    let mut host = Host::new(Model::Skylake);
    host.absent = true;
    let timer = Sampling { interval_ns: 100_000, ..item(&[], 1000) };
    let (result, _) = run(&mut host, &timer);
    assert!(!result.capability.overflow_interrupt && result.timer.is_some());
    for item in [
        item(&[], 100),
        item(&[event(RETIRED, 100)], 100),
        Sampling { interval_ns: 100_000, ..item(&[event(RETIRED, 100)], 100) },
    ] {
        let Err(Unmeasured::Refused(text)) = measure(&mut host, 0, &item, &mut (), &mut |_| ())
        else {
            panic!("{:?}", item.events)
        };
        assert!(text.contains("there is no PMU"), "{text}");
    }
}

/// A handler that takes longer than the interval has it doubled; one that is done in time has not, at any rate of the TSC.
#[test]
fn m8_an_interval_is_doubled_where_its_handler_takes_longer() {
    for hz in [1_000_000_000, 4_000_000_000] {
        for (handler, doubled) in [(100, false), (400_000, true)] {
            let mut host = Host::new(Model::Skylake);
            (host.clock_hz, host.handler) = (hz, handler);
            // 20,000 ticks of a TSC of 1 GHz, 80,000 of the other.
            let timer = Sampling { interval_ns: 20_000, ..item(&[], 100_000) };
            let (result, _) = run(&mut host, &timer);
            let timer = result.timer.clone().unwrap();
            assert!(result.events[0].overflows > 4, "{hz}: {result:?}");
            assert_eq!(timer.doubled > 0, doubled, "{hz} Hz, {handler}: {timer:?}");
        }
    }
}
