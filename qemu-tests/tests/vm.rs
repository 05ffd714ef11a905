//! `vm`: other systems below the emulated PMU, as a user starts them.

use crate::documents::blocks;
use protocol::record::CountedBy;
use qemu_tests::{Called, Started, skip, stock_linux, tree, xtask};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::collect::{Collector, Report};
use xtask::commands::test::has;
use xtask::setup::Need;

/// Shift 6: firmware boots quickest.
const QUICK: [&str; 4] = ["--shift", "6", "--timeout", "300"];

fn vm(folder: &Path, words: &[&str]) -> Called {
    xtask(folder, &[&["vm"], words].concat())
}

/// What a barecount on the other side of the serial line reported.
fn report(called: &Called) -> Report {
    let mut collector = Collector::new();
    collector.feed(called.out.as_bytes());
    collector.finish()
}

/// A disk with barecount as the other system: `stick.img` in `folder`.
fn stick(folder: &Path) -> PathBuf {
    let job = "on-end = \"power-off\"\n[[snippet]]\nasm = \"nop; jmp 2f; 2: mov rax, [r14]\"\n\
               events = [\"instructions\", \"branches\", \"loads\"]\n";
    fs::write(folder.join("job.toml"), job).unwrap();
    let called = xtask(folder, &["image", "job.toml", "--save", "off", "--out", "stick.img"]);
    assert_eq!(called.code, 0, "{called:#?}");
    folder.join("stick.img")
}

/// A CD with that system: `system.iso` in `folder`. It holds a FAT file system for UEFI firmware, which is the disk's only
/// partition, at 1 MiB.
fn cd(folder: &Path, disk: &Path) -> PathBuf {
    let disk = fs::read(disk).unwrap();
    fs::create_dir(folder.join("cd")).unwrap();
    fs::write(folder.join("cd/efi.img"), &disk[1 << 20..]).unwrap();
    let made = Command::new("xorriso")
        .args(["-as", "mkisofs", "-quiet", "-o", "system.iso", "-eltorito-alt-boot"])
        .args(["-e", "efi.img", "-no-emul-boot", "cd"])
        .current_dir(folder)
        .output()
        .expect("xorriso is there");
    assert!(made.status.success(), "{made:?}");
    folder.join("system.iso")
}

/// The system of [`stick`] has run with the PMU of a Zen 4, and counted.
#[track_caller]
fn has_counted(called: &Called) {
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.out.contains("barecount: emulated PMU: pmu=zen4"), "{called:#?}");
    let report = report(called);
    assert_eq!(report.problems, [], "{called:#?}");
    let machine = report.machine().expect("a machine record");
    let emulated = machine.emulated_pmu.expect("an emulated PMU");
    assert_eq!(emulated.model, pmu_model::Model::Zen4 as u32);
    let told = match emulated.counted_by {
        CountedBy::Plugin => "counting by plugin",
        CountedBy::Stepping => "counting by stepping",
    };
    assert!(called.err.contains(&format!("pmu: emulated zen4, {told}")), "{called:#?}");
    let results: Vec<_> = report.results().collect();
    let counts = results[0].metrics[1..].iter().map(|metric| metric.value.median);
    assert_eq!(counts.collect::<Vec<_>>(), [3.0, 1.0, 1.0], "{called:#?}");
}

#[test]
fn e2_a_disk_is_started_as_it_is_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let before = fs::read(stick(folder.path())).unwrap();
    for counting in ["auto", "stepping"] {
        let words = ["--pmu", "zen4", "--disk", "stick.img", "--counting", counting];
        has_counted(&vm(folder.path(), &[&words[..], &QUICK].concat()));
    }
    assert!(
        fs::read(folder.path().join("stick.img")).unwrap() == before,
        "nothing was put into it"
    );
}

#[test]
fn e2_a_cd_is_started_and_counts() {
    if !has(Need::Grub) {
        skip!("no xorriso");
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = stick(folder.path());
    let _ = cd(folder.path(), &disk);
    let words = ["--pmu", "zen4", "--iso", "system.iso"];
    has_counted(&vm(folder.path(), &[&words[..], &QUICK].concat()));
}

/// A kernel as the distribution ships it, with a program that counts.
#[test]
fn e2_a_linux_kernel_is_started_with_its_initrd_and_command_line_and_counts_exactly() {
    let kernel = match stock_linux::kernel(&tree().target().join("linux")) {
        Ok(kernel) => kernel,
        Err(reason) => skip!("no stock kernel: {reason}"),
    };
    let init = tree().build_guest("linux-init").unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().unwrap();
    let initrd = folder.path().join("initramfs");
    stock_linux::file_system::with_init(&init, &initrd).unwrap();
    let (kernel, initrd) = (kernel.to_str().unwrap(), initrd.to_str().unwrap());
    let called = vm(
        folder.path(),
        &[
            &["--pmu", "skylake", "--kernel", kernel, "--initrd", initrd][..],
            &["--append", "console=ttyS0 panic=-1", "--memory", "512", "--timeout", "500"],
        ]
        .concat(),
    );
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.out.contains("Command line: initrd=\\initrd console=ttyS0"), "{called:#?}");
    let counts = called.out.lines().filter_map(|line| line.split_once("instructions:u = "));
    let counts = counts.filter_map(|(_, rest)| rest.trim().split_once(" expected "));
    let counts: Vec<(&str, &str)> = counts.collect();
    assert!(counts.len() >= 4, "{called:#?}");
    assert!(counts.iter().all(|(counted, expected)| counted == expected), "{counts:?}");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), "not a program").unwrap();
    let call = |words: &[&str]| vm(folder.path(), words);
    call(&["--pmu", "zen4"]).fails_with(2, &["--kernel", "--disk", "--iso"]);
    call(&["--disk", "text"]).fails_with(2, &["--pmu"]);
    call(&["--pmu", "zen4", "--disk", "no.img"]).fails_with(2, &["cannot read no.img"]);
    call(&["--pmu", "zen4", "--kernel", "text"]).fails_with(2, &["text: it is not an EFI program"]);
    let text = ["--pmu", "zen4", "--disk", "text"];
    // A disk without a loader: the application says so, and the time is up.
    let called = call(&[&text[..], &["--shift", "6", "--timeout", "40"]].concat());
    called.fails_with(3, &["the machine was ended after 40 s"]);
    let why = r"barecount: \EFI\BOOT\BOOTX64.EFI does not start: no other device has it";
    assert!(called.out.contains(why), "{called:#?}");
    let called = call(&[&text[..], &["--", "-nonsense"]].concat());
    called.fails_with(77, &["-nonsense: invalid option", "QEMU did not start"]);
}

/// The guide's lines, with a kernel, a disk and a CD of the names that they have.
#[test]
fn e2_every_line_of_the_guide_starts_its_system() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::rename(stick(folder.path()), at("disk.img")).unwrap();
    let kernel = stock_linux::kernel(&tree().target().join("linux"));
    if let Ok(kernel) = &kernel {
        let init = tree().build_guest("linux-init").unwrap_or_else(|error| panic!("{error}"));
        std::os::unix::fs::symlink(kernel, at("vmlinuz")).unwrap();
        stock_linux::file_system::with_init(&init, &at("initrd.img")).unwrap();
    }
    let is_there = has(Need::Grub);
    if is_there {
        fs::rename(cd(folder.path(), &at("disk.img")), at("installer.iso")).unwrap();
    }
    let lines: Vec<String> = blocks::blocks().iter().flat_map(blocks::commands).collect();
    let lines: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("cargo xtask vm")).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    for line in lines {
        if line.contains("--kernel") && kernel.is_err() || line.contains("--iso") && !is_there {
            eprintln!("skipped: {line}");
            continue;
        }
        let words = shlex::split(line).unwrap();
        let mut words: Vec<&str> = words.iter().skip(3).map(String::as_str).collect();
        if !words.contains(&"--timeout") {
            words.splice(0..0, ["--timeout", "600"]);
        }
        let called = vm(folder.path(), &words);
        assert_eq!(called.code, 0, "{line}\n{called:#?}");
        assert!(called.out.contains("barecount: emulated PMU: "), "{line}\n{called:#?}");
    }
}

#[test]
fn a_signal_ends_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let words = ["vm", "--pmu", "zen4", "--disk", "empty", "--shift", "6"];
    let mut started = Started::new(folder.path(), &words, std::process::Stdio::piped());
    // QEMU is asked for its version first.
    let machine = |started: &Started| {
        let line = |child: &u32| fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let is_it = |child: &u32| String::from_utf8_lossy(&line(child)).contains("-nodefaults");
        started.children().into_iter().find(is_it)
    };
    started.wait_for("the machine", |started| machine(started).is_some());
    let child = machine(&started).expect("it is there");
    started.signal(libc::SIGTERM);
    assert_eq!(started.wait().code, 130);
    assert!(!Path::new(&format!("/proc/{child}")).exists(), "{child} still runs");
}
