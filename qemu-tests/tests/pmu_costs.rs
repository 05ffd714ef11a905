//! What the emulated PMU costs, in exits and steps, as `statistics=` has them told: bounds that do not depend on the host.

use pmu_model::Model;
use qemu_tests::{Guest, Ran};
use std::collections::HashMap;
use xtask::cli::{Boot, Counting};
use xtask::machine::Given;

/// Exits from line to line: what the last line lacks is less.
const EACH: u64 = 32;

fn on(model: Model, toml: &str) -> Ran {
    let name = model.spec().name;
    let options = format!("pmu={name} clock=machine shift=0 statistics={EACH}");
    let pmu_options = Some(options);
    let guest = Guest::new(Boot::Direct, toml);
    Guest { pmu: Given::Emulated(model), pmu_options, counting: Counting::Plugin, ..guest }.run()
}

/// The last line of statistics, by name.
fn statistics(ran: &Ran) -> HashMap<&str, u64> {
    let lines = ran.pmu_said.iter().rev();
    let last = lines.filter_map(|line| line.strip_prefix("statistics: exits=")).next();
    let last = last.unwrap_or_else(|| panic!("no statistics: {:?}", ran.pmu_said));
    let (exits, rest) = last.split_once(' ').expect("more than exits");
    let words = rest.split(' ').filter_map(|word| word.rsplit_once('='));
    let words = [("exits", exits)].into_iter().chain(words);
    words.map(|(name, count)| (name, count.parse().expect("a number"))).collect()
}

fn sampled(events: &str, period: u64, overflows: u64) -> String {
    // Five branches in a turn, and the loop's.
    let asm = "test cl, 3; jz 3f; imul rax, rcx; 3: call 4f; jmp 5f; 4: mov rdx, [r14]; ret; 5: dec ecx; jnz 2f; 2:";
    let turns = overflows * period / 4;
    format!(
        "[[sample]]\nasm = \"{asm}\"\nturns = {turns}\nevents = [\"{events}\"]\nperiod = {period}\n"
    )
}

/// An overflow of branches is approached up to the block that has it, and stepped from there: the start of its handler is the
/// next thing. One of loads has two blocks of memory accesses before it that are stepped.
#[test]
fn an_overflow_takes_few_steps_and_exits() {
    if !qemu_tests::both_ways().contains(&Counting::Plugin) {
        eprintln!("skipped: there is no plugin");
        return;
    }
    for model in [Model::Skylake, Model::Zen4] {
        for (event, most_steps, most_exits) in
            [("branches", STEPS, EXITS), ("instructions", STEPS, EXITS)]
        {
            let ran = on(model, &sampled(event, 1_000, 200));
            ran.ends_with(0);
            let taken: u64 =
                ran.report.sampled().flat_map(|one| &one.events).map(|event| event.overflows).sum();
            let seen = statistics(&ran);
            assert!(taken > 100, "{taken} overflows");
            assert!(seen["step"] <= most_steps * taken, "{model:?}, {event}, {taken}: {seen:?}");
            assert!(seen["exits"] <= most_exits * taken, "{model:?}, {event}, {taken}: {seen:?}");
            assert!(seen.get("modes").is_none_or(|modes| *modes <= 4), "{model:?}: {seen:?}");
        }
    }
}
