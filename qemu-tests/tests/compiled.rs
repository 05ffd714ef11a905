//! Functions of compiled code as items: figures, faults, fresh data, and that the next item runs.

mod sampled;

use pmu_model::Model;
use protocol::record::{ErrorCode, ErrorRecord, SnippetResult};
use qemu_tests::{Called, Guest, Ran, xtask};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::cli::Boot;
use xtask::machine::Given;

/// Compiles the functions with the compiler that is there anyway: as one object, or as a static library with Rust's own
/// objects beside.
fn compiled(folder: &Path, library: bool) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compiled/functions.rs");
    let (kind, emit, name) = match library {
        true => ("staticlib", "link", "libfunctions.a"),
        false => ("lib", "obj", "functions.o"),
    };
    let file = folder.join(name);
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", kind, "--check-cfg", "cfg(library)"]);
    rustc.args(["-Copt-level=2", "-Cpanic=abort", "-g", "-Ccodegen-units=1"]);
    rustc.arg("--emit").arg(format!("{emit}={}", file.display()));
    if library {
        rustc.args(["--cfg", "library"]);
    }
    // Its temporary files have fixed names.
    rustc.current_dir(folder);
    assert!(rustc.arg(source).status().unwrap().success());
    file
}

fn functions(folder: &Path) -> PathBuf {
    compiled(folder, false)
}

/// Boots a job whose items name `@` as their object.
fn run(toml: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let object = functions(folder.path());
    let toml = toml.replace('@', object.to_str().unwrap());
    Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, &toml) }.run()
}

fn result<'a>(ran: &'a Ran, name: &str) -> &'a SnippetResult {
    let found = ran.report.results().find(|result| result.name == name);
    found.unwrap_or_else(|| panic!("no result of {name}: {:?}", ran.errors()))
}

fn error<'a>(ran: &'a Ran, name: &str) -> &'a ErrorRecord {
    let found = ran.report.errors().find(|error| error.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("no error of {name}"))
}

/// What every run counted of an event.
fn exactly(result: &SnippetResult, event: &str) -> f64 {
    let metric = result.metrics.iter().find(|metric| metric.event == event);
    let metric = metric.unwrap_or_else(|| panic!("{event}: {:?}", result.uncounted));
    assert!(metric.deterministic, "{}: {metric:?}", result.name);
    metric.value.median
}

#[test]
fn x7_functions_count_from_their_first_instruction_to_their_ret_and_find_what_was_linked() {
    let ran = run(r#"
        [defaults]
        events = ["instructions", "branches", "loads", "stores"]
        [[snippet]]
        object = "@"
        function = "turns"
        args = [1000]
        [[snippet]]
        name = "in ring 3"
        object = "@"
        function = "turns"
        args = [1000]
        machine = { ring = 3 }
        [[snippet]]
        name = "constructed"
        object = "@"
        function = "built"
        [[snippet]]
        name = "set up"
        object = "@"
        function = "grows"
        setup = "reset"
        teardown = "reset"
        args = [20]
        [[snippet]]
        name = "set up in ring 3"
        object = "@"
        function = "grows"
        setup = "reset"
        teardown = "reset"
        args = [20]
        machine = { ring = 3 }
        [[snippet]]
        name = "grows"
        object = "@"
        function = "grows"
        runs = 3
        warmup = 0
        values = true
        events = []
        [[snippet]]
        name = "grows again"
        object = "@"
        function = "grows"
        runs = 3
        warmup = 0
        values = true
        events = []
        [[snippet]]
        object = "@"
        function = "sums"
        args = [1, 2, 3, 4, 5, 6, 7, 8]
        [[snippet]]
        object = "@"
        function = "wide"
        [[snippet]]
        object = "@"
        function = "fills"
        "#);
    ran.ends_with(0);
    for name in ["turns(1000)", "in ring 3"] {
        let turns = result(&ran, name);
        assert_eq!(exactly(turns, "instructions"), 2002.0, "{name}");
        assert_eq!(exactly(turns, "branches"), 1001.0, "{name}: 1000 of the loop, and RET");
        assert_eq!((exactly(turns, "loads"), exactly(turns, "stores")), (1.0, 0.0), "RET's");
        assert_eq!(exactly(turns, "tsc"), 2002.0, "{name}");
    }
    assert_eq!(exactly(result(&ran, "wide()"), "instructions"), 3.0);
    let set_up = exactly(result(&ran, "set up"), "instructions");
    assert!((42.0..52.0).contains(&set_up), "21 turns and what is around them: {set_up}");
    assert_eq!(exactly(result(&ran, "set up in ring 3"), "instructions"), set_up);
    assert!(exactly(result(&ran, "fills()"), "stores") >= 5000.0);
    // Each item finds .data as they were linked, each run as the last one has left them.
    let values = |name: &str| result(&ran, name).metrics[0].series[1].values.clone();
    let grows = values("grows").unwrap();
    assert!(grows[1] == grows[0] + 2 && grows[2] == grows[1] + 2, "{grows:?}");
    assert_eq!(values("grows again").unwrap(), grows);
}

#[test]
fn x7_what_a_function_does_wrong_ends_its_item_alone() {
    let ran = run(r#"
        [defaults]
        events = ["instructions"]
        runs = 2
        machine = { time-limit = 20 }
        [[snippet]]
        object = "@"
        function = "turns"
        args = [10]
        [[snippet]]
        object = "@"
        function = "deep"
        [[snippet]]
        name = "deep in ring 3"
        object = "@"
        function = "deep"
        machine = { ring = 3 }
        [[snippet]]
        object = "@"
        function = "never"
        [[snippet]]
        object = "@"
        function = "wild"
        [[snippet]]
        object = "@"
        function = "gives_up"
        [[snippet]]
        name = "behind"
        object = "@"
        function = "turns"
        args = [10]
        [[snippet]]
        name = "assembly behind"
        asm = "nop"
        "#);
    ran.ends_with(1);
    for name in ["turns(10)", "behind"] {
        assert_eq!(exactly(result(&ran, name), "instructions"), 22.0, "{name}");
    }
    assert_eq!(exactly(result(&ran, "assembly behind"), "instructions"), 1.0);
    for name in ["deep()", "deep in ring 3"] {
        let deep = error(&ran, name);
        let fault = deep.fault.as_ref().unwrap();
        assert_eq!(
            (fault.mnemonic.as_str(), fault.overrun),
            ("#PF", true),
            "{name}: {}",
            deep.text
        );
        assert!(deep.text.contains("its stack has overrun"), "{}", deep.text);
    }
    assert_eq!(error(&ran, "never()").code, ErrorCode::TimeLimit);
    let wild = error(&ran, "wild()").fault.as_ref().unwrap();
    assert_eq!(
        (wild.mnemonic.as_str(), wild.part.as_str(), wild.overrun),
        ("#PF", "program", false)
    );
    let message = &error(&ran, "gives_up()").fault.as_ref().unwrap().message;
    assert_eq!(message.as_deref(), Some("gave up: 7 is odd"));
}

#[test]
fn x7_every_kind_of_item_takes_a_function() {
    let folder = tempfile::tempdir().unwrap();
    let object = functions(folder.path());
    let job = folder.path().join("job.toml");
    let toml = r#"
        [[snippet]]
        name = "stepped"
        object = "functions.o"
        function = "turns"
        args = [100]
        exact = true
        [[snippet]]
        name = "by cycles"
        object = "functions.o"
        function = "grows"
        setup = "reset"
        args = [20]
        history = 60
        runs = 2
        events = ["instructions"]
        [[snippet]]
        name = "wild"
        object = "functions.o"
        function = "wild"
        [[snippet]]
        object = "functions.o"
        function = "asks"
        [[snippet]]
        name = "asks in ring 3"
        object = "functions.o"
        function = "asks"
        machine = { ring = 3 }
        [[processors]]
        name = "on both"
        object = "functions.o"
        function = "grows"
        setup = "reset"
        args = [20]
        events = ["instructions"]
        [[run]]
        name = "tasks"
        [[run.task]]
        name = "one"
        object = "functions.o"
        function = "turns"
        args = [100]
        turns = 3
        ring = 3
        [[run.task]]
        name = "faults"
        object = "functions.o"
        function = "gives_up"
        [[sample]]
        name = "in ring 0"
        events = ["instructions:k"]
        period = 1000
        keep = "histogram"
        [[sample.task]]
        name = "task"
        ring = 0
        object = "functions.o"
        function = "grows"
        setup = "reset"
        args = [20000]
        turns = 2
        [[sample]]
        name = "sampled"
        object = "functions.o"
        function = "turns"
        args = [100000]
        events = ["instructions"]
        period = 1000
        keep = "histogram"
        "#;
    fs::write(&job, toml).unwrap();
    assert!(object.is_file());
    let arguments = [
        "run",
        "job.toml",
        "--pmu",
        "skylake",
        "--cpus",
        "2",
        "--format",
        "json",
        "--timeout",
        "300",
        "--keep",
        "kept",
    ];
    let called = xtask(folder.path(), &arguments);
    names_are_there(&called);
    // The same by the log alone, as it comes from a stick: without the job.
    fs::remove_file(&job).unwrap();
    let collected = ["collect", "--serial", "kept/serial.log", "--format", "json"];
    names_are_there(&xtask(folder.path(), &collected));
    let collected = xtask(folder.path(), &["collect", "--serial", "kept/serial.log"]);
    let table = collected.out;
    let line = |text: &str| table.lines().any(|line| line.contains(text));
    assert!(line("grows, functions.rs:"), "history rows: {table}");
    assert!(
        table.lines().any(|line| line.starts_with(" turns ") && line.ends_with(" % ")),
        "samples: {table}"
    );
    assert_eq!((collected.err.as_str(), collected.code), ("", 1), "nothing beside the report");
}

/// Each place of the job's report has function, file and line.
fn names_are_there(called: &Called) {
    let report: serde_json::Value =
        serde_json::from_str(&called.out).unwrap_or_else(|_| panic!("{}", called.err));
    let records = report["records"].as_array().unwrap();
    let named = |name: &str| {
        let found =
            records.iter().find(|record| record["name"] == name && record["type"] != "start");
        found.unwrap_or_else(|| panic!("no {name}: {records:#?}"))
    };
    let stepped = named("stepped");
    assert_eq!(stepped["counts"][0]["value"], 202.0, "{stepped}");
    let rows = stepped["listing"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{rows:#?}");
    assert!(rows.iter().all(|row| row["function"] == "turns"), "{rows:#?}");
    let cycles = named("by cycles");
    let places = cycles["places"].as_array().unwrap();
    let rows = cycles["series"][0]["each"].as_array().unwrap().len();
    assert_eq!((places.len(), &places[0]["function"]), (rows, &"grows".into()), "{cycles:#}");
    let is_of_source = |place: &serde_json::Value| {
        place["location"].as_str().is_some_and(|line| line.contains("functions.rs:"))
    };
    // 42 instructions of the loop, one a cycle, and all of them have a line.
    let lines = places.iter().filter(|place| is_of_source(place)).count();
    assert!(places[..42].iter().all(is_of_source) && lines < rows, "{lines} of {rows}");
    let fault = &named("wild")["fault"];
    assert_eq!(fault["function"], "wild", "{fault}");
    assert!(named("wild")["text"].as_str().unwrap().contains(": in `wild`"));
    for name in ["asks()", "asks in ring 3"] {
        let text = named(name)["text"].as_str().unwrap();
        assert!(
            text.ends_with("; int 0x80 is a system call, and there is no operating system"),
            "{text}"
        );
        assert_eq!(named(name)["fault"]["function"], "asks", "{text}");
    }
    // Two instructions a turn, 20,001 turns each time; and what the scheduler does besides.
    let kernel = &named("in ring 0")["events"][0];
    assert!((80..90).contains(&kernel["overflows"].as_u64().unwrap()), "{kernel:#}");
    let both = named("on both");
    assert_eq!(both["type"], "processors", "{both}");
    let tasks = named("tasks");
    assert_eq!(tasks["tasks"][0]["end"], "exit", "{tasks}");
    let fault = &tasks["tasks"][1]["fault"];
    assert_eq!(
        (&fault["function"], &fault["message"]),
        (&"gives_up".into(), &"gave up: 7 is odd".into())
    );
    assert!(fault["location"].as_str().unwrap().contains("functions.rs:"), "{fault}");
    assert_eq!(named("sampled")["type"], "sample");
}

/// Out of a library the linker takes what the function needs, and a count of a task has the function's own instructions.
#[test]
fn x7_a_static_library_will_do_and_counts_of_tasks_take_functions() {
    let folder = tempfile::tempdir().unwrap();
    let library = compiled(folder.path(), true);
    let count = |name: &str, turns: u64| {
        format!(
            r#"
            [[count]]
            name = "{name}"
            events = ["instructions:u"]
            bind = {{ task = "one" }}
            [[count.task]]
            name = "one"
            ring = 3
            object = "{}"
            function = "turns"
            args = [{turns}]
            "#,
            library.display()
        )
    };
    let toml = format!(
        r#"
        [[snippet]]
        object = "{}"
        function = "turns"
        args = [1000]
        events = ["instructions"]
        {}{}"#,
        library.display(),
        count("short", 100),
        count("long", 100_100)
    );
    let ran =
        Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, &toml) }.run();
    ran.ends_with(0);
    assert_eq!(exactly(result(&ran, "turns(1000)"), "instructions"), 2002.0);
    let counted = |name: &str| {
        let found = ran.report.counts().find(|result| result.name == name);
        found.unwrap_or_else(|| panic!("no count of {name}: {:?}", ran.errors())).events[0].tasks[0]
            .raw
    };
    // The way into the task and out of it is the same.
    assert_eq!(counted("long") - counted("short"), 200_000);
}
