//! Miri over what the PMI handler writes to by raw pointers: its tables and counts are used without locks and bounds of the compiler's.
//!
//! Miri executes Rust alone. Tests that reach assembly or its symbols are left out.

use crate::build::Tree;
use crate::process::said;
use std::process::{Command, Stdio};

/// Modules whose tests Miri executes.
const MODULES: [&str; 7] =
    ["edges", "groups", "histogram", "retired", "serviced", "table", "timer"];
/// Random cases of a property test: each takes Miri ten seconds and more.
const CASES: &str = "1";

/// Runs them; `Ok(false)` where there is no nightly toolchain with Miri.
pub(super) fn check(tree: &Tree) -> Result<bool, String> {
    let is_there = rustup(&["miri", "--version"]).output().is_ok_and(|it| it.status.success());
    if !is_there {
        return Ok(false);
    }
    let filters = MODULES.map(|module| format!("pmu::pmi::{module}::"));
    let mut command = rustup(&["miri", "test", "--quiet", "-p", "arch", "--lib", "--"]);
    command.args(filters).current_dir(tree.root()).env("CARGO_TARGET_DIR", tree.target());
    // proptest reads the number of cases, and the folder for failures.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", CASES);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(said(&output));
    }
    ran(&String::from_utf8_lossy(&output.stdout)).map(|()| true)
}

/// A toolchain's cargo, whichever one called.
fn rustup(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    command
}

/// Whether any test ran: modules may be renamed.
fn ran(output: &str) -> Result<(), String> {
    let passed =
        output.lines().filter_map(|line| line.strip_prefix("test result: ok. ")).any(|of| {
            let count = of.split(' ').next().and_then(|count| count.parse::<u32>().ok());
            count.is_some_and(|count| count > 0)
        });
    let names = MODULES.join(", ");
    if passed { Ok(()) } else { Err(format!("no test of the modules {names} of pmu::pmi")) }
}

#[cfg(test)]
mod tests {
    use super::{MODULES, ran};

    #[test]
    fn a_run_without_tests_is_a_failure() {
        let ended = |count| format!("\ntest result: ok. {count} passed; 0 failed; 0 ignored\n");
        assert_eq!(ran(&ended(17)), Ok(()));
        assert!(ran(&ended(0)).expect_err("none ran").contains("histogram"));
        assert!(ran("").is_err());
    }

    #[test]
    fn each_module_is_there_and_has_tests() {
        let root = crate::build::root().expect("cargo runs this");
        for module in MODULES {
            let file = root.join(format!("arch/src/pmu/pmi/{module}.rs"));
            let text = std::fs::read_to_string(&file).expect("a module");
            assert!(text.contains("mod tests"), "{module}");
        }
    }
}
