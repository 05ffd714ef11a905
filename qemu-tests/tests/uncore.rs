//! Counters of the uncore on the emulated Skylake, whose rule is known: its arbiter gets a request for each line that is not found in the
//! last level, for a clock each; its clock ticks as the TSC does.

use qemu_tests::{Called, xtask};
use serde_json::Value;
use std::fs;

/// One line that no cache has, for each execution.
const MISS: &str = "clflush [r14]; mfence; mov rax, [r14]; mfence";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn json(called: &Called) -> Value {
    assert_eq!(called.code, 0, "{called:#?}");
    serde_json::from_str(&called.out).unwrap_or_else(|error| panic!("{error}: {called:#?}"))
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["metrics"][0]["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {rows:#?}"))
}

fn result(document: &Value) -> &Value {
    let records = document["records"].as_array().unwrap();
    records.iter().find(|record| record["type"] == "result").expect("a result")
}

/// The figures of an event, one for each pass that has it.
fn figures<'a>(document: &'a Value, event: &str) -> Vec<&'a Value> {
    let metrics = result(document)["metrics"].as_array().unwrap();
    let found: Vec<&Value> = metrics.iter().filter(|one| one["event"] == event).collect();
    assert!(!found.is_empty(), "{event}: {metrics:#?}");
    found
}

fn median(document: &Value, event: &str) -> f64 {
    figures(document, event)[0]["median"].as_f64().unwrap()
}

#[test]
fn s3_metrics_of_the_uncore_have_the_values_of_its_counters() {
    let line = ["run", "--asm", MISS, "--pmu", "skylake", "--format", "json", "--runs", "4"];
    let asked = [
        "Info_System_DRAM_BW_Use",
        "Info_System_MEM_Read_Latency",
        "Info_System_MEM_Parallel_Reads",
        "Info_System_Socket_CLKS",
        "cache_mpki",
    ];
    let metrics: Vec<&str> = asked.into_iter().flat_map(|name| ["--metric", name]).collect();
    let document = json(&xtask(folder().path(), &[&line[..], &metrics].concat()));
    assert_eq!(result(&document)["uncounted"], Value::Null, "{document:#}");
    // By hand: each execution reads a line that was flushed.
    for event in [
        "UNC_ARB_TRK_REQUESTS.ALL",
        "UNC_ARB_TRK_REQUESTS.DATA_READ",
        "UNC_ARB_TRK_OCCUPANCY.DATA_READ",
        "UNC_ARB_TRK_OCCUPANCY.DATA_READ:c1",
    ] {
        for figure in figures(&document, event) {
            assert_eq!(figure["median"], 1.0, "{event}: {figure:#}");
            assert_eq!(figure["counting"]["units"], 1, "{figure:#}");
            let counter = figure["counting"]["counter"].as_str().unwrap();
            assert!(counter.contains("of the package's uncore_arb, MSR 0x3b"), "{counter}");
        }
    }
    assert_eq!(median(&document, "UNC_ARB_COH_TRK_REQUESTS.ALL"), 0.0);
    assert_eq!(median(&document, "cache-misses"), 1.0);
    let clocks = median(&document, "UNC_CLOCK.SOCKET");
    assert!(clocks > 0.0, "{document:#}");
    assert_eq!(row(&document, "Info_System_Socket_CLKS")["value"], clocks);
    let records = document["records"].as_array().unwrap();
    let machine = records.iter().find(|record| record["type"] == "machine").unwrap();
    let hz = machine["tsc"]["hz"].as_f64().expect("the clock's rate");
    let seconds = median(&document, "tsc") / hz;
    let near = |name: &str, expected: f64| {
        let value = row(&document, name)["value"].as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{name}: {value}, {expected}");
    };
    near("Info_System_DRAM_BW_Use", 64.0 / 1e6 / seconds / 1e3);
    near("Info_System_MEM_Read_Latency", 1e9 / (clocks / seconds));
    near("Info_System_MEM_Parallel_Reads", 1.0);
    // Both are counted by the first counter alone.
    let apart = row(&document, "Info_System_MEM_Parallel_Reads");
    assert_eq!(apart["passes"].as_array().map(Vec::len), Some(2), "{apart:#}");
    let why = apart["untrusted"][0].as_str().unwrap();
    assert!(why.contains("counted at different times"), "{why}");
    let snoops = row(&document, "Info_System_DRAM_BW_Use")["untrusted"][0].as_str().unwrap();
    assert!(snoops.contains("UNC_ARB_COH_TRK_REQUESTS.ALL: the emulated PMU counts"), "{snoops}");
}

#[test]
fn s3_events_of_the_uncore_by_their_codes_are_of_the_whole_package() {
    let events =
        ["--event", "uncore_arb/event=0x81,umask=1,name=requests/", "--event", "cache-misses"];
    let line = [&["run", "--asm", MISS, "--pmu", "skylake"][..], &events[..2]].concat();
    let table = xtask(folder().path(), &line);
    assert_eq!(table.code, 0, "{table:#?}");
    assert!(table.out.contains("requests (whole package) (emulated)"), "{}", table.out);
    // Nothing is left: the next item finds the counters free, and its runs are as bare as ever.
    let job = format!(
        "[[snippet]]\nname = \"with\"\nasm = \"{MISS}\"\nevents = [\"uncore_arb/event=0x81,umask=2/\"]\n\
         [[snippet]]\nname = \"registers\"\nasm = \"nop\"\n\
         machine = {{ msrs = [\"0x3b2\", \"0x3b3\", \"0xe01\", \"0x3b0\", \"0x3b1\"] }}\n"
    );
    let folder = folder();
    fs::write(folder.path().join("job.toml"), job).unwrap();
    let line = ["run", "job.toml", "--pmu", "skylake", "--format", "json"];
    let document = json(&xtask(folder.path(), &line));
    assert_eq!(median(&document, "uncore_arb/event=0x81,umask=2/"), 1.0);
    let records = document["records"].as_array().unwrap();
    let second = records.iter().rfind(|record| record["type"] == "result").unwrap();
    let controls = second["controls"].as_array().expect("controls");
    for msr in ["0x3b2", "0x3b3", "0xe01", "0x3b0", "0x3b1"] {
        let read = controls.iter().any(|one| {
            one["option"] == format!("msrs={msr}")
                && one["note"].as_str().unwrap().contains("read 0 before and behind")
        });
        assert!(read, "{msr}: {controls:#?}");
    }
}

#[test]
fn s3_counters_of_the_uncore_that_are_not_there_are_refused_by_name() {
    let refused = |pmu: &str, event: &str, why: &str| {
        let line = ["run", "--asm", "nop", "--pmu", pmu, "--event", event, "--format", "json"];
        let called = xtask(folder().path(), &line);
        assert!(called.out.contains(why), "{pmu}: {called:#?}");
    };
    let requests = "uncore_arb/event=0x81,umask=1/";
    refused("haswell", requests, "no unit answers: MSR 0x391 does not hold what is written to it");
    refused("haswell", "uncore_clock/event=0xff/", "MSR 0x39");
    refused("zen4", requests, "only counters of the uncore of Intel's processors are known");
    refused("nehalem", requests, "no counters of the uncore are known of family 0x6");
    refused("skylake", "uncore_cha/event=0x35/", "model 0x5e has no such unit");
    refused("sapphirerapids", "uncore_cha/event=1/", "no unit answers: MSR 0x");
    refused("skylake", "uncore_imc/event=4/", "model 0x5e has no such unit");
    refused("skylake", "uncore_mdf/event=4/", "counted are uncore_clock, uncore_arb");
}

/// QEMU's machine has PCI functions, and configuration space in memory, but none of a server's: each kind of unit is refused with what it
/// lacks, and the rest of the job is as without.
#[test]
fn s3_units_of_a_server_that_are_not_there_are_not_counted_with_the_reason() {
    let table = "no PCI function has the uncore's discovery table";
    let events = [
        ("uncore_imc/event=5,umask=0xcf/", table),
        ("uncore_iio/event=0x83,umask=0x70ff004/", table),
        ("uncore_irp/event=0x1f,umask=0x10/", table),
        ("uncore_m2m/event=0x21,umask=0x301/", table),
        ("uncore_pcu/event=1/", table),
        ("uncore_upi/event=2,umask=0xf/", "no PCI function 8086:3250 with its counters"),
        ("uncore_cha/event=1/", "MSR 0x200"),
    ];
    let all: Vec<String> = events.iter().map(|(event, _)| format!("{event:?}")).collect();
    let job = format!(
        "allow-uncounted = true\n[[snippet]]\nasm = \"imul rax, rax\"\nevents = [\"instructions\", {}]\n\
         metrics = [\"memory_bandwidth_read\"]\n",
        all.join(", ")
    );
    let folder = folder();
    fs::write(folder.path().join("job.toml"), job).unwrap();
    let line = ["run", "job.toml", "--pmu", "sapphirerapids", "--format", "json"];
    let document = json(&xtask(folder.path(), &line));
    let uncounted = result(&document)["uncounted"].as_array().unwrap();
    for (event, why) in events.iter().chain([&("UNC_M_CAS_COUNT.RD", table)]) {
        let one = uncounted.iter().find(|one| one["event"] == *event);
        let reason = one.and_then(|one| one["reason"].as_str()).unwrap_or_default();
        assert!(reason.contains(why), "{event}: {uncounted:#?}");
    }
    assert_eq!(median(&document, "instructions"), 1.0);
    let bandwidth = row(&document, "memory_bandwidth_read");
    assert_eq!(bandwidth["value"], Value::Null, "no silent 0: {bandwidth:#}");
}

#[test]
fn s3_metrics_of_the_uncore_are_of_snippets_alone() {
    let folder = folder();
    let task = "[[count.task]]\nname = \"t\"\nasm = \"nop\"\nturns = 5\nring = 3\n";
    for (job, what) in [
        (format!("[[count]]\nmetrics = [\"Info_System_Socket_CLKS\"]\n{task}"), "count"),
        (
            "[[processors]]\nasm = \"nop\"\nmetrics = [\"Info_System_Socket_CLKS\"]\n".to_string(),
            "processors",
        ),
    ] {
        fs::write(folder.path().join("job.toml"), &job).unwrap();
        let called = xtask(folder.path(), &["run", "job.toml", "--pmu", "skylake"]);
        assert_ne!(called.code, 0, "{what}: {called:#?}");
        let why = "metric Info_System_Socket_CLKS needs UNC_CLOCK.SOCKET of the uncore, which is read in a [[snippet]] only";
        assert!(called.err.contains(why), "{what}: {called:#?}");
    }
}
