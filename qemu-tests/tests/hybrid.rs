//! A hybrid package: each kind of core counts by its own table, with its own counters, and has results of its own.

use pmu_model::{Mixture, Model};
use protocol::core_kind::CoreKind;
use protocol::record::{CountResult, Metric, ProcessorsResult};
use qemu_tests::{Guest, Ran, xtask};
use recorded::cores;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;
use xtask::recording::Recorded;

const TIMEOUT: Duration = Duration::from_secs(120);

/// One performance core, and two efficient ones.
fn mixed(job: &str) -> Ran {
    let mixture = Mixture::parse("goldencove+gracemont").unwrap();
    let (pmu, cpus) = (Given::Emulated(mixture.first()), Cpus::Many(3));
    let mixture = Some(mixture);
    Guest { pmu, mixture, cpus, timeout: TIMEOUT, ..Guest::new(Boot::Direct, job) }.run()
}

/// An item for processors that takes little time.
fn item(name: &str, events: &[&str], rest: &str) -> String {
    format!(
        "[[processors]]\nname = \"{name}\"\nasm = \"imul rax, rax; imul rax, rax; imul rax, rax\"\nunroll = 10\n\
         runs = 2\nwarmup = 0\nevents = {events:?}\n{rest}\n"
    )
}

fn counted(metrics: &[Metric]) -> Vec<(&str, f64)> {
    let counted = metrics.iter().filter(|one| one.counting.is_some());
    counted.map(|one| (one.event.as_str(), one.value.median)).collect()
}

/// Instructions, slots, which performance cores alone have, and cycles by the name that efficient cores alone have for them.
const EVENTS: [&str; 3] = ["inst_retired.any", "topdown.slots_p", "cpu_clk_unhalted.core_p"];

/// That the result is of that kind, by its table.
fn is_by_own_table(result: &ProcessorsResult, core: CoreKind, processors: &[u32]) {
    let numbers: Vec<u32> = result.processors.iter().map(|one| one.processor).collect();
    assert_eq!((result.core, &numbers[..]), (Some(core), processors), "{result:#?}");
    let (own, others, table) = match core {
        CoreKind::Performance => (EVENTS[1], EVENTS[2], "goldencove"),
        _ => (EVENTS[2], EVENTS[1], "gracemont"),
    };
    for one in &result.processors {
        let seen = counted(&one.metrics);
        let [(instructions, three), (other, some)] = seen[..] else { panic!("{result:#?}") };
        assert_eq!((instructions, three, other), (EVENTS[0], 3.0, own), "{result:#?}");
        assert!(some > 0.0);
    }
    let sums: Vec<(&str, u32)> =
        result.sums.iter().map(|sum| (sum.event.as_str(), sum.processors)).collect();
    let count = processors.len() as u32;
    assert_eq!(sums, [(EVENTS[0], count), (own, count)]);
    let [refused] = &result.uncounted[..] else { panic!("{result:#?}") };
    assert_eq!(refused.event, others);
    assert!(refused.reason.contains(table), "{refused:?}");
}

/// Events that both kinds count with general-purpose counters.
const EIGHT: [&str; 8] = [
    "br_inst_retired.all_branches",
    "br_inst_retired.cond",
    "br_inst_retired.near_call",
    "br_inst_retired.near_taken",
    "br_misp_retired.all_branches",
    "longest_lat_cache.miss",
    "longest_lat_cache.reference",
    "uops_issued.any",
];

/// Counters that the events of a result were counted by, and in how many passes.
fn counters_and_passes(result: &ProcessorsResult) -> (usize, usize) {
    let metrics = &result.processors[0].metrics;
    let how = metrics.iter().filter_map(|one| one.counting.as_ref());
    let (counters, passes): (BTreeSet<&str>, BTreeSet<u32>) =
        how.map(|one| (one.counter.as_str(), one.pass)).unzip();
    (counters.len(), passes.len())
}

#[test]
fn x13_each_kind_of_core_has_its_own_table_counters_plan_and_results() {
    use CoreKind::{Efficient, Performance};
    // Each turn: a NOP, DEC and JNZ; the INT at the end.
    let task = "[[count]]\nevents = [\"inst_retired.any:u\", \"cpu_clk_unhalted.core_p\"]\n\
                bind = { core = \"efficient\", cpu = 1 }\n[[count.task]]\nname = \"t\"\nasm = \"nop\"\nturns = 1000\n\
                ring = 3\ncore = \"efficient\"\ncpu = 1\n";
    let job = [
        item("both", &EVENTS, ""),
        item("second", &EVENTS, "core = \"efficient\"\ncpu = 1"),
        item("low", &EVENTS, "core = \"low-power\""),
        item("eight", &EIGHT, ""),
        task.to_string(),
    ];
    let ran = mixed(&job.concat());
    ran.ends_with(1);
    let machine = ran.report.machine().expect("a machine record");
    let kinds: Vec<_> = machine
        .kinds
        .iter()
        .map(|kind| {
            let pmu = kind.pmu.as_ref().expect("a PMU");
            let table = kind.event_tables.as_ref().and_then(|tables| tables.table.as_deref());
            (kind.core, &kind.processors[..], pmu.counters, pmu.fixed_counters, table)
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (Performance, &[0][..], 8, 4, Some("goldencove")),
            (Efficient, &[1, 2], 6, 3, Some("gracemont")),
        ]
    );
    let results: Vec<&ProcessorsResult> = ran.report.processors().collect();
    let [p, e, second, eight_p, eight_e] = &results[..] else { panic!("{results:#?}") };
    assert_eq!([&*p.name, &*e.name], ["both, performance cores", "both, efficient cores"]);
    assert_eq!([p.more, e.more, second.more], [true, false, false]);
    is_by_own_table(p, Performance, &[0]);
    is_by_own_table(e, Efficient, &[1, 2]);
    is_by_own_table(second, Efficient, &[2]);
    assert_eq!(counters_and_passes(eight_p), (8, 1), "{eight_p:#?}");
    let (counters, passes) = counters_and_passes(eight_e);
    assert!(counters <= 6 && passes == 2, "{eight_e:#?}");
    let [error] = &ran.errors()[..] else { panic!("{:?}", ran.errors()) };
    let text = "core = \"low-power\", but none is in use; there are: performance (processor 0), efficient \
                (processors 1, 2)";
    assert_eq!((error.item, error.text.as_str()), (Some(2), text));
    let counts: Vec<&CountResult> = ran.report.counts().collect();
    let [count] = &counts[..] else { panic!("{:?}", ran.errors()) };
    let [instructions, cycles] = &count.events[..] else { panic!("{count:#?}") };
    assert_eq!((instructions.sum.raw, count.tasks[0].cpu), (3001, 2), "{count:#?}");
    assert!(cycles.sum.raw > 0, "{count:#?}");
}

#[test]
fn x13_recorded_cores_of_a_hybrid_package_count_by_their_own_tables() {
    let core = |kind: &str| {
        let name = format!("intel-x86-64-golden-cove-12th-gen-intel-core-i9-12900k-{kind}-core");
        cores::named(&name).unwrap_or_else(|| panic!("{name}")).leaves.clone()
    };
    let both = Recorded::of(Path::new("12900k"), vec![core("p"), core("e")], vec![]).unwrap();
    assert_eq!(both.nearest, Model::GoldenCove);
    let recorded: &'static Recorded = Box::leak(Box::new(both));
    let (pmu, cpus) = (Given::Emulated(recorded.nearest), Cpus::Many(2));
    let job = item("both", &EVENTS, "");
    let guest = Guest { pmu, cpus, timeout: TIMEOUT, ..Guest::new(Boot::Direct, &job) };
    let ran = Guest { recorded: Some(recorded), ..guest }.run();
    ran.ends_with(1);
    let results: Vec<&ProcessorsResult> = ran.report.processors().collect();
    let [p, e] = &results[..] else { panic!("{results:#?}") };
    is_by_own_table(p, CoreKind::Performance, &[0]);
    is_by_own_table(e, CoreKind::Efficient, &[1]);
}

#[test]
fn x13_every_output_keeps_the_kinds_of_core_apart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("job.toml"), item("both", &EVENTS[..1], "")).unwrap();
    let run = ["run", "job.toml", "--pmu", "goldencove+gracemont"];
    let called = xtask(folder, &[&run[..], &["--keep", "kept"]].concat());
    assert_eq!(called.code, 0, "{called:?}");
    assert!(called.err.contains("the first of goldencove+gracemont"), "{called:?}");
    let counts = "inst_retired.any on cpu";
    let of_csv = [
        format!("\"both, performance cores\",{counts} 0"),
        format!("\"both, efficient cores\",{counts} 1"),
    ];
    for (format, lines) in [
        (
            "table",
            &[
                "performance cores: processor 0; PMU version 5: 8 counters",
                "efficient cores: processor 1; PMU version 5: 6 counters",
                "both, performance cores",
                "both, efficient cores",
                "10 on each efficient core",
            ][..],
        ),
        ("json", &["\"core\":\"performance\",\"more\":true", "\"core\":\"efficient\""]),
        ("csv", &[&of_csv[0], &of_csv[1]]),
        ("tap", &["ok 1 - both, performance cores", "ok 2 - both, efficient cores"]),
        (
            "html",
            &["efficient cores: processor 1", "both, performance cores", "both, efficient cores"],
        ),
    ] {
        let shown = xtask(folder, &["collect", "--serial", "kept/serial.log", "--format", format]);
        for line in lines {
            let text = if format == "json" {
                shown.out.replace(": ", ":").replace([' ', '\n'], "")
            } else {
                shown.out.clone()
            };
            assert!(text.contains(line), "{format}: {line}: {shown:?}");
        }
    }
    let few = ["run", "job.toml", "--pmu", "goldencove:2+gracemont", "--cpus", "2"];
    let reason = "--pmu goldencove:2+gracemont needs 3 processors, but --cpus is 2";
    xtask(folder, &few).fails_with(2, &[reason]);
    let makers = ["run", "job.toml", "--pmu", "goldencove+zen4"];
    let reason = "goldencove and zen4 are of different makers, GenuineIntel and AuthenticAMD";
    xtask(folder, &makers).fails_with(2, &[reason]);
}
