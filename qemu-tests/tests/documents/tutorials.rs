//! The tutorials as a stranger does them: in a fresh checkout, only what stands on the page, in its order and as it stands.

use super::blocks::{self, Block, commands, root};
use qemu_tests::tree;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines that are read and not run: how they begin, and why.
const NOT_RUN: [(&str, &str); 5] = [
    ("cargo xtask collect --image", "there is no stick; `stick.rs` boots a machine with one"),
    ("sudo dd", "it writes a disk"),
    ("lsblk", "it lists the disks of whoever reads"),
    ("cargo xtask collect --serial /dev/ttyUSB0", "there is no serial device"),
    ("cargo xtask replay strange.json", "the machine is not here; the page replays another one"),
];

/// What stands before a block that is a file, with its name in back quotes.
const SAVE: &str = "Save this as `";

/// Where cargo comes from.
#[derive(Clone, Copy)]
enum Cargo {
    /// The host tool that is built already stands for `cargo xtask`.
    Ready,
    /// Cargo itself, in a clone that has built nothing.
    Real,
}

/// A checkout of one's own.
struct Checkout {
    folder: tempfile::TempDir,
    cargo: Cargo,
}

impl Checkout {
    /// The files of this one as they are, without what was built.
    fn copied() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(root(), &folder.path().join("barecount"));
        let program = std::env::var_os("BARECOUNT_XTASK").map(PathBuf::from);
        let program = program.unwrap_or_else(|| tree().target().join("debug/xtask"));
        // A busy machine may take longer than a reader's; what a page says of the time-out holds.
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = xtask ] || exec \"$CARGO\" \"$@\"\nshift\n\
             case \"$*\" in run*--timeout*) ;; run*) set -- \"$@\" --timeout 900 ;; esac\n\
             exec '{}' \"$@\"\n",
            program.display()
        );
        let cargo = folder.path().join("bin/cargo");
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(&cargo, script).unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, cargo: Cargo::Ready }
    }

    /// A clone of what is committed.
    fn cloned() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut git = Command::new("git");
        git.args(["clone", "--quiet"]).arg(root()).arg(folder.path().join("barecount"));
        assert!(git.status().expect("git").success());
        Self { folder, cargo: Cargo::Real }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("barecount")
    }

    /// Runs a line as a shell does.
    fn shell(&self, line: &str) -> (bool, String) {
        let mut command = Command::new("bash");
        command.args(["-e", "-o", "pipefail", "-c", line]).current_dir(self.path());
        command.env("BARECOUNT_BASELINES", self.folder.path().join("baselines"));
        match self.cargo {
            Cargo::Ready => {
                let path = std::env::var("PATH").expect("a search path");
                let bin = self.folder.path().join("bin");
                command.env("PATH", format!("{}:{path}", bin.display()));
                if std::env::var_os("CARGO").is_none() {
                    command.env("CARGO", "cargo");
                }
            }
            // What this test was started with is not what a stranger has.
            Cargo::Real => {
                let ours =
                    |name: &str| name.starts_with("CARGO_") || name.starts_with("BARECOUNT_");
                for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
                    command.env_remove(name);
                }
            }
        }
        let output = command.output().expect("bash starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }
}

/// Copies files and folders but for what is built and what git keeps.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().unwrap().is_dir();
        match is_folder {
            true if name == "target" || name == ".git" => {}
            true => copy(&path, &to.join(name)),
            false => drop(fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

/// The name of the file that a block is.
fn file_name(block: &Block) -> Option<&str> {
    let (_, rest) = block.before.rsplit_once(SAVE)?;
    rest.split_once('`').map(|(name, _)| name)
}

/// A block's command lines: all lines of a block without a language.
fn lines(block: &Block) -> Vec<String> {
    let plain = || block.text.lines().filter(|line| !line.is_empty()).map(String::from).collect();
    if block.has_commands() { commands(block) } else { plain() }
}

/// Does what the page says, from its first block to its last, and gives what was printed, line by line.
fn follow(page: &Path, checkout: &Checkout) -> Vec<(String, String)> {
    let mut printed = Vec::new();
    for block in blocks::of(page) {
        let at = format!("{}:{}", block.file, block.line);
        if let Some(name) = file_name(&block) {
            assert!(!block.language.is_empty(), "{at}: a file has a language");
            fs::write(checkout.path().join(name), &block.text).unwrap();
            continue;
        }
        assert!(block.language.is_empty(), "{at}: nothing says where this is saved");
        for line in lines(&block) {
            if NOT_RUN.iter().any(|(begin, _)| line.starts_with(begin)) {
                continue;
            }
            let (is_done, said) = checkout.shell(&line);
            assert!(is_done, "{at}: {line}\n{said}");
            printed.push((line, said));
        }
    }
    printed
}

/// What the command that begins so printed.
#[track_caller]
fn said<'a>(printed: &'a [(String, String)], begin: &str) -> &'a str {
    let found = printed.iter().find(|(line, _)| line.starts_with(begin));
    &found.unwrap_or_else(|| panic!("no line begins with {begin}")).1
}

fn page(name: &str) -> PathBuf {
    root().join("docs/guide").join(name)
}

fn done(name: &str) -> Vec<(String, String)> {
    let _ = tree();
    follow(&page(name), &Checkout::copied())
}

#[test]
fn a_stranger_finds_what_a_path_costs() {
    let printed = done("tutorial-kernel.md");
    assert!(said(&printed, "cargo xtask run lock.toml").contains("pass: 2 passed"));
    let exact = "cargo xtask run --object path.o --function take --setup fill --arg 3 --exact";
    assert!(said(&printed, exact).contains("path.c:"));
}

#[test]
fn a_stranger_who_knows_nanobench_measures() {
    let printed = done("tutorial-nanobench.md");
    assert!(said(&printed, "cargo xtask run loads.toml").contains("pass: 1 measured, 1 passed"));
    assert!(said(&printed, "cargo xtask events --cpu skl --plan").contains("PORT_0"));
}

#[test]
fn a_stranger_puts_a_gate_on_a_crate() {
    let printed = done("tutorial-ci.md");
    let baseline = "cargo xtask run --crate counts --baseline main";
    let compared = printed.iter().filter(|(line, _)| line.starts_with(baseline));
    let compared: Vec<&str> = compared.map(|(_, said)| &**said).collect();
    let [worse, limited, back] = compared[..] else { panic!("{compared:#?}") };
    assert!(worse.contains("counts::root") && worse.contains("exit code 1: something got worse"));
    assert!(limited.contains("30 steps are still too many"), "{limited}");
    assert!(!back.contains("worse"), "{back}");
}

#[test]
fn a_stranger_gives_a_system_a_pmu() {
    let printed = done("tutorial-vm.md");
    let vm = said(&printed, "cargo xtask vm --pmu zen4");
    assert!(vm.contains("barecount: emulated PMU: pmu=zen4"), "{vm}");
    assert!(vm.contains("AuthenticAMD"), "{vm}");
    let faulty = said(&printed, "cargo xtask run --pmu skylake --pmu-fault");
    assert!(faulty.contains("the counters went on"), "{faulty}");
}

#[test]
fn a_stranger_brings_a_stick_to_a_strange_machine() {
    let printed = done("tutorial-stick.md");
    assert!(said(&printed, "cargo xtask run strange.toml --boot uefi").contains("measured"));
    assert!(said(&printed, "cargo xtask collect --serial run/serial.log").contains("measured"));
}

#[test]
fn a_stranger_brings_a_machine_up_and_replays_it() {
    let printed = done("tutorial-bring-up.md");
    let replayed = said(&printed, "cargo xtask replay there.json");
    assert!(replayed.contains("0 differences: 0 of "), "{replayed}");
    let run = said(&printed, "cargo xtask run --pmu dump:there.json");
    assert!(run.contains("AMD Ryzen 9 7950X") && run.contains("pass: 1 measured"), "{run}");
}

/// All six in a real clone, by cargo alone. It builds everything first, which takes minutes: `cargo nextest run -p qemu-tests
/// --run-ignored all a_fresh_clone`.
#[test]
#[ignore = "builds a whole checkout"]
fn a_fresh_clone_is_enough_for_every_tutorial() {
    let checkout = Checkout::cloned();
    for page in blocks::tutorials() {
        drop(follow(&page, &checkout));
    }
}

/// Each tutorial has a test above, and each command of theirs is one that the tool takes.
#[test]
fn every_tutorial_is_done_and_every_line_is_a_command() {
    let source = include_str!("tutorials.rs");
    let pages = blocks::tutorials();
    assert_eq!(pages.len(), 6, "{pages:#?}");
    let mut all = Vec::new();
    for page in pages {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        assert!(source.contains(&format!("done(\"{name}\")")), "{name} has no test");
        let blocks = blocks::of(&page);
        all.extend(blocks.iter().filter(|block| file_name(block).is_none()).flat_map(lines));
    }
    for (begin, _) in NOT_RUN {
        assert!(all.iter().any(|line| line.starts_with(begin)), "no line begins with {begin}");
    }
    for line in &all {
        super::parsed(line.split(" || ").next().expect("a command"));
    }
}
