//! A Linux kernel from the distribution's packages on several processors, each with the emulated PMU: started, switched
//! off and on by the kernel itself. Skipped where the package cannot be had.

use qemu_tests::{skip, stock_linux, tree, xtask};
use std::collections::BTreeSet;

/// What this kernel warns of on this machine without the hypervisor too, each by a part of its text.
const KNOWN: [&str; 12] = [
    "mtrr: your CPUs had inconsistent",
    "mtrr: probably your BIOS",
    "RETBleed: WARNING",
    "fail to add MMCONFIG",
    "hpet_acpi_add",
    "no longer affine to cpu1",
    // The lines of "Booting Node", one processor each.
    " #2",
    " #3",
    // On AMD's without a constant TSC, of several processors.
    "Unstable clock detected",
    "If you want to keep using the local clock",
    "trace_clock=local",
    "on the kernel command line",
];

/// The program's lines `processor N: NAME = COUNTED expected EXPECTED`.
fn counts(console: &str) -> Vec<(usize, String, u64, u64)> {
    let parse = |line: &str| {
        let (processor, rest) = line.trim().strip_prefix("processor ")?.split_once(": ")?;
        let (name, rest) = rest.split_once(" = ")?;
        let (counted, expected) = rest.split_once(" expected ")?;
        let number = |text: &str| text.parse().ok();
        Some((processor.parse().ok()?, name.to_string(), number(counted)?, number(expected)?))
    };
    console.lines().filter_map(parse).collect()
}

/// Boots Linux on `cpus` processors of `model`. Every count is exact, and the kernel has nothing to complain of.
fn each_processor_counts_exactly(model: &str, cpus: usize) {
    let kernel = match stock_linux::kernel(&tree().target().join("linux")) {
        Ok(kernel) => kernel,
        Err(reason) => skip!("no stock kernel: {reason}"),
    };
    let init = tree().build_guest("linux-init").unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().unwrap();
    let initrd = folder.path().join("initramfs");
    stock_linux::initial_file_system(&init, &initrd).unwrap();
    let (kernel, initrd, number) =
        (kernel.to_str().unwrap(), initrd.to_str().unwrap(), cpus.to_string());
    let called = xtask(
        folder.path(),
        &[
            &["vm", "--pmu", model, "--kernel", kernel, "--initrd", initrd, "--cpus", &number][..],
            &[
                "--append",
                "console=ttyS0 panic=-1",
                "--shift",
                "4",
                "--memory",
                "512",
                "--timeout",
                "400",
            ],
        ]
        .concat(),
    );
    assert_eq!(called.code, 0, "{called:#?}");
    let console = &called.out;
    assert!(console.contains("NMI watchdog: Enabled"), "{console}");
    let counts = counts(console);
    for (processor, name, counted, expected) in &counts {
        assert_eq!(counted, expected, "{name} on processor {processor}: {console}");
    }
    let seen: BTreeSet<(usize, &str)> =
        counts.iter().map(|count| (count.0, &count.1[..])).collect();
    for name in ["alone", "together", "branches", "samples", "again"] {
        for processor in 0..cpus {
            assert!(
                seen.contains(&(processor, name)),
                "{name} on processor {processor}: {console}"
            );
        }
    }
    assert!(seen.contains(&(0, "moved")), "{console}");
    let warnings = console.lines().filter(|line| line.starts_with("warning: "));
    let unknown: Vec<&str> =
        warnings.filter(|line| !KNOWN.iter().any(|part| line.contains(part))).collect();
    assert_eq!(unknown, [""; 0], "{console}");
}

#[test]
fn linux_counts_exactly_on_each_of_two_processors_of_intel() {
    each_processor_counts_exactly("skylake", 2);
}

#[test]
fn linux_counts_exactly_on_each_of_four_processors_of_amd() {
    each_processor_counts_exactly("zen4", 4);
}
