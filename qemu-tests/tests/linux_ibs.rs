//! Instruction-based sampling, with Linux' own driver and the distribution's `perf` as the judges: the samples are of the
//! loop that runs, and of its addresses alone. Skipped where the packages cannot be had.

use pmu_model::Model;
use qemu_tests::stock_linux::kernel_log;
use qemu_tests::stock_linux::known::{Kind, Program};
use qemu_tests::stock_linux::machine::Machine;
use qemu_tests::stock_linux::steps::{Console, Step};
use std::collections::BTreeMap;
use std::time::Duration;

/// Nanoseconds of the guest's clock for an instruction, and cycles, as a power of two.
const SHIFT: u8 = 2;
/// MOV from the stack, DEC, JNZ: 6 * 10^6 instructions.
const LOOP: Program = Program { kind: Kind::Loop, rounds: 2_000_000 };
/// Where each of the three begins.
const OFFSETS: [u64; 3] = [0, 4, 7];
/// Instructions from sample to sample.
const PERIOD: u64 = 100_000;
const TIMEOUT: Duration = Duration::from_secs(400);

/// What is recorded: a name, the event, and the period in its unit.
const RECORDS: [(&str, &str, u64); 3] = [
    ("cycles", "ibs_op//", PERIOD << SHIFT),
    ("ops", "ibs_op/cnt_ctl=1/", PERIOD),
    ("fetches", "ibs_fetch//", PERIOD),
];

fn boot(model: Model) -> Option<Console> {
    let options = "quiet".to_string();
    let machine =
        Machine { icount: SHIFT, memory: 1024, options, timeout: TIMEOUT, ..Machine::new(model) };
    if machine.is_stepped() {
        eprintln!("skipped: without the plugin it would take hours");
        return None;
    }
    let mut steps = Vec::new();
    for (name, event, period) in RECORDS {
        let run = LOOP.command();
        let record = format!("perf record -q -a -R -e {event} -c {period} -o {name} {run}");
        steps.push(Step::new(name, &record));
        let script = format!("perf script -F comm,ip -i {name}");
        steps.push(Step::new(&format!("{name}-samples"), &script));
        let raw = format!("perf report -D -i {name} | grep -i -E 'ibs|Lin|Phy|OpRip|Targ'");
        steps.push(Step::new(&format!("{name}-raw"), &raw));
    }
    steps.push(Step::new("interrupts", "cat /proc/interrupts"));
    steps.push(Step::new("log", "dmesg -r"));
    let ran = machine.run_steps(&steps)?;
    eprintln!("{model:?}:\n{}", ran.console.0);
    assert_eq!(ran.pmu_said, [""; 0]);
    Some(ran.console)
}

/// How many samples there are of each address of the program's.
fn addresses(output: &str) -> BTreeMap<u64, u64> {
    const KERNEL: u64 = 1 << 47;
    let address = |line: &str| {
        let address = line.trim().strip_prefix("known")?.split_whitespace().last()?;
        u64::from_str_radix(address, 16).ok().filter(|address| *address < KERNEL)
    };
    let mut all = BTreeMap::new();
    output.lines().filter_map(address).for_each(|address| *all.entry(address).or_default() += 1);
    all
}

fn check(model: Model) {
    let Some(console) = boot(model) else { return };
    let log = console.output("log");
    assert!(log.contains("perf: AMD IBS detected"), "{log}");
    assert_eq!(kernel_log::complaints(&log), [""; 0], "{log}");
    let expected = LOOP.counts().instructions / PERIOD;
    for (name, ..) in RECORDS {
        let samples = addresses(&console.output(&format!("{name}-samples")));
        let first = *samples.keys().next().unwrap_or_else(|| panic!("{name}: no sample"));
        let outside = samples.keys().find(|at| !OFFSETS.contains(&(**at - first)));
        assert_eq!(outside, None, "{name}: {samples:x?}");
        let count: u64 = samples.values().sum();
        // The kernel counts as well: some samples are of it, and a period that it began may end in the program.
        assert!((expected - 5..=expected + 2).contains(&count), "{name}: {count} of {expected}");
    }
}

#[test]
fn s1_linux_samples_operations_and_fetches_of_the_emulated_zen_4() {
    check(Model::Zen4);
}

#[test]
fn s1_linux_samples_operations_and_fetches_of_the_emulated_zen_2() {
    check(Model::Zen2);
}
