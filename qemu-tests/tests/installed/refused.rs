//! What the installed program says where something is missing or cannot be written to.

use super::user_folder::{UserFolder, called};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const RUN: [&str; 5] = ["run", "--asm", "nop", "--pmu", "none"];

#[test]
fn a_cache_that_takes_no_files_is_named_with_what_to_set() {
    let user_folder = UserFolder::new();
    user_folder.write("file", "");
    let program = user_folder.program();
    // Where a file stands nobody can make a folder, not even root.
    let home =
        called(user_folder.command(&program, "").args(RUN).env("HOME", user_folder.path("file")));
    home.fails_with(77, &["cannot write ", "here/file/.cache/barecount/", "BARECOUNT_CACHE"]);
    let own = called(
        user_folder
            .command(&program, "")
            .args(RUN)
            .env("BARECOUNT_CACHE", user_folder.path("file")),
    );
    own.fails_with(77, &["cannot write ", "here/file/"]);
    // A disk that has room for the first kilobytes alone.
    let full = "trap '' XFSZ; ulimit -f 100; exec \"$0\" run --asm nop --pmu none";
    let shell = PathBuf::from("/bin/bash");
    let full = called(user_folder.command(&shell, "").args(["-c", full]).arg(&program));
    full.fails_with(77, &["cannot write ", ".cache/barecount/", "/kernel: File too large"]);
    let [folder] = &user_folder.home_names(".cache/barecount")[..] else { panic!("one folder") };
    let left = user_folder.home_names(&format!(".cache/barecount/{folder}"));
    assert!(left.iter().all(|name| !name.starts_with('.')), "nothing unfinished is left: {left:?}");
    // With a folder of the user's choice it goes.
    let chosen = called(user_folder.command(&program, "").args(RUN).env("BARECOUNT_CACHE", "own"));
    assert_eq!(chosen.code, 0, "{chosen:#?}");
    assert_eq!(user_folder.names("own").len(), 1);
}

#[test]
fn a_compiler_that_is_missing_too_old_or_of_another_processor_is_told_before_the_job_is_blamed() {
    let user_folder = UserFolder::new();
    let program = user_folder.program();
    for (release, host, why) in [
        (
            "1.80.1",
            "x86_64-unknown-linux-gnu",
            "rustc is 1.80.1 for x86_64-unknown-linux-gnu, which is too old",
        ),
        (
            "1.95.0",
            "aarch64-unknown-linux-gnu",
            "rustc is 1.95.0 for aarch64-unknown-linux-gnu, not for x86-64",
        ),
    ] {
        let rustc = user_folder.path("rustc");
        let script = format!("#!/bin/sh\necho 'release: {release}'\necho 'host: {host}'\n");
        fs::write(&rustc, script).unwrap();
        fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).unwrap();
        let run = called(user_folder.command(&program, "").args(RUN).env("RUSTC", &rustc));
        run.fails_with(
            77,
            &["Rust 1.85.0 or newer is missing", why, "rustup toolchain install stable"],
        );
        let doctor = called(user_folder.command(&program, "").arg("doctor").env("RUSTC", &rustc));
        assert!(doctor.code == 77 && doctor.out.contains(why), "{doctor:#?}");
    }
    for command in [&RUN[..], &["image", "--asm", "nop", "--out", "x.img"]] {
        let none =
            called(user_folder.command(&program, "").args(command).env("RUSTC", "/nonexistent"));
        none.fails_with(77, &["rustc cannot be run", "rustup toolchain install stable"]);
    }
    let qemu = called(user_folder.command(&program, "").args(RUN).args(["--qemu", "/nonexistent"]));
    qemu.fails_with(77, &["QEMU is missing", "/nonexistent"]);
    // Another home, and a project that cargo refuses.
    user_folder.write("Cargo.toml", "[package\n");
    let save =
        called(user_folder.command(&program, "").args(RUN).args(["--save-baseline", "main"]));
    save.fails_with(77, &["the build folder of this project", "Cargo.toml", "BARECOUNT_BASELINES"]);
}
