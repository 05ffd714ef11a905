//! Instruction counts beside those of Callgrind, which counts in an emulator of its own: in the very same linked file,
//! function by function. What the two count differently has a name ([`above`]); nothing else may differ.

mod output;

use output::{Costs, calls};
use protocol::record::SnippetResult;
use qemu_tests::{skip, tree, xtask};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::benchmarks::package::Package;
use xtask::benchmarks::{build, entries};
use xtask::process::find;
use xtask::program::{self, Wanted};

/// The benchmarks of the tests' own.
fn folder() -> PathBuf {
    tree().root().join("qemu-tests/benchmarks")
}

/// Instructions of each benchmark, and ticks of QEMU's clock, as `run` measures them.
fn measured(arguments: &[&str]) -> BTreeMap<String, [f64; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let words = [&["run", "--format", "json", "--timeout", "900"], arguments].concat();
    let called = xtask(folder.path(), &words);
    assert_eq!(called.code, 0, "{}", called.err);
    let report: Value = serde_json::from_str(&called.out).expect("a report");
    let records = report["records"].as_array().expect("records").iter();
    let results = records.filter(|record| record["type"] == "result");
    let results = results.map(|record| serde_json::from_value(record.clone()).expect("a result"));
    let count = |result: SnippetResult| {
        let figure = |event: &str| {
            let metric = result.metrics.iter().find(|metric| metric.event == event);
            let metric = metric.unwrap_or_else(|| panic!("{event}: {result:#?}"));
            assert!(metric.deterministic, "{result:#?}");
            metric.value.median
        };
        (result.name.clone(), [figure("instructions"), figure("tsc")])
    };
    results.map(count).collect()
}

/// Costs of the calls of each function in `program` under Callgrind.
fn counted(program: &Path) -> Costs {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--demangle=no", "--compress-strings=no"]);
    command.args(["--compress-pos=no", "--dump-line=no"]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(program);
    let output = command.output().expect("valgrind starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    calls(&std::fs::read_to_string(out).unwrap(), "barecount_measured")
}

/// Benchmarks of which Callgrind counts more, because of a REP prefix: in their own code, or in `memcpy`, `memmove` and `memset`
/// of the crate `barecount`, which they call.
///
/// To a processor, and to its PMU, such an instruction is one, however often it repeats. Valgrind translates it into a loop and
/// counts it at each repetition; and so does QEMU's clock, by which the number of repetitions is known here.
const REPEAT: [&str; 9] = [
    "published::compress",
    "published::core_format",
    "published::crc",
    "published::decompress",
    "published::hash_map",
    "published::memcpy_with_rep",
    "published::postcard",
    "published::sort_stable",
    "published::sort_unstable",
];
/// Bytes that the functions copy whose names say that they copy by a REP instruction.
const COPIED: f64 = 200.0;

/// Compares all benchmarks of a linked file; returns how many.
fn compare(program: &Path, measured: &BTreeMap<String, [f64; 2]>) -> usize {
    let all = entries::read(&std::fs::read(program).unwrap(), "the program").unwrap();
    let costs = counted(program);
    let mut wrong = Vec::new();
    for benchmark in &all {
        let name = &*benchmark.name;
        let ([instructions, ticks], theirs) = (measured[name], costs[&benchmark.function] as f64);
        let copies = name.contains("copy with rep") || name.contains("memcpy_with_rep");
        let is_right = match copies || REPEAT.contains(&name) {
            true if copies => instructions + COPIED == theirs && ticks == theirs,
            true => instructions < theirs && ticks == theirs,
            false => instructions == theirs,
        };
        if !is_right {
            wrong.push(format!(
                "{name}: {instructions} instructions in {ticks} ticks, {theirs} under Callgrind"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), all.len());
    all.len()
}

#[test]
fn x7_published_crates_count_what_callgrind_counts() {
    if find("valgrind").is_none() {
        skip!("there is no valgrind");
    }
    let path = folder();
    let measured = measured(&["--crate", path.to_str().unwrap(), "--bench", "published::"]);
    let package = Package::find(&path).unwrap();
    let program = build::build(&package, "published").unwrap_or_else(|error| panic!("{error}"));
    assert!(compare(&program, &measured) >= 25);
}

#[test]
fn x7_functions_in_c_and_cpp_of_both_compilers_count_what_callgrind_counts() {
    if find("valgrind").is_none() {
        skip!("there is no valgrind");
    }
    let compilers: Vec<[&str; 2]> = [["gcc", "g++"], ["clang", "clang++"]]
        .into_iter()
        .filter(|both| both.iter().all(|name| find(name).is_some()))
        .collect();
    if compilers.is_empty() {
        skip!("there is neither gcc nor clang, with C++");
    }
    let objects = tempfile::tempdir().unwrap();
    let compile = |compiler: &str, options: &[&str], source: &str, name: &str| {
        let out = objects.path().join(name);
        let mut command = Command::new(compiler);
        command.args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-ffreestanding",
            "-fno-stack-protector",
            "-c",
        ]);
        command.args(options).arg(format!("-DVARIANT={}", name.trim_end_matches(".o")));
        command.arg("-I").arg(tree().root().join("bench/include"));
        command.arg(folder().join("c").join(source)).arg("-o").arg(&out);
        let output = command.output().expect("the compiler starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    };
    let mut files = vec![compile(compilers[0][0], &["-std=c11", "-O2"], "start.c", "start.o")];
    for [c, cpp] in &compilers {
        for level in 0..4 {
            let (optimise, name) = (format!("-O{level}"), format!("{c}_O{level}.o"));
            files.push(compile(c, &["-std=c11", &optimise], "functions.c", &name));
            let options = ["-std=c++11", "-fno-exceptions", "-fno-rtti", &optimise];
            files.push(compile(cpp, &options, "functions.cpp", &format!("{c}_cpp_O{level}.o")));
        }
    }
    let words = files.iter().flat_map(|file| ["--object", file.to_str().unwrap()]);
    let measured = measured(&words.collect::<Vec<_>>());
    let sections = vec!["barecount".to_string()];
    let linked = program::link(&Wanted { files, functions: Vec::new(), sections });
    let linked = linked.unwrap_or_else(|error| panic!("{error}"));
    // Nine functions in C and four in C++, at four levels.
    assert_eq!(compare(&linked.path, &measured), 4 * (9 + 4) * compilers.len());
}
