//! Sets that are bound by themselves, processors, and who had the counters when.

use super::*;
use protocol::record::{
    BindMoment, CountBinding, CountCpu, CountedSet, Eviction, StaleReading, Together,
};

#[test]
fn c3_i6_i7_sets_processors_and_who_was_in_the_way_are_in_every_form() {
    let rendered = |format| render(&with_sets(), &Context::default(), format);
    let table = rendered(Format::Table);
    for part in [
        "processors 0, 2, began within 17 TSC ticks, read at the end within 19",
        ", bound to task b\n",
        "  evicted by machine on processor 2 in generation 1, acquired in generation 0\n",
        ", bound to all processors\n",
        "  refused: busy: so it is\n",
        "cpu 0",
        "cpu 2",
        "b (cpu 2)",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = rendered(Format::Csv);
    for row in [
        "4,two,count machine: cycles,30,30,30,30,1,1,true,1,1,\n",
        "4,two,\"count machine: cycles, cpu 2\",7,7,7,7,1,1,true,1,1,\n",
        "4,two,one task,,,,,,,,,,evicted\n",
        "4,two,late,,,,,,,,,,refused\n",
    ] {
        assert!(csv.contains(row), "{row}: {csv}");
    }
    let tap = rendered(Format::Tap);
    for part in [
        "    - event: \"machine: cycles\"\n      value: 30\n",
        "    - set: \"late\"\n      bind: \"processor 2\"\n      lost: \"refused: busy: so it is\"\n",
    ] {
        assert!(tap.contains(part), "{part}: {tap}");
    }
    let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
    assert_eq!(json["records"][0]["sets"][0]["evicted"]["generation"], 1);
    assert_eq!(json["records"][0]["together"]["begin_skew"], 17);
}

#[test]
fn i6_c10_who_had_the_counters_when_is_in_every_form() {
    let mut report = with_sets();
    let Record::Count(count) = &mut report.records[0].record else { panic!() };
    let marker = |tsc, marker| BindMoment {
        tsc,
        us: Some(3_003),
        tick: 3,
        marker: Some(marker),
        task: Some(1),
        due_us: None,
    };
    let (us, due_us) = (Some(4_002), Some(3_500));
    let end = BindMoment { tsc: 900, us, due_us, tick: 4, ..BindMoment::default() };
    let first = CountBinding {
        processor: 2,
        until: Some(marker(700, 8)),
        evicted_by: Some("late".into()),
        evicted: Some(1),
        raw: vec![11],
        ..CountBinding::default()
    };
    let second = CountBinding {
        processor: 2,
        generation: 1,
        waited: Some(marker(700, 8)),
        since: end,
        raw: vec![19],
        ..CountBinding::default()
    };
    count.sets[1].bindings = vec![first, second];
    count.sets[2].waiting = Some(end);
    count.bindings_dropped = 1;
    count.stale = vec![StaleReading { task: 1, set: 1, tsc: 800, acquired: 0, generation: 1 }];
    let rendered = |format| render(&report, &Context::default(), format);
    let table = rendered(Format::Table);
    let (waits, stale) = (
        "late waits for the counters to the end, since tick 4 for 3500 µs, TSC 900 (4002 µs)",
        "b was told at TSC 800 that the count of machine that it read is stale: acquired in generation 0, ended in \
         generation 1",
    );
    for part in [
        "the start",
        "marker 8 of b, TSC 700 (3003 µs)",
        "tick 4 for 3500 µs, TSC 900 (4002 µs)",
        "the end",
        "0 to 1",
        "cycles 19",
        "  and 1 binding that there was no room for\n",
        waits,
        stale,
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = rendered(Format::Csv);
    for row in [
        "4,two,\"count machine: cycles, binding 1\",11,11,11,11,1,1,true,1,1,\n",
        "4,two,\"count machine: cycles, binding 2\",19,19,19,19,1,1,true,1,1,\n",
    ] {
        assert!(csv.contains(row), "{row}: {csv}");
    }
    let tap = rendered(Format::Tap);
    let row = "    - set: \"machine\"\n      cpu: \"2\"\n      since: \"the start\"\n";
    assert!(tap.contains(row) && tap.contains("counts: \"cycles 11\""), "{tap}");
    assert!(tap.contains(waits) && tap.contains(stale), "{tap}");
    let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
    let set = &json["records"][0]["sets"][1];
    assert_eq!(
        (&set["bindings"][0]["evicted_by"], &set["bindings"][1]["raw"][0]),
        (&"late".into(), &19.into())
    );
    assert_eq!(json["records"][0]["stale"][0]["generation"], 1);
    let page = rendered(Format::Html);
    for part in ["Who had the counters when", "marker 8 of b, TSC 700", "cycles 19", stale, waits] {
        assert!(page.contains(part), "{part}");
    }
}

/// A count on two processors with three sets, of which one was refused and one evicted.
fn with_sets() -> Report {
    let mut report = report(TaskEnd::Exit);
    let Record::Count(count) = &mut report.records[0].record else { panic!() };
    let mut events = std::mem::take(&mut count.events);
    events.truncate(1);
    count.intervals.clear();
    events[0].cpus = vec![events[0].kernel, events[0].tasks[1]];
    count.tasks[1].cpu = 2;
    count.cpus = [0, 2].map(|processor| CountCpu { processor, ..CountCpu::default() }).into();
    count.together = Some(Together {
        processors: vec![0, 2],
        begin_skew: Some(17),
        end_skew: Some(19),
        ..Together::default()
    });
    let set = |name: &str, bind: &str| CountedSet {
        name: name.into(),
        bind: bind.into(),
        groups: 1,
        ..CountedSet::default()
    };
    let evicted = Eviction { by: "machine".into(), processor: 2, acquired: 0, generation: 1 };
    count.sets = vec![
        CountedSet { evicted: Some(evicted), ..set("one task", "task b") },
        CountedSet { events, ..set("machine", "all processors") },
        CountedSet { refused: Some("busy: so it is".into()), ..set("late", "processor 2") },
    ];
    report
}
