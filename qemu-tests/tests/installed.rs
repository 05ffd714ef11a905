//! `cargo barecount`, installed by cargo and called where there is no checkout: another home, an empty folder, a program
//! that was moved.

mod refused;
mod user_folder;

use qemu_tests::xtask;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use user_folder::{JOB, UserFolder};

/// The words of a last line that says that all expectations were met.
const PASS: &str = "pass: ";

#[test]
fn x8_the_first_figure_comes_from_an_empty_folder() {
    let user_folder = UserFolder::new();
    let called = user_folder.call(&["run", "--asm", "nop"]);
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.out.contains("nop") && called.out.contains("all equal"), "{called:#?}");
    assert_eq!(user_folder.names(""), Vec::<String>::new(), "nothing is left where it was called");
    // Expectations hold with the emulated PMU and its plugin, and are missed where they are wrong.
    user_folder.write("job.toml", JOB);
    let called = user_folder.call(&["run", "job.toml", "--pmu", "zen4", "--counting", "plugin"]);
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.out.lines().last().unwrap_or_default().starts_with(PASS), "{called:#?}");
    user_folder.write("job.toml", &JOB.replace("loads = 1", "loads = 2"));
    let called = user_folder.call(&["run", "job.toml"]);
    assert_eq!(called.code, 1, "{called:#?}");
    // By its own name it is the same.
    assert_eq!(user_folder.direct(&["run", "--asm", "nop", "--pmu", "none"]).code, 0);
}

#[test]
fn x8_the_package_is_one_file_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cargo-barecount");
    let name = file.to_str().unwrap();
    let called = xtask(folder.path(), &["package", "--profile", "quick", "--out", name]);
    assert_eq!(called.code, 0, "{called:#?}");
    let user_folder = UserFolder::with(&file);
    let called = user_folder.call(&["run", "--asm", "nop"]);
    assert_eq!(called.code, 0, "{called:#?}");
}

#[test]
fn x8_baselines_are_kept_in_the_project_or_else_in_the_home() {
    let user_folder = UserFolder::new();
    user_folder.write("job.toml", JOB);
    let save = ["run", "../job.toml", "--save-baseline", "main"];
    user_folder.write("project/Cargo.toml", "[package]\nname = \"one\"\nedition = \"2024\"\n");
    user_folder.write("project/src/lib.rs", "");
    let saved = user_folder.call_in("project", &save);
    assert_eq!(saved.code, 0, "{saved:#?}");
    assert!(
        user_folder.path("project/target/barecount/baselines/main.json").is_file(),
        "{saved:#?}"
    );
    let same = user_folder.call_in("project/src", &["run", "../../job.toml", "--baseline", "main"]);
    assert_eq!(same.code, 0, "{same:#?}");
    let report = user_folder
        .call_in("project", &["run", "../job.toml", "--format", "json", "--out", "new.json"]);
    assert_eq!(report.code, 0, "{report:#?}");
    let compared = user_folder.call_in("project", &["compare", "main", "new.json"]);
    assert_eq!(compared.code, 0, "{compared:#?}");
    let other = JOB.replace("[r14]", "[r14]; mov rcx, [r14]");
    let other = other.replace("instructions = 2", "instructions = 3");
    user_folder.write("job.toml", &other.replace("loads = 1", "loads = 2"));
    let worse = user_folder.call_in("project", &["run", "../job.toml", "--baseline", "main"]);
    assert_eq!(worse.code, 1, "{worse:#?}");
    assert!(worse.out.contains("loads"), "{worse:#?}");
    // Outside of a project there is none of that name, until one is saved.
    let other = user_folder.call(&["run", "job.toml", "--baseline", "main"]);
    other.fails_with(2, &["main"]);
    let saved = user_folder.call(&["run", "job.toml", "--save-baseline", "main"]);
    assert_eq!(saved.code, 0, "{saved:#?}");
    assert!(
        user_folder.home().join(".local/state/barecount/baselines/main.json").is_file(),
        "{saved:#?}"
    );
}

#[test]
fn x8_an_image_that_it_writes_boots_and_its_log_is_collected() {
    let user_folder = UserFolder::new();
    user_folder.write("job.toml", &format!("on-end = \"power-off\"\n{JOB}"));
    let written = user_folder.call(&["image", "job.toml", "--out", "usb.img", "--allow-uncounted"]);
    assert_eq!(written.code, 0, "{written:#?}");
    let mut qemu = Command::new("timeout");
    qemu.args(["300", "qemu-system-x86_64", "-display", "none", "-no-reboot", "-accel", "tcg"]);
    qemu.args(["-m", "256", "-icount", "shift=0,sleep=off", "-monitor", "none"]);
    qemu.args(["-drive", "file=usb.img,format=raw", "-serial", "file:serial.log"]);
    let status = qemu.current_dir(user_folder.path("")).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status}");
    let collected = user_folder.call(&["collect", "--serial", "serial.log", "--format", "tap"]);
    assert!(collected.out.contains("load and add"), "{collected:#?}");
    assert!(collected.out.contains("1..1"), "{collected:#?}");
    // Both firmwares by itself, UEFI's with the emulated PMU in front of the loader.
    for way in [&["--boot", "bios", "--pmu", "none"][..], &["--boot", "uefi", "--pmu", "skylake"]] {
        let called = user_folder.call(&[&["run", "--asm", "nop"], way].concat());
        assert_eq!(called.code, 0, "{way:?}: {called:#?}");
    }
}

#[test]
fn x8_events_help_doctor_and_licences_need_nothing() {
    let user_folder = UserFolder::new();
    let events = user_folder.call(&["events", "--cpu", "zen4", "ls_dispatch"]);
    assert!(events.code == 0 && events.out.contains("ls_dispatch"), "{events:#?}");
    let doctor = user_folder.call(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:#?}");
    for part in ["ok       Rust 1.85.0 or newer", "QEMU", "OVMF", "this program's files: "] {
        assert!(doctor.out.contains(part), "{part}: {doctor:#?}");
    }
    for part in ["library source", "llvm-objcopy", "GRUB", "cargo-mutants"] {
        assert!(!doctor.out.contains(part), "{part}: {doctor:#?}");
    }
    let help = user_folder.call(&["run", "--help"]);
    assert!(
        help.out.contains("cargo barecount run --asm") && !help.out.contains("xtask"),
        "{help:#?}"
    );
    let licences = user_folder.call(&["licences"]);
    for part in [
        "Copyright (c) 2021 Intel Corporation",
        "\nbootloader-x86_64-common 0.11.15: ",
        "\nuefi 0.41",
        "\niced-x86 1.",
        "\nclap 4.",
        "\ntalc 5.",
        "Permission is hereby granted",
        "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
    ] {
        assert!(licences.out.contains(part), "{part}");
    }
    // Nothing was needed, so nothing was written.
    assert!(!user_folder.home().join(".cache").exists());
    user_folder.call(&["test"]).fails_with(2, &["unrecognized subcommand 'test'"]);
}

/// The cache's folder of the only program that was called.
fn cache(user_folder: &UserFolder) -> std::path::PathBuf {
    let folders = user_folder.home_names(".cache/barecount");
    let [folder] = &folders[..] else { panic!("{folders:?}") };
    user_folder.home().join(".cache/barecount").join(folder)
}

fn damage(file: &Path) -> Vec<u8> {
    let whole = fs::read(file).unwrap();
    let mut other = whole.clone();
    let middle = other.len() / 2;
    other[middle] ^= 0xff;
    fs::write(file, other).unwrap();
    whole
}

#[test]
fn x8_a_damaged_file_of_the_cache_is_replaced_and_two_at_once_do_not_disturb_each_other() {
    let user_folder = UserFolder::new();
    let run = ["run", "--asm", "nop", "--pmu", "skylake", "--counting", "plugin"];
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| user_folder.call(&run)));
        for one in both {
            let called = one.join().unwrap();
            assert_eq!(called.code, 0, "{called:#?}");
        }
    });
    let folder = cache(&user_folder);
    let files = ["direct.bin", "emulated-pmu", "kernel", "libemulated_pmu_plugin.so"];
    let whole = files.map(|file| damage(&folder.join(file)));
    fs::remove_file(folder.join("kernel")).unwrap();
    let called = user_folder.call(&run);
    assert_eq!(called.code, 0, "{called:#?}");
    for (file, whole) in files.iter().zip(whole) {
        assert!(fs::read(folder.join(file)).unwrap() == whole, "{file}");
    }
    assert_eq!(user_folder::names(&folder), files, "nothing unfinished is left");
}

/// The other program differs from the first in the place where its parts were built, as if it had been built elsewhere.
#[test]
fn a_program_of_another_version_does_not_use_the_files_of_the_first() {
    let user_folder = UserFolder::new();
    let run = ["run", "--asm", "nop", "--pmu", "none"];
    assert_eq!(user_folder.call(&run).code, 0);
    let first = cache(&user_folder).join("kernel");
    let _whole = damage(&first);
    let damaged = fs::read(&first).unwrap();
    user_folder.become_another();
    let called = user_folder.call(&run);
    assert_eq!(called.code, 0, "{called:#?}");
    assert_eq!(user_folder.home_names(".cache/barecount").len(), 2);
    assert!(fs::read(&first).unwrap() == damaged, "another program's file is left alone");
}

#[test]
fn a_crash_is_told_with_functions_and_lines() {
    let user_folder = UserFolder::new();
    user_folder.write("job.toml", &format!("self-test = \"panic\"\n{JOB}"));
    let called = user_folder.call(&["run", "job.toml", "--pmu", "none"]);
    assert_eq!(called.code, 3, "{called:#?}");
    let said = format!("{}{}", called.out, called.err);
    assert!(said.contains("kernel::") && said.contains("at kernel/src/"), "{called:#?}");
}
