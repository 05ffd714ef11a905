//! The plugin in QEMU's translator below a guest that calls it itself, without a hypervisor: each of its lines holds what was
//! counted and what was counted by hand.

use qemu_tests::{Guest, tree};
use std::path::PathBuf;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Ending;

/// Runs a group of cases with the plugin and holds each against its expectation. Returns how many there were.
fn cases(group: &str, stops: bool) -> usize {
    tree().build_plugin().unwrap_or_else(|error| panic!("{error}"));
    let plugin = tree().plugin();
    let file = plugin.display();
    let kernel: PathBuf = tree().build_guest("pmu-guest").unwrap_or_else(|error| panic!("{error}"));
    let mut extra = Vec::new();
    if stops {
        let line = [
            "-chardev",
            "socket,id=stop,fd=3",
            "-qtest",
            "chardev:stop",
            "-qtest-log",
            "/dev/null",
        ];
        extra.extend(line.map(String::from));
        extra.extend(["-plugin".to_string(), format!("file={file},stop=4")]);
    } else {
        extra.extend(["-plugin".to_string(), format!("file={file}")]);
    }
    let ran = Guest {
        kernel: Some(kernel),
        extra,
        timeout: Duration::from_secs(120),
        ..Guest::with_ramdisk(Boot::Direct, Some(format!("plugin.{group}").into()))
    }
    .run();
    let text = String::from_utf8_lossy(&ran.raw);
    assert_eq!(ran.ending, Ending::Exited(Some(33)), "{text}");
    let cases: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("case "))
        .map(|case| case.split(' ').collect())
        .collect();
    let wrong: Vec<_> = cases.iter().filter(|case| case.len() != 3 || case[1] != case[2]).collect();
    assert!(wrong.is_empty(), "name, seen, expected: {wrong:#?}");
    cases.len()
}

/// Each mode counts what it is for, wherever the code lies and whatever it does: kinds of branches, faults, repeated strings,
/// code that changes itself, across pages, under two addresses, of 32 bits; vectors, ports, device registers.
#[track_caller]
fn counts(group: &str, at_least: usize) {
    let seen = cases(group, true);
    assert!(seen >= at_least, "{group}: {seen} cases");
}

#[test]
fn e1_branches_by_kind_are_exact() {
    counts("branches", 200);
}

#[test]
fn e1_taken_and_not_taken_jumps_are_exact() {
    counts("taken", 250);
}

#[test]
fn e1_accesses_by_direction_are_exact() {
    counts("accesses", 100);
}

#[test]
fn e1_repeated_strings_and_instructions_are_exact() {
    counts("strings", 150);
    counts("instructions", 80);
}

#[test]
fn e1_all_that_is_counted_in_place_is_exact_together() {
    counts("inline", 600);
}

#[test]
fn e1_accesses_and_branches_by_callbacks_are_exact() {
    counts("memory", 100);
    counts("caches", 100);
    counts("predictor", 250);
    counts("everything", 600);
}

#[test]
fn e1_caches_and_predictor_are_the_models_to_the_last_event() {
    counts("model", 90);
}

#[test]
fn e1_branch_records_are_the_branches_taken() {
    counts("records", 35);
}

#[test]
fn t1_t8_e1_each_hypervisor_has_qualifiers_of_its_own() {
    counts("qualified", 16);
}

#[test]
fn e1_a_limit_is_kept_at_the_very_branch() {
    counts("limits", 150);
}

#[test]
fn e1_without_the_line_the_plugin_says_that_it_cannot_stop_the_guest() {
    assert_eq!(cases("stopless", false), 2);
}
