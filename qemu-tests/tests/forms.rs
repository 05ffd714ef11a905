//! Latency and throughput of instruction forms, from the job to the table.

use pmu_model::Model;
use qemu_tests::{Guest, xtask};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use xtask::cli::{Boot, Shard};
use xtask::job::form::Case;
use xtask::job::form::catalog::{self, Selection};
use xtask::job::{file, form};
use xtask::machine::Given;

/// Each instruction that is generated is executed, and nothing else is counted.
#[test]
fn n3_sixty_forms_have_latency_and_throughput_with_the_counts_of_their_code() {
    let text = include_str!("../../xtask/jobs/instructions.toml");
    let file = file::parse(text, "instructions.toml").unwrap();
    let forms = file.snippets[0].wanted.as_ref().unwrap().throughput.len();
    assert!(forms >= 60, "{forms}");
    let expanded = form::expand(&file).unwrap();
    let guest = Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, text) };
    let ran = guest.run();
    let results = ran.ends_with(0).results();
    assert_eq!(results.len(), expanded.snippets.len());
    for (result, snippet) in results.iter().zip(&expanded.snippets) {
        assert_eq!(result.name, snippet.name);
        let lines = snippet.asm.lines().count() as f64;
        let counts = result.metrics.iter().map(|m| (m.event.as_str(), m.value.median));
        let expected = [("tsc", lines), ("cycles", lines), ("instructions", lines)];
        // PAUSE takes the emulated machine more time than one instruction does.
        if !snippet.asm.contains("pause") {
            assert_eq!(counts.collect::<Vec<_>>(), expected, "{}", result.name);
        }
        assert!(result.metrics[2].deterministic, "{}", result.name);
    }
    let rows = xtask::forms::rows(&ran.report);
    let of = |wanted: &str| rows.iter().find(|row| row.form == wanted).unwrap();
    assert!(rows.iter().filter(|row| row.throughput.is_some()).count() >= 60);
    assert!(rows.iter().filter(|row| !row.latency.is_empty()).count() >= 50);
    let pairs = |form| -> Vec<(String, String)> {
        of(form).latency.iter().map(|one| (one.from.clone(), one.to.clone())).collect()
    };
    let pair = |from: &str, to: &str| (from.to_string(), to.to_string());
    assert_eq!(pairs("imul r64, r64"), [pair("1", "1"), pair("2", "1")]);
    assert_eq!(pairs("mov r64, m64"), [pair("address", "1"), pair("memory", "1")]);
}

/// Under icount a tick is an instruction, of the way back too.
#[test]
fn n3_the_command_line_answers_with_a_table_and_with_figures_an_instruction() {
    let folder = tempfile::tempdir().unwrap();
    let forms = ["--latency", "imul r64, r64", "--throughput", "imul r64, r64"];
    let run = |more: &[&str]| {
        let line = [&["run", "--pmu", "none"], &forms[..], more].concat();
        let called = xtask(folder.path(), &line);
        assert_eq!(called.code, 0, "{}", called.err);
        called.out
    };
    let table = run(&[]);
    for part in ["imul r64, r64", "1 → 1", "2 → 1, back by movsxd r64, r32", "8 apart"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let report: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    let row = &report["forms"][0];
    assert_eq!((&row["form"], &row["unit"]), (&"imul r64, r64".into(), &"tsc".into()));
    assert_eq!(row["throughput"]["value"], 1.0);
    let latency = row["latency"].as_array().unwrap();
    assert_eq!(latency[0]["value"], 1.0);
    // IMUL, MOVSXD and the instruction that writes the first operand anew; MOVSXD is taken off.
    assert_eq!((&latency[1]["measured"], &latency[1]["value"]), (&3.0.into(), &2.0.into()));
    let copies = report["records"].as_array().unwrap().iter();
    let copies = copies.filter(|record| record["name"] == "throughput: imul r64, r64 (8 apart)");
    assert_eq!(copies.map(|record| record["per"].clone()).collect::<Vec<_>>(), [800]);
}

/// What the emulated machine has is measured, each body with the counts of its code, and the rest says why it is not. Shards
/// make one table, in which nothing of theirs is open.
#[test]
fn d2_shards_of_all_instructions_are_measured_and_joined_and_none_crashes_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let job = format!(
        "{}/xtask/jobs/all-instructions.toml",
        env!("CARGO_MANIFEST_DIR").trim_end_matches("/qemu-tests")
    );
    let mut lines: HashMap<String, f64> = HashMap::new();
    for index in [3, 100] {
        let shard = Shard { index, count: 400 };
        let selection = Selection { shard, ..Selection::default() };
        for entry in selection.of(catalog::all()).unwrap() {
            for made in catalog::measure(&entry).made {
                lines.insert(made.case.to_string(), made.body.lines().count() as f64);
            }
        }
        let out = format!("{index}.json");
        let shard = shard.to_string();
        let called = xtask(
            folder.path(),
            &[
                "run", &job, "--shard", &shard, "--pmu", "skylake", "--format", "json", "--out",
                &out,
            ],
        );
        assert_eq!(called.code, 0, "{}", called.err);
        let text = std::fs::read_to_string(folder.path().join(&out)).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let records = report["records"].as_array().unwrap();
        let results = records.iter().filter(|record| record["type"] == "result");
        let mut counted = 0;
        for result in results {
            let name = result["name"].as_str().unwrap();
            let Some(lines) = lines.get(name) else { continue };
            let copies = name.parse::<Case>().unwrap().copies();
            let metric = |event: &str| {
                let metrics = result["metrics"].as_array().unwrap();
                metrics.iter().find(|metric| metric["event"] == event).unwrap()["median"].as_f64()
            };
            let expected = lines / f64::from(copies);
            let same = |event| (metric(event).unwrap() - expected).abs() < 1e-9;
            assert!(same("instructions") && same("cycles"), "{name}: {expected} {result}");
            counted += 1;
        }
        assert!(counted > 10, "{counted}");
    }
    let called = xtask(folder.path(), &["instructions", "3.json", "100.json", "--format", "json"]);
    assert_eq!(called.code, 0, "{}", called.err);
    let table: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!(table["machine"]["emulated"], true);
    let of_shards: HashSet<String> =
        lines.keys().map(|name| name.parse::<Case>().unwrap().form).collect();
    let mut states: HashMap<&str, usize> = HashMap::new();
    for line in table["forms"].as_array().unwrap() {
        if of_shards.contains(line["form"].as_str().unwrap()) {
            *states.entry(line["state"]["is"].as_str().unwrap()).or_default() += 1;
        }
    }
    assert_eq!(states.values().sum::<usize>(), of_shards.len());
    let expected: HashSet<&str> = ["measured", "absent"].into();
    assert_eq!(states.keys().copied().collect::<HashSet<_>>(), expected, "{states:?}");
}

/// Takes three minutes.
#[test]
#[ignore = "thousands of forms; run by hand"]
fn d2_all_instructions_are_measured_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let job = format!(
        "{}/xtask/jobs/all-instructions.toml",
        env!("CARGO_MANIFEST_DIR").trim_end_matches("/qemu-tests")
    );
    let line = [
        "run",
        &job,
        "--pmu",
        "skylake",
        "--timeout",
        "550",
        "--format",
        "json",
        "--out",
        "all.json",
    ];
    let called = xtask(folder.path(), &line);
    assert_eq!(called.code, 0, "{}", called.err);
    let called = xtask(folder.path(), &["instructions", "all.json", "--format", "json"]);
    let table: Value = serde_json::from_str(&called.out).unwrap();
    let forms = table["forms"].as_array().unwrap();
    let count = |state: &str| forms.iter().filter(|line| line["state"]["is"] == state).count();
    println!(
        "{} measured, {} absent, {} refused",
        count("measured"),
        count("absent"),
        count("refused")
    );
    assert!(count("measured") > 3_300);
    for state in ["open", "partly", "failed"] {
        assert_eq!(count(state), 0, "{state}");
    }
}

#[test]
fn n3_a_form_that_the_assembler_refuses_ends_with_code_2_and_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let called = xtask(folder.path(), &["run", "--latency", "imull r64, r64"]);
    assert_eq!(called.code, 2, "{}", called.err);
    assert!(called.err.contains("`imull r64, r64`, tried as `imull r8, r9`"), "{}", called.err);
    let both = ["run", "--latency", "inc r64", "--asm", "nop"];
    let called = xtask(folder.path(), &both);
    assert_eq!(called.code, 2, "{}", called.err);
    assert!(called.err.contains("--latency"), "{}", called.err);
}
