//! Packs the project's event tables once, so that no command has to read fifty CSV files. An optimised build, as `cargo
//! install --path xtask` makes it, also gets what the installed program carries (see `src/parts`): this calls the tool
//! itself, unoptimised and so without any, to build and pack it.

use events::pack::Sources;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Part of `rustc --version`'s answer for the compiler that the firmware is built with.
const PINNED: &str = "rustc 1.95.0 ";
/// What the parts are made of, below the checkout's root.
const SOURCES: [&str; 15] = [
    ".cargo/config.toml",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "NOTICE",
    "arch",
    "bench",
    "boot",
    "kernel",
    "rust-toolchain.toml",
    "xtask/Cargo.toml",
    "xtask/build.rs",
    "xtask/data",
    "xtask/src",
];
/// What cargo tells a build script and another call of cargo must not take for the user's words: beginnings of names, then
/// names (The Cargo Book, "Environment Variables").
const TOLD: [&str; 4] = ["CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PKG_", "CARGO_MANIFEST_"];
const TOLD_NAMES: [&str; 13] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "DEBUG",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC",
    "RUSTC_LINKER",
    "RUSTDOC",
    "TARGET",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let block = Sources::embedded().and_then(|sources| sources.pack());
    let block = block.unwrap_or_else(|error| panic!("the event tables do not pack: {error}"));
    let folder = PathBuf::from(variable("OUT_DIR"));
    std::fs::write(folder.join("events.bin"), block).expect("cargo's folder can be written");
    let parts = folder.join("parts.bin");
    // What cargo says for every profile that inherits from `release`; fuzz targets use the library alone.
    let is_fuzzing = std::env::var_os("CARGO_CFG_FUZZING").is_some();
    if variable("PROFILE") == "release" && !is_fuzzing {
        pack(&folder, &parts);
    } else {
        std::fs::write(parts, []).expect("cargo's folder can be written");
    }
}

fn variable(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}

/// Has the parts built and packed into the file `to`.
fn pack(folder: &Path, to: &Path) {
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = package.parent().expect("the package lies in the checkout");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    // The build folder, profile, `build`, package, `out`. Other profiles' folders have locks of their own.
    let target = folder.ancestors().nth(4).expect("cargo's folder is deep");
    let mut command = cargo();
    command.current_dir(root).args(["run", "--quiet", "--package", "xtask", "--bin", "xtask"]);
    command.arg("--target-dir").arg(target).args(["--", "package", "--parts"]).arg(to);
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            TOLD_NAMES.contains(&name) || TOLD.iter().any(|begin| name.starts_with(begin))
        });
        if told {
            command.env_remove(name);
        }
    }
    // Where the called program is to build, too.
    command.env("CARGO_TARGET_DIR", target);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("what the installed program carries cannot be built ({status})"),
        Err(error) => panic!("cargo cannot be run: {error}"),
    }
}

/// The cargo that calls this, if its compiler is the pinned one; else whichever the checkout's `rust-toolchain.toml` leads to.
fn cargo() -> Command {
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    if version.is_ok_and(|output| output.stdout.starts_with(PINNED.as_bytes())) {
        return Command::new(variable("CARGO"));
    }
    let mut command = Command::new("cargo");
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}
