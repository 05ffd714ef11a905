//! Crates that cannot be measured.

use super::call;
use qemu_tests::tree;
use std::fs;
use std::path::Path;

/// A package with one bench target, `b`, of this text.
fn package(folder: &Path, bench: &str, lib: &str) {
    let ours = tree().root().join("bench");
    let manifest = format!(
        "[package]\nname = \"p\"\nedition = \"2024\"\n[dev-dependencies]\nbarecount = {{ path = {ours:?}, \
         default-features = false }}\n[[bench]]\nname = \"b\"\nharness = false\n[workspace]\n"
    );
    for part in ["src", "benches"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src/lib.rs"), lib).unwrap();
    let head = "#![no_std]\n#![no_main]\nbarecount::main!();\n";
    fs::write(folder.join("benches/b.rs"), format!("{head}{bench}")).unwrap();
}

#[test]
fn what_cannot_be_built_is_told_with_cargos_words_and_its_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let undefined = "unsafe extern \"C\" { fn getpid() -> i32; }\n\
                     barecount::bench! { fn a() { unsafe { getpid() } } }";
    for (bench, lib, parts) in [
        (
            "barecount::bench! { fn a() { 1 + } }",
            "",
            &["`b` does not build", "expected expression"][..],
        ),
        (
            undefined,
            "",
            &["undefined symbol: getpid", "nothing on the bare machine provides getpid"],
        ),
        (
            "barecount::bench! { fn a() { p::count() } }",
            "pub fn count() -> usize { std::env::args().count() }",
            &["panic_impl", "uses the standard library"],
        ),
        ("use p as _;", "#![no_std]", &["registers no benchmark", "barecount::bench!"]),
    ] {
        package(folder.path(), bench, lib);
        call(folder.path(), &["run", "--crate", "."]).fails_with(2, parts);
    }
}

/// It would be cut to the 64 bits of a register.
#[test]
fn a_parameter_of_128_bits_does_not_build() {
    let folder = tempfile::tempdir().unwrap();
    let bench = "barecount::bench! { fn large(n: u128 in [1 << 64]) { n } }";
    package(folder.path(), bench, "#![no_std]");
    let called = call(folder.path(), &["run", "--crate", "."]);
    // Not by `fails_with`: rustc says that its evaluation panicked.
    let why = "parameters are unsigned, and have at most 64 bits";
    assert!(called.code == 2 && called.err.contains(why), "{called:#?}");
}

#[test]
fn what_is_no_package_with_benchmarks_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| call(folder.path(), &[&["run"], arguments].concat());
    run(&["--crate", "."]).fails_with(2, &["--crate .", "there is no Cargo.toml"]);
    run(&["--crate", ".", "--asm", "nop"]).fails_with(2, &["--crate", "--asm"]);
    run(&["--bench", "x"]).fails_with(2, &["--bench", "--crate or --object"]);
    let root = tree().root().display().to_string();
    run(&["--crate", &root]).fails_with(2, &["is a workspace", "name one of"]);
    run(&["--crate", &format!("{root}/bench")]).fails_with(2, &["no bench target"]);
    fs::write(folder.path().join("Cargo.toml"), "[package]\n").unwrap();
    run(&["--crate", "."]).fails_with(2, &["cargo refuses it", "name"]);
    package(
        folder.path(),
        "barecount::bench! { fn add() { 1 } fn sum(n: u8 in [3]) { n } }",
        "#![no_std]",
    );
    let none = run(&["--crate", ".", "--bench", "zzz"]);
    none.fails_with(2, &["--bench zzz", "b::add, b::sum/3"]);
    call(folder.path(), &["new", "."]).fails_with(2, &["not empty", "nothing is overwritten"]);
}
