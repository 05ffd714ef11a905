//! Benchmarks of crates, as somebody measures them who has a function in Rust.

mod independent;
mod refused;

use crate::documents::blocks;
use protocol::record::{ErrorRecord, SnippetResult};
use qemu_tests::{Called, tree, xtask_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Calls the host tool with baselines in a folder of their own.
fn call(folder: &Path, arguments: &[&str]) -> Called {
    let baselines = folder.join("baselines");
    xtask_in(folder, arguments, &[("BARECOUNT_BASELINES", baselines.as_os_str())])
}

/// Copies the sources of a crate, and nothing that was built.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true if entry.file_name() == "target" => {}
            true => copy(&path, &target),
            false => drop(fs::copy(path, target).unwrap()),
        }
    }
}

/// The project's folders that the tests' benchmarks are made of, copied to `folder`.
fn checkout(folder: &Path) -> String {
    for part in ["bench", "qemu-tests/benchmarks"] {
        copy(&tree().root().join(part), &folder.join(part));
    }
    folder.join("qemu-tests/benchmarks").display().to_string()
}

/// A report's results and errors.
fn report(text: &str) -> (Vec<SnippetResult>, Vec<ErrorRecord>) {
    let report: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let records = report["records"].as_array().expect("records");
    let (mut results, mut errors) = (Vec::new(), Vec::new());
    for record in records {
        let record = record.clone();
        match record["type"].as_str() {
            Some("result") => results.push(serde_json::from_value(record).expect("a result")),
            Some("error") => errors.push(serde_json::from_value(record).expect("an error")),
            _ => {}
        }
    }
    (results, errors)
}

/// Every figure, by item and event.
fn figures(text: &str) -> BTreeMap<(String, String), f64> {
    let (results, errors) = report(text);
    assert!(errors.is_empty(), "{errors:#?}");
    let figures = results.iter().flat_map(|result| {
        assert!(result.metrics.iter().all(|metric| metric.deterministic), "{result:#?}");
        let one = |metric: &protocol::record::Metric| {
            ((result.name.clone(), metric.event.clone()), metric.value.median)
        };
        result.metrics.iter().map(one).collect::<Vec<_>>()
    });
    figures.collect()
}

fn measure(folder: &Path, path: &str) -> BTreeMap<(String, String), f64> {
    let words = ["run", "--crate", path, "--bench", "functions::", "--format", "json"];
    let called = call(folder, &[&words[..], &["--timeout", "600"]].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    figures(&called.out)
}

/// Makes every file below `folder` as old as if it had been checked out on another day.
fn set_back(folder: &Path, by: Duration) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            set_back(&entry.path(), by);
        } else {
            let file = File::options().write(true).open(entry.path()).unwrap();
            file.set_modified(SystemTime::now() - by).unwrap();
        }
    }
}

/// Five boots of one build, and one of another day's: in another folder, and with other times of its files.
#[test]
fn x7_thirty_functions_count_the_same_in_every_boot_and_in_builds_of_two_folders_and_days() {
    let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let first = checkout(one.path());
    let expected = measure(one.path(), &first);
    let items: Vec<_> = expected.keys().filter(|(_, event)| event == "instructions").collect();
    assert_eq!(items.len(), 30, "{expected:#?}");
    for boot in 1..5 {
        assert_eq!(measure(one.path(), &first), expected, "boot {boot}");
    }
    let second = checkout(&two.path().join("another folder with a longer name"));
    set_back(two.path(), Duration::from_secs(30 * 3_600));
    assert_eq!(measure(two.path(), &second), expected, "another day's build");
}

#[test]
fn x7_one_changed_line_is_found_by_compare_with_its_function_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = checkout(folder.path());
    let words = ["run", "--crate", &path, "--bench", "functions::", "--timeout", "600"];
    let main = call(folder.path(), &[&words[..], &["--save-baseline", "main"]].concat());
    assert_eq!(main.code, 0, "{}", main.err);
    let source = Path::new(&path).join("src/numbers.rs");
    let text = fs::read_to_string(&source).unwrap();
    let changed = text.replace("(0..20).fold(number, ", "(0..21).fold(number, ");
    assert_ne!(text, changed);
    fs::write(&source, changed).unwrap();
    let json = ["--save-baseline", "new", "--format", "json"];
    let new = call(folder.path(), &[&words[..], &json].concat());
    assert_eq!(new.code, 0, "{}", new.err);
    let compared = call(folder.path(), &["compare", "main", "new", "--format", "json"]);
    assert_eq!(compared.code, 1, "{compared:#?}");
    let compared: Value = serde_json::from_str(&compared.out).expect("a comparison");
    let items = compared["items"].as_array().expect("items").iter();
    let figures = items.flat_map(|item| {
        let figures = item["figures"].as_array().expect("figures").iter();
        figures.map(move |figure| (&item["name"], &figure["name"], &figure["outcome"]))
    });
    let (same, other): (Vec<_>, Vec<_>) = figures.partition(|figure| figure.2 == "equal");
    assert!(same.len() >= 58, "{same:#?}");
    let other: Vec<String> =
        other.iter().map(|(item, figure, outcome)| format!("{item} {figure} {outcome}")).collect();
    let expected =
        ["tsc", "instructions"].map(|event| format!("\"functions::root\" \"{event}\" \"worse\""));
    assert_eq!(other, expected);
}

/// Each ends with its figures or its error, and those after it are right.
#[test]
fn x7_programs_that_go_wrong_are_told_apart_and_the_next_ones_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = tree().root().join("qemu-tests/benchmarks");
    let words = ["run", "--crate", path.to_str().unwrap(), "--bench", "endings::"];
    let called =
        call(folder.path(), &[&words[..], &["--format", "json", "--timeout", "600"]].concat());
    assert_eq!(called.code, 1, "{}", called.err);
    let (results, errors) = report(&called.out);
    let names: Vec<&str> =
        results.iter().filter_map(|one| one.name.strip_prefix("endings::")).collect();
    assert_eq!(
        names,
        ["a_memory", "b_walks", "c_allocates", "e_plain", "g_plain", "i_plain", "k_plain"]
    );
    let count = |name: &str| {
        let result = results.iter().find(|one| one.name.ends_with(name)).expect("it is there");
        result.metrics.iter().find(|one| one.event == "instructions").expect("counted").value.median
    };
    // A line of the cache each, with a load at least.
    assert!(count("b_walks") >= f64::from(64 << 20 >> 6), "{}", count("b_walks"));
    assert!(count("c_allocates") > 1000.0);
    let plain = count("e_plain");
    assert!(["g_plain", "i_plain", "k_plain"].iter().all(|name| count(name) == plain));
    let texts: Vec<String> = errors.iter().map(|error| format!("{error:?}")).collect();
    let expected = [
        ("d_panics", &["the answer", "left: 42", "right: 41", "benches/endings.rs"][..]),
        (
            "f_exhausts",
            &["memory allocation of 2097152 bytes failed", "the arena of 1048576 bytes is full"],
        ),
        ("h_never_ends", &[]),
        ("j_recurses", &["overrun: true"]),
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:#?}");
    for (text, (name, parts)) in texts.iter().zip(expected) {
        assert!(text.contains(name) && parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

/// The bench target of the guide, in the example's package.
#[test]
fn the_guides_benchmarks_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(call(folder.path(), &["new", "own"]).code, 0);
    let block = blocks::blocks()
        .into_iter()
        .find(|block| block.text.starts_with("#![no_std]\n#![no_main]"));
    let text = block.expect("the guide has a bench target").text;
    fs::write(folder.path().join("own/benches/counts.rs"), text).unwrap();
    let called = call(folder.path(), &["run", "--crate", "own", "--format", "json"]);
    assert_eq!(called.code, 0, "{}", called.err);
    let names: Vec<String> = report(&called.out).0.into_iter().map(|one| one.name).collect();
    let expected =
        ["add", "sort/16", "sort/256", "sum/10", "sum/1000"].map(|name| format!("counts::{name}"));
    assert_eq!(names, expected);
}

/// What a new user does: writes the example, tests it, measures it, and puts a gate on it.
#[test]
fn x7_the_example_is_tested_measured_and_gated() {
    let folder = tempfile::tempdir().unwrap();
    let block =
        blocks::blocks().into_iter().find(|block| block.text.starts_with("cargo xtask new"));
    let lines = blocks::commands(&block.expect("the guide has the four lines"));
    let (first, lines) = lines.split_first().expect("four lines");
    assert_eq!(first, "cargo xtask new counts");
    let made = call(folder.path(), &["new", "counts"]);
    assert_eq!(made.code, 0, "{made:#?}");
    let counts = folder.path().join("counts");
    let test =
        Command::new("cargo").arg("test").current_dir(&counts).output().expect("cargo starts");
    let out = String::from_utf8_lossy(&test.stdout);
    assert!(test.status.success(), "{out}{}", String::from_utf8_lossy(&test.stderr));
    assert!(
        out.contains("counts::sort/64 ... ok") && out.contains("11 benchmarks ran once, 0 failed"),
        "{out}"
    );
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for line in lines {
        let words = shlex::split(line).expect("words");
        let called =
            call(folder.path(), &words[2..].iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(called.code, 0, "{line}\n{called:#?}");
        assert!(
            called.out.contains("counts::binomial_of/40") || line.contains("--baseline"),
            "{called:#?}"
        );
    }
    // Slower by ten divisions, and so found.
    let source = counts.join("src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("(0..20).fold", "(0..30).fold")).unwrap();
    let worse = call(folder.path(), &["run", "--crate", "counts", "--baseline", "main"]);
    assert_eq!(worse.code, 1, "{worse:#?}");
    let changed: Vec<&str> = worse.out.lines().filter(|line| line.contains("worse")).collect();
    assert!(!changed.is_empty() && worse.out.contains("counts::root"), "{}", worse.out);
}
