//! Energy (RAPL) on the emulated models, whose rule is known: an update each 2^20 ticks of the TSC, with 2^-6 J for the package and
//! half of that for the cores.

use pmu_model::Model;
use protocol::record::{CountResult, Metric, SnippetResult};
use qemu_tests::{Guest, Ran, xtask};
use serde_json::Value;
use std::fs;
use xtask::cli::{Boot, Icount};
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Joules of the package in a tick.
const PACKAGE: f64 = 1.0 / 64.0 / 1_048_576.0;
/// The tick at which every register goes through 0.
const WRAP: u64 = 4096 << 20;

/// Ten runs of 5 and of 10 million multiplications.
const LONG: &str = "asm = \"imul rax, rax\"\nunroll = 100\nloop = 50000\n";

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn result(ran: &Ran) -> &SnippetResult {
    ran.report.results().next().expect("a result")
}

fn figure<'a>(result: &'a SnippetResult, event: &str) -> &'a Metric {
    let found = result.metrics.iter().find(|one| one.event == event);
    found.unwrap_or_else(|| panic!("{event}: {result:#?}"))
}

/// The figure is what the rule makes of the ticks, as far as it can be told.
fn is_of_the_rule(result: &SnippetResult, event: &str, joules_in_a_tick: f64) {
    let (one, tsc) = (figure(result, event), figure(result, "tsc"));
    let energy = one.energy.as_ref().expect("energy");
    let by_rule = tsc.value.median * joules_in_a_tick;
    let off = (one.value.median - by_rule).abs();
    assert!(off <= energy.resolution, "{event}: {by_rule} by the rule, {one:#?}");
    assert!(energy.resolution < by_rule / 5.0, "{event}: {one:#?}");
    assert!(energy.update.abs_diff(1 << 20) < 1 << 16, "{event}: {one:#?}");
    assert_eq!(
        [one.value.min, one.value.max].map(|end| (end - one.value.median).abs() > 0.0),
        [true; 2]
    );
}

#[test]
fn s4_a_snippet_has_joules_beside_its_counts() {
    let toml = format!(
        "[[snippet]]\n{LONG}events = [\"instructions\", \"energy-pkg\", \"power/energy-cores/\"]\n"
    );
    for (model, unit) in [(Model::Skylake, 14), (Model::SapphireRapids, 14), (Model::Zen4, 16)] {
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = result(&ran);
        assert_eq!(result.uncounted, [], "{model:?}");
        is_of_the_rule(result, "energy-pkg", PACKAGE);
        is_of_the_rule(result, "power/energy-cores/", PACKAGE / 2.0);
        let package = figure(result, "energy-pkg");
        assert_eq!(package.energy.as_ref().unwrap().unit, unit, "{model:?}");
        assert_eq!(figure(result, "instructions").value.median, 1.0);
        // The machine says what there is.
        let machine = ran.report.machine().expect("a machine");
        let meters: Vec<&str> = machine.energy.iter().map(|one| &*one.event).collect();
        assert_eq!(meters[..2], ["energy-pkg", "energy-cores"], "{model:?}");
    }
}

#[test]
fn s4_a_register_that_wraps_while_a_snippet_runs_changes_nothing() {
    // 16 ticks for an instruction.
    let toml = format!("[[snippet]]\n{LONG}runs = 20\nevents = [\"energy-pkg\"]\n");
    let guest = Guest { pmu: Given::Emulated(Model::Haswell), ..Guest::new(Boot::Direct, &toml) };
    let ran = Guest { icount: Icount::Shift(4), ..guest }.run();
    ran.ends_with(0);
    let result = result(&ran);
    assert!(result.tsc[0] < WRAP && WRAP < result.tsc[1], "{:?}", result.tsc);
    is_of_the_rule(result, "energy-pkg", PACKAGE);
}

#[test]
fn s4_what_cannot_be_told_is_refused_by_name() {
    let said = |ran: &Ran| -> Vec<String> {
        let all = &result(ran).uncounted;
        all.iter().map(|one| format!("{}: {}", one.event, one.reason)).collect()
    };
    let toml = |what: &str| format!("allow-uncounted = true\n[[snippet]]\nasm = \"nop\"\n{what}\n");
    let short = on(Model::Zen4, &toml("events = [\"energy-pkg\", \"energy-ram\"]"));
    let [ram, package] = &said(&short)[..] else { panic!("{:?}", said(&short)) };
    let reason =
        "energy-ram: AMD's processors have no register for it; there is energy-pkg, energy-cores";
    assert_eq!(ram, reason);
    assert!(package.contains("that cannot be told from nothing; take some "), "{package}");
    let old = on(Model::Nehalem, &toml("events = [\"energy-pkg\"]"));
    assert_eq!(said(&old), ["energy-pkg: this processor has no RAPL: MSR 0x606 does not exist"]);
    let bare = Guest::new(Boot::Direct, &toml("events = [\"energy-pkg\"]")).run();
    let [none] = &said(&bare)[..] else { panic!("{:?}", said(&bare)) };
    assert!(none.contains("reads 0") || none.contains("CPUID does not announce"), "{none}");
    let still = Guest {
        pmu: Given::Emulated(Model::Skylake),
        pmu_fault: Some("energy-stands-still"),
        ..Guest::new(Boot::Direct, &toml("events = [\"energy-pkg\"]"))
    };
    let [still] = &said(&still.run())[..] else { panic!() };
    assert!(still.contains("the register does not change: it read 0xfff"), "{still}");
}

#[test]
fn s4_tasks_that_are_counted_have_joules_of_all_that_ran() {
    let toml = "[[count]]\nevents = [\"instructions:u\", \"energy-pkg\", \"energy-ram\"]\n\
                expect = { energy-pkg = { min = 0.5 } }\nlimit-us = 10000000\n\
                [[count.task]]\nname = \"t\"\nasm = \"imul rax, rax\"\nturns = 20000000\nring = 3\n";
    let ran = on(Model::IceLake, toml);
    ran.ends_with(0);
    let count: &CountResult = ran.report.counts().next().expect("a count");
    let [package, memory] = &count.energy[..] else { panic!("{count:#?}") };
    assert_eq!((package.event.as_str(), package.register.as_str()), ("energy-pkg", "MSR 0x611"));
    let by_rule = package.ticks as f64 * PACKAGE;
    assert!((package.joules - by_rule).abs() <= package.resolution, "{by_rule}: {package:?}");
    assert!((memory.joules - by_rule / 8.0).abs() <= memory.resolution, "{by_rule}: {memory:?}");
    // 3 instructions a turn, a tick each.
    assert!(package.ticks > 60_000_000, "{package:?}");
    assert_eq!(count.events.len(), 1, "{count:#?}");
    // Energy alone is enough.
    let alone = "[[count]]\nevents = [\"energy-cores\"]\n[[count.task]]\nname = \"t\"\nasm = \"nop\"\nturns = 5000000\nring = 3\n";
    let ran = on(Model::Zen2, alone);
    ran.ends_with(0);
    let count = ran.report.counts().next().expect("a count");
    assert_eq!((count.energy.len(), count.events.len()), (1, 0), "{count:#?}");
}

#[test]
fn s4_power_is_a_metric() {
    let folder = tempfile::tempdir().unwrap();
    let metrics =
        "metrics = [\"power\", \"energy\", \"energy_per_instruction\", \"Info_System_Power\"]";
    fs::write(folder.path().join("job.toml"), format!("[[snippet]]\n{LONG}{metrics}\n")).unwrap();
    let run = |format: &str| {
        let called =
            xtask(folder.path(), &["run", "job.toml", "--pmu", "skylake", "--format", format]);
        assert_eq!(called.code, 0, "{called:#?}");
        called.out
    };
    let document: Value = serde_json::from_str(&run("json")).unwrap();
    let rows = document["metrics"][0]["rows"].as_array().expect("rows");
    let value = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        row["value"].as_f64().unwrap_or_else(|| panic!("{row:#}"))
    };
    // 2^-6 J in 2^20 ns; one instruction is a tick.
    let watts = PACKAGE * 1e9;
    assert!((value("power") / watts - 1.0).abs() < 0.1, "{rows:#?}");
    // Intel's own, whose formula takes ticks of 61 microjoules.
    assert!((value("Info_System_Power") / value("power") - 1.0).abs() < 1e-9, "{rows:#?}");
    assert!((value("energy") / PACKAGE - 1.0).abs() < 0.1, "{rows:#?}");
    assert!((value("energy_per_instruction") / PACKAGE / 1e9 - 1.0).abs() < 0.1, "{rows:#?}");
    let table = run("table");
    assert!(table.contains("energy-pkg") && table.contains(" nJ"), "{table}");
    assert!(
        run("csv").lines().any(|line| line.contains(",energy-pkg,0.00000001")),
        "{}",
        run("csv")
    );
}

/// Tasks of 60 million ticks.
const TASK: &str = "name = \"t\"\nasm = \"imul rax, rax\"\nturns = 20000000\nring = 3\n";

#[test]
fn s4_a_run_of_tasks_has_joules_and_power() {
    let folder = tempfile::tempdir().unwrap();
    let job = |keys: &str| {
        let toml = format!("[[run]]\n{keys}limit-us = 10000000\n[[run.task]]\n{TASK}");
        fs::write(folder.path().join("job.toml"), toml).unwrap();
    };
    let run = |model: &str| {
        xtask(folder.path(), &["run", "job.toml", "--pmu", model, "--format", "json"])
    };
    for (model, register, metrics) in [
        ("skylake", "MSR 0x611", "\"power\", \"Info_System_Power\""),
        ("zen4", "MSR 0xc001029b", "\"power\""),
    ] {
        job(&format!(
            "events = [\"energy-pkg\", \"energy-cores\"]\nmetrics = [{metrics}]\nexpect = {{ energy-pkg = {{ min = 0.5 }} }}\n"
        ));
        let called = run(model);
        assert_eq!(called.code, 0, "{called:#?}");
        let document: Value = serde_json::from_str(&called.out).unwrap();
        let records = document["records"].as_array().unwrap();
        let ran = records.iter().find(|one| one["type"] == "tasks").expect("a run");
        let energy = ran["energy"].as_array().expect("energy");
        assert_eq!(energy.len(), 2, "{ran:#}");
        let number = |of: usize, key: &str| energy[of][key].as_f64().expect("a number");
        assert_eq!(energy[0]["register"], register, "{ran:#}");
        let by_rule = number(0, "ticks") * PACKAGE;
        assert!((number(0, "joules") - by_rule).abs() <= number(0, "resolution"), "{ran:#}");
        assert!((number(1, "joules") - by_rule / 2.0).abs() <= number(1, "resolution"), "{ran:#}");
        assert!(number(0, "ticks") > 6e7, "{ran:#}");
        let rows = document["metrics"][0]["rows"].as_array().expect("metrics");
        for row in rows {
            // 2^-6 J in 2^20 ns, as the time is that in which the energy was read.
            let watts = row["value"].as_f64().unwrap_or_else(|| panic!("{row:#}"));
            assert!((watts / (PACKAGE * 1e9) - 1.0).abs() < 0.03, "{model}: {row:#}");
        }
    }
    // What needs counts is refused with what has them, and so is what is no energy, or none of this processor's.
    for (keys, model, why) in [
        ("metrics = [\"ipc\"]\n", "zen4", "counts nothing; measure the same tasks in [[count]]"),
        (
            "events = [\"cycles\"]\n",
            "zen4",
            "cycles is neither; count it in a [[count]] of the same tasks",
        ),
        (
            "events = [\"energy-ram\"]\n",
            "zen4",
            "AMD's processors have no register for it; there is energy-pkg, energy-cores",
        ),
        ("events = [\"energy-pkg\"]\n", "nehalem", "this processor has no RAPL: MSR 0x606"),
    ] {
        job(keys);
        let called = run(model);
        let said = format!("{}{}", called.out, called.err);
        assert!(called.code != 0 && said.contains(why), "{why}: {called:#?}");
    }
}

#[test]
fn s4_energy_of_several_processors_is_read_once() {
    let toml = format!(
        "[[processors]]\n{LONG}runs = 5\nevents = [\"instructions\", \"energy-pkg\", \"energy-cores\"]\n"
    );
    for model in [Model::Skylake, Model::Zen4] {
        let guest = Guest::new(Boot::Direct, &toml);
        let ran = Guest { pmu: Given::Emulated(model), cpus: Cpus::Many(2), ..guest }.run();
        ran.ends_with(0);
        let result = ran.report.processors().next().expect("a result");
        assert_eq!(result.uncounted, [], "{model:?}");
        let [first, second] = &result.processors[..] else { panic!("{result:#?}") };
        let find = |metrics: &[Metric], event: &str| {
            metrics.iter().find(|one| one.event == event).cloned()
        };
        let package = find(&first.metrics, "energy-pkg").expect("the package's");
        let energy = package.energy.as_ref().expect("energy");
        assert_eq!((energy.reader, &energy.processors[..]), (0, &[0, 1][..]), "{model:?}");
        assert_eq!(find(&second.metrics, "energy-pkg"), None, "{model:?}");
        // The emulated processors run one after the other, so an execution on each takes both times.
        let tsc = |metrics: &[Metric]| find(metrics, "tsc").expect("tsc").value.median;
        let by_rule = (tsc(&first.metrics) + tsc(&second.metrics)) * PACKAGE;
        let off = (package.value.median - by_rule).abs();
        assert!(off <= energy.resolution, "{model:?}: {by_rule} by the rule, {package:#?}");
        assert!(energy.resolution < by_rule / 5.0, "{package:#?}");
        // AMD's register of cores is each core's own, Intel's the package's.
        let cores = find(&second.metrics, "energy-cores");
        assert_eq!(cores.is_some(), model == Model::Zen4, "{model:?}: {cores:?}");
        let reader = cores.map(|one| one.energy.expect("energy"));
        assert!(reader.is_none_or(|one| (one.reader, &one.processors[..]) == (1, &[1][..])));
        let sum = result.sums.iter().find(|sum| sum.event == "energy-pkg").expect("a sum");
        assert_eq!((sum.value, sum.processors), (package.value.median, 1));
    }
}

#[test]
fn s3_s4_processors_have_metrics_of_their_own_and_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = "metrics = [\"ipc\", \"power\", \"energy_per_instruction\", \"topdown\"]";
    let toml = format!(
        "cpus = 2\n[[processors]]\nname = \"two\"\nasm = \"imul rax, rax; jmp 2f; 2: nop\"\nunroll = 100\nloop = 20000\nruns = 3\n{metrics}\n"
    );
    fs::write(folder.path().join("job.toml"), toml).unwrap();
    let line = ["run", "job.toml", "--pmu", "icelake", "--format", "json"];
    let called = xtask(folder.path(), &line);
    assert_eq!(called.code, 0, "{called:#?}");
    let document: Value = serde_json::from_str(&called.out).unwrap();
    let all = document["metrics"].as_array().expect("metrics");
    let names: Vec<&str> = all.iter().flat_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["two", "two, cpu 0", "two, cpu 1"]);
    let row = |item: usize, name: &str| {
        let rows = all[item]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:#?}"))
    };
    let value = |item: usize, name: &str| {
        let row = row(item, name);
        row["value"].as_f64().unwrap_or_else(|| panic!("{row:#}"))
    };
    // Three instructions, each a cycle of five slots, of which one is a branch that is taken: each processor has its own register.
    for item in 0..3 {
        assert!((value(item, "ipc") - 1.0).abs() < 0.001, "{item}: {all:#?}");
        assert!((value(item, "Retiring") - 20.0).abs() < 1.0, "{item}: {all:#?}");
        assert!((value(item, "Frontend_Bound") - 80.0 / 3.0).abs() < 1.0, "{item}: {all:#?}");
    }
    // Energy was read once, and is of both.
    assert!((value(0, "power") / (PACKAGE * 1e9) - 1.0).abs() < 0.1, "{all:#?}");
    for item in 1..3 {
        let why = row(item, "power")["missing"].to_string();
        assert!(why.contains("energy is of all processors together"), "{why}");
    }
    let called = xtask(folder.path(), &["run", "job.toml", "--pmu", "icelake"]);
    assert!(
        called.out.contains("read once, by processor 0, for processors 0, 1"),
        "{}",
        called.out
    );
}

#[test]
fn s3_s4_sets_have_metrics_each_of_its_own_counts() {
    let folder = tempfile::tempdir().unwrap();
    let set = |task: &str, more: &str| {
        format!(
            "[[count.set]]\nname = \"of {task}\"\nevents = [{more}]\nbind = {{ task = \"{task}\" }}\nmetrics = [\"topdown\"]\n"
        )
    };
    let task = |name: &str, asm: &str| {
        format!("[[count.task]]\nname = \"{name}\"\nasm = \"{asm}\"\nturns = 900000\nring = 3\n")
    };
    let job = |last: &str| {
        let toml = format!(
            "[[count]]\nmetrics = [\"ipc\", \"power\", \"energy_per_instruction\"]\nlimit-us = 10000000\n{}{}{}{}{last}",
            task("straight", "nop; nop; nop; nop; nop; nop; nop; nop"),
            task("branches", "jmp 2f; 2: jmp 3f; 3: jmp 4f; 4: jmp 5f; 5: jmp 6f; 6: nop"),
            set("straight", "\"instructions:u\", \"energy-ram\""),
            set("branches", "\"instructions:u\""),
        );
        fs::write(folder.path().join("job.toml"), toml).unwrap();
        xtask(folder.path(), &["run", "job.toml", "--pmu", "icelake", "--format", "json"])
    };
    let called = job("");
    assert_eq!(called.code, 0, "{called:#?}");
    let document: Value = serde_json::from_str(&called.out).unwrap();
    let all = document["metrics"].as_array().expect("metrics");
    let names: Vec<&str> = all.iter().flat_map(|one| one["name"].as_str()).collect();
    let [straight, branches] = ["count 1, of straight", "count 1, of branches"];
    let tasks = [straight, branches]
        .map(|set| ["", ", task straight", ", task branches"].map(|task| format!("{set}{task}")));
    assert_eq!(names, tasks.as_flattened());
    let value = |item: &str, name: &str| {
        let found = all.iter().find(|one| one["name"] == item).expect("an item");
        let rows = found["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == name).expect("a row");
        row["value"].as_f64().unwrap_or_else(|| panic!("{item}: {row:#}"))
    };
    // By hand, as for a count without sets: one instruction of ten or six of eight are branches that are taken.
    for (set, taken) in [(straight, 0.1), (branches, 0.75)] {
        assert!((value(set, "ipc") - 1.0).abs() < 0.001, "{document:#}");
        assert!((value(set, "Frontend_Bound") - 80.0 * taken).abs() < 2.0, "{document:#}");
        // Energy is of the whole item, for each of them: some 15 updates, of which one may be missing.
        assert!((value(set, "power") / (PACKAGE * 1e9) - 1.0).abs() < 0.1, "{document:#}");
        // But not of the instructions of a task alone.
        let found = all.iter().find(|one| one["name"] == set).expect("an item");
        let rows = found["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == "energy_per_instruction").expect("a row");
        let missing = "energy is of all that ran, and not of what the counts are bound to";
        assert_eq!(row["missing"], missing, "{row:#}");
    }
    let records = document["records"].as_array().unwrap();
    let count = records.iter().find(|one| one["type"] == "count").expect("a count");
    let energy = count["energy"].as_array().expect("energy");
    let events: Vec<&str> = energy.iter().flat_map(|one| one["event"].as_str()).collect();
    assert_eq!(events, ["energy-ram", "energy-pkg"], "each once: {count:#}");
    // What comes and goes has no energy of its own.
    let called = job("[[count.set]]\nevents = [\"instructions:u\"]\nat-us = 1000\n");
    let why = "comes and goes, and energy is read before and after the whole item; give energy-pkg to the item's own events";
    assert!(called.code != 0 && called.err.contains(why), "{called:#?}");
}
