//! Objects of other compilers than Rust's, and executables: nasm, C++, what registers itself in a program that can lie anywhere;
//! and images of what a crate registers.

use protocol::record::{Record, SnippetResult};
use qemu_tests::{Called, Guest, skip, xtask};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::cli::Boot;
use xtask::machine::devices;
use xtask::process::find;

/// Calls a compiler in `folder` with a source of these tests.
fn compile(folder: &Path, program: &str, options: &[&str], source: &str, out: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(program);
    command.args(options).current_dir(folder).arg("-o").arg(out);
    command.arg(root.join("tests/objects").join(source));
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Measures with these arguments; the records of the report.
fn run(folder: &Path, arguments: &[&str]) -> (Called, Vec<Value>) {
    let common = ["run", "--pmu", "skylake", "--format", "json", "--timeout", "300"];
    let called = xtask(folder, &[&common[..], arguments].concat());
    let report: Value =
        serde_json::from_str(&called.out).unwrap_or_else(|_| panic!("{}", called.err));
    let records = report["records"].as_array().expect("records").clone();
    (called, records)
}

/// The instructions of each item that was measured.
fn instructions(records: &[Value]) -> Vec<(String, f64)> {
    let results = records.iter().filter(|record| record["type"] == "result");
    let results = results.map(|result| serde_json::from_value(result.clone()).expect("a result"));
    let figure = |result: SnippetResult| {
        let counted = result.metrics.iter().find(|metric| metric.event == "instructions");
        let counted = counted.unwrap_or_else(|| panic!("{result:#?}"));
        assert!(counted.deterministic, "{result:#?}");
        (result.name.clone(), counted.value.median)
    };
    results.map(figure).collect()
}

const COUNT: [&str; 2] = ["--event", "instructions"];

#[test]
fn x7_objects_of_nasm_are_counted_and_their_faults_have_function_file_and_line() {
    if find("nasm").is_none() {
        skip!("there is no nasm");
    }
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "nasm", &["-f", "elf64", "-g", "-F", "dwarf"], "sum.asm", "sum.o");
    let sums = ["--object", "sum.o", "--function", "sums", "--arg", "100"];
    let (called, records) = run(folder.path(), &[&sums[..], &COUNT].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    assert_eq!(instructions(&records), [("sums(100)".to_string(), 302.0)]);
    let (called, records) = run(
        folder.path(),
        &["--object", "sum.o", "--function", "gives_up", "--event", "instructions"],
    );
    assert_eq!(called.code, 1, "{}", called.err);
    let error = records.iter().find(|record| record["type"] == "error").unwrap();
    assert_eq!(error["fault"]["function"], "gives_up", "{error:#}");
    // `ud2` stands there.
    assert!(error["fault"]["location"].as_str().unwrap().ends_with("sum.asm:16"), "{error:#}");
}

#[test]
fn x7_objects_of_cpp_have_their_static_objects_and_virtual_functions() {
    if find("g++").is_none() {
        skip!("there is no g++");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut counted = Vec::new();
    for level in ["-O0", "-O2"] {
        let options = [level, "-g", "-c", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector"];
        compile(folder.path(), "g++", &options, "classes.cpp", "classes.o");
        let name = "counted::objects(unsigned long)";
        let mut of = |turns: &str| {
            let called = ["--object", "classes.o", "--function", name, "--arg", turns];
            let (called, records) = run(folder.path(), &[&called[..], &COUNT].concat());
            assert_eq!(called.code, 0, "{level}: {}{}", called.err, called.out);
            counted.push(instructions(&records)[0].1);
        };
        of("10");
        of("20");
        of("30");
    }
    let [a, b, c, d, e, f] = counted[..] else { panic!("{counted:?}") };
    assert!(a > d, "-O2 takes fewer: {counted:?}");
    assert!(
        b > a && b - a == c - b && e > d && e - d == f - e,
        "ten turns are ten turns: {counted:?}"
    );
}

#[test]
fn an_object_may_have_one_of_the_compilers_functions_and_need_another() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["-O1", "-c", "-ffreestanding", "-fno-stack-protector"];
    compile(folder.path(), "cc", &options, "own.c", "own.o");
    let both = ["--object", "own.o", "--function", "both", "--arg", "77"];
    let (called, records) = run(folder.path(), &[&both[..], &COUNT].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    let count = instructions(&records)[0].1;
    assert!((900.0..6000.0).contains(&count), "its own loop over 300 bytes was taken: {count}");
}

#[test]
fn a_position_independent_executable_registers_benchmarks() {
    let folder = tempfile::tempdir().unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/include");
    let include = format!("-I{}", header.display());
    let options = [
        "-O1",
        "-fPIE",
        "-static-pie",
        "-nostdlib",
        "-ffreestanding",
        "-fno-stack-protector",
        &include,
    ];
    compile(folder.path(), "cc", &options, "registered.c", "registered");
    let kind = fs::read(folder.path().join("registered")).unwrap()[16];
    assert_eq!(kind, 3, "ET_DYN: else this shows nothing");
    let (called, records) = run(folder.path(), &["--object", "registered"]);
    assert_eq!(called.code, 0, "{}{}", called.err, called.out);
    let counted = instructions(&records);
    let names: Vec<&str> = counted.iter().map(|one| &*one.0).collect();
    assert_eq!(names, ["checks/4", "spin/10", "spin/30"]);
    assert_eq!(counted[2].1 - counted[1].1, 40.0);
}

/// What `image` writes of a crate's benchmarks boots, and `collect` names where one of them failed.
#[test]
fn x7_an_image_of_a_crates_benchmarks_boots_and_collect_names_the_function_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let new = xtask(folder.path(), &["new", "counts"]);
    assert_eq!(new.code, 0, "{}", new.err);
    let source = folder.path().join("counts/benches/counts.rs");
    let text = fs::read_to_string(&source).unwrap();
    let failing = "\nbench! { fn wanted_gives_up() { if barecount::black_box(1) == 1 { panic!(\"meant\") } } }\n\
                   bench! { fn wanted_adds() { barecount::black_box(1_u64) + barecount::black_box(2) } }\n";
    fs::write(&source, text + failing).unwrap();
    let words = ["image", "--crate", "counts", "--bench", "wanted_", "--out", "counts.img"];
    let called = xtask(folder.path(), &words);
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(called.out.contains("2 items") || called.err.contains("2 items"), "{called:#?}");
    let image = folder.path().join("counts.img");
    let from = devices::Boot::Bios { image };
    let ran = Guest { boot_from: Some(from), ..Guest::with_ramdisk(Boot::Bios, None) }.run();
    fs::write(folder.path().join("serial.log"), &ran.raw).unwrap();
    let collected =
        xtask(folder.path(), &["collect", "--serial", "serial.log", "--format", "json"]);
    assert_eq!(collected.code, 1, "{collected:#?}");
    let report: Value = serde_json::from_str(&collected.out).unwrap();
    let records = report["records"].as_array().unwrap();
    let of = |name: &str| {
        let found = records.iter().find(|record| record["name"].as_str() == Some(name));
        let found = found.unwrap_or_else(|| panic!("no {name}: {records:#?}"));
        serde_json::from_value::<Record>(found.clone()).unwrap()
    };
    assert!(matches!(of("counts::wanted_adds"), Record::Result(_)));
    let Record::Error(error) = of("counts::wanted_gives_up") else { panic!("{records:#?}") };
    let fault = error.fault.unwrap();
    assert!(fault.message.as_deref().is_some_and(|text| text.contains("meant")), "{fault:#?}");
    assert!(fault.function.is_some() && fault.location.is_some(), "{fault:#?}");
}
