//! Energy (RAPL) on the emulated models, whose rule is known: an update each 2^20 ticks of the TSC, with 2^-6 J for the package and
//! half of that for the cores.

use pmu_model::Model;
use protocol::record::{CountResult, Metric, SnippetResult};
use qemu_tests::{Guest, Ran, xtask};
use serde_json::Value;
use std::fs;
use xtask::cli::{Boot, Icount};
use xtask::machine::Given;

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
