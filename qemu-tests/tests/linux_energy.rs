//! Energy, with Linux' own driver and the distribution's `perf` as the judges: what they read in joules is what the rule makes of the
//! time. Skipped where the packages cannot be had.

use pmu_model::Model;
use qemu_tests::stock_linux::kernel_log;
use qemu_tests::stock_linux::known::{Kind, Program};
use qemu_tests::stock_linux::machine::Machine;
use qemu_tests::stock_linux::modules;
use qemu_tests::stock_linux::perf;
use qemu_tests::stock_linux::steps::Step;
use std::time::Duration;

/// Nanoseconds of the guest's clock for an instruction, as a power of two.
const SHIFT: u8 = 2;
/// MOV from the stack, DEC, JNZ: 0.5 s.
const LOOP: Program = Program { kind: Kind::Loop, rounds: 40_000_000 };
const TIMEOUT: Duration = Duration::from_secs(400);
/// Joules of the package in a nanosecond, which is a tick of the TSC: 2^-6 J in 2^20.
const PACKAGE: f64 = 1.0 / 64.0 / 1_048_576.0;

/// Each event with its part of the package's energy.
fn check(model: Model, events: &[(&str, f64)]) {
    let options = "quiet".to_string();
    let machine =
        Machine { icount: SHIFT, memory: 1024, options, timeout: TIMEOUT, ..Machine::new(model) };
    let names: Vec<String> = events.iter().map(|(name, _)| format!("power/{name}/")).collect();
    let events_of_perf = names.join(",");
    let steps = [
        Step::new("module", "insmod /modules/rapl.ko"),
        Step::new(
            "energy",
            &format!("perf stat -a -x, -e duration_time,{events_of_perf} {}", LOOP.command()),
        ),
        Step::new("log", "dmesg -r"),
    ];
    let Some(ran) = machine.run_with_modules(&steps, modules::rapl) else { return };
    eprintln!("{model:?}:\n{}", ran.console.0);
    let output = ran.console.output("energy");
    let counts = perf::counts(&output);
    let value = |event: &str| {
        let found = counts.iter().find(|one| one.event == event);
        found.and_then(|one| one.value).unwrap_or_else(|| panic!("{event}: {output}"))
    };
    let nanoseconds = value("duration_time");
    assert!(nanoseconds > 4e8, "{output}");
    for (name, part) in events {
        let (joules, by_rule) = (value(&format!("power/{name}/")), nanoseconds * PACKAGE * part);
        // An update at each end, and what perf does between the clock and the register.
        let slack = by_rule * 0.01 + 2.0 / 64.0 * part;
        assert!((joules - by_rule).abs() < slack, "{name}: {by_rule} by the rule: {output}");
    }
    let log = ran.console.output("log");
    assert!(log.contains("RAPL PMU: API unit is 2^-32 Joules"), "{log}");
    assert_eq!(kernel_log::complaints(&log), [""; 0], "{log}");
    assert_eq!(ran.pmu_said, [""; 0]);
}

#[test]
fn s4_linux_reads_the_energy_of_the_emulated_skylake() {
    check(
        Model::Skylake,
        &[
            ("energy-pkg", 1.0),
            ("energy-cores", 0.5),
            ("energy-ram", 0.125),
            ("energy-gpu", 0.0625),
            ("energy-psys", 1.5),
        ],
    );
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s4_linux_reads_the_energy_of_the_emulated_zen_4_soak() {
    check(Model::Zen4, &[("energy-pkg", 1.0)]);
}
