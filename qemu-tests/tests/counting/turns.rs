//! Events that take turns, and events that start others.

use super::*;
use protocol::record::CountValue;

/// Forty events on the counters that there are, in turns at each tick, against one of them alone; and the series.
///
/// Each event is counted in some of the time slices, and the task runs at one instruction a tick of the TSC but for the
/// exits to the emulated PMU, in which time passes and nothing is counted: hence a bound of 10 percent; 3.8 is
/// the most that was seen.
#[test]
fn i1_forty_events_in_turns_are_scaled_within_a_bound_of_each_alone() {
    let tasks = "[[count.task]]\nname = \"t\"\nasm = \"nop\"\nring = 3\nturns = 20000000\n";
    let many = vec!["r00c0:u"; 40];
    let job = format!(
        "[[count]]\nevents = {many:?}\ntick-ns = 2000000\n{tasks}
         [[count]]\nevents = [\"r00c0:u\"]\ntick-ns = 2000000\ninterval-ns = 10000000\n{tasks}"
    );
    for model in MODELS {
        let ran = on(model, &job);
        let [shared, alone] = counted(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let exact = alone.events[0].tasks[0].raw;
        assert_eq!(
            (exact, alone.events[0].tasks[0].scaled),
            (60_000_001, Some(exact)),
            "{model:?}"
        );
        assert!(shared.groups > 4 && shared.ticks > 25, "{model:?}: {} ticks", shared.ticks);
        let mut worst = 0;
        for one in &shared.events {
            let CountValue { scaled, counted, enabled, .. } = one.tasks[0];
            assert!(counted * 3 < enabled, "{model:?}");
            worst = worst.max(scaled.unwrap().abs_diff(exact));
        }
        eprintln!(
            "{model:?}: {worst} of {exact}, {} groups, {} ticks",
            shared.groups, shared.ticks
        );
        assert!(worst * 10 < exact, "{model:?}: {worst} of {exact}");
        let series: u64 = alone.intervals.iter().map(|row| row.raw[0]).sum();
        assert_eq!(series, exact, "{model:?}");
        let of_task: u64 = alone.intervals.iter().map(|row| row.tasks[0][0]).sum();
        assert_eq!(of_task, alone.events[0].tasks[0].raw, "{model:?}");
        assert!(alone.intervals.len() as u64 >= alone.ticks / 5, "{model:?}");
    }
}

#[test]
fn m3_m6_one_event_starts_another_and_counting_ends_after_so_many_passes() {
    for model in MODELS {
        let ran = on(
            model,
            r#"
            [[count]]
            name = "trigger"
            events = [{ event = "r00c0:u", every = 100000, starts = ["0xc0.0x00:u"] }, "0xc0.0x00:u"]
            tick-ns = 0
            [[count.task]]
            name = "t"
            asm = "nop"
            ring = 3
            turns = 300000
            [[count]]
            name = "passes"
            events = [{ event = "r00c0", every = 50000 }]
            at-overflow = "next"
            passes = 4
            tick-ns = 0
            [[count.task]]
            name = "t"
            asm = "nop"
            turns = 300000
            "#,
        );
        let [trigger, passes] = counted(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let (first, second) = (raw(trigger, 0).0, raw(trigger, 1).0);
        assert!(first > 900_000, "{model:?}");
        assert_eq!(trigger.events[0].overflows, Some(first / 100_000), "{model:?}");
        // Nothing of the handler is in ring 3.
        let missing = first - second;
        let CountValue { counted, enabled, .. } = trigger.events[1].sum;
        assert_eq!(counted, enabled, "{model:?}: it is not scaled to the time before its start");
        assert!((100_000..100_010).contains(&missing), "{model:?}: {missing}");
        assert_eq!((passes.passes, passes.events[0].overflows), (4, Some(4)), "{model:?}");
        let counted = raw(passes, 0).0;
        assert!((200_000..202_000).contains(&counted), "{model:?}: {counted}");
    }
}
