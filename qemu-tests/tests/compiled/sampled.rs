//! `setup` and `teardown` of a function that is sampled: a task of ring 3 calls them in each of its turns.

use super::run;
use qemu_tests::Ran;

const TURNS: u64 = 3;
const PERIOD: u64 = 500;
/// CALL, the write and RET are at least what a call of `reset` takes, with what puts its argument in its place.
const CALL: std::ops::RangeInclusive<u64> = 3..=20;

fn item(name: &str, more: &str) -> String {
    format!(
        "[[sample]]\nname = \"{name}\"\nobject = \"@\"\nfunction = \"grows\"\nargs = [1000]\n{more}\n\
         events = [\"instructions:u\"]\nperiod = {PERIOD}\nturns = {TURNS}\nkeep = \"histogram\"\n"
    )
}

/// All that was counted in an item.
fn counted(ran: &Ran, name: &str) -> u64 {
    let result = ran.report.sampled().find(|result| result.name == name);
    let result = result.unwrap_or_else(|| panic!("no samples of {name}: {:?}", ran.errors()));
    let one = &result.events[0];
    let sum = one.overflows * PERIOD + one.rest;
    assert_eq!(one.witness, Some(sum), "{name}: {one:?}");
    assert_eq!(one.dropped, 0, "{name}: {one:?}");
    sum
}

/// `grows` takes two instructions for each of the counter's, which begins with 3 and which `reset` sets to 1000.
#[test]
fn x7_setup_and_teardown_of_a_sampled_function_run_in_each_turn_in_ring_3() {
    let all = [
        item("plain", ""),
        item("set up", "setup = \"reset\""),
        item("torn down", "teardown = \"reset\""),
        item("both", "setup = \"reset\"\nteardown = \"reset\""),
    ];
    let ran = run(&all.concat());
    ran.ends_with(0);
    let plain = counted(&ran, "plain");
    let own = 2 * (4 + 5 + 6);
    for (name, rounds, calls) in [
        ("set up", TURNS * 1001, TURNS),
        // The first turn finds the counter as it was linked.
        ("torn down", 4 + (TURNS - 1) * 1001, TURNS),
        ("both", TURNS * 1001, 2 * TURNS),
    ] {
        let beside = counted(&ran, name) + own - plain - 2 * rounds;
        assert_eq!(beside % calls, 0, "{name}: {beside}");
        assert!(CALL.contains(&(beside / calls)), "{name}: {beside} in {calls} calls");
    }
}
