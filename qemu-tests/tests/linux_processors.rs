//! A Linux kernel from the distribution's packages on several processors, each with the emulated PMU: started, switched
//! off and on by the kernel itself. Skipped where the package cannot be had.

use pmu_model::Model;
use qemu_tests::stock_linux::kernel_log;
use qemu_tests::stock_linux::machine::{Machine, SAME_EACH_TIME};
use qemu_tests::{skip, stock_linux, tree, xtask};
use std::collections::BTreeSet;

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
    stock_linux::file_system::with_init(&init, &initrd).unwrap();
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
                "--",
            ],
            &SAME_EACH_TIME,
        ]
        .concat(),
    );
    assert_eq!(called.code, 0, "{called:#?}");
    let console = &called.out;
    assert!(console.contains("NMI watchdog: Enabled"), "{console}");
    let (took, counts): (Vec<_>, Vec<_>) =
        counts(console).into_iter().partition(|count| count.1 == "nanoseconds");
    a_stepped_processor_has_its_share(&took, cpus);
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
    each_other_processor_gets_one_nmi(console, cpus);
    let log = warnings(console);
    assert_eq!(kernel_log::complaints(&log), [""; 0], "{console}");
}

/// A turn lasts 2^15 instructions of the guest's, however long the hypervisor works for them: 0.5 ms at 2^4 ns each.
const TURN_NS: u64 = 1 << (15 + 4);

/// The last processor's instructions were stepped, while each of the others used its turns fully. Its kernel's ticks and system
/// calls run at full speed, but may begin a turn late each.
fn a_stepped_processor_has_its_share(took: &[(usize, String, u64, u64)], cpus: usize) {
    let took = took.iter().find(|(processor, ..)| *processor + 1 == cpus);
    let (.., took, instructions) = took.expect("the program told it");
    let others = cpus as u64 - 1;
    // The beginning, the end, and two ticks.
    let most = instructions * 16 + 4 * others * TURN_NS;
    assert!(*took < most, "{took} ns for {instructions} instructions, and not {most}");
}

/// The kernel's backtrace of all processors is by an NMI, sent to those that are others by their logical ids. One that nobody asked for is
/// complained of.
fn each_other_processor_gets_one_nmi(console: &str, cpus: usize) {
    let said: Vec<&str> = console.lines().filter(|line| line.contains("nmi: ")).collect();
    for cpu in 0..cpus {
        let backtrace = format!("NMI backtrace for cpu {cpu}");
        let is_shown = |line: &&&str| {
            line.split_once(&backtrace).is_some_and(|(_, rest)| {
                rest.trim().is_empty() || rest.starts_with(" skipped: idling")
            })
        };
        let shown = said.iter().filter(is_shown);
        assert_eq!(shown.count(), 1, "{backtrace}: {console}");
    }
    let unknown: Vec<_> = said.iter().filter(|line| line.contains("NMI received")).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// The lines of the kernel's log that the program shows as warnings.
fn warnings(console: &str) -> String {
    let lines = console.lines().filter_map(|line| line.trim().strip_prefix("warning: "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn linux_counts_exactly_on_each_of_two_processors_of_intel_soak() {
    each_processor_counts_exactly("skylake", 2);
}

#[test]
fn linux_counts_exactly_on_each_of_four_processors_of_amd() {
    each_processor_counts_exactly("zen4", 4);
}

/// Each complaint that the other tests pass over is the kernel's own on such a machine.
#[test]
#[ignore = "cargo xtask test --soak"]
fn what_is_passed_over_the_kernel_says_without_the_hypervisor_as_well_soak() {
    let init = tree().build_guest("linux-init").unwrap_or_else(|error| panic!("{error}"));
    let mut said = String::new();
    for model in [Model::Skylake, Model::Zen2, Model::Zen4] {
        let identity = model.spec().identity.as_ref().expect("a processor of that name");
        // CPUID leaf 1 EAX: SDM vol. 2, CPUID, figure 3-6.
        let (signature, vendor) = (identity.signature, identity.vendor.name());
        let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
        let number = signature >> 4 & 0xf | signature >> 12 & 0xf0;
        let stepping = signature & 0xf;
        let processor =
            Some(format!("max,vendor={vendor},family={family},model={number},stepping={stepping}"));
        let machine = Machine { cpus: 4, processor, ..Machine::new(Model::None) };
        let Some(ran) = machine.run_program(&init) else { return };
        said += &warnings(&ran.console.0);
    }
    for usual in kernel_log::USUAL {
        assert!(said.contains(usual), "{usual}: {said}");
    }
}
