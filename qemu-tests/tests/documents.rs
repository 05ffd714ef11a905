//! Every example in the documents, and every job that ships, is run as it stands.
//!
//! Fenced blocks are of three kinds: a job in TOML, command lines of the host tool, and other text. Jobs and command
//! lines are run, each with the exit code and the words that it has to end with; what cannot be run here is in
//! [`NOT_RUN`], with its reason, and is read by the command line's own parser all the same.

pub mod blocks;
mod tutorials;
mod typed;

use blocks::{Block, blocks, commands, root};
use clap::Parser;
use qemu_tests::{Called, timed_xtask, tree, xtask};
use std::fs;
use std::path::Path;
use std::time::Duration;
use xtask::cli::Arguments;

/// Commands that are not run here: how they begin, and why.
const NOT_RUN: [(&str, &str); 30] = [
    ("cargo xtask test", "it runs this test"),
    ("cargo xtask lab", "`lab.rs` runs each line with boards of its own"),
    ("cargo xtask vm", "`vm.rs` runs each line with a kernel, a disk and a CD of its own"),
    ("cargo xtask run --object", "run by `a_function_of_an_object_is_measured`"),
    ("cargo xtask mutants", "it takes hours"),
    (
        "cargo test --manifest-path mutants/Cargo.toml",
        "it gets cargo-mutants, which takes minutes to build",
    ),
    ("cargo xtask instructions shard.json", "it takes the report of a shard; `forms.rs` makes two"),
    ("cargo xtask check", "it is a part of `test`, which runs it before this"),
    (
        "cargo xtask run --asm 'nop; jmp 2f; 2: mov rax, [r14]; nop' --history",
        "run by `a_history_is_plotted`",
    ),
    ("cargo xtask image job.toml --event-file", "run by `an_event_file_goes_with_an_image`"),
    (
        "cargo xtask collect --serial /dev/ttyUSB0",
        "there is no serial device; `program.rs` has a pseudo terminal",
    ),
    ("cargo xtask collect --qr", "there are no photographs; `screen.rs` has pictures of codes"),
    ("cargo xtask collect --image", "there is no stick; `stick.rs` boots a machine with one"),
    (
        "cargo xtask run job.toml --keep /tmp/run",
        "it writes there; `program.rs` keeps a run's files elsewhere",
    ),
    ("cargo xtask run job.toml --commands", "the page's job is run with its script"),
    ("cargo xtask run job.toml --console", "`documents/typed.rs` types the page's script"),
    ("cargo xtask run job.toml --save-baseline", IN_ORDER),
    ("cargo xtask run job.toml --baseline", IN_ORDER),
    ("cargo xtask compare", IN_ORDER),
    ("cargo xtask run --format html", OF_PAGES),
    ("cargo xtask run job.toml --format json --out report.json", OF_PAGES),
    ("cargo xtask report", OF_PAGES),
    ("cargo xtask new", OF_CRATES),
    ("cargo xtask run --crate", OF_CRATES),
    ("cargo nextest run", "it runs this test"),
    ("cargo install cargo-fuzz", "it installs a program"),
    ("cargo install --locked --path xtask", "`installed.rs` installs it"),
    ("cargo barecount run", "`installed.rs` calls it"),
    ("cargo xtask package --out", "it optimises the tool; `installed.rs` writes one that is not"),
    ("sudo dd", "it writes a disk"),
];

const IN_ORDER: &str = "`compare.rs` runs the block in its order";

const OF_PAGES: &str = "`html.rs` runs the block in its order";

const OF_CRATES: &str = "`crates.rs` runs the block in its order";

/// Blocks that are neither jobs nor command lines: how they begin, and what they are.
const OTHER: [(&str, &str); 15] = [
    ("#:schema docs/job.schema.json", "a comment for editors"),
    (
        "pmu skylake strings=decoded",
        "a file of the UEFI application, read by the tests of `handover`",
    ),
    ("#![no_std]\n#![no_main]\n", "a bench target, which `crates.rs` measures"),
    (SCRIPT, "a script for the console: the page's job is run with it"),
    ("BARECOUNT_BENCH(", "a line of C; `callgrind.rs` compiles others"),
    ("labgrid-coordinator\n", "`lab.rs` starts labgrid so, on ports of its own"),
    ("lab, on 3 machines", "what `lab.rs` has shown"),
    ("energy-pkg: 14.9 nJ", "a line of a report; `metrics.rs` has such ones"),
    ("KTAP version 1", "lines of a report; `lab.rs` has such read by others"),
    ("export LG_BARECOUNT_IMAGE=", "`lab.rs` runs it with a board of its own"),
    ("gdb target/", "a session with a debugger"),
    ("port=0\ndhcp-range", "dnsmasq's settings, for a network with another DHCP server"),
    ("qemu-system-x86_64 -machine q35", "`network_boot.rs` starts QEMU with files of its own"),
    ("RUSTC_BOOTSTRAP=1 cargo fuzz", "a fuzz run has no end"),
    ("{\"seq\":2,", "a line of a report; `protocol` reads it in a test of its own"),
];

/// What the last line of a run that met every expectation begins with.
const PASS: &str = "pass: ";
/// The time-out of `run`, in which an example has to be done on a machine that does nothing else.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a line that measures. Its wall time is the busy machine's, so it may wait longer here, and its processor time has
/// to lie within the time-out that a reader has.
#[track_caller]
fn passes(folder: &Path, words: &[&str], what: &str) {
    let patient = [words, &["--timeout", "900"]].concat();
    let (called, time) = timed_xtask(folder, &patient);
    let last = called.out.lines().last().unwrap_or_default();
    assert!(called.code == 0 && last.starts_with(PASS), "{what}\n{called:#?}");
    assert!(time < DEFAULT_TIMEOUT, "{what}\ntook {time:?}");
}

fn job(text: &str, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), text).unwrap();
    let run = ["run", "job.toml"];
    // One that names kinds of core takes a machine that has some.
    // Events of AMD's take one of its processors.
    let pmu = match () {
        () if text.contains(KIND) => &["--pmu", "goldencove+gracemont"][..],
        () if text.contains(AMD) => &["--pmu", "zen4"],
        // PERF_METRICS is there from Ice Lake on, and so are records with vector registers.
        () if text.contains("topdown-retiring") || text.contains("metrics = [\"topdown\"]") => {
            &["--pmu", "icelake"]
        }
        () if text.contains("vectors = ") => &["--pmu", "cougarcove"],
        // Its uncore is a client's.
        () if text.contains("uncore_arb") => &["--pmu", "skylake"],
        // The emulated PMU takes none.
        () if text.contains("smis = 3") => &["--pmu", "none"],
        () => &[],
    };
    // One whose tasks wait takes the script of its page.
    let script: &[&str] = match text.contains("int 0x88") {
        true => &["--commands", "script.txt"],
        false => &[],
    };
    if !script.is_empty() {
        let script = blocks().into_iter().find(|one| one.text.starts_with(SCRIPT));
        fs::write(folder.path().join("script.txt"), script.expect("a script").text).unwrap();
    }
    passes(folder.path(), &[&run[..], pmu, script].concat(), what);
}

/// How the script of the console's page begins.
const SCRIPT: &str = "wait\nlist\n";
/// In a job that names a kind of core.
const KIND: &str = "core = \"";
/// In a job with an event that Zen processors alone have.
const AMD: &str = "ex_ret_";

/// A folder in which the documents' own names are there: the checkout's jobs, a job, a file of events.
fn user_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("xtask"), folder.path().join("xtask")).unwrap();
    let first = blocks().into_iter().find(Block::is_job).expect("the README has a job");
    for name in ["job.toml", "branch.toml"] {
        fs::write(folder.path().join(name), &first.text).unwrap();
    }
    let hybrid = blocks().into_iter().find(|one| one.is_job() && one.text.contains(KIND));
    let hybrid = hybrid.expect("a job names kinds of core");
    fs::write(folder.path().join("hybrid.toml"), &hybrid.text).unwrap();
    let events =
        r#"[{"EventName": "NEW.ONE", "EventCode": "0xc0", "UMask": "0x00", "Counter": "0,1,2,3"}]"#;
    fs::write(folder.path().join("new.json"), events).unwrap();
    folder
}

fn begins(text: &str, table: &[(&str, &str)]) -> bool {
    table.iter().any(|(begin, _)| text.starts_with(begin))
}

fn parsed(line: &str) {
    let words = shlex::split(line).unwrap_or_else(|| panic!("quotes: {line}"));
    let Some(arguments) = words.strip_prefix(&["cargo".to_string(), "xtask".to_string()]) else {
        return;
    };
    // A recorded processor is read with the line, and comes of another line that is only read here: a model stands for it.
    let arguments = arguments
        .iter()
        .map(|word| if word.starts_with("dump:") { "skylake".to_string() } else { word.clone() });
    let arguments: Vec<String> =
        std::iter::once("cargo xtask".to_string()).chain(arguments).collect();
    if let Err(error) = Arguments::try_parse_from(arguments) {
        panic!("{line}\n{error}");
    }
}

/// Runs a command line: one that measures has to pass, the others list or write something.
#[track_caller]
fn run(folder: &Path, line: &str) -> Option<Called> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("quotes: {line}"));
    let words: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
    if words.first() == Some(&"run") {
        passes(folder, &words, line);
        return None;
    }
    let called = xtask(folder, &words);
    assert_eq!(called.code, 0, "{line}\n{called:#?}");
    let writes = ["--out", "--network"].iter().any(|option| line.contains(option));
    assert!(!called.out.is_empty() || writes, "{line}\n{called:#?}");
    Some(called)
}

/// No block is forgotten, and no entry of the tables is of a block that has gone.
#[test]
fn every_block_is_run_or_listed_with_its_reason() {
    let all = blocks();
    assert!(all.iter().filter(|block| block.is_job()).count() >= 7, "{all:#?}");
    let lines: Vec<String> = all.iter().flat_map(commands).collect();
    for block in &all {
        let known = block.is_job() || block.has_commands() || begins(&block.text, &OTHER);
        assert!(known, "{}:{}: what is this block?\n{}", block.file, block.line, block.text);
    }
    for line in &lines {
        let known =
            line.starts_with("cargo xtask ") || begins(line, &NOT_RUN) || begins(line, &OTHER);
        assert!(known, "what is this line? {line}");
        parsed(line);
    }
    for (begin, _) in NOT_RUN {
        assert!(lines.iter().any(|line| line.starts_with(begin)), "no example begins with {begin}");
    }
    for (begin, _) in OTHER {
        let there = all.iter().any(|block| block.text.starts_with(begin))
            || lines.iter().any(|line| line.starts_with(begin));
        assert!(there, "no block begins with {begin}");
    }
}

/// A fuzz run has no end, so its lines are not run. What they name is in a fresh clone, or the document says how it is made.
#[test]
fn every_fuzz_command_names_a_target_and_folders_that_are_there() {
    let blocks = blocks();
    let of_blocks = blocks
        .iter()
        .flat_map(|block| commands(block).into_iter().map(|line| (root().join(&block.file), line)));
    let lines: Vec<_> = of_blocks.chain(blocks::quoted()).collect();
    let mut seen = 0;
    for (document, line) in &lines {
        let Some((_, words)) = line.split_once("cargo fuzz run ") else { continue };
        let folder = document.parent().expect("it lies in a folder");
        let mut words = words.trim_start_matches("--sanitizer none ").split(' ');
        let target = words.next().expect("a target");
        assert!(folder.join(format!("fuzz/fuzz_targets/{target}.rs")).is_file(), "{line}");
        for name in words {
            let made = (document.clone(), format!("mkdir -p {name}"));
            // Git keeps no corpus: one that is here is not in a clone.
            let is_kept = !name.contains("corpus") && folder.join(name).is_dir();
            assert!(is_kept || lines.contains(&made), "{name} of {line}");
        }
        seen += 1;
    }
    assert!(seen >= 3, "{seen} lines that fuzz");
    // All targets are named.
    let targets = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
    let named = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    for target in targets.map(|entry| entry.unwrap().path()) {
        let name = target.file_stem().unwrap().to_string_lossy().into_owned();
        let is_named = [format!("`{name}`"), format!("--sanitizer none {name}\n")];
        assert!(is_named.iter().any(|form| named.contains(form)), "{name}");
    }
}

/// Also those within a paragraph, and those of the help texts.
#[test]
fn every_command_line_is_one_that_the_tool_takes() {
    let inline = blocks::inline();
    assert!(inline.len() > 5, "{inline:?}");
    inline.iter().for_each(|line| parsed(line));
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for command in [
        &["--help"][..],
        &["run", "--help"],
        &["image", "--help"],
        &["events", "--help"],
        &["vm", "--help"],
        &["compare", "--help"],
        &["lab", "new", "--help"],
        &["lab", "run", "--help"],
    ] {
        for line in xtask(folder.path(), command).out.lines() {
            let line = line.trim_start();
            if line.starts_with("cargo xtask ")
                && !line.contains(" <")
                && !line.contains("[OPTIONS]")
            {
                // What it is for stands behind some spaces.
                parsed(line.split("  ").next().unwrap_or(line));
                seen += 1;
            }
        }
    }
    assert!(seen >= 15, "{seen} examples in the help texts");
}

#[test]
fn every_job_of_the_documents_passes() {
    let all = blocks();
    let jobs: Vec<&Block> = all.iter().filter(|block| block.is_job()).collect();
    let _ = tree();
    std::thread::scope(|scope| {
        for block in &jobs {
            let what = format!("{}:{}\n{}", block.file, block.line, block.text);
            scope.spawn(move || job(&block.text, &what));
        }
    });
}

/// Each in a test of its own, so that they run side by side.
macro_rules! ships {
    ($($test:ident: $name:literal;)*) => {
        const SHIPPED: &[&str] = &[$($name),*];
        $(#[test]
        fn $test() {
            let folder = user_folder();
            let path = concat!("xtask/jobs/", $name);
            passes(folder.path(), &["run", path], path);
        })*
    };
}

ships! {
    bits_passes: "bits.toml";
    conformance_passes: "conformance.toml";
    count_passes: "count.toml";
    history_passes: "history.toml";
    instructions_passes: "instructions.toml";
    sampling_passes: "sampling.toml";
    tour_passes: "tour.toml";
}

#[test]
fn every_job_that_ships_is_run() {
    let folder = fs::read_dir(root().join("xtask/jobs")).unwrap();
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    // All of its forms take minutes: `forms.rs` runs the shards of it that the guide names, and, by hand, the whole.
    names.retain(|name| name != "all-instructions.toml");
    assert_eq!(names, SHIPPED);
}

/// Those that measure end with a verdict; the others list something.
#[test]
fn every_command_line_of_the_documents_succeeds() {
    let all = blocks();
    let lines = all.iter().flat_map(commands).filter(|line| line.starts_with("cargo xtask "));
    let mut lines: Vec<String> = lines.filter(|line| !begins(line, &NOT_RUN)).collect();
    lines.sort();
    lines.dedup();
    // The jobs that ship have tests of their own, and the tour is the one that runs without a name.
    lines.retain(|line| !line.contains("xtask/jobs/") && line != "cargo xtask run");
    assert!(lines.len() >= 10, "{lines:#?}");
    let _ = tree();
    let folder = user_folder();
    for line in &lines {
        let _ = run(folder.path(), line);
    }
    assert!(folder.path().join("usb.img").metadata().unwrap().len() > 1 << 20);
}

#[test]
fn a_history_is_plotted() {
    let all = blocks();
    let line = all
        .iter()
        .flat_map(commands)
        .find(|line| line.contains(" --history "))
        .expect("an example");
    let folder = user_folder();
    assert!(run(folder.path(), &line).is_none(), "it measures");
    assert!(folder.path().join("plots/history-0.svg").exists());
}

/// As the page has it: a function of that name, compiled to that file, with one argument.
#[test]
fn a_function_of_an_object_is_measured() {
    let all = blocks();
    let mut lines =
        all.iter().flat_map(commands).filter(|line| line.starts_with("cargo xtask run --object"));
    let line = lines.next().expect("an example");
    assert_eq!(lines.next(), None, "this is the only one");
    let folder = user_folder();
    let source = "#![no_std]\n#[unsafe(no_mangle)]\npub extern \"C\" fn fnv1a(count: u64) -> u64 {\n\
                  (0..count).fold(0xcbf2_9ce4_8422_2325, |hash, one| (hash ^ one & 0xff).wrapping_mul(0x100_0000_01b3))\n}\n";
    fs::write(folder.path().join("hash.rs"), source).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = std::process::Command::new(rustc);
    rustc.args(["--edition", "2024", "--crate-type", "lib", "-Copt-level=2", "-Cpanic=abort"]);
    rustc.args(["--emit", "obj=hash.o", "hash.rs"]).current_dir(folder.path());
    assert!(rustc.status().unwrap().success());
    assert!(run(folder.path(), &line).is_none(), "it measures");
}

#[test]
fn an_event_file_goes_with_an_image() {
    let all = blocks();
    let line =
        all.iter().flat_map(commands).find(|line| line.contains("image job.toml --event-file"));
    let (line, folder) = (line.expect("an example"), user_folder());
    let called = run(folder.path(), &line).expect("it writes an image");
    assert!(called.err.contains("1 events added"), "{called:#?}");
}

/// What the README shows is what is printed: every line of it, but for the rate of the TSC, which is measured, what CPUID takes,
/// which is the length of the emulated PMU's own code, and the lines that it leaves out.
#[test]
fn the_readme_shows_what_its_commands_print() {
    let folder = user_folder();
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    let is_rule = |line: &str| line.chars().all(|c| c == '─');
    let is_compared = |line: &&str| {
        let varies = line.starts_with("TSC ") || line.contains("a VM exit)");
        !varies && !is_rule(line) && line.trim() != "…"
    };
    let all = blocks();
    let shown = all.iter().filter(|block| block.text.starts_with("$ cargo xtask run"));
    let shown: Vec<&Block> = shown.collect();
    assert_eq!(shown.len(), 2, "the tour and the question");
    for block in shown {
        let command = block.text.lines().next().expect("the command");
        let arguments: Vec<&str> = command.split_whitespace().skip(3).collect();
        let called = xtask(folder.path(), &arguments);
        let printed = called.err.clone() + &called.out;
        let printed: Vec<Vec<String>> = printed.lines().map(words).collect();
        let lines = block.text.lines().skip(1).filter(is_compared);
        let missing: Vec<&str> = lines.filter(|line| !printed.contains(&words(line))).collect();
        assert_eq!(missing, [""; 0], "{called:#?}");
    }
}

/// Three minutes to read.
#[test]
fn the_readme_has_at_most_200_lines() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 200, "{}", readme.lines().count());
}
