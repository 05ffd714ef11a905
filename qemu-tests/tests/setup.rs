//! What is made of the emulator that is there, and what a second command does not do again.

use qemu_tests::{Called, tree, xtask, xtask_in};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use xtask::setup::qemu;

/// A program that runs `text`, a shell script.
fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn real_qemu() -> String {
    qemu::probe().expect("the tests run on it").path.display().to_string()
}

/// An emulator that says that it is of another version.
fn of_version(folder: &Path, version: &str) -> PathBuf {
    let text = format!(
        "if [ \"$1\" = --version ]; then echo 'QEMU emulator version {version} (Debian)'; exit; fi\n\
         exec '{}' \"$@\"",
        real_qemu()
    );
    script(folder, "emulator", &text)
}

fn run(folder: &Path, qemu: &Path, arguments: &[&str]) -> Called {
    let line = [&["run", "--asm", "nop", "--timeout", "60"], arguments].concat();
    xtask_in(folder, &line, &[(qemu::VARIABLE, qemu.as_os_str())])
}

#[test]
fn an_emulator_too_old_for_the_emulated_pmu_is_refused_by_name_and_runs_without_one() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["7.2.22", "9.2.4", "of-my-own"] {
        let old = of_version(folder.path(), version);
        let said = if version == "of-my-own" { "of unknown version" } else { version };
        let named = run(folder.path(), &old, &["--pmu", "nehalem"]);
        named.fails_with(77, &[said, "10.0 or newer", "BARECOUNT_QEMU"]);
        assert!(!named.out.contains("TSC ticks"), "no figures: {named:#?}");
        let none = run(folder.path(), &old, &["--pmu", "none"]);
        assert_eq!(none.code, 0, "{none:#?}");
        assert!(none.out.contains("pass: 1 measured"), "{none:#?}");
        let automatic = run(folder.path(), &old, &["--accel", "tcg"]);
        assert_eq!(automatic.code, 0, "{automatic:#?}");
        let line = automatic.err.lines().find(|line| line.starts_with("pmu: ")).unwrap();
        assert!(line.starts_with("pmu: none, under TCG (") && line.contains(said), "{line}");
    }
    let new = of_version(folder.path(), "99.1.0");
    let named = run(folder.path(), &new, &["--pmu", "nehalem"]);
    assert_eq!(named.code, 0, "{named:#?}");
}

#[test]
fn the_doctor_says_which_versions_are_good_and_the_option_names_one() {
    let folder = tempfile::tempdir().unwrap();
    let old = of_version(folder.path(), "7.2.22");
    let called = xtask(folder.path(), &["--qemu", old.to_str().unwrap(), "doctor"]);
    assert_eq!(called.code, 77, "{called:#?}");
    assert!(called.out.contains("QEMU: 7.2.22, "), "{called:#?}");
    assert!(called.out.contains("plugins in QEMU: no: its plugin needs QEMU 10.0"), "{called:#?}");
    let missing = called.out.lines().find(|line| line.starts_with("missing")).unwrap();
    assert!(
        missing.contains("QEMU for the emulated PMU") && missing.contains("good: 10.0 or newer")
    );
    let called = xtask(folder.path(), &["doctor"]);
    assert!(called.out.contains("good: 10.0 or newer (tested with 10.0.2"), "{called:#?}");
    assert!(called.out.contains("plugins in QEMU: yes"), "{called:#?}");
}

#[test]
fn an_emulator_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let called = run(folder.path(), &folder.path().join("nothing"), &["--pmu", "none"]);
    called.fails_with(77, &["QEMU is missing", "nothing is not a program", "BARECOUNT_QEMU"]);
}

/// The shell waits for the emulator, which would live on and keep the run waiting.
#[test]
fn a_time_limit_ends_an_emulator_behind_a_script_without_exec() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("'{}' \"$@\"\nexit $?", real_qemu());
    let emulator = script(folder.path(), "emulator", &text);
    let line = ["run", "--asm", "2: jmp 2b", "--pmu", "none", "--timeout", "5"];
    let called = xtask_in(folder.path(), &line, &[(qemu::VARIABLE, emulator.as_os_str())]);
    assert_eq!(called.code, 3, "{called:#?}");
    assert!(called.out.contains("the machine was stopped after 5 s"), "{called:#?}");
}

/// Cargo takes a few hundred milliseconds to say that nothing is to be done, and was asked three times.
#[test]
fn an_unchanged_tree_is_not_built_again_and_the_emulator_probed_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let noted = |name: &str, program: &str| {
        let text = format!("echo \"{name} $1\" >> '{}'\nexec '{program}' \"$@\"", log.display());
        script(folder.path(), name, &text)
    };
    let cargo = noted("cargo", &std::env::var("CARGO").expect("cargo runs this"));
    let emulator = noted("qemu", &real_qemu());
    let environment: [(&str, &OsStr); 3] = [
        ("CARGO", cargo.as_os_str()),
        (qemu::VARIABLE, emulator.as_os_str()),
        ("BARECOUNT_COUNTING", "auto".as_ref()),
    ];
    for boot in ["direct", "bios"] {
        let pmu = if boot == "direct" { "skylake" } else { "none" };
        let line = ["run", "--asm", "nop", "--boot", boot, "--pmu", pmu];
        // The first one may have to build.
        for _ in 0..2 {
            let _ = fs::remove_file(&log);
            let called = xtask_in(folder.path(), &line, &environment);
            assert_eq!(called.code, 0, "{called:#?}");
        }
        let said = fs::read_to_string(&log).unwrap();
        let calls: Vec<&str> = said.lines().collect();
        let mut expected = vec!["qemu --version", "qemu -nodefaults"];
        if boot == "direct" {
            // Whether it takes the emulated PMU's plugin.
            expected.insert(1, "qemu -plugin");
        }
        assert_eq!(calls, expected, "{boot}");
    }
    assert!(tree().kernel().exists());
}

/// cargo keeps what a build script printed. With a path of the checkout in it, a checkout that has moved would be linked by the
/// script of the old one, or not at all.
#[test]
fn what_links_the_bare_metal_programs_moves_with_the_checkout() {
    qemu_tests::direct("[[snippet]]\nasm = \"nop\"\n").ends_with(0);
    let root = tree().root().canonicalize().unwrap();
    let built = tree().target().join("x86_64-unknown-none/firmware/build");
    // Beside what the last build printed may lie what those before it did.
    let mut outputs: Vec<PathBuf> = fs::read_dir(built)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.file_name().unwrap().to_string_lossy().starts_with("direct-"))
        .map(|folder| folder.join("output"))
        .filter(|file| file.is_file())
        .collect();
    outputs.sort_by_key(|file| file.metadata().unwrap().modified().unwrap());
    let said = fs::read_to_string(outputs.last().expect("it was built")).unwrap();
    let arguments: Vec<&str> =
        said.lines().filter(|line| line.contains("rustc-link-arg")).collect();
    assert!(arguments.iter().any(|line| line.contains("link.ld")), "{arguments:?}");
    for line in arguments {
        assert!(!line.contains(&root.display().to_string()), "{line}");
    }
}
