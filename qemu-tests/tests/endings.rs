//! The host tool where its output cannot go, or must not, and when it is told to stop.

use qemu_tests::{Called, Started, tree, xtask};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// With `/dev/full` for standard output.
fn into_full(folder: &Path, arguments: &[&str]) -> Called {
    let full = File::options().write(true).open("/dev/full").unwrap();
    Started::new(folder, arguments, full.into()).wait()
}

#[test]
fn every_command_says_that_its_output_cannot_be_written() {
    let _ = tree();
    let folder = folder();
    fs::write(folder.path().join("log"), "no report\n").unwrap();
    for arguments in [
        &["run", "--asm", "nop"][..],
        &["run", "--asm", "nop", "--format", "json"],
        &["events", "--cpu", "zen4"],
        &["events", "--cpus", "--format", "csv"],
        &["collect", "--serial", "log"],
        &["doctor"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        into_full(folder.path(), arguments)
            .fails_with(3, &["cannot write to standard output: No space left on device"]);
    }
}

/// As `| head -1` leaves it: the reader has gone before all is written. Both streams, as with `2>&1`.
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = folder();
    for arguments in
        [&["events", "--cpu", "skylakex"][..], &["run", "--asm", "nop"], &["doctor"], &["--help"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let called = Started::new(folder.path(), arguments, writer.into()).wait();
        assert_eq!((called.code, called.err.contains("error")), (0, false), "{called:#?}");
        assert!(!called.err.contains("panicked"), "{called:#?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let both = (writer.try_clone().unwrap().into(), writer.into());
        let called = Started::with_errors(folder.path(), arguments, both).wait();
        assert_eq!(called.code, 0, "{arguments:?}");
    }
}

/// An output that is an input under another name, and a folder to keep files in that holds the job.
#[test]
fn nothing_that_a_command_reads_is_overwritten() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let job = "[[snippet]]\nasm = \"nop\"\n";
    for name in ["job.toml", "kernel"] {
        fs::write(path(name), job).unwrap();
    }
    fs::write(path("events.json"), "[]").unwrap();
    fs::hard_link(path("job.toml"), path("same")).unwrap();
    std::os::unix::fs::symlink("events.json", path("link")).unwrap();
    let events = "zen4=events.json";
    for arguments in [
        &["run", "job.toml", "--out", "job.toml"][..],
        &["run", "job.toml", "--out", "./same"],
        &["run", "job.toml", "--samples-folded", "same"],
        &["run", "job.toml", "--event-file", events, "--out", "link"],
        &["run", "kernel", "--keep", "."],
        &["image", "job.toml", "--out", "same"],
        &["image", "--event-file", events, "--out", "events.json"],
        &["events", "--event-file", events, "--out", "link"],
        &["collect", "--serial", "job.toml", "--out", "same"],
    ] {
        xtask(folder.path(), arguments)
            .fails_with(2, &["would overwrite", "which this command reads"]);
    }
    let two = ["run", "--asm", "nop", "--out", "new", "--samples-pprof", "./new"];
    xtask(folder.path(), &two).fails_with(2, &["new and ./new are one file"]);
    for name in ["job.toml", "kernel"] {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), job);
    }
    assert_eq!(fs::read_to_string(path("events.json")).unwrap(), "[]");
}

/// A run that fails leaves the report of the run before, and nothing else.
#[test]
fn a_run_that_fails_leaves_the_report_that_was_there() {
    let folder = folder();
    fs::write(folder.path().join("report"), "of yesterday").unwrap();
    let bad = ["run", "--asm", "bogus", "--out", "report", "--samples-folded", "samples"];
    xtask(folder.path(), &bad).fails_with(2, &["bogus"]);
    let none = ["run", "--asm", "nop", "--cpu", "qemu64,nosuch=1", "--out", "report"];
    xtask(folder.path(), &none).fails_with(2, &["--cpu qemu64,nosuch=1: ", "nosuch' not found"]);
    let unknown = ["run", "--asm", "nop", "--cpu", "broadwel", "--out", "report"];
    let near = "QEMU has no processor `broadwel`; near it are Broadwell";
    xtask(folder.path(), &unknown).fails_with(2, &[near]);
    assert_eq!(fs::read_to_string(folder.path().join("report")).unwrap(), "of yesterday");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// One item that is done, and one that only a signal ends: without a PMU nothing in the machine does.
const JOB: &str = "[[snippet]]\nname = \"done\"\nasm = \"nop\"\n[[snippet]]\nname = \"spin\"\nasm = \"2: jmp 2b\"";

#[test]
fn a_signal_ends_the_machine_and_shows_what_was_measured() {
    for (signal, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")] {
        let folder = folder();
        let temporary = folder.path().join("temporary");
        fs::create_dir(&temporary).unwrap();
        fs::write(folder.path().join("job.toml"), JOB).unwrap();
        let line = ["run", "job.toml", "--pmu", "none", "--timeout", "600", "--format", "json"];
        let out = [&line[..], &["--out", "report"]].concat();
        let mut started = Started::in_temporary(folder.path(), &out, &temporary);
        started.wait_for("QEMU", |call| is_staged(&temporary) && !call.children().is_empty());
        let machine = started.children();
        assert_eq!(machine.len(), 1, "QEMU and nothing else: {machine:?}");
        // Its own processor time and not ours: a busy machine changes nothing. A boot takes a quarter of a second.
        let (id, call) = (machine[0], &mut started);
        while call.seconds_of(id) < 3 {
            std::thread::sleep(Duration::from_millis(50));
        }
        started.signal(signal);
        let called = started.wait();
        assert_eq!(called.code, 130, "{called:#?}");
        assert!(!Path::new(&format!("/proc/{}", machine[0])).exists(), "QEMU is left");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "files are left");
        let report = fs::read_to_string(folder.path().join("report")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(
            (&report["exit_code"], &report["run"]["interrupted"]),
            (&130.into(), &name.into())
        );
        let complaint = report["run"]["complaint"].as_str().unwrap();
        assert!(complaint.starts_with(&format!("interrupted by {name}")), "{complaint}");
        let results = report["records"].as_array().unwrap().iter();
        let results: Vec<_> = results.filter(|record| record["type"] == "result").collect();
        assert_eq!((results.len(), &results[0]["name"]), (1, &"done".into()), "{report:#}");
    }
}

/// While the files for a boot server are made of a kernel, which takes some time.
#[test]
fn a_signal_while_files_are_made_leaves_none_and_none_is_said_to_be_there() {
    let folder = folder();
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::write(folder.path().join("job.toml"), JOB).unwrap();
    let line = ["image", "job.toml", "--network", "server"];
    // The first one may have to build.
    assert_eq!(xtask(folder.path(), &line).code, 0);
    fs::remove_dir_all(folder.path().join("server")).unwrap();
    let mut started = Started::in_temporary(folder.path(), &line, &temporary);
    started.wait_for("the packed job", |_| {
        let folders = fs::read_dir(&temporary).unwrap().flatten();
        folders.into_iter().any(|folder| folder.path().join("ramdisk").exists())
    });
    started.signal(libc::SIGINT);
    let (signal, said) = started.wait_signalled();
    assert_eq!(signal, libc::SIGINT);
    assert!(!said.contains("boots UEFI machines"), "{said}");
    for left in [folder.path().join("server"), temporary] {
        assert_eq!(fs::read_dir(&left).unwrap().count(), 0, "{}: files are left", left.display());
    }
}

/// Whether the machine is about to start: QEMU's command line is the last file that is written before.
fn is_staged(temporary: &Path) -> bool {
    let folders = fs::read_dir(temporary).unwrap().flatten();
    folders.into_iter().any(|folder| folder.path().join("command.txt").exists())
}

/// While it waits for a report on standard input.
#[test]
fn a_signal_ends_collecting_with_what_had_come() {
    let folder = folder();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut started = Started::reading(folder.path(), &["collect", "--serial", "-"], reader.into());
    std::thread::sleep(Duration::from_secs(2));
    started.signal(libc::SIGINT);
    let called = started.wait();
    drop(writer);
    assert_eq!(called.code, 130, "{called:#?}");
    assert!(called.out.contains("interrupted by SIGINT"), "{called:#?}");
}

#[test]
fn options_stand_under_the_heading_that_they_belong_to() {
    let help = xtask(folder().path(), &["run", "--help"]).out;
    let section = |heading: &str| {
        let (_, rest) = help
            .split_once(&format!("\n{heading}:\n"))
            .unwrap_or_else(|| panic!("{heading}: {help}"));
        // The next heading begins a line.
        let end = rest.match_indices('\n').find(|(at, _)| {
            rest[at + 1..].chars().next().is_some_and(|first| !first.is_whitespace())
        });
        let text = &rest[..end.map_or(rest.len(), |(at, _)| at)];
        let options = text.lines().filter_map(|line| line.strip_prefix("      --"));
        let name = |option: &str| option.split([' ', '=']).next().unwrap_or_default().to_string();
        options.map(name).collect::<Vec<_>>()
    };
    let machine = [
        "accel",
        "pmu",
        "counting",
        "boot",
        "timeout",
        "item-timeout",
        "reboots",
        "icount",
        "cpus",
        "memory",
        "cpu",
    ];
    assert_eq!(section("Machine")[..11], machine);
    assert_eq!(
        section("Report"),
        ["format", "out", "samples-folded", "samples-pprof", "plots", "keep", "ktap"]
    );
    let history = ["history", "history-step", "history-event", "end-to-end"];
    assert_eq!(section("History mode"), history);
    for option in ["asm", "honest"] {
        assert!(section("Job").contains(&option.to_string()), "{option}: {help}");
    }
    let image = xtask(folder().path(), &["image", "--help"]).out;
    assert!(image.contains("\nImage:\n"), "{image}");
}
