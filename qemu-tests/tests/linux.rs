//! A Linux kernel from the distribution's packages on the emulated PMU: its perf driver must believe in it, and count
//! right. Skipped where the package cannot be had.

use pmu_model::Model;
use qemu_tests::stock_linux::machine::Machine;
use qemu_tests::tree;

/// Nanoseconds of the guest's clock for an instruction, as a power of two: that of [`Machine::new`].
const SHIFT: u8 = 4;

/// What the kernel and its one program say on the console. `None`, with the reason told, if there is no kernel.
fn boot(model: Model, options: &str) -> Option<String> {
    let init = tree().build_guest("linux-init").unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine { icount: SHIFT, options: options.to_string(), ..Machine::new(model) };
    let ran = machine.run_program(&init)?;
    assert_eq!(ran.pmu_said, [""; 0], "{}", ran.console.0);
    Some(ran.console.0)
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

/// The numbers of the line that begins with `start`, in order.
fn numbers(console: &str, start: &str) -> Vec<u64> {
    let all = lines(console, start);
    let [line] = all[..] else { panic!("{start}: {} lines; {console}", all.len()) };
    line.split(|byte: char| !byte.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// What is stepped ends, and is exact in ring 3; what depends on predictor and caches is small.
fn stepped_events_are_exact(console: &str) {
    for event in ["instructions", "branches", "L1-dcache-loads"] {
        let counted = numbers(console, &format!("count: short: {event}:u = "));
        assert_eq!(counted[0], counted[1], "{event}");
    }
    let missed = numbers(console, "count: short: branch-misses:u = ")[0];
    assert!((1..=20).contains(&missed), "{missed} mispredicted");
    // Each line once, but for those that the caches happen to know.
    let [missed, lines] = numbers(console, "count: stores: cache-misses:u = ")[..] else {
        panic!("{console}")
    };
    assert!(missed <= lines && missed > lines - lines / 8, "{missed} of {lines}");
}

/// What `perf stat` counts when it is told nothing, in both rings, while every instruction is stepped.
fn the_default_set_of_perf_stat_is_counted(console: &str) {
    let counted = numbers(console, "default set: ");
    let [clock_ns, switches, migrations, faults, cycles, instructions, branches, misses] =
        counted[..]
    else {
        panic!("{counted:?}");
    };
    // The program has 2,004 instructions; the rest is the kernel's, which executes and ends it.
    assert!((10_000..1_000_000).contains(&instructions), "{counted:?}");
    assert!(branches > instructions / 20 && branches < instructions / 2, "{counted:?}");
    assert!(misses > 0 && misses < branches, "{counted:?}");
    assert!(switches <= 3 && migrations == 0 && (1..100).contains(&faults), "{counted:?}");
    // A core clock at the TSC's rate, of 1 GHz. The system's clock has stood still while the hypervisor worked, which takes
    // some thousand instructions for each that it steps; string instructions take a cycle, and ticks by their length.
    assert!(cycles.abs_diff(instructions << SHIFT) < cycles / 50, "{counted:?}");
    assert!((cycles..4 * cycles).contains(&clock_ns), "{counted:?}");
}

/// Samples of a loop of 2 * 10^7 instructions in ring 3.
fn samples_are_taken_at_perfs_default_rate(console: &str) {
    let [_, samples, throttled, lost, inside, nanoseconds] =
        numbers(console, "sampled: cycles:u at ")[..]
    else {
        panic!("{console}");
    };
    assert_eq!((throttled, lost, inside), (0, 0, samples));
    // 4,000 a second of the system's own clock.
    let expected = nanoseconds / 250_000;
    assert!(samples.abs_diff(expected) < expected / 10, "{samples} of {expected}");
}

/// At a rate for which the handlers' time does not suffice, something else still gets on: the loop comes to its end.
fn an_impossible_rate_leaves_room_for_the_program(console: &str) {
    let [samples, ..] = numbers(console, "sampled: everything: ")[..] else { panic!("{console}") };
    assert!(samples > 20, "{samples}");
}

/// Complaints of the kernel about time that it lost, each by a part of its text.
fn the_kernel_does_not_complain_of_time(console: &str) {
    for part in ["hrtimer: interrupt took", "unstable", "stall", "lockup", "irq loop stuck"] {
        let found = console.lines().find(|line| line.contains(part));
        assert_eq!(found, None, "{console}");
    }
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
    stepped_events_are_exact(&console);
    the_default_set_of_perf_stat_is_counted(&console);
    samples_are_taken_at_perfs_default_rate(&console);
    an_impossible_rate_leaves_room_for_the_program(&console);
    the_kernel_does_not_complain_of_time(&console);
    // By PEBS: 2 * 10^7 instructions, each 100,000; of 2^SHIFT cycles, each 1,000,000; 5,000 branches, each 100.
    for (event, expected) in [
        ("cycles:upp", 320),
        ("cycles:up", 320),
        ("instructions:upp", 200),
        ("often:upp", 2_000),
        ("branches:upp", 50),
    ] {
        let [samples, throttled, lost, ..] = numbers(&console, &format!("sampled: {event}: "))[..]
        else {
            panic!("{console}");
        };
        assert_eq!((throttled, lost), (0, 0), "{event}");
        // Each record is of the event after the overflow, so a period has an instruction more, and the last has no room. None is
        // missing: between overflow and record no device interrupts. Linux, which switches tasks then, clears IA32_PEBS_ENABLE
        // while the counter is at 0, and begins the next period without a sample (`x86_perf_event_set_period`).
        assert_eq!(samples, expected - 1, "{event}");
    }
}

/// Linux' own driver of adaptive records as the judge: it decodes what the model wrote, by groups, and complains of a size that
/// they do not make up.
#[test]
#[ignore = "cargo xtask test --soak"]
fn s1_linux_takes_adaptive_records_of_the_emulated_ice_lake_soak() {
    let Some(console) = boot(Model::IceLake, "") else { return };
    let said = driver(&console);
    assert!(said.contains("PEBS fmt4+-baseline") && said.contains("Icelake events"), "{said}");
    for (event, expected) in
        [("cycles:upp", 320), ("instructions:upp", 200), ("often:upp", 2_000), ("branches:upp", 50)]
    {
        let [samples, throttled, lost, ..] = numbers(&console, &format!("sampled: {event}: "))[..]
        else {
            panic!("{console}");
        };
        // As on the emulated Skylake: a period has an instruction more, and the last has no room.
        assert_eq!((samples, throttled, lost), (expected - 1, 0, 0), "{event}");
    }
    // A failed assertion of the kernel's, as that of a record's size.
    for part in ["WARNING: CPU", "cut here"] {
        assert!(!console.contains(part), "{console}");
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
    stepped_events_are_exact(&console);
    the_default_set_of_perf_stat_is_counted(&console);
    samples_are_taken_at_perfs_default_rate(&console);
    an_impossible_rate_leaves_room_for_the_program(&console);
    the_kernel_does_not_complain_of_time(&console);
}

/// The same kernel without the hypervisor: what the other tests see is its doing.
#[test]
#[ignore = "cargo xtask test --soak"]
fn linux_without_the_hypervisor_has_no_counters_soak() {
    let Some(console) = boot(Model::None, "") else { return };
    assert!(driver(&console).contains("PMU not available"), "{console}");
    let counts = lines(&console, "perf: ");
    assert!(lines(&console, "sampled: ").iter().all(|line| line.contains(": -")), "{console}");
    assert!(counts.len() == 4 && counts.iter().all(|line| line.contains("ENOENT")), "{counts:?}");
}
