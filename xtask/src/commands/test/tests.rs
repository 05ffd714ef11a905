//! Which tests are run, and what is built for them.

use super::{HOST, QEMU, Runner, SOAK, chosen};
use crate::build::Tree;
use crate::cli::Test;
use crate::setup::Toolchain;
use crate::setup::toolchain::cargo;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Whether a Rust file below `folder`, other crates' folders left out, has a test.
fn has_tests(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder of ours");
    entries.map(|entry| entry.expect("readable").path()).any(|path| {
        if path.is_dir() {
            return !path.join("Cargo.toml").exists() && has_tests(&path);
        }
        path.extension().is_some_and(|extension| extension == "rs")
            && std::fs::read_to_string(&path).expect("text").contains("#[test]")
    })
}

#[test]
fn soak_tests_are_run_by_name_alone_and_the_others_without_them() {
    let test = |filter: Option<&str>, soak| Test {
        filter: filter.map(String::from),
        no_checks: false,
        host_only: false,
        soak,
    };
    assert_eq!(chosen(&test(None, true), true), ["--run-ignored", "only", "_soak"]);
    assert_eq!(chosen(&test(None, true), false), ["_soak", "--", "--ignored"]);
    for nextest in [false, true] {
        assert_eq!(chosen(&test(Some("boot"), false), nextest), ["boot"]);
        assert_eq!(chosen(&test(None, false), nextest), [""; 0]);
    }
}

/// Each `#[ignore]`d test whose reason is the option has a name that the option finds, and no other has.
#[test]
fn soak_tests_have_the_name_that_the_option_runs() {
    let folder = crate::build::root().expect("cargo runs this").join("qemu-tests/tests");
    let mut found = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of ours") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for pair in lines.windows(2).filter(|pair| pair[1].starts_with("fn ")) {
                let name = pair[1].split(['(', ' ']).nth(1).expect("a name");
                let is_soak = pair[0] == "#[ignore = \"cargo xtask test --soak\"]";
                assert_eq!(is_soak, name.ends_with(SOAK), "{}: {name}", path.display());
                found += usize::from(is_soak);
            }
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn every_member_with_tests_is_run() {
    let root = crate::build::root().expect("cargo runs this");
    let manifest = |folder: &Path| -> toml::Table {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        text.parse().expect("TOML")
    };
    let workspace = manifest(root);
    let members = workspace["workspace"]["members"].as_array().expect("a list");
    assert!(members.len() > HOST.len());
    for member in members {
        let folder = root.join(member.as_str().expect("a folder"));
        let manifest = manifest(&folder);
        let name = manifest["package"]["name"].as_str().expect("a name");
        let run = HOST.contains(&name) || name == QEMU;
        assert!(run || !has_tests(&folder), "{name} has tests that nobody runs");
    }
}

/// What cargo would build of libraries, where these packages are selected: package, optimisation and features.
fn libraries(command: &str, packages: &[&str]) -> Vec<String> {
    let mut cargo = Command::new(cargo());
    cargo.current_dir(crate::build::root().expect("cargo runs this"));
    // A stable cargo takes unstable options with this variable, with which the firmware is built, too.
    cargo.env("RUSTC_BOOTSTRAP", "1").args(["-Z", "unstable-options", command, "--unit-graph"]);
    cargo.arg("--locked").args(packages.iter().flat_map(|name| ["--package", name]));
    if command == "test" {
        cargo.arg("--no-run");
    }
    let output = cargo.output().expect("cargo can be called");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let graph: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let units = graph["units"].as_array().expect("a list").iter();
    let is_library = |unit: &&serde_json::Value| {
        let kinds = unit["target"]["kind"].as_array().expect("a list");
        unit["mode"] == "build" && kinds.iter().any(|kind| kind == "lib")
    };
    let text = |unit: &serde_json::Value| {
        let package = unit["pkg_id"].as_str().expect("text");
        format!("{package} {} {}", unit["profile"]["opt_level"], unit["features"])
    };
    units.filter(is_library).map(text).collect()
}

/// Else a fresh machine builds a crate twice, and all that depends on it.
#[test]
fn the_tests_and_the_host_tool_are_built_of_the_same_libraries() {
    let all: Vec<&str> = HOST.into_iter().chain([QEMU]).collect();
    let (tool, tests) = (libraries("build", &["xtask"]), libraries("test", &all));
    assert!(tool.len() > 100 && tests.len() > tool.len(), "{} {}", tool.len(), tests.len());
    let known: BTreeSet<&String> = tests.iter().collect();
    let other: Vec<&String> = tool.iter().filter(|library| !known.contains(library)).collect();
    assert!(other.is_empty(), "built once more with other features: {other:#?}");
    // Build scripts' crates, too, are those of the programs.
    let package = |library: &&String| library.split(' ').next().map(String::from);
    let packages: BTreeSet<_> = tests.iter().filter_map(|library| package(&library)).collect();
    assert_eq!(tests.len(), packages.len(), "built twice: {tests:#?}");
}

/// One that ends at once would be noticed by nobody: the tests are then built where they are run.
#[test]
fn the_tests_are_built_beside_the_firmware() {
    let tree = Tree::new(Toolchain::find().expect("a toolchain")).expect("the checkout");
    let all: Vec<&str> = HOST.into_iter().chain([QEMU]).collect();
    let status = Runner::find().build(&all, &tree).expect("cargo starts").wait();
    assert!(status.as_ref().is_ok_and(ExitStatus::success), "{status:?}");
}

/// Building the tests may replace the program that has them built; its name stays.
#[test]
fn the_program_under_test_is_named_as_before_the_tests_were_built() {
    let tree = Tree::new(Toolchain::find().expect("a toolchain")).expect("the checkout");
    let program = PathBuf::from("/one/of/before");
    let runner = Runner { nextest: false, program: Some(program.clone()) };
    let command = runner.command(Command::new("cargo"), &[], &tree);
    let named = command.get_envs().find(|(name, _)| *name == "BARECOUNT_XTASK");
    assert_eq!(named.and_then(|(_, value)| value), Some(program.as_os_str()));
}
