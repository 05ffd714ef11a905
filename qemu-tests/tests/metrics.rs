//! Metrics of snippets whose counts are known by hand, from the command line and from a job.

use pmu_model::Model;
use qemu_tests::{Called, Guest, xtask};
use serde_json::Value;
use std::fs;
use xtask::cli::Boot;
use xtask::machine::Given;

/// Ten instructions, of which two are branches that are taken and predicted.
const BODY: &str = "nop; nop; nop; nop; nop; nop; jmp 2f; 2: nop; jmp 3f; 3: nop";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn json(called: &Called) -> Value {
    assert_eq!(called.code, 0, "{called:#?}");
    serde_json::from_str(&called.out).unwrap_or_else(|error| panic!("{error}: {called:#?}"))
}

fn row<'a>(document: &'a Value, item: usize, name: &str) -> &'a Value {
    let rows = document["metrics"][item]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {rows:#?}"))
}

/// The figure of an event in the pass with this number, from 1.
fn count(document: &Value, event: &str, pass: u64) -> f64 {
    let records = document["records"].as_array().unwrap();
    let result = records.iter().find(|record| record["type"] == "result").unwrap();
    let metrics = result["metrics"].as_array().unwrap();
    let is = |one: &&Value| one["event"] == event && one["counting"]["pass"] == pass - 1;
    let found = metrics.iter().find(is).unwrap_or_else(|| panic!("{event}: {metrics:#?}"));
    found["median"].as_f64().unwrap()
}

#[test]
fn s3_metrics_of_the_command_line_have_the_values_of_their_counts() {
    let line =
        ["run", "--asm", BODY, "--pmu", "skylake", "--format", "json", "--topdown-level", "2"];
    let metrics = ["--metric", "ipc", "--metric", "branch_ratio", "--metric", "branch_mpki"];
    let called = xtask(folder().path(), &[&line[..], &metrics].concat());
    let document = json(&called);
    // By hand: two branches among ten instructions, none of them mispredicted.
    assert_eq!(row(&document, 0, "branch_ratio")["value"], 20.0, "{document:#}");
    assert_eq!(row(&document, 0, "branch_mpki")["value"], 0.0);
    let ipc = row(&document, 0, "ipc");
    let passes: Vec<u64> =
        ipc["passes"].as_array().unwrap().iter().flat_map(Value::as_u64).collect();
    let [pass] = passes[..] else { panic!("one pass has both: {ipc:#}") };
    let by_hand = count(&document, "instructions", pass) / count(&document, "cycles", pass);
    assert_eq!(count(&document, "instructions", pass), 10.0);
    assert_eq!(ipc["value"].as_f64().unwrap(), by_hand);
    assert_eq!(ipc["spread"].as_array().map(Vec::len), Some(2), "{ipc:#}");
    // The tree is there to its second level, and says of what the emulated PMU does not know that it counts 0.
    for name in ["Frontend_Bound", "Backend_Bound", "Bad_Speculation", "Retiring"] {
        let row = row(&document, 0, name);
        assert_eq!(row["passes"].as_array().map(Vec::len), Some(1), "{row:#}");
    }
    // More events than there are counters: in the fewest passes, and what divides by zero there is named.
    let memory = row(&document, 0, "Memory_Bound");
    assert_eq!(memory["passes"], serde_json::json!([1, 2]), "{memory:#}");
    assert!(memory["missing"].to_string().contains("division by zero"), "{memory:#}");
    let frontend = row(&document, 0, "Frontend_Bound");
    let doubts = frontend["untrusted"].to_string();
    assert!(
        doubts.contains("IDQ_UOPS_NOT_DELIVERED.CORE: the emulated PMU counts nothing for it"),
        "{frontend:#}"
    );
    assert!(document["metrics"][0]["way"].is_string(), "{document:#}");
    // Runs that nobody asked for are not listed.
    assert!(!called.out.contains("\"values\""), "{}", called.out);
}

#[test]
fn s3_counts_for_metrics_are_those_of_the_events_alone() {
    let snippet =
        |name: &str, what: &str| format!("[[snippet]]\nname = {name:?}\nasm = {BODY:?}\n{what}\n");
    let events = ["cycles", "instructions", "branches", "branch-misses"];
    let mut toml = snippet("metrics", "metrics = [\"ipc\", \"branch_mpki\", \"branch_miss_rate\"]");
    for event in events {
        toml += &snippet(event, &format!("events = [{event:?}]"));
    }
    for model in ["skylake", "zen4"] {
        let folder = folder();
        fs::write(folder.path().join("job.toml"), &toml).unwrap();
        let line = ["run", "job.toml", "--pmu", model, "--format", "json"];
        let document = json(&xtask(folder.path(), &line));
        let records = document["records"].as_array().unwrap();
        let results: Vec<&Value> =
            records.iter().filter(|record| record["type"] == "result").collect();
        let of = |result: &Value, event: &str| {
            let metrics = result["metrics"].as_array().unwrap();
            let found = metrics.iter().find(|one| one["event"] == event);
            found.unwrap_or_else(|| panic!("{model}: {event}: {result:#}"))["median"].clone()
        };
        for (event, alone) in events.iter().zip(&results[1..]) {
            assert_eq!(of(results[0], event), of(alone, event), "{model}: {event}");
        }
        assert_eq!(document["metrics"].as_array().map(Vec::len), Some(1), "{model}");
        assert_eq!(row(&document, 0, "branch_miss_rate")["value"], 0.0, "{model}");
    }
}

/// Code without a branch has no share of mispredicted ones, and a name cannot give orders to a terminal.
#[test]
fn s3_a_division_by_zero_is_named_and_texts_are_clean() {
    let folder = folder();
    let toml = "[[snippet]]\nname = \"a\\u001b[31mb\"\nasm = \"nop\"\nmetrics = [\"branch_miss_rate\", \"ipc\"]\n";
    fs::write(folder.path().join("job.toml"), toml).unwrap();
    let called = xtask(folder.path(), &["run", "job.toml", "--pmu", "skylake"]);
    assert_eq!(called.code, 0, "{called:#?}");
    for part in [
        "a\\u{1b}[31mb: metrics",
        "branch_miss_rate: no value: division by zero: branches is 0",
        "no value",
        "spread",
    ] {
        assert!(called.out.contains(part), "{part}: {called:#?}");
    }
    assert!(!called.out.contains('\u{1b}'), "{called:#?}");
    let line = ["run", "job.toml", "--pmu", "skylake", "--format", "html"];
    let page = xtask(folder.path(), &line);
    assert_eq!(page.code, 0, "{}", page.err);
    assert!(page.out.contains("division by zero: branches is 0"), "the page has the metrics");
}

#[test]
fn s3_what_cannot_be_had_is_refused_by_name_before_a_boot() {
    let folder = folder();
    let run = |pmu: &str, metric: &str| {
        let line = ["run", "--asm", "nop", "--pmu", pmu, "--metric", metric];
        xtask(folder.path(), &line)
    };
    run("skylake", "Backend_Bond").fails_with(2, &["no metric \"Backend_Bond\"", "Backend_Bound"]);
    run("skylake", "SMT_Contention").fails_with(2, &["which is one of zen4, zen5"]);
    run("none", "ipc").fails_with(2, &["metrics are of a processor", "--pmu"]);
    let tree = ["run", "--asm", "nop", "--pmu", "zen2", "--topdown"];
    xtask(folder.path(), &tree).fails_with(2, &["zen2", "top-down tree"]);
    let image = ["image", "--asm", "nop", "--metric", "ipc", "--out", "x.img"];
    xtask(folder.path(), &image).fails_with(2, &["an image does not know on which it will run"]);
    let exact = ["run", "--asm", "nop", "--pmu", "skylake", "--metric", "ipc", "--exact"];
    xtask(folder.path(), &exact).fails_with(2, &["metric ipc: metrics are of counts"]);
    for (job, parts) in [
        (
            "[[count]]\nmetrics = [\"ipc\"]\n[[count.set]]\nevents = [\"cycles\"]\nbind = { core = \"efficient\" }\n[[count.task]]\nname = \"t\"\nasm = \"nop\"\n",
            &["metrics are planned for the boot processor's kind of core"][..],
        ),
        (
            "[[run]]\nmetrics = [\"ipc\"]\n[[run.task]]\nname = \"t\"\nasm = \"nop\"\n",
            &["metric ipc: it needs", "[[run]] counts nothing"],
        ),
        (
            "[[snippet]]\nasm = \"nop\"\nmetrics = [\"topdown-9\"]\n",
            &["line 3", "levels are 1 to 6"],
        ),
    ] {
        fs::write(folder.path().join("job.toml"), job).unwrap();
        xtask(folder.path(), &["run", "job.toml", "--pmu", "skylake"]).fails_with(2, parts);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no image was written");
}

/// By hand: one instruction a cycle, of which the branches make the other slots of their cycle those of the front end.
#[test]
fn s3_m16_a_history_has_metrics_of_its_snippet_and_of_each_cycle() {
    let line = ["run", "--asm", BODY, "--history", "12", "--runs", "2"];
    let metrics = ["--metric", "ipc", "--metric", "branch_ratio", "--topdown"];
    let line = [&line[..], &metrics].concat();
    let on = ["--pmu", "sapphirerapids"];
    let as_json = [&line[..], &on, &["--format", "json"]].concat();
    let document = json(&xtask(folder().path(), &as_json));
    let each = |name: &str| -> Vec<f64> {
        let each = row(&document, 0, name)["each"].as_array().expect("rows").clone();
        each.iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let jumps = [7, 9];
    let of_cycles = |jump: f64, other: f64| -> Vec<f64> {
        (1..=10).map(|cycle| if jumps.contains(&cycle) { jump } else { other }).collect()
    };
    assert_eq!(each("ipc")[..10], of_cycles(1.0, 1.0));
    assert_eq!(each("branch_ratio")[..10], of_cycles(100.0, 0.0));
    assert_eq!(row(&document, 0, "branch_ratio")["value"], 20.0, "{document:#}");
    // Six slots a cycle, of which one retires.
    let share = |slots: f64| 100.0 * slots / 6.0;
    let close = |seen: &[f64], expected: Vec<f64>| {
        seen.iter().zip(&expected).all(|(seen, expected)| (seen - expected).abs() < 1e-9)
    };
    for (name, expected) in [
        ("Retiring", of_cycles(share(1.0), share(1.0))),
        ("Frontend_Bound", of_cycles(share(5.0), 0.0)),
        ("Backend_Bound", of_cycles(0.0, share(5.0))),
    ] {
        assert!(close(&each(name)[..10], expected), "{name}: {:?}", each(name));
    }
    assert_eq!(row(&document, 0, "ipc")["untrusted"], Value::Null, "{document:#}");
    let table = xtask(folder().path(), &[&line[..], &on].concat());
    let plotted = table.out.lines().any(|line| {
        line.trim_start().starts_with("Frontend_Bound ") && line.ends_with("······▇·▇·|··")
    });
    assert!(plotted, "{}", table.out);

    let power = ["run", "--asm", "nop", "--pmu", "skylake", "--metric", "power", "--history", "3"];
    xtask(folder().path(), &power)
        .fails_with(2, &["metric power needs energy-pkg, which no row of a history has"]);
}

/// The machine's planner needs no more passes than the groups that it is given.
#[test]
fn s3_the_machine_takes_the_passes_that_were_planned() {
    let line = ["run", "--asm", "nop", "--pmu", "zen4", "--format", "json", "--topdown"];
    let document = json(&xtask(folder().path(), &line));
    let rows = document["metrics"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5, "{rows:#?}");
    for row in rows {
        assert_eq!(row["passes"], serde_json::json!([1]), "six counters count all six: {row:#}");
    }
}

/// The first level where the processor has a register for it: five slots in each of Ice Lake's cycles, one instruction a cycle in the
/// emulated one. Each retires in one; the other four of a taken branch are the front end's, those of the rest the back end's.
#[test]
fn s3_the_first_level_of_the_tree_comes_from_perf_metrics() {
    let line = ["run", "--asm", BODY, "--format", "json", "--topdown"];
    for (model, width) in [("icelake", 5.0), ("sapphirerapids", 6.0)] {
        let document = json(&xtask(folder().path(), &[&line[..], &["--pmu", model]].concat()));
        let slots = 10.0 * width;
        assert_eq!(count(&document, "TOPDOWN.SLOTS", 1), slots, "{model}: {document:#}");
        let others = width - 1.0;
        let expected = [
            ("Retiring", 10.0),
            ("Frontend_Bound", 2.0 * others),
            ("Bad_Speculation", 0.0),
            ("Backend_Bound", 8.0 * others),
        ];
        let mut sum = 0.0;
        for (name, of_slots) in expected {
            let row = row(&document, 0, name);
            let (value, by_hand) = (row["value"].as_f64().unwrap(), 100.0 * of_slots / slots);
            // Fields are 255ths of a run, which has other code around the body.
            assert!((value - by_hand).abs() < 2.0, "{model} {name}: {value} of {by_hand}: {row:#}");
            assert_eq!(row["passes"], serde_json::json!([1]), "{row:#}");
            sum += value;
        }
        assert!((sum - 100.0).abs() < 0.001, "{model}: all slots went somewhere: {sum}");
    }
}

/// With a register that holds 255 slots every run overflows: its shares are refused by name, and all that does not stand on them is
/// counted.
#[test]
fn s3_a_run_in_which_perf_metrics_overflowed_has_no_shares() {
    let line = ["run", "--asm", BODY, "--pmu", "icelake", "--format", "json"];
    let events =
        ["perf_metrics.retiring", "topdown.slots", "branches"].map(|event| ["--event", event]);
    let fault = ["--pmu-fault", "metrics-overflow-early"];
    for faulty in [false, true] {
        let fault = if faulty { &fault[..] } else { &[] };
        let called = xtask(folder().path(), &[&line[..], events.as_flattened(), fault].concat());
        let document: Value =
            serde_json::from_str(&called.out).unwrap_or_else(|_| panic!("{called:#?}"));
        let records = document["records"].as_array().unwrap();
        let result = records.iter().find(|record| record["type"] == "result").unwrap();
        let has = |event: &str| {
            let metrics = result["metrics"].as_array().unwrap();
            metrics.iter().any(|one| one["event"] == event)
        };
        assert!(has("topdown.slots") && has("branches"), "{faulty}: {result:#}");
        assert_eq!(has("perf_metrics.retiring"), !faulty, "{result:#}");
        let refused = result["uncounted"].to_string();
        assert_eq!(refused.contains("IA32_PERF_GLOBAL_STATUS[48]"), faulty, "{result:#}");
    }
}

/// `[[count]]` of two tasks, of which one branches and the other does not: each has its own shares, whenever the ticks come.
const TWO_TASKS: &str = r#"
[[count]]
events = ["topdown.slots:u", "topdown-retiring:u", "topdown-bad-spec:u", "topdown-fe-bound:u", "topdown-be-bound:u"]
together = true
tick-ns = 40000
jitter = 7

[[count.task]]
name = "straight"
asm = "nop; nop; nop; nop; nop; nop; nop; nop"
turns = 9000
ring = 3

[[count.task]]
name = "branches"
asm = "jmp 2f; 2: jmp 3f; 3: jmp 4f; 4: jmp 5f; 5: jmp 6f; 6: nop"
turns = 9000
ring = 3
"#;

#[test]
fn s3_each_task_of_a_count_has_the_shares_of_its_own_slots() {
    for (model, width) in [(Model::IceLake, 5), (Model::SapphireRapids, 6)] {
        let guest = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, TWO_TASKS) };
        let ran = guest.run();
        ran.ends_with(0);
        let count = ran.report.counts().next().expect("a count");
        assert_eq!((count.uncounted.len(), count.groups), (0, 1), "{model:?}: {count:#?}");
        assert!(count.switches > 10, "{model:?}: {}", count.switches);
        let of = |event: usize, task: usize| count.events[event].tasks[task].raw;
        // With the loop's two instructions, of which one is a branch that is taken but for the last turn.
        for (task, [instructions, taken]) in
            [[10 * 9000 + 1, 8999], [8 * 9000 + 1, 6 * 9000 - 1]].into_iter().enumerate()
        {
            let slots = width * instructions;
            assert_eq!(of(0, task), slots, "{model:?}: {count:#?}");
            // 255ths of the slots, and one for each reading: at most one more than there were switches.
            let known_to = slots / 255 + count.switches + 1;
            let front = (width - 1) * taken;
            for (event, truth) in [(1, instructions), (3, front), (4, slots - instructions - front)]
            {
                let share = of(event, task);
                assert!(
                    share.abs_diff(truth) <= known_to,
                    "{model:?} task {task}: {share} of {truth}: {:#?}",
                    count.events[event]
                );
            }
        }
        for event in &count.events {
            let parts: u64 = event.tasks.iter().map(|task| task.raw).sum();
            assert_eq!(event.sum.raw, parts + event.kernel.raw, "{model:?}: {event:?}");
        }
    }
}

#[test]
fn s3_a_count_has_metrics_of_all_that_ran_and_of_each_task() {
    let folder = folder();
    let toml = TWO_TASKS.replacen(
        "events = [",
        "metrics = [\"ipc\", \"topdown\"]\nevents = [\"instructions\"]\n#",
        1,
    );
    // Long turns, in which the kernel's part of what a task counts is small.
    let toml = toml
        .replace("together = true", "")
        .replace("tick-ns = 40000", "tick-ns = 4000000")
        .replace("turns = 9000", "turns = 90000");
    fs::write(folder.path().join("job.toml"), toml).unwrap();
    let line = ["run", "job.toml", "--pmu", "icelake", "--format", "json", "--metric", "cpi"];
    let document = json(&xtask(folder.path(), &line));
    let all = document["metrics"].as_array().expect("metrics");
    let names: Vec<&str> = all.iter().flat_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["count 1", "count 1, task straight", "count 1, task branches"]);
    let value = |item: usize, name: &str| row(&document, item, name)["value"].as_f64().unwrap();
    // By hand: one instruction a cycle; of a turn's instructions one of ten or six of eight are branches that are taken.
    for (item, taken) in [(1, 0.1), (2, 0.75)] {
        assert_eq!((value(item, "ipc"), value(item, "cpi")), (1.0, 1.0), "{document:#}");
        let front = value(item, "Frontend_Bound");
        // The kernel's handlers are in it, which the tick begins within the task.
        assert!((front - 80.0 * taken).abs() < 2.0, "{item}: {front}");
        assert!((value(item, "Retiring") - 20.0).abs() < 1.0, "{document:#}");
    }
    let whole = value(0, "Frontend_Bound");
    let parts = [1, 2].map(|item| value(item, "Frontend_Bound"));
    assert!(whole > parts[0] && whole < parts[1], "{whole}: {parts:?}");
    let known = all[1]["shares_known_to"].as_f64().unwrap();
    assert!((known - 100.0 / 255.0).abs() < 0.01, "{known}");
    // The table and the page name whose they are.
    for format in ["table", "html"] {
        let called =
            xtask(folder.path(), &["run", "job.toml", "--pmu", "icelake", "--format", format]);
        assert_eq!(called.code, 0, "{}", called.err);
        assert!(called.out.contains("count 1, task branches"), "{format}");
    }
}

#[test]
fn s3_a_sample_has_metrics_of_the_events_that_it_samples() {
    let folder = folder();
    let run = |model: &str, keys: &str| {
        let toml = format!(
            "[[sample]]\nname = \"s\"\nasm = {BODY:?}\nturns = 20000\nperiod = 997\n{keys}\n"
        );
        fs::write(folder.path().join("job.toml"), toml).unwrap();
        xtask(folder.path(), &["run", "job.toml", "--pmu", model, "--format", "json"])
    };
    let keys = "events = [\"instructions\", \"cycles\", \"branches\"]\nmetrics = [\"ipc\", \"branch_ratio\"]";
    for model in ["skylake", "zen4"] {
        let document = json(&run(model, keys));
        let records = document["records"].as_array().unwrap();
        let sample = records.iter().find(|record| record["type"] == "sample").expect("a sample");
        let saw = |event: usize| {
            let count = &sample["events"][event];
            let number = |key: &str| count[key].as_u64().unwrap_or(0);
            ((number("overflows") + number("throttled")) * 997 + number("rest")) as f64
        };
        assert!(saw(0) > 200_000.0, "{sample:#}");
        let ratios = [("ipc", saw(0) / saw(1)), ("branch_ratio", 100.0 * saw(2) / saw(0))];
        for (name, by_hand) in ratios {
            let row = row(&document, 0, name);
            let value = row["value"].as_f64().unwrap_or_else(|| panic!("{row:#}"));
            assert!((value / by_hand - 1.0).abs() < 1e-12, "{model}: {by_hand}: {row:#}");
            let [least, most] = [0, 1].map(|end| row["spread"][end].as_f64());
            // Where a counter was free for each, the spread reaches to what those saw; else the report says which had none.
            match (least, most) {
                (Some(least), Some(most)) => assert!(least <= value && value <= most, "{row:#}"),
                _ => {
                    assert!(
                        row["untrusted"].to_string().contains("no counter was free"),
                        "{row:#}"
                    );
                }
            }
        }
        // By hand: each turn has two branches and the loop's own among twelve instructions, all of a cycle; and some instructions of each
        // interrupt's end are counted, too.
        assert!(
            (ratios[0].1 - 1.0).abs() < 0.001 && (ratios[1].1 - 25.0).abs() < 0.5,
            "{model}: {ratios:?}"
        );
    }
    let called = run("skylake", "events = [\"instructions\"]\nmetrics = [\"ipc\"]");
    let why =
        "metric ipc: cycles is not sampled; a [[sample]] has metrics of the events that it samples";
    assert!(called.code != 0 && called.err.contains(why), "{called:#?}");
}

/// Two locked loads, one out of memory (201 cycles by the emulated PMU's rule) and one out of the first level (1).
const LOCKS: &str = "clflush [r14]; lock add qword ptr [r14], 1; lock add qword ptr [r14+64], 1";

/// Intel's metric is the count times the mean latency, by the cycles.
#[test]
fn s3_a_metric_of_a_retire_latency_has_the_mean_of_known_code_on_arrow_lake() {
    let latency = "MEM_INST_RETIRED.LOCK_LOADS:retire_latency";
    let line = ["run", "--asm", LOCKS, "--pmu", "arrowlake", "--unroll", "30", "--metric"];
    // What did not occur has no latency, and is not counted.
    let more = ["lock_latency", "--metric", "Code_L2_Miss", "--allow-uncounted"];
    let line = [&line[..], &more].concat();
    let document = json(&xtask(folder().path(), &[&line[..], &["--format", "json"]].concat()));
    let records = document["records"].as_array().unwrap();
    let result = records.iter().find(|record| record["type"] == "result").unwrap();
    let found = result["metrics"].as_array().unwrap().iter().find(|one| one["event"] == latency);
    let found = found.unwrap_or_else(|| panic!("{result:#?}"));
    let mean = found["median"].as_f64().unwrap();
    assert!((mean - 101.0).abs() < 2.0, "{found:#?}");
    let locks = row(&document, 0, "Lock_Latency");
    let [loads, cycles] = ["MEM_INST_RETIRED.LOCK_LOADS", "CPU_CLK_UNHALTED.THREAD"]
        .map(|event| count(&document, event, 2));
    assert_eq!(loads, 2.0);
    assert_eq!(locks["value"], 100.0 * ((loads * mean) / cycles), "{locks:#?}");
    let retired = &locks["retired"][0];
    assert_eq!((&retired["event"], &retired["mean"]), (&latency.into(), &mean.into()));
    assert!(retired["records"].as_u64().unwrap() >= 64, "{retired:#?}");
    // Nothing of its doubts is of passes: the latency is a mean, and no count.
    let doubts = locks["untrusted"].to_string();
    assert!(!doubts.contains("different times"), "{doubts}");
    // The emulated PMU has no such front-end miss: it did not occur, and the product is 0.
    let code = row(&document, 0, "Code_L2_Miss");
    assert_eq!(code["value"], 0.0, "{code:#?}");
    let table = xtask(folder().path(), &line);
    let said = format!("Lock_Latency: {latency} is ");
    assert!(table.out.contains(&said), "{table:#?}");
}

#[test]
fn s3_retire_latencies_are_refused_by_name_where_there_are_none() {
    let run = |more: &[&str]| {
        let line = [&["run", "--asm", "nop", "--metric", "Lock_Latency"], more].concat();
        let called = xtask(folder().path(), &line);
        assert_ne!(called.code, 0, "{called:#?}");
        called.err
    };
    // Golden Cove's formula has no latency, and Skylake's records none.
    let err = xtask(
        folder().path(),
        &[
            "run",
            "--asm",
            "nop",
            "--pmu",
            "skylake",
            "--event",
            "mem_inst_retired.lock_loads:retire_latency",
        ],
    );
    let text = format!("{}{}", err.out, err.err);
    assert!(text.contains("do not state it (IA32_PERF_CAPABILITIES[17]"), "{text}");
    let job = folder();
    let path = job.path().join("count.toml");
    let count = "[[count]]\nmetrics = [\"Lock_Latency\"]\n[[count.task]]\nname = \"a\"\nasm = \"nop\"\nturns = 5\n";
    fs::write(&path, count).unwrap();
    let refused = xtask(job.path(), &["run", "count.toml", "--pmu", "arrowlake"]);
    assert!(refused.err.contains("sampled in a [[snippet]] only"), "{refused:#?}");
    assert!(run(&["--pmu", "zen4"]).contains("Lock_Latency"));
}
