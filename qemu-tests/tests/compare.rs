//! Comparing reports, as somebody does who puts a gate on figures.

mod refused;
mod workflow;

use qemu_tests::{Called, tree, xtask_in};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Two snippets that are measured, one that is stepped through, and one over time.
const JOB: &str = r#"limits = { tsc = 0 }

[[snippet]]
name = "registers"
asm = "add rax, rbx"
events = ["instructions", "loads"]

[[snippet]]
name = "memory"
asm = "mov rax, [r14]"
events = ["instructions", "loads"]

[[snippet]]
name = "stepped"
asm = "push rax; pop rbx"
exact = true

[[run]]
name = "over time"
[[run.task]]
name = "t"
asm = "imul rax, rax"
turns = 100
ring = 3
"#;

/// Calls the host tool with baselines in a folder of their own.
fn call(folder: &Path, arguments: &[&str]) -> Called {
    let baselines = folder.join("baselines");
    xtask_in(folder, arguments, &[("BARECOUNT_BASELINES", baselines.as_os_str())])
}

fn last(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// Each figure that is not the same, and its item.
fn changed(comparison: &str) -> Vec<String> {
    let comparison: Value = serde_json::from_str(comparison).expect("a comparison");
    let items = comparison["items"].as_array().expect("items").iter();
    let figures = items.flat_map(|item| {
        let figures = item["figures"].as_array().expect("figures").iter();
        let other = figures.filter(|figure| figure["outcome"] != "equal");
        other.map(|one| {
            format!("{}: {} {}", item["name"], one["name"], one["outcome"]).replace('"', "")
        })
    });
    figures.collect()
}

#[test]
fn x4_two_runs_of_a_job_are_equal_and_one_changed_instruction_is_found_and_nothing_else() {
    let _ = tree();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("job.toml"), JOB).unwrap();
    let first = call(folder, &["run", "job.toml", "--save-baseline", "main"]);
    assert_eq!(first.code, 0, "{first:#?}");
    assert!(first.err.contains("baseline main: saved in "), "{first:#?}");
    // The value of every run is kept for the test, and not shown to who did not ask.
    assert!(!first.out.contains("each run, as counted"), "{first:#?}");
    let kept = fs::read_to_string(folder.join("baselines/main.json")).unwrap();
    assert!(kept.contains("\"values\""), "{kept}");

    let second =
        call(folder, &["run", "job.toml", "--baseline", "main", "--save-baseline", "again"]);
    assert_eq!(second.code, 0, "{second:#?}");
    let summary = last(&second.out);
    assert!(summary.starts_with("pass: figures: ") && summary.ends_with(" equal"), "{second:#?}");
    assert!(!second.out.contains("differs"), "{second:#?}");

    // One instruction that loads, where there was none. It counts as one, as the other did.
    fs::write(folder.join("job.toml"), JOB.replacen("add rax, rbx", "add rax, [r14]", 1)).unwrap();
    let third = call(
        folder,
        &["run", "job.toml", "--baseline", "main", "--format", "json", "--save-baseline", "new"],
    );
    assert_eq!(third.code, 1, "{third:#?}");
    // The report stays a document of its own.
    assert!(serde_json::from_str::<Value>(&third.out).is_ok(), "{third:#?}");
    assert!(
        third.err.contains("differs: job text: ") && last(&third.err).starts_with("baseline new"),
        "{third:#?}"
    );
    assert!(
        third.err.contains("item: registers: its code or its options are not the same"),
        "{third:#?}"
    );

    let json = call(folder, &["compare", "main", "new", "--format", "json"]);
    assert_eq!(
        (json.code, changed(&json.out)),
        (1, vec!["registers: loads worse".to_string()]),
        "{json:#?}"
    );
    let back = call(folder, &["compare", "new", "main", "--format", "json"]);
    assert_eq!(
        (back.code, changed(&back.out)),
        (0, vec!["registers: loads better".to_string()]),
        "{back:#?}"
    );

    // The line of the item in the job.
    let annotations = call(folder, &["compare", "main", "new", "--format", "annotations"]);
    let line = JOB.lines().position(|line| line == "[[snippet]]").unwrap() + 1;
    let first = format!(
        "::error file=job.toml,line={line},title=registers%3A worse::loads: 0 to 1 events (+1)"
    );
    assert!(annotations.out.starts_with(&first), "{annotations:#?}");

    // A limit that lets it pass.
    fs::write(folder.join("limits.toml"), "[[item]]\nname = \"reg*\"\nlimits = { loads = 1 }\n")
        .unwrap();
    let let_pass = call(folder, &["compare", "main", "new", "--limits", "limits.toml"]);
    assert_eq!(let_pass.code, 0, "{let_pass:#?}");
    assert!(let_pass.out.contains("within its limit"), "{let_pass:#?}");

    // A file is as good as a name.
    let file = call(folder, &["compare", "main", "baselines/again.json", "--format", "markdown"]);
    assert_eq!(file.code, 0, "{file:#?}");
    assert!(file.out.starts_with("### barecount: nothing is worse\n"), "{file:#?}");
}

/// An item that ends in an error is worse than one with figures; the run's own code says that too.
#[test]
fn x4_an_item_that_fails_is_named_by_the_comparison() {
    let _ = tree();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = |asm: &str, name: &str| {
        let job = format!(
            "[[snippet]]\nname = \"x\"\nasm = \"{asm}\"\n[[snippet]]\nname = \"y\"\nasm = \"nop\"\n"
        );
        fs::write(folder.join("job.toml"), job).unwrap();
        call(folder, &["run", "job.toml", "--pmu", "none", "--save-baseline", name]).code
    };
    assert_eq!((run("nop", "old"), run("ud2", "new")), (0, 1));
    let called = call(folder, &["compare", "old", "new"]);
    assert_eq!(called.code, 1, "{called:#?}");
    assert!(called.out.contains("FAILED: x: in the new report: "), "{called:#?}");
    assert!(last(&called.out).contains("items: 1 failed"), "{called:#?}");
}

/// Without icount ticks vary, and are judged by the values of their runs.
#[test]
fn x4_ticks_of_a_clock_are_judged_by_their_runs() {
    let _ = tree();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = |unroll: &str, name: &str| {
        let words = [
            "run", "--asm", "nop", "--pmu", "none", "--icount", "off", "--runs", "20", "--loop",
            "1000",
        ];
        call(folder, &[&words[..], &["--unroll", unroll, "--save-baseline", name]].concat())
    };
    for name in ["a", "b"] {
        let called = run("10", name);
        assert_eq!(called.code, 0, "{called:#?}");
    }
    let called =
        call(folder, &["compare", "a", "b", "--format", "json", "--limits", "limits.toml"]);
    called.fails_with(2, &["cannot read limits.toml"]);
    let called = call(folder, &["compare", "a", "b", "--format", "json"]);
    let comparison: Value =
        serde_json::from_str(&called.out).unwrap_or_else(|_| panic!("{called:#?}"));
    let ticks = &comparison["items"][0]["figures"][0];
    assert_eq!(
        (&ticks["name"], &comparison["test"]["figures"]),
        (&"tsc".into(), &1.into()),
        "{comparison}"
    );
    // How much it varies is the machine's own business; that the interval is one of the change is not.
    let ends = [0, 1].map(|end| ticks["interval"][end].as_f64().unwrap());
    assert!(ends[0] <= ends[1], "{ticks}");
    let judged = match ticks["outcome"].as_str().unwrap() {
        "worse" => ends[0] > 0.0,
        "better" => ends[1] < 0.0,
        "no-change-shown" => ends[0] <= 0.0 && ends[1] >= 0.0,
        _ => false,
    };
    assert!(judged, "{ticks}");
    assert_eq!(called.code == 1, ticks["outcome"] == "worse");
}

/// Names of baselines that nobody can take for paths, before anything boots.
#[test]
fn names_of_baselines_are_no_paths() {
    let folder = tempfile::tempdir().unwrap();
    for option in ["--save-baseline", "--baseline"] {
        for (name, part) in [
            ("../x", "is not a path"),
            ("a/b", "is not a path"),
            (".x", "begins with a letter"),
            ("", "1 to 100"),
        ] {
            let option = format!("{option}={name}");
            call(folder.path(), &["run", "--asm", "nop", &option]).fails_with(2, &[part]);
        }
    }
    let entries = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 0, "nothing was written");
    let no_folder = xtask_in(
        folder.path(),
        &["run", "--asm", "nop", "--save-baseline", "x"],
        &[("BARECOUNT_BASELINES", OsStr::new("/proc/nowhere"))],
    );
    no_folder.fails_with(2, &["cannot create /proc/nowhere"]);
    assert!(
        !no_folder.err.contains("pmu:"),
        "it is said before the machine is chosen: {no_folder:#?}"
    );
}
