//! Benchmarks in Rust in an executable that can lie anywhere, built without the host tool.

use super::{call, figures};
use std::fs;
use std::process::Command;

/// Of an ELF file of type ET_DYN: System V ABI, chapter 4, "ELF header".
const TYPE_AT: usize = 16;
const SHARED: u8 = 3;

#[test]
fn a_position_independent_executable_from_rust_counts_what_the_crate_counts() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(call(folder.path(), &["new", "own"]).code, 0);
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "--profile", "bench", "--bench", "counts", "--message-format", "json"]);
    cargo.args(["--target", "x86_64-unknown-linux-gnu", "--target-dir", "independent", "--"]);
    cargo.args(["-Cpanic=abort", "-Clinker=rust-lld", "-Clinker-flavor=ld.lld"]);
    for option in ["-pie", "--no-dynamic-linker", "-znostart-stop-gc"] {
        cargo.arg(format!("-Clink-arg={option}"));
    }
    cargo.current_dir(folder.path().join("own"));
    cargo.env("BARECOUNT_BARE", "1").env("CARGO_INCREMENTAL", "0");
    let built = cargo.output().expect("cargo starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let lines = String::from_utf8_lossy(&built.stdout).into_owned();
    let messages = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut programs = messages
        .filter_map(|line: serde_json::Value| line["executable"].as_str().map(String::from));
    let program = programs.next_back().expect("cargo names the program");
    assert_eq!(fs::read(&program).unwrap()[TYPE_AT], SHARED, "else this shows nothing");

    let run = |words: &[&str]| {
        let words = [&["run", "--format", "json", "--timeout", "600"], words].concat();
        let called = call(folder.path(), &words);
        assert_eq!(called.code, 0, "{}", called.err);
        figures(&called.out)
    };
    let instructions = |all: std::collections::BTreeMap<(String, String), f64>| {
        let counted = all.into_iter().filter(|((_, event), _)| event == "instructions");
        let counted = counted.map(|((name, _), value)| {
            (name.rsplit("::").next().unwrap_or_default().to_string(), value)
        });
        counted.collect::<Vec<_>>()
    };
    let expected = instructions(run(&["--crate", "own"]));
    assert_eq!(expected.len(), 11, "{expected:#?}");
    assert_eq!(instructions(run(&["--object", &program])), expected);
}
