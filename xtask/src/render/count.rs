//! What was counted over tasks: a table of events by task, and the series.

mod bindings;
pub(crate) mod console;
mod family;
mod gates;
pub(crate) mod series;

pub(crate) use bindings::{BINDINGS, rows_of_bindings, stale, waiting};
pub(crate) use family::{READINGS, inherited_from_afar, rows_of_readings};
pub(crate) use gates::{gates, taken_out};

use super::energy;
use super::style::{FAINT, STRONG, paint};
use super::table::{Width, empty, fit};
use super::tap::point::{Data, Point};
use crate::collect::Report;
use comfy_table::{Cell, CellAlignment, Table};
use protocol::record::{
    CountResult, CountValue, CountedEvent, CountedSet, Eviction, TaskEnd, Uncounted,
};
use std::collections::BTreeSet;
use std::fmt::Write;

/// One section for each item.
pub(crate) fn sections(report: &Report, width: Width) -> String {
    let of = |count| section(count, width) + &console::table(report, count, width);
    report.counts().map(of).collect()
}

fn section(count: &CountResult, width: Width) -> String {
    let mut out = String::new();
    let emulated = if count.emulated { " (emulated PMU)" } else { "" };
    // Writing to a String does not fail, here and below.
    let _ = writeln!(out, "{} {}{emulated}", count.item, paint(STRONG, &count.name));
    let mut text = format!("{}, {}", plural(count.ticks, "tick"), plural(count.switches, "switch"));
    if count.groups > 1 {
        let _ = write!(text, ", {} groups of events in turns", count.groups);
    }
    if count.passes > 0 {
        let _ = write!(text, ", {}", plural(count.passes, "pass"));
    }
    if let Some(interval) = count.lengthened {
        text += &super::tasks::too_short(interval);
    }
    text += &gates(count);
    let _ = writeln!(out, "{}", paint(FAINT, &text));
    out += &count.together.as_ref().map(super::tasks::together).unwrap_or_default();
    if let Some(bind) = &count.bind {
        let _ = writeln!(out, "bound to {bind}");
    }
    if !count.events.is_empty() {
        let _ = writeln!(out, "{}", fit(events(count, &count.events, count.groups), width));
    }
    for one in &count.energy {
        let _ = writeln!(out, "{}", energy::line(one));
    }
    count.sets.iter().for_each(|set| out += &of_set(count, set, width));
    out += &super::moves::of_tasks(&count.tasks, count.together.as_ref(), width);
    out += &super::moves::of_counts(count, width);
    if let Some(table) = bindings::table(count) {
        let _ = writeln!(out, "{}", fit(table, width));
    }
    if count.bindings_dropped > 0 {
        let dropped = plural(count.bindings_dropped, "binding");
        let _ = writeln!(out, "  and {dropped} that there was no room for");
    }
    for line in waiting(count).chain(stale(count)) {
        let _ = writeln!(out, "  {line}");
    }
    for task in count.tasks.iter().filter(|task| task.end == TaskEnd::Limit) {
        let _ = writeln!(out, "  {}: took too long", task.name);
    }
    out += &super::tasks::faults(&count.tasks);
    out += &series::tables(count, width);
    if count.dropped > 0 {
        let _ = writeln!(out, "  and {} that did not fit", plural(count.dropped, "row"));
    }
    if !count.readings.is_empty() {
        let _ = writeln!(out, "{}", fit(family::readings(count), width));
    }
    if count.readings_dropped > 0 {
        let dropped = plural(count.readings_dropped, "reading");
        let _ = writeln!(out, "  and {dropped} that did not fit");
    }
    for one in count.tasks.iter().filter_map(|task| inherited_from_afar(count, task)) {
        let _ = writeln!(out, "  {one}");
    }
    for one in all_uncounted(count) {
        let _ = writeln!(out, "  not counted: {}: {}", one.event, one.reason);
    }
    for one in taken_out(count) {
        let _ = writeln!(out, "  {one}");
    }
    // Several requests may be for one event; what is known of it is said once.
    let mut said = BTreeSet::new();
    for event in count.events.iter().chain(count.sets.iter().flat_map(|set| &set.events)) {
        for remark in event.remarks.iter().filter(|&remark| said.insert((&event.event, remark))) {
            let _ = writeln!(out, "  {}: {remark}", event.event);
        }
    }
    out
}

fn plural(number: u64, what: &str) -> String {
    match (number, what) {
        (1, _) => format!("1 {what}"),
        (_, "switch" | "pass") => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

/// A set of its own: what it counted, or who was in its way.
fn of_set(count: &CountResult, set: &CountedSet, width: Width) -> String {
    let mut out = format!("{}, bound to {}", paint(STRONG, &set.name), set.bind);
    if set.groups > 1 {
        let _ = write!(out, ", {} groups of events in turns", set.groups);
    }
    out.push('\n');
    if let Some(line) = lost(set) {
        let _ = writeln!(out, "  {line}");
    }
    if !set.events.is_empty() {
        let _ = writeln!(out, "{}", fit(events(count, &set.events, set.groups), width));
    }
    out
}

/// Why a set has no counts, in a sentence.
pub(crate) fn lost(set: &CountedSet) -> Option<String> {
    let evicted = set.evicted.as_ref().map(|Eviction { by, processor, acquired, generation }| {
        let acquired = format!("acquired in generation {acquired}");
        format!("evicted by {by} on processor {processor} in generation {generation}, {acquired}")
    });
    evicted.or_else(|| set.refused.as_ref().map(|why| format!("refused: {why}")))
}

/// What could not be counted, of all sets.
pub(crate) fn all_uncounted(count: &CountResult) -> impl Iterator<Item = &Uncounted> {
    count.uncounted.iter().chain(count.sets.iter().flat_map(|set| &set.uncounted))
}

/// Numbers of the processors whose counts stand next to the sum: one processor's counts are the sum.
pub(crate) fn cpus(count: &CountResult) -> Vec<u32> {
    let numbers = count.cpus.iter().map(|cpu| cpu.processor);
    if count.cpus.len() > 1 { numbers.collect() } else { Vec::new() }
}

fn events(count: &CountResult, events: &[CountedEvent], groups: u32) -> Table {
    let mut table = empty();
    let cpus = cpus(count);
    let overflows = events.iter().any(|event| event.overflows.is_some());
    let mut head: Vec<String> = ["event", "counter", "sum"].map(String::from).to_vec();
    head.extend(cpus.iter().map(|cpu| format!("cpu {cpu}")));
    head.extend(count.tasks.iter().map(super::tasks::label));
    head.extend(["kernel", "share"].map(String::from));
    head.extend(overflows.then(|| "overflows".to_string()));
    right_but(&mut table, &head, 2);
    for event in events {
        let group = match groups {
            0 | 1 => String::new(),
            _ => format!(" (group {})", event.group + 1),
        };
        let mut row = vec![format!("{}{group}", event.event), event.counter.clone()];
        row.push(value(&event.sum));
        row.extend((0..cpus.len()).map(|cpu| event.cpus.get(cpu).map_or(String::new(), value)));
        row.extend((0..count.tasks.len()).map(|t| event.tasks.get(t).map_or(String::new(), value)));
        row.extend([value(&event.kernel), share(&event.sum)]);
        let overflowed = event.overflows.map(|number| number.to_string()).unwrap_or_default();
        row.extend(overflows.then_some(overflowed));
        table.add_row(row.into_iter().map(Cell::new));
    }
    table
}

pub(super) fn right_but(table: &mut Table, head: &[String], left: usize) {
    table.set_header(head);
    for index in left..head.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A count as it is; one that stands for more than its own time scaled, after a `~`.
pub(crate) fn value(value: &CountValue) -> String {
    match value.scaled {
        _ if value.enabled == 0 => "-".to_string(),
        None => "?".to_string(),
        Some(scaled) if value.counted == value.enabled => scaled.to_string(),
        Some(scaled) => format!("~{scaled}"),
    }
}

/// The share of the time during which it was counted.
pub(crate) fn share(value: &CountValue) -> String {
    match value.enabled {
        0 => String::new(),
        enabled => format!("{:.1} %", 100.0 * value.counted as f64 / enabled as f64),
    }
}

/// Rows of a CSV: who and how much, the sum first.
pub(crate) fn rows(count: &CountResult) -> Vec<(String, CountValue)> {
    let mut rows = Vec::new();
    for (set, event) in figures(count) {
        let name = |whose: &str| format!("count {set}{}{whose}", event.event);
        rows.push((name(""), event.sum));
        rows.push((name(", kernel"), event.kernel));
        for (cpu, value) in cpus(count).into_iter().zip(&event.cpus) {
            rows.push((name(&format!(", cpu {cpu}")), *value));
        }
        for (task, value) in count.tasks.iter().zip(&event.tasks) {
            rows.push((name(&format!(", task {}", task.name)), *value));
        }
        let shares = count.shares_of(event).into_iter();
        rows.extend(shares.map(|(whose, value)| (name(&whose), value)));
    }
    let readings = count.named_readings().into_iter();
    rows.extend(readings.map(|(name, value)| (format!("count {name}"), value)));
    let bindings = count.named_bindings().into_iter();
    rows.extend(bindings.map(|(name, raw)| {
        (format!("count {name}"), CountValue { raw, scaled: Some(raw), ..CountValue::default() })
    }));
    rows
}

/// The item as a test point: it passes if every task exited.
pub(crate) fn point(count: &CountResult) -> Point {
    let mut point = super::tasks::point(&count.name, &count.tasks);
    for (set, event) in figures(count) {
        let value = event.sum.scaled.unwrap_or(event.sum.raw);
        let data = Data::new().text("event", &format!("{set}{}", event.event));
        point.push("counts", data.plain("value", value));
    }
    energy::push(&mut point, &count.energy);
    for [task, tsc, event, own, children] in rows_of_readings(count) {
        let data = Data::new().text("task", &task).text("tsc", &tsc).text("event", &event);
        point.push("readings", data.text("own", &own).text("children", &children));
    }
    for row in rows_of_bindings(count) {
        let fields = ["set", "cpu", "since", "waited", "until", "by", "generation", "counts"];
        let rest =
            fields.iter().zip(&row).fold(Data::new(), |data, (key, text)| data.text(key, text));
        point.push("bindings", rest);
    }
    for line in waiting(count).chain(stale(count)) {
        point.push("told", Data::new().text("what", &line));
    }
    for set in &count.sets {
        let Some(lost) = lost(set) else { continue };
        let data = Data::new().text("set", &set.name).text("bind", &set.bind);
        point.push("sets", data.text("lost", &lost));
    }
    let uncounted: Vec<Uncounted> = all_uncounted(count).cloned().collect();
    point.uncounted(&uncounted)
}

/// All events, each with what stands before its name: nothing, or its set's.
pub(super) fn figures(count: &CountResult) -> impl Iterator<Item = (String, &CountedEvent)> {
    let own = count.events.iter().map(|event| (String::new(), event));
    let sets = count
        .sets
        .iter()
        .flat_map(|set| set.events.iter().map(move |event| (format!("{}: ", set.name), event)));
    own.chain(sets)
}

#[cfg(test)]
mod tests {
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use crate::render::{Context, render};
    use protocol::record::{
        BindMoment, CountBinding, CountCpu, CountGate, CountInterval, CountResult, CountValue,
        CountedEvent, CountedSet, Eviction, Hex, Record, StaleReading, TaskEnd, TaskResult,
        Together, Uncounted, Verdict,
    };

    fn task(name: &str, end: TaskEnd) -> TaskResult {
        TaskResult {
            name: name.into(),
            entry: Hex(0),
            end,
            turns: 1,
            switches: 4,
            time: 99,
            value: Hex(0),
            memory_crc32: Hex(0),
            fault: None,
            user_instructions: None,
            child_user_instructions: None,
            added_to: None,
            outlived: None,
            moves: None,
            shares: Vec::new(),
            cpu: 0,
            bits: 64,
            ended_bits: None,
        }
    }

    fn report(end: TaskEnd) -> Report {
        let whole = |raw| CountValue { raw, scaled: Some(raw), counted: 100, enabled: 100 };
        let half = |raw| CountValue { raw, scaled: Some(2 * raw), counted: 50, enabled: 100 };
        let event = |event: &str, value: &dyn Fn(u64) -> CountValue| CountedEvent {
            event: event.into(),
            counter: "counter 1".into(),
            sum: value(30),
            cpus: vec![value(30)],
            kernel: value(3),
            tasks: vec![value(20), value(7)],
            ..CountedEvent::default()
        };
        let count = CountResult {
            item: 4,
            name: "two".into(),
            tasks: vec![task("a", TaskEnd::Exit), task("b", end)],
            events: vec![
                CountedEvent { overflows: Some(9), ..event("cycles", &whole) },
                event("loads", &half),
            ],
            uncounted: vec![Uncounted { event: "x".into(), reason: "unknown".into() }],
            intervals: vec![CountInterval {
                tsc: 1234,
                raw: vec![1011, 1012],
                tasks: vec![vec![501, 502], vec![403, 404]],
                ..CountInterval::default()
            }],
            verdict: if end == TaskEnd::Exit { Verdict::None } else { Verdict::Fail },
            groups: 2,
            passes: 1,
            ticks: 8,
            switches: 16,
            emulated: true,
            gates: vec![CountGate { task: 1, starts: 3, stops: 2, taken: 7, deepest: None }],
            lengthened: Some(77),
            ..CountResult::default()
        };
        let records = vec![Numbered { seq: 0, record: Record::Count(count) }];
        Report { records, ..Report::default() }
    }

    #[test]
    fn i1_counts_by_task_scaled_counts_and_the_series_are_in_every_form() {
        let rendered = |format| render(&report(TaskEnd::Exit), &Context::default(), format);
        let table = rendered(Format::Table);
        for part in [
            "4 ",
            "two",
            "(emulated PMU)",
            "8 ticks, 16 switches, 2 groups of events in turns, 1 pass",
            "lengthened to 77 TSC ticks",
            "in b alone: started 3 times, stopped 2",
            "overflows",
            "1234",
            "not counted: x: unknown",
            "100.0 %",
            "50.0 %",
            "~60",
            "~40",
        ] {
            assert!(table.contains(part), "{part}: {table}");
        }
        let csv = rendered(Format::Csv);
        assert!(csv.contains("4,two,count cycles,30,30,30,30,1,1,true,1,1,\n"), "{csv}");
        assert!(
            csv.contains("4,two,\"count loads, task b\",14,14,14,14,1,1,false,1,1,\n"),
            "{csv}"
        );
        assert!(csv.contains("4,two,x,,,,,,,,,,uncounted\n"), "{csv}");
        let tap = rendered(Format::Tap);
        assert!(tap.contains("  counts:\n    - event: \"cycles\"\n      value: 30\n"), "{tap}");
        let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
        assert_eq!(json["records"][0]["events"][1]["sum"]["scaled"], 60);
        assert_eq!(report(TaskEnd::Exit).items(), 1);
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
        for part in
            ["Who had the counters when", "marker 8 of b, TSC 700", "cycles 19", stale, waits]
        {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn s4_energy_is_in_every_form_with_its_resolution() {
        let mut report = report(TaskEnd::Exit);
        let Record::Count(count) = &mut report.records[0].record else { panic!() };
        count.energy.push(protocol::record::CountedEnergy {
            event: "energy-pkg".into(),
            register: "MSR 0x611".into(),
            joules: 1.5,
            resolution: 0.0625,
            units: 24_576,
            unit: 14,
            ticks: 100_663_296,
            update: 1 << 20,
            ..Default::default()
        });
        let text = |format| {
            let text = render(&report, &Context::default(), format);
            anstream::adapter::strip_str(&text).to_string()
        };
        let line = "energy-pkg: 1.5 J ± 62.5 mJ in 100663296 TSC ticks, of everything that ran (MSR 0x611)";
        for format in [Format::Table, Format::Html] {
            assert!(text(format).contains(line), "{}", text(format));
        }
        let csv = text(Format::Csv);
        assert!(csv.contains(",energy-pkg,1.5,1.4375,1.5,1.5625,1,1,false,"), "{csv}");
        let tap = text(Format::Tap);
        assert!(tap.contains("joules: 1.5") && tap.contains("resolution: 0.0625"), "{tap}");
    }

    #[test]
    fn what_is_known_of_an_event_is_said_once() {
        let mut report = report(TaskEnd::Exit);
        let Record::Count(count) = &mut report.records[0].record else { panic!() };
        count.events.push(count.events[0].clone());
        count.events.iter_mut().for_each(|event| event.remarks = vec!["erratum X1".into()]);
        let table = render(&report, &Context::default(), Format::Table);
        assert_eq!(table.matches("cycles: erratum X1").count(), 1, "{table}");
        assert_eq!(table.matches("loads: erratum X1").count(), 1, "{table}");
    }

    #[test]
    fn m15_a_task_that_did_not_exit_is_named_and_fails_the_item() {
        let rendered = |format| render(&report(TaskEnd::Limit), &Context::default(), format);
        assert!(rendered(Format::Table).contains("  b: took too long\n"));
        assert!(
            rendered(Format::Csv).contains("4,two,count cycles,30,30,30,30,1,1,true,1,1,fail\n")
        );
        assert!(rendered(Format::Tap).contains("not ok 1 - two\n"));
    }

    /// What there is none of is not talked about, and what there is one of is one.
    #[test]
    fn a_count_says_what_there_was_and_nothing_of_the_rest() {
        let table = |dropped: u64, groups: u32, passes: u64| {
            let mut report = report(TaskEnd::Exit);
            let Record::Count(count) = &mut report.records[0].record else { panic!() };
            (count.dropped, count.groups, count.passes) = (dropped, groups, passes);
            render(&report, &Context::default(), Format::Table)
        };
        let plain = table(0, 1, 0);
        for absent in ["no room", "groups of events", " pass"] {
            assert!(!plain.contains(absent), "{absent}: {plain}");
        }
        assert!(table(1, 1, 0).contains("  and 1 row that did not fit\n"));
        let much = table(2, 3, 2);
        assert!(much.contains("  and 2 rows that did not fit\n"), "{much}");
        assert!(much.contains(", 3 groups of events in turns, 2 passes"), "{much}");
    }
}
