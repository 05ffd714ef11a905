//! A Linux kernel from the distribution's packages on the emulated PMU: its perf driver must believe in it, and count
//! right. Skipped where the package cannot be had.

use pmu_model::Model;
use qemu_tests::{Guest, stock_linux, tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::cli::{Boot, Icount};
use xtask::machine::devices::{Boot as Files, PMU_LOG};
use xtask::machine::{Ending, pmu_log};
use xtask::setup::firmware;

/// A compromise: less, and the firmware's delays last; more, and the kernel's clock runs ahead of its work.
const SHIFT: u8 = 4;
/// What the kernel needs to be told: where to speak, and not to wait after a panic.
const OPTIONS: &str = "console=ttyS0 panic=-1";

/// Fills the `folder` of a partition that boots `kernel` by the application, with `pmu` in front. Linux has more
/// repeated string instructions than can be watched, hence `strings=user`.
fn partition(folder: &Path, kernel: &Path, pmu: &str, options: &str) -> std::io::Result<()> {
    let init = tree().build_guest("linux-init").unwrap_or_else(|error| panic!("{error}"));
    fs::create_dir_all(folder.join("EFI/BOOT"))?;
    fs::create_dir_all(folder.join("EFI/barecount"))?;
    fs::copy(tree().pmu_application(), folder.join("EFI/BOOT/BOOTX64.EFI"))?;
    fs::copy(tree().emulated_pmu(), folder.join("EFI/barecount/pmu.elf"))?;
    fs::copy(kernel, folder.join("vmlinuz"))?;
    stock_linux::initial_file_system(&init, &folder.join("initramfs"))?;
    let entry = format!(
        "pmu {pmu} strings=user\nlinux /vmlinuz\ninitrd /initramfs\noptions {OPTIONS} {options}\n"
    );
    fs::write(folder.join("EFI/barecount/pmu.conf"), entry)
}

/// What the kernel and its one program say on the console. `None`, with the reason told, if there is no kernel.
fn boot(model: Model, options: &str) -> Option<String> {
    let kernel = match stock_linux::kernel(&tree().target().join("linux")) {
        Ok(kernel) => kernel,
        Err(reason) => {
            eprintln!("skipped: no stock kernel: {reason}");
            return None;
        }
    };
    tree().build_uefi_pmu().unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("partition");
    partition(&files, &kernel, model.spec().name, options).unwrap();
    // QEMU makes a FAT disk of a folder.
    let image = PathBuf::from(format!("fat:{}", files.display()));
    let ovmf = firmware::find().unwrap().for_run(folder.path()).unwrap();
    let extra = ["-global", "hpet.msi=on", "-debugcon", &format!("file:{PMU_LOG}")];
    let ran = Guest {
        boot_from: Some(Files::Uefi { image, ovmf }),
        icount: Icount::Shift(SHIFT),
        memory: 512,
        extra: extra.map(String::from).to_vec(),
        timeout: Duration::from_secs(240),
        ..Guest::with_ramdisk(Boot::Uefi, None)
    }
    .run_in(folder.path());
    let console = String::from_utf8_lossy(&ran.raw).into_owned();
    let said = pmu_log::read(folder.path(), model);
    assert_eq!(ran.ending, Ending::Exited(Some(0)), "no power-off; {said:?}; {console}");
    assert_eq!(said, [""; 0], "{console}");
    Some(console)
}

/// The rest of each line that begins with `start`.
fn lines<'a>(console: &'a str, start: &str) -> Vec<&'a str> {
    console.lines().filter_map(|line| line.trim().strip_prefix(start)).collect()
}

/// What the kernel said of its PMU, without the time.
fn driver(console: &str) -> String {
    let lines = lines(console, "dmesg: ");
    let texts = lines.iter().filter_map(|line| line.split_once("] "));
    texts.map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

/// Each count with what it has to be, as the program says.
fn counts(console: &str) -> Vec<(u64, u64)> {
    let parse = |line: &str| -> Option<(u64, u64)> {
        let (counted, expected) =
            line.split_once("instructions:u = ")?.1.split_once(" expected ")?;
        Some((counted.parse().ok()?, expected.parse().ok()?))
    };
    let parse = |line: &&str| parse(line).unwrap_or_else(|| panic!("no count: {line}"));
    lines(console, "perf: ").iter().map(parse).collect()
}

/// Loops of 10^3, 10^6 and 5 * 10^7 rounds, and a whole program: all exact.
fn counts_are_exact(console: &str) {
    let counts = counts(console);
    assert_eq!(counts.len(), 4, "{console}");
    for (counted, expected) in &counts {
        assert_eq!(counted, expected, "{counts:?}");
    }
    assert!(counts.iter().any(|count| count.1 > 100_000_000));
}

#[test]
fn linux_counts_exactly_on_the_emulated_skylake() {
    let Some(console) = boot(Model::Skylake, "") else { return };
    let said = driver(&console);
    assert!(
        said.contains("Performance Events: PEBS fmt3+, Skylake events, 32-deep LBR, full-width"),
        "{said}"
    );
    assert!(said.contains("Intel PMU driver"), "{said}");
    for (name, value) in
        [("version", "4"), ("bit width", "48"), ("generic registers", "8"), ("fixed-purpose", "3")]
    {
        let line = said.lines().find(|line| line.contains(name)).unwrap_or("");
        assert!(line.ends_with(&format!(" {value}")), "{name}: {said}");
    }
    counts_are_exact(&console);
}

#[test]
fn linux_counts_exactly_on_the_emulated_zen_4() {
    // And once without the kernel's own use of the HPET, one of whose timers is the hypervisor's.
    let Some(console) = boot(Model::Zen4, "hpet=disable") else { return };
    let said = driver(&console);
    assert!(said.contains("AMD PMU driver"), "{said}");
    counts_are_exact(&console);
}

/// The same kernel without the hypervisor: what the other tests see is its doing.
#[test]
fn linux_without_the_hypervisor_has_no_counters() {
    let Some(console) = boot(Model::None, "") else { return };
    assert!(driver(&console).contains("PMU not available"), "{console}");
    let counts = lines(&console, "perf: ");
    assert!(counts.len() == 4 && counts.iter().all(|line| line.contains("ENOENT")), "{counts:?}");
}
