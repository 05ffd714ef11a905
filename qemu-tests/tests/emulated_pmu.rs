//! The emulated PMU under a guest whose code was counted by hand (`guests/pmu`): each of its lines holds what was seen and
//! what is right. Each group runs with the plugin, and by stepping.

use pmu_model::Model;
use qemu_tests::{Guest, both_ways, skip, tree, ways_on};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use xtask::cli::{Boot, Counting, Icount, models};
use xtask::machine::{Ending, Given};

fn kernel() -> PathBuf {
    static KERNEL: OnceLock<PathBuf> = OnceLock::new();
    KERNEL
        .get_or_init(|| tree().build_guest("pmu-guest").unwrap_or_else(|error| panic!("{error}")))
        .clone()
}

fn guest(model: Model, group: &str, counting: Counting) -> Guest {
    Guest {
        pmu: Given::Emulated(model),
        counting,
        kernel: Some(kernel()),
        timeout: Duration::from_secs(600),
        ..Guest::with_ramdisk(Boot::Direct, Some(group.into()))
    }
}

/// Runs a group of cases and holds each against its expectation. Returns their names.
fn cases(guest: Guest) -> Vec<String> {
    let counting = guest.counting;
    let ran = guest.run();
    let text = String::from_utf8_lossy(&ran.raw);
    assert_eq!(ran.ending, Ending::Exited(Some(33)), "{text}{:?}", ran.pmu_said);
    let cases: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("case "))
        .map(|case| case.split(' ').collect())
        .collect();
    let wrong: Vec<_> = cases.iter().filter(|case| case.len() != 3 || case[1] != case[2]).collect();
    let said = &ran.pmu_said;
    assert!(wrong.is_empty(), "{counting}: name, seen, expected: {wrong:?} {said:?}");
    cases.iter().map(|case| case[0].to_string()).collect()
}

/// Runs the group both ways; returns the names of its cases, which are the same.
fn both(model: Model, group: &str) -> Vec<String> {
    both_with(|counting| guest(model, group, counting))
}

fn both_with(guest: impl Fn(Counting) -> Guest) -> Vec<String> {
    each_way(both_ways(), guest)
}

fn each_way(ways: Vec<Counting>, guest: impl Fn(Counting) -> Guest) -> Vec<String> {
    let names: Vec<Vec<String>> = ways.into_iter().map(|counting| cases(guest(counting))).collect();
    assert!(names.windows(2).all(|pair| pair[0] == pair[1]), "{names:?}");
    names.into_iter().next().expect("one way at least")
}

/// Asserts that the group has at least so many cases, on each model: a group that did nothing must not pass.
fn on_every_model(group: &str, at_least: usize) {
    for model in models() {
        let names = each_way(ways_on(model), |counting| guest(model, group, counting));
        assert!(names.len() >= at_least, "{model:?}: {names:?}");
    }
}

#[test]
fn p7_instructions_of_straight_code_loops_calls_exceptions_and_interrupts_are_exact() {
    on_every_model("counts", 25);
}

#[test]
fn p7_long_loops_are_exact() {
    assert_eq!(both(Model::Skylake, "long"), ["loop_10_000_000", "loop_100_000_000"]);
}

#[test]
fn p7_a_repeated_string_instruction_counts_once() {
    on_every_model("strings", 22);
}

#[test]
fn i2_t5_each_ring_is_counted_by_itself_across_system_calls_exceptions_and_interrupts() {
    on_every_model("rings", 18);
}

#[test]
fn i3_an_overflow_interrupts_at_its_instruction_and_none_is_lost_or_doubled() {
    on_every_model("overflow", 38);
}

#[test]
fn i3_overflow_at_other_shifts_of_the_clock() {
    for shift in [1, 4, 7] {
        let names = both_with(|counting| Guest {
            icount: Icount::Shift(shift),
            ..guest(Model::Skylake, "overflow", counting)
        });
        assert_eq!(names.len(), 42, "shift {shift}");
    }
}

/// A handler of NMIs whose own end overflows the counter again would be all that is executed.
#[test]
fn i3_nmis_that_come_faster_than_they_are_handled_leave_room_for_the_code() {
    on_every_model("storm", 3);
}

#[test]
fn i3_hlt_ends_with_the_nmi_that_it_waits_for() {
    on_every_model("halted", 2 * 32);
}

/// Where the guest's time is its own, HLT lasts as long as the timer was set to, and nothing of the hypervisor's.
#[test]
fn hlt_takes_the_time_that_the_local_apics_timer_was_set_to() {
    for model in models() {
        let names = each_way(ways_on(model), |counting| Guest {
            pmu_options: Some(format!("pmu={} clock=guest shift=0", model.spec().name)),
            icount: Icount::Shift(0),
            ..guest(model, "halted_timer", counting)
        });
        assert_eq!(names.len(), 2 * 3, "{model:?}");
    }
}

#[test]
fn i3_as_many_interrupts_as_overflows_over_20_000() {
    many("some", both_ways().into_iter().take(1).collect());
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn i3_as_many_interrupts_as_overflows_over_100_000_soak() {
    many("many", both_ways());
}

fn many(group: &str, ways: Vec<Counting>) {
    let names = each_way(ways, |counting| guest(Model::Skylake, group, counting));
    assert_eq!(names, ["many.count", "many.status", "many.left"]);
}

/// What the tests of every model leave out by stepping.
#[test]
#[ignore = "cargo xtask test --soak"]
fn every_group_counts_the_same_by_stepping_on_every_model_soak() {
    for model in models() {
        for group in
            ["counts", "strings", "rings", "overflow", "storm", "debug", "refusals", "once"]
        {
            assert!(both(model, group).len() >= 2, "{model:?}: {group}");
        }
    }
}

/// A guest that runs guests of its own by SVM: intercepts, events, interrupts, nested paging and the counts of both, by hand.
#[test]
fn x12_a_guest_that_runs_guests_gets_what_svm_promises_and_each_counts_for_itself() {
    if !both_ways().contains(&Counting::Plugin) {
        skip!("SVM is offered where the plugin counts");
    }
    for model in [Model::K10, Model::Zen2, Model::Zen4] {
        let names = cases(guest(model, "nested", Counting::Plugin));
        assert!(names.len() >= 2_000, "{model:?}: {} cases", names.len());
    }
}

/// Panther Lake's records, programmed by WRMSR and read back, of two counters, and the interrupt at the threshold.
#[test]
fn s1_architectural_pebs_writes_the_records_of_the_instructions_that_its_registers_ask_for() {
    let names = both(Model::CougarCove, "records");
    assert_eq!(names.len(), 3 + 2 * (1 + 60) + 2 + 5 + 3 + 1, "{names:?}");
}

/// The codes of these events are those of the models named; the meanings on the others are tested on the host.
#[test]
fn branches_accesses_misses_and_branch_records_are_exact() {
    for (model, count) in [
        (Model::Haswell, 19),
        (Model::Skylake, 19),
        (Model::IceLake, 5),
        (Model::SapphireRapids, 14),
        (Model::Zen2, 6),
        (Model::Zen4, 6),
    ] {
        assert_eq!(both(model, "stepped").len(), count, "{model:?}");
    }
}

/// Breakpoints and single steps are the guest's as well as the hypervisor's: DR6, the frames and the counts are those of
/// the manual, at full speed and step by step.
#[test]
fn m14_a_guests_breakpoints_and_single_steps_are_its_own_and_counts_stay_exact() {
    on_every_model("debug", 400);
}

/// Writes to control registers, absent gates and system calls of compatibility mode, whatever is counted meanwhile.
#[test]
fn what_a_processor_refuses_is_refused_at_its_instruction_and_not_counted() {
    on_every_model("refusals", 370);
}

#[test]
fn an_interrupt_that_is_handed_on_comes_once() {
    on_every_model("once", 2);
}

/// In the middle of a repeated string instruction RF is set in the frame of an interrupt, so that the guest's breakpoint on it
/// is met once; and after its last iteration none comes at it.
#[test]
fn an_interrupt_within_a_repeated_string_instruction_finds_rf_set() {
    for model in [Model::Skylake, Model::Zen4] {
        // The timer rings by the guest's time, or it would before the instruction begins.
        let names = both_with(|counting| Guest {
            pmu_options: Some(format!("pmu={} clock=guest shift=0", model.spec().name)),
            icount: Icount::Shift(0),
            ..guest(model, "interrupted", counting)
        });
        assert_eq!(names.len(), 27, "{model:?}: {names:?}");
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    for counting in both_ways() {
        let run = || guest(Model::Skylake, "overflow", counting).run().raw;
        assert_eq!(run(), run(), "{counting}");
    }
}

/// The plugin is required, but QEMU was started without it: the refusal comes too late to start the guest without a hypervisor.
#[test]
fn without_the_plugin_that_is_required_the_processors_registers_are_its_own() {
    for model in [Model::Skylake, Model::Zen4] {
        let options = Some(format!("pmu={} counting=plugin", model.spec().name));
        let guest = guest(model, "given_up", Counting::Stepping);
        let ran = Guest { pmu_options: options, ..guest }.run();
        let said = "no emulated PMU: the plugin is requested, but QEMU has none";
        assert!(ran.pmu_said.iter().any(|line| line == said), "{:?}", ran.pmu_said);
        let text = String::from_utf8_lossy(&ran.raw);
        let cases: Vec<&str> = text.lines().filter(|line| line.starts_with("case ")).collect();
        let expected = ["misc_enable 1 1", "misc_enable_written 0 0", "debugctl 0 0"];
        assert_eq!(cases, expected.map(|case| format!("case {case}")), "{text}");
    }
}
