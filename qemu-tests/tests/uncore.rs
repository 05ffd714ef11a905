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
    // By the clock of its own pass: the hypervisor's instructions, which are not the same in each run, are the clock's as well.
    let own = row(&document, "Info_System_MEM_Read_Latency")["passes"][0].as_u64().unwrap() - 1;
    let clock = figures(&document, "UNC_CLOCK.SOCKET");
    let clock = clock.into_iter().find(|figure| figure["counting"]["pass"] == own).unwrap();
    let clocks = clock["median"].as_f64().unwrap();
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
        ("uncore_imc/event=0x10/", table),
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

/// Runs a job on the emulated skylake.
fn job(toml: &str, format: &str) -> Called {
    let folder = folder();
    fs::write(folder.path().join("job.toml"), toml).unwrap();
    xtask(folder.path(), &["run", "job.toml", "--pmu", "skylake", "--format", format])
}

/// The records of this type.
fn records<'a>(document: &'a Value, kind: &str) -> Vec<&'a Value> {
    let all = document["records"].as_array().unwrap().iter();
    all.filter(|record| record["type"] == kind).collect()
}

const REQUESTS: &str = "uncore_arb/event=0x81,umask=1,name=requests/";
const CLOCKS: &str = "uncore_clock/event=0xff,name=clocks/";
/// Both are for the arbiter's first counter alone.
const OUTSTANDING: &str = "uncore_arb/event=0x80,umask=1,name=outstanding/";
const BUSY: &str = "uncore_arb/event=0x80,umask=1,cmask=1,name=busy/";

/// An item that reads a line that no cache has so many times, with its keys.
fn tasks(kind: &str, keys: &str, turns: u32) -> String {
    format!(
        "[[{kind}]]\nname = \"{turns}\"\ntick-ns = 0\n{keys}\n\
         [[{kind}.task]]\nname = \"t\"\nasm = \"{MISS}\"\nturns = {turns}\nring = 3\n"
    )
}

/// An item after others, whose task adds up what the registers of the uncore hold: nothing, as before the first item.
fn registers(kind: &str) -> String {
    let read = |msr: &str| format!("mov ecx, {msr}; rdmsr; or [r14], rax; or [r14 + 4], edx; ");
    let asm: String = ["0x394", "0x3b2", "0x3b3", "0xe01", "0x3b0", "0x3b1"].map(read).concat();
    let events = if kind == "count" { "events = [\"instructions:u\"]\n" } else { "" };
    format!(
        "[[{kind}]]\nname = \"registers\"\n{events}[[{kind}.task]]\nname = \"r\"\nasm = \"{asm}\"\nturns = 1\n"
    )
}

/// Nothing is left in the registers of the uncore after item `after`.
fn is_put_back(document: &Value, after: &Value) {
    let all = document["records"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == "registers").expect("who reads them");
    assert!(found["item"].as_u64() > after["item"].as_u64(), "{found:#}");
    assert_eq!(found["tasks"][0]["value"], "0x0", "{found:#}");
}

/// An event of the uncore of a record of tasks.
fn of_whole<'a>(record: &'a Value, event: &str) -> &'a Value {
    let found = record["uncore"].as_array().expect("uncore");
    found.iter().find(|one| one["event"] == event).unwrap_or_else(|| panic!("{record:#}"))
}

/// The figures of items that are alike, of which the last reads 1,000 lines more than those before it. The first one finds no line of
/// the firmware's in the caches, the others nearly all.
fn has_a_request_for_each_line(three: &[&Value]) {
    let [cold, small, large] = three else { panic!("{three:#?}") };
    let count = |one: &Value, event: &str| of_whole(one, event)["count"].as_u64().unwrap();
    for (one, lines) in [(small, 1000), (large, 2000)] {
        let requests = count(one, "requests");
        assert!((lines..lines + 100).contains(&requests), "{one:#}");
        // A clock for each.
        assert_eq!(count(one, "outstanding"), requests, "{one:#}");
    }
    assert!(count(cold, "requests") >= 1000, "{cold:#}");
    // A tick for each of the six instructions of a turn.
    let clocks = count(large, "clocks") - count(small, "clocks");
    assert_eq!(clocks, 6000, "{small:#} {large:#}");
    for one in three {
        let clocks = of_whole(one, "clocks");
        let [count, ticks] = ["count", "ticks"].map(|key| clocks[key].as_f64().unwrap());
        // The clock goes a little longer than its time: its registers are read on both sides of the time stamps.
        assert!(count >= ticks && count < 1.2 * ticks, "{clocks:#}");
        assert_eq!(clocks["units"], 1);
        assert_eq!(one["uncounted"], Value::Null, "{one:#}");
    }
}

#[test]
fn s3_the_uncore_of_tasks_has_a_request_for_each_line_that_they_flush() {
    let keys = format!(
        "events = [\"instructions:u\", \"{REQUESTS}\", \"{CLOCKS}\", \"{OUTSTANDING}\"]\n\
         expect = {{ requests = {{ min = 1000 }} }}"
    );
    let [cold, small, large] = [1000, 1000, 2000].map(|turns| tasks("count", &keys, turns));
    let metrics = "metrics = [\"Info_System_Socket_CLKS\", \"Info_System_DRAM_BW_Use\", \"ipc\"]";
    let last = tasks("count", metrics, 1000);
    let toml = format!("{cold}{small}{large}{last}{}", registers("count"));
    let document = json(&job(&toml, "json"));
    let counts = records(&document, "count");
    has_a_request_for_each_line(&counts[..3]);
    is_put_back(&document, counts[3]);
    // The metrics are made of these counts.
    let clocks = of_whole(counts[3], "UNC_CLOCK.SOCKET")["count"].as_f64().unwrap();
    assert_eq!(row(&document, "Info_System_Socket_CLKS")["value"], clocks, "{document:#}");
    let hz = records(&document, "machine")[0]["tsc"]["hz"].as_f64().expect("the clock's rate");
    let requests = of_whole(counts[3], "UNC_ARB_TRK_REQUESTS.ALL");
    let [lines, ticks] = ["count", "ticks"].map(|key| requests[key].as_f64().unwrap());
    let used = row(&document, "Info_System_DRAM_BW_Use")["value"].as_f64().unwrap();
    let expected = 64.0 * lines / 1e6 / (ticks / hz) / 1e3;
    assert!((used / expected - 1.0).abs() < 1e-9, "{used} {expected}: {requests:#}");
    let of_task = &document["metrics"][1]["rows"][0]["missing"];
    let why = "the uncore is of all that ran, and not of a task";
    assert!(of_task.to_string().contains(why), "{of_task}");
    // Set by set the same, read once.
    let other = "[[count.task]]\nname = \"u\"\nasm = \"nop\"\nturns = 10\nring = 3\n";
    let sets = "[[count.set]]\nbind = { task = \"t\" }\nevents = [\"instructions:u\", \"uncore_arb/event=0x81,umask=1,name=requests/\"]\n\
                [[count.set]]\nname = \"b\"\nbind = { task = \"u\" }\nevents = [\"branches:u\", \"uncore_arb/event=0x81,umask=1,name=requests/\"]\n";
    let toml = format!("{}{other}{sets}", tasks("count", "", 1000));
    let table = job(&toml, "table");
    assert_eq!(table.code, 0, "{table:#?}");
    let lines: Vec<&str> =
        table.out.lines().filter(|line| line.starts_with("requests: ")).collect();
    let [line] = lines[..] else { panic!("{}", table.out) };
    assert!(
        line.contains("of everything in the package (counter 1 of the package's uncore_arb"),
        "{line}"
    );
    let csv = job(&toml, "csv").out;
    assert_eq!(csv.lines().filter(|line| line.contains(",requests,")).count(), 1, "{csv}");
    let tap = job(&toml, "tap").out;
    assert!(tap.contains("uncore:") && tap.contains("event: \"requests\""), "{tap}");
}

#[test]
fn s3_a_run_of_tasks_has_metrics_of_the_uncore() {
    let keys = format!(
        "events = [\"{REQUESTS}\", \"{CLOCKS}\", \"{OUTSTANDING}\"]\nexpect = {{ requests = {{ min = 1000 }} }}"
    );
    let three = [1000, 1000, 2000].map(|turns| tasks("run", &keys, turns)).concat();
    let document = json(&job(&format!("{three}{}", registers("run")), "json"));
    let ran = records(&document, "tasks");
    has_a_request_for_each_line(&ran[..3]);
    is_put_back(&document, ran[2]);
    let metrics = "metrics = [\"Info_System_MEM_Read_Latency\", \"Info_System_Socket_CLKS\"]";
    let document = json(&job(&tasks("run", metrics, 1000), "json"));
    let ran = records(&document, "tasks")[0];
    let clocks = of_whole(ran, "UNC_CLOCK.SOCKET");
    let [count, ticks] = ["count", "ticks"].map(|key| clocks[key].as_f64().unwrap());
    let hz = records(&document, "machine")[0]["tsc"]["hz"].as_f64().expect("the clock's rate");
    // One clock for each request, in nanoseconds.
    let latency = row(&document, "Info_System_MEM_Read_Latency")["value"].as_f64().unwrap();
    let expected = 1e9 / (count / (ticks / hz));
    assert!((latency / expected - 1.0).abs() < 1e-9, "{latency} {expected}: {ran:#}");
    assert_eq!(row(&document, "Info_System_Socket_CLKS")["value"], count);
    let refused = job(&tasks("run", "events = [\"cycles\"]", 1), "json");
    let why = "[[run]] reads energy and the uncore, and cycles is neither";
    assert!(refused.code != 0 && refused.err.contains(why), "{refused:#?}");
}

#[test]
fn s3_processors_have_the_uncore_once_and_as_their_boot_processor_counts() {
    let toml = format!(
        "cpus = 2\n[[processors]]\nname = \"two\"\nasm = \"{MISS}\"\nruns = 3\n\
         events = [\"instructions\", \"{REQUESTS}\", \"{OUTSTANDING}\", \"{BUSY}\"]\n\
         metrics = [\"Info_System_Socket_CLKS\"]\n{}",
        registers("run")
    );
    let document = json(&job(&toml, "json"));
    let ran = records(&document, "processors")[0];
    is_put_back(&document, ran);
    assert_eq!(ran["uncounted"], Value::Null, "{ran:#}");
    let metrics = |cpu: usize| ran["processors"][cpu]["metrics"].as_array().unwrap();
    let events = |cpu: usize| -> Vec<&str> {
        metrics(cpu).iter().map(|one| one["event"].as_str().unwrap()).collect()
    };
    let find = |cpu: usize, event: &str| {
        metrics(cpu).iter().find(|one| one["event"] == event).unwrap_or_else(|| panic!("{ran:#}"))
    };
    assert_eq!(events(1), ["tsc", "instructions"], "the other's are its own");
    for event in ["requests", "outstanding", "busy"] {
        let one = find(0, event);
        // On the emulated PMU each processor has an uncore: the boot processor's is read, and it reads one line in an execution.
        assert_eq!(one["median"], 1.0, "{one:#}");
        assert_eq!(one["counting"]["processors"], serde_json::json!([0, 1]), "{one:#}");
    }
    assert_eq!([find(0, "requests"), find(0, "busy")].map(|one| &one["counting"]["pass"]), [0, 1]);
    for cpu in 0..2 {
        assert_eq!(find(cpu, "instructions")["median"], 4.0, "{ran:#}");
    }
    // The clock goes while one runs after the other. Turns of the processors fall into some runs and not into others.
    let clocks = find(0, "UNC_CLOCK.SOCKET")["median"].as_f64().unwrap();
    let tsc: f64 = (0..2).map(|cpu| find(cpu, "tsc")["median"].as_f64().unwrap()).sum();
    assert!(clocks > 0.9 * tsc, "{clocks} {tsc}");
    let rows = |item: usize| &document["metrics"][item]["rows"][0];
    assert_eq!(rows(0)["value"], clocks, "{document:#}");
    let of_one = rows(1)["missing"].to_string();
    assert!(of_one.contains("the uncore is of all processors together"), "{of_one}");
    let table = job(&toml, "table").out;
    assert!(table.contains("requests (whole package) (emulated)"), "{table}");
    assert!(table.contains("read once, by processor 0, for processors 0, 1)"), "{table}");
}

#[test]
fn s3_what_of_the_uncore_does_not_fit_into_an_item_that_runs_once_is_named() {
    let keys =
        format!("allow-uncounted = true\nevents = [\"{OUTSTANDING}\", \"{BUSY}\", \"{CLOCKS}\"]");
    for (kind, record) in [("run", "tasks"), ("count", "count")] {
        let document = json(&job(&tasks(kind, &keys, 10), "json"));
        let ran = records(&document, record)[0];
        let names: Vec<&Value> =
            ran["uncore"].as_array().unwrap().iter().map(|one| &one["event"]).collect();
        assert_eq!(names, ["outstanding", "clocks"], "{ran:#}");
        assert_eq!(ran["uncounted"][0]["event"], "busy", "{ran:#}");
        let why = ran["uncounted"][0]["reason"].to_string();
        assert!(why.contains("which runs once and has no second pass"), "{why}");
    }
    // Its metric has no value, and says which event it lacks.
    let keys = "allow-uncounted = true\nmetrics = [\"Info_System_MEM_Parallel_Reads\", \"ipc\"]";
    let document = json(&job(&tasks("count", keys, 10), "json"));
    let missing = row(&document, "Info_System_MEM_Parallel_Reads")["missing"].to_string();
    assert!(missing.contains("UNC_ARB_TRK_OCCUPANCY.DATA_READ"), "{missing}");
    assert!(missing.contains("which runs once and has no second pass"), "{missing}");
    assert!(row(&document, "ipc")["value"].as_f64().is_some(), "{document:#}");
    // Where it must be counted, its item fails.
    let called = job(&tasks("count", "metrics = [\"Info_System_MEM_Parallel_Reads\"]", 10), "json");
    assert_eq!(called.code, 1, "{called:#?}");
}

/// The registers of Arrow Lake's memory controllers are known, and QEMU's host bridge has none of them.
#[test]
fn s3_memory_controllers_that_are_not_there_are_named_by_their_register() {
    let line = ["run", "--asm", "nop", "--pmu", "arrowlake", "--allow-uncounted"];
    let metric = ["--metric", "Info_System_DRAM_BW_Use", "--format", "json"];
    let document = json(&xtask(folder().path(), &[&line[..], &metric].concat()));
    let missing = row(&document, "Info_System_DRAM_BW_Use")["missing"].to_string();
    assert!(missing.contains("UNC_M_TOTAL_DATA was not counted"), "{missing}");
    assert!(missing.contains("PCI 00:00.0, register 0x48, has no address"), "{missing}");
}
