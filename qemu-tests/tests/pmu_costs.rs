//! What the emulated PMU costs, in exits and steps, as `statistics=` has them told: bounds that do not depend on the host.

use pmu_model::Model;
use qemu_tests::{Guest, Ran, both_ways, skip};
use std::collections::HashMap;
use xtask::cli::{Boot, Counting};
use xtask::machine::Given;

/// Exits from line to line: what the last line lacks is less.
const EACH: u64 = 32;

fn on(model: Model, parameters: &str, toml: &str) -> Ran {
    let name = model.spec().name;
    let options = format!("pmu={name} clock=machine shift=0 statistics={EACH}{parameters}");
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

/// Six branches in a turn with the loop's, and eleven or twelve instructions.
fn sampled(event: &str) -> String {
    let asm = "test cl, 3; jz 3f; imul rax, rcx; 3: call 4f; jmp 5f; 4: mov rdx, [r14]; ret; 5: dec ecx; jnz 2f; 2:";
    format!("[[sample]]\nasm = \"{asm}\"\nturns = 100000\nevents = [\"{event}\"]\nperiod = 1000\n")
}

/// An overflow of branches ends its block, and no instruction is stepped for it. One of instructions is approached by QEMU's
/// clock up to 16 of them, which are stepped. Besides there are the exits of our own handler, which reads the status, acknowledges it and
/// reloads the counter. The last number is what an overflow may cost in exits, those at the start included: some hundreds.
#[test]
fn an_overflow_takes_few_steps_and_exits() {
    if !both_ways().contains(&Counting::Plugin) {
        skip!("the plugin's steps are looked at");
    }
    for model in [Model::Skylake, Model::Zen4] {
        for (event, most_steps, most_exits) in [("branches", 1, 12), ("instructions", 24, 40)] {
            let ran = on(model, "", &sampled(event));
            ran.ends_with(0);
            let events = ran.report.sampled().flat_map(|one| &one.events);
            let taken: u64 = events.map(|event| event.overflows).sum();
            let seen = statistics(&ran);
            let what = format!("{model:?}, {event}, {taken} overflows: {seen:?}");
            assert!(taken > 500, "{what}");
            assert!(seen["overflows"].abs_diff(taken) < taken / 10, "{what}");
            let steps = seen.get("step").copied().unwrap_or_default();
            assert!(steps <= most_steps * taken, "{what}");
            assert!(seen["exits"] <= most_exits * taken, "{what}");
            // A change throws all translated code away.
            assert!(seen.get("modes").is_none_or(|modes| *modes <= 6), "{what}");
        }
    }
}

/// The driver asks for an interrupt at the end of its counters, which is far: until then cycles that waits are a part of, and
/// micro-operations, are counted at full speed.
#[test]
fn cycles_of_caches_and_of_ports_are_counted_without_steps() {
    if !both_ways().contains(&Counting::Plugin) {
        skip!("the plugin's steps are looked at");
    }
    let job = "[[snippet]]\nasm = \"add rax, [r14]\"\nunroll = 1000\nruns = 10\nevents = [\"cycles\", \"uops-retired\"]\n";
    for (parameters, cycles) in [(" uarch=l1d=32k/8@4", 4.0), (" uarch=ports=alu:0/load:1", 1.0)] {
        let ran = on(Model::Skylake, parameters, job);
        ran.ends_with(0);
        let seen = statistics(&ran);
        assert!(seen["step"] < 1000, "{parameters}: {seen:?}");
        let counted = ran.report.results().next().expect("a result");
        let counted = counted.metrics.iter().find(|metric| metric.event == "cycles").unwrap();
        assert_eq!(counted.value.median, cycles, "{parameters}");
    }
}
