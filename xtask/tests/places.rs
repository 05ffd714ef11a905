//! The host tool where something is elsewhere or missing: a checkout that was moved, a folder that cannot be written to, no
//! compiler. Nothing is built.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_xtask");

/// A call of `program` with nothing of what cargo told this test.
fn call(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).args(["--color", "never"]);
    for name in ["CARGO_MANIFEST_DIR", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
        command.env_remove(name);
    }
    command
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// What makes a folder a checkout.
fn checkout(folder: &Path) {
    for mark in ["Cargo.toml", "xtask/Cargo.toml", "kernel/protocol/Cargo.toml"] {
        let file = folder.join(mark);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
}

/// Once the folder that the program was compiled in went into it, and a copy built and booted the old sources.
#[test]
fn a_program_that_was_copied_with_its_checkout_builds_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (copy, log) = (folder.join("copy"), folder.join("log"));
    checkout(&copy);
    let program = copy.join("target/debug/xtask");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(PROGRAM, &program).unwrap();
    let cargo = folder.join("cargo");
    let says = format!("#!/bin/sh\necho \"$PWD $*\" >> '{}'\nexit 1\n", log.display());
    fs::write(&cargo, says).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    // From another folder by its own place; as cargo calls it; and with a build folder of the user's.
    let own = folder.join("own");
    for (manifest, target, expected) in [
        (None, None, copy.join("target")),
        (Some(copy.join("xtask")), None, copy.join("target")),
        (Some(copy.join("xtask")), Some(&own), own.clone()),
    ] {
        let _ = fs::remove_file(&log);
        let mut command = call(&program, &folder);
        command.args(["run", "--asm", "nop", "--pmu", "none"]).env("CARGO", &cargo);
        command.envs(manifest.map(|manifest| ("CARGO_MANIFEST_DIR", manifest)));
        command.envs(target.map(|target| ("CARGO_TARGET_DIR", target)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(77), "{}", text(&output));
        let called = fs::read_to_string(&log).unwrap_or_else(|_| panic!("{}", text(&output)));
        let expected = format!("{} build --target-dir {} ", copy.display(), expected.display());
        assert!(called.starts_with(&expected), "{called}");
    }
}

#[test]
fn a_build_folder_that_cannot_be_written_to_is_named_with_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    // Below a file nobody can make a folder, not even root.
    let output = Command::new(PROGRAM)
        .args(["run", "--asm", "nop", "--pmu", "none"])
        .env("CARGO_TARGET_DIR", file.join("target"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(77), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("file/target cannot be written to"), "{said}");
    assert!(said.contains("Set CARGO_TARGET_DIR to a folder of your own"), "{said}");
}

#[test]
fn a_missing_compiler_is_77_and_the_doctor_looks_for_the_rest_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&["run"][..], &["run", "--asm", "nop"], &["image", "--out", "x.img"], &["check"]]
    {
        let mut command = call(Path::new(PROGRAM), folder.path());
        let output = command.args(arguments).env("RUSTC", "/nonexistent").output().unwrap();
        assert_eq!(output.status.code(), Some(77), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains("rustup toolchain install"), "{}", text(&output));
    }
    let mut command = call(Path::new(PROGRAM), folder.path());
    // Without a search path nothing else is there either.
    let output =
        command.arg("doctor").envs([("RUSTC", "/nonexistent"), ("PATH", "")]).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(77), "{said}");
    for row in [
        "missing  Rust 1.95.0: rustc cannot be run",
        "missing  the Rust library source",
        "missing  llvm-objcopy and llvm-objdump",
        "missing  QEMU: no qemu-system-x86_64",
        "missing  QEMU for the emulated PMU",
        "OVMF: ",
        "missing  GRUB's rescue tools",
        "KVM: ",
    ] {
        assert!(said.contains(row), "{row}: {said}");
    }
}

/// Only an optimised build carries the firmware; this test's build is none.
#[test]
fn a_program_that_carries_nothing_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_cargo-barecount"));
    for arguments in [&["run", "--asm", "nop"][..], &["doctor"]] {
        let output = call(program, folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(77), "{}", text(&output));
        assert!(text(&output).contains("cargo install --locked --path xtask"), "{}", text(&output));
    }
}
