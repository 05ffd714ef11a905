//! Energy and the uncore of whole samples on the emulated Skylake, whose rules are known: a request for each line that is not found in the
//! last level, a tick of the clock for each of the TSC, and 2^-6 J in 2^20 ticks.

use qemu_tests::{Called, xtask};
use serde_json::Value;
use std::fs;

/// One line that no cache has, for each turn.
const MISS: &str = "clflush [r14]; mfence; mov rax, [r14]; mfence";
const REQUESTS: &str = "uncore_arb/event=0x81,umask=1,name=requests/";
const CLOCKS: &str = "uncore_clock/event=0xff,name=clocks/";
/// Joules of the package in a tick.
const PACKAGE: f64 = 1.0 / 64.0 / 1_048_576.0;

/// Runs a job on an emulated PMU.
pub fn job(toml: &str, pmu: &str, format: &str) -> Called {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), toml).unwrap();
    xtask(folder.path(), &["run", "job.toml", "--pmu", pmu, "--format", format])
}

/// The document of a run that passed.
pub fn json(called: &Called) -> Value {
    assert_eq!(called.code, 0, "{called:#?}");
    serde_json::from_str(&called.out).unwrap_or_else(|error| panic!("{error}: {called:#?}"))
}

/// The records of samples.
fn samples(document: &Value) -> Vec<&Value> {
    let all = document["records"].as_array().unwrap().iter();
    all.filter(|record| record["type"] == "sample").collect()
}

fn of_uncore<'a>(record: &'a Value, event: &str) -> &'a Value {
    let found = record["uncore"].as_array().expect("uncore");
    found.iter().find(|one| one["event"] == event).unwrap_or_else(|| panic!("{record:#}"))
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["metrics"][0]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {rows:#?}"))
}

fn hz(document: &Value) -> f64 {
    let records = document["records"].as_array().unwrap();
    let machine = records.iter().find(|record| record["type"] == "machine").unwrap();
    machine["tsc"]["hz"].as_f64().expect("the clock's rate")
}

/// Reads so many lines, alone in ring 0 or as a task of ring 3.
fn reads(keys: &str, turns: u32, ring: u32) -> String {
    let code = format!("asm = \"{MISS}\"\nturns = {turns}\n");
    match ring {
        0 => format!("[[sample]]\nname = \"{turns}\"\n{code}{keys}\n"),
        ring => format!(
            "[[sample]]\nname = \"{turns}\"\ntick-ns = 0\n{keys}\n[[sample.task]]\nname = \"t\"\n{code}ring = {ring}\n"
        ),
    }
}

#[test]
fn s3_the_uncore_of_a_sample_has_a_request_for_each_line_of_the_run_that_is_sampled() {
    for (ring, rate) in [(0, "period = 997"), (3, "period = 997"), (3, "frequency = 100000")] {
        let keys = format!(
            "events = [\"instructions\", \"{REQUESTS}\", \"{CLOCKS}\"]\n{rate}\nexpect = {{ requests = {{ min = 1000 }} }}"
        );
        let three = [1000, 1000, 2000].map(|turns| reads(&keys, turns, ring)).concat();
        // After them, the registers are as before.
        let read = |msr: &str| format!("mov ecx, {msr}; rdmsr; or [r14], rax; or [r14 + 4], edx; ");
        let asm: String = ["0x394", "0x3b2", "0x3b3", "0xe01", "0x3b0", "0x3b1"].map(read).concat();
        let last =
            format!("[[run]]\n[[run.task]]\nname = \"registers\"\nasm = \"{asm}\"\nturns = 1\n");
        let document = json(&job(&format!("{three}{last}"), "skylake", "json"));
        let [_, small, large] = samples(&document)[..] else { panic!("{document:#}") };
        for (one, lines) in [(small, 1000), (large, 2000)] {
            let requests = of_uncore(one, "requests")["count"].as_u64().unwrap();
            // One for each line. A run that only counts, for the frequency, would make them twice as many.
            assert!((lines..lines + 200).contains(&requests), "ring {ring}, {rate}: {one:#}");
            let clocks = of_uncore(one, "clocks");
            let [count, ticks] = ["count", "ticks"].map(|key| clocks[key].as_f64().unwrap());
            assert!(count >= ticks && count < 1.2 * ticks, "ring {ring}, {rate}: {clocks:#}");
            assert!(ticks >= one["ticks"].as_f64().unwrap(), "{one:#}");
            assert!(one["interrupts"].as_u64().unwrap() > 0, "{one:#}");
            assert_eq!([&one["uncounted"], &one["unread"]], [&Value::Null; 2], "{one:#}");
        }
        let all = document["records"].as_array().unwrap();
        let registers = all.iter().find(|one| one["type"] == "tasks").expect("who reads them");
        assert_eq!(registers["tasks"][0]["value"], "0x0", "{registers:#}");
    }
}

#[test]
fn s3_s4_samples_have_metrics_of_energy_and_of_the_uncore() {
    let metrics = ["power", "energy_per_instruction", "Info_System_Socket_CLKS", "ipc"];
    let names: Vec<String> = metrics.iter().map(|name| format!("{name:?}")).collect();
    let keys = format!(
        "events = [\"instructions\", \"cycles\", \"energy-pkg\", \"energy-cores\"]\nperiod = 99991\nmetrics = [{}]\n\
         expect = {{ energy-pkg = {{ min = 0.1 }} }}\n",
        names.join(", ")
    );
    let toml = format!("[[sample]]\nasm = \"imul rax, rax\"\nturns = 4000000\n{keys}");
    let called = job(&toml, "skylake", "json");
    let document = json(&called);
    let one = samples(&document)[0];
    let energy = one["energy"].as_array().expect("energy");
    let events: Vec<&str> = energy.iter().map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["energy-pkg", "energy-cores"], "{one:#}");
    let number = |of: usize, key: &str| energy[of][key].as_f64().expect("a number");
    for (of, part) in [(0, 1.0), (1, 2.0)] {
        let by_rule = number(of, "ticks") * PACKAGE / part;
        assert!((number(of, "joules") - by_rule).abs() <= number(of, "resolution"), "{one:#}");
    }
    let (joules, ticks) = (number(0, "joules"), number(0, "ticks"));
    let near = |name: &str, expected: f64| {
        let value =
            row(&document, name)["value"].as_f64().unwrap_or_else(|| panic!("{document:#}"));
        assert!((value / expected - 1.0).abs() < 1e-9, "{name}: {value}, {expected}");
        let said = row(&document, name)["untrusted"].to_string();
        assert!(said.contains("include what the interrupts and records of samples took"), "{said}");
    };
    near("power", joules / (ticks / hz(&document)));
    near("Info_System_Socket_CLKS", of_uncore(one, "UNC_CLOCK.SOCKET")["count"].as_f64().unwrap());
    let counted = &one["events"][0];
    let saw = |key: &str| counted[key].as_f64().unwrap_or(0.0);
    let instructions = saw("overflows") * saw("period") + saw("rest");
    assert!(instructions >= 12e6, "3 a turn: {counted:#}");
    // In nanojoules.
    near("energy_per_instruction", 1e9 * joules / instructions);
    let plain = row(&document, "ipc")["untrusted"].to_string();
    assert!(!plain.contains("include what the interrupts"), "{plain}");
    // Each form has them.
    let table = job(&toml, "skylake", "table").out;
    assert!(
        table.contains("energy-pkg: ") && table.contains("of everything that ran (MSR 0x611)"),
        "{table}"
    );
    let csv = job(&toml, "skylake", "csv").out;
    assert_eq!(csv.lines().filter(|line| line.contains(",energy-pkg,")).count(), 1, "{csv}");
    let tap = job(&toml, "skylake", "tap").out;
    assert!(tap.contains("energy:") && tap.contains("event: \"energy-pkg\""), "{tap}");
}

#[test]
fn s3_s4_what_of_a_whole_sample_cannot_be_read_is_named() {
    let sample = |keys: &str| format!("[[sample]]\nasm = \"nop\"\nturns = 20000\n{keys}");
    let events =
        format!("events = [\"instructions\", \"energy-pkg\", \"{REQUESTS}\"]\nperiod = 997\n");
    let document =
        json(&job(&sample(&format!("{events}allow-uncounted = true\n")), "nehalem", "json"));
    let one = samples(&document)[0];
    let reasons = [
        ("energy-pkg", "this processor has no RAPL: MSR 0x606"),
        ("requests", "no counters of the uncore are known"),
    ];
    for (event, why) in reasons {
        let all = one["unread"].as_array().expect("what was not read");
        let found = all.iter().find(|one| one["event"] == event).expect("its reason");
        assert!(found["reason"].to_string().contains(why), "{found}");
    }
    assert!(one["events"][0]["overflows"].as_u64().unwrap() > 0, "{one:#}");
    // Without permission the item fails.
    let table = job(&sample(&events), "nehalem", "table");
    assert!(
        table.out.contains("not counted: energy-pkg: this processor has no RAPL"),
        "{table:#?}"
    );
    assert_eq!(table.code, 1, "{table:#?}");
    for (keys, why) in [
        (
            "events = [\"cycles\"]\nperiod = 997\nmetrics = [\"frequency\"]\n",
            "metric frequency: it needs time, and some of it goes to the interrupts of samples",
        ),
        (
            "events = [\"instructions:u\"]\nperiod = 997\nmetrics = [\"energy_per_instruction\"]\n",
            "metric energy_per_instruction: energy and the uncore are of all rings, and its events are sampled in one",
        ),
        (
            "events = [{ event = \"energy-pkg\", period = 5 }]\n",
            "energy-pkg: energy is read before the code and after it, and no sample is taken by it",
        ),
    ] {
        let called = job(&sample(keys), "skylake", "table");
        assert!(called.code != 0 && called.err.contains(why), "{called:#?}");
    }
}

/// The package's registers are read once for both of its processors, which run their tasks meanwhile.
#[test]
fn s3_s4_samples_of_several_processors_have_them_once() {
    let task = |name: &str, cpu: u32| {
        format!(
            "[[sample.task]]\nname = \"{name}\"\nasm = \"imul rax, rax\"\nturns = 2000000\nring = 3\ncpu = {cpu}\n"
        )
    };
    let toml = format!(
        "cpus = 2\n[[sample]]\nevents = [\"instructions:u\", \"energy-pkg\", \"{CLOCKS}\"]\nperiod = 99991\nlimit-us = 10000000\n{}{}",
        task("a", 0),
        task("b", 1)
    );
    let document = json(&job(&toml, "skylake", "json"));
    let one = samples(&document)[0];
    assert_eq!(one["processors"].as_array().map(Vec::len), Some(2), "{one:#}");
    for of in ["energy", "uncore"] {
        let [read] = &one[of].as_array().expect("one")[..] else { panic!("{one:#}") };
        assert_eq!(read["processors"], serde_json::json!([0, 1]), "{read:#}");
    }
    let energy = &one["energy"][0];
    let number = |key: &str| energy[key].as_f64().expect("a number");
    let by_rule = number("ticks") * PACKAGE;
    assert!((number("joules") - by_rule).abs() <= number("resolution"), "{energy:#}");
    assert!(number("ticks") > 12e6, "both tasks: {energy:#}");
}
