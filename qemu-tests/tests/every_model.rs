//! Every emulated model, counting by the plugin and by stepping: counts against exact ones, an empty snippet, runs and boots
//! that repeat each other.

use crate::exact::{generate, hand_written};
use crate::named_events::models;
use events::generic::Generic;
use pmu_model::Model;
use protocol::record::{Metric, SnippetResult};
use qemu_tests::{Guest, Ran, STEPPED, both_ways, ways_on};
use std::collections::BTreeSet;
use std::fmt::Write;
use xtask::cli::{Boot, Counting};
use xtask::machine::Given;

/// The generic names, which mean the same on each model.
const EVENTS: [&str; 2] = ["instructions", "branch-instructions"];

fn on(model: Model, counting: Counting, toml: &str) -> Ran {
    let guest = Guest::new(Boot::Direct, toml);
    let ran = Guest { pmu: Given::Emulated(model), counting, ..guest }.run();
    ran.ends_with(0);
    ran
}

/// How much is tried of a model.
#[derive(Clone, Copy)]
struct Effort {
    /// Snippets beside those that are written by hand.
    generated: u64,
    runs: usize,
}

/// Two hundred snippets, a hundred runs.
const ALL: Effort = Effort { generated: 170, runs: 100 };

/// All on the models that are stepped as well. The plugin counts for all in the same way, so the others show their own tables.
fn effort(model: Model) -> Effort {
    if STEPPED.contains(&model) { ALL } else { Effort { generated: 40, runs: 25 } }
}

fn snippets(effort: Effort) -> Vec<String> {
    let written = hand_written::SNIPPETS.iter().map(|row| row.0.to_string());
    (0..effort.generated).map(generate::snippet).chain(written).collect()
}

fn medians(result: &SnippetResult) -> Vec<(&str, f64)> {
    let pair = |metric: &'static str, all: &[Metric]| {
        all.iter().find(|one| one.event == metric).map(|one| (metric, one.value.median))
    };
    EVENTS.iter().filter_map(|event| pair(event, &result.metrics)).collect()
}

/// Each snippet is stepped through, and counted in both ways; these meet only here.
fn counts_are_exact(model: Model, effort: Effort, ways: &[Counting]) {
    let snippets = snippets(effort);
    assert!(effort.generated < ALL.generated || snippets.len() >= 200, "{}", snippets.len());
    let defaults = "[defaults]\nunroll = 2\nruns = 2\nwarmup = 1\n";
    let (mut stepped, mut counted) = (String::new(), String::new());
    for asm in &snippets {
        // Writing to a String does not fail.
        let _ = write!(stepped, "[[snippet]]\nexact = true\nasm = \"{asm}\"\n");
        let _ = write!(counted, "[[snippet]]\nevents = {EVENTS:?}\nasm = \"{asm}\"\n");
    }
    // Single-stepping by the firmware does not depend on who counts: once is enough.
    let [first, others @ ..] = ways else { panic!("there is a way to count") };
    let ran = on(model, *first, &format!("{defaults}{counted}{stepped}"));
    are_exact(model, &snippets, &ran, &ran);
    for counting in others {
        are_exact(model, &snippets, &ran, &on(model, *counting, &format!("{defaults}{counted}")));
    }
}

fn are_exact(model: Model, snippets: &[String], stepped: &Ran, counted: &Ran) {
    let exact: Vec<_> = stepped.report.exact().collect();
    let results = counted.results();
    assert_eq!((exact.len(), results.len()), (snippets.len(), snippets.len()));
    for ((exact, result), asm) in exact.iter().zip(&results).zip(snippets) {
        let of = |event: &str| exact.counts.iter().find(|c| c.event == event).unwrap().value;
        let expected = [(EVENTS[0], of("instructions")), (EVENTS[1], of("branches"))];
        assert_eq!(medians(result), expected, "{model:?}: {asm}");
        assert!(result.metrics.iter().all(|metric| metric.deterministic), "{model:?}: {asm}");
    }
    let first = results.len() - hand_written::SNIPPETS.len();
    for (result, row) in results[first..].iter().zip(hand_written::SNIPPETS) {
        assert_eq!(medians(result), [(EVENTS[0], row.1), (EVENTS[1], row.2)], "{}", row.0);
    }
}

/// Many runs of each snippet, each run's value listed, in two boots. A run with counters takes the emulated machine
/// longer than most snippets: of the generated ones, every eighth.
fn runs_and_boots_repeat(model: Model, effort: Effort, ways: Vec<Counting>) {
    let snippets: Vec<String> = snippets(effort);
    let generated = effort.generated as usize;
    let kept =
        snippets.iter().enumerate().filter(|(index, _)| *index >= generated || index % 8 == 0);
    let runs = effort.runs;
    let mut toml = format!("[defaults]\nunroll = 1\nruns = {runs}\nwarmup = 0\nvalues = true\n");
    for (index, asm) in kept.clone() {
        // Branches are counted by stepping, which takes its time: those of some of the shorter snippets.
        let steps = index >= generated && index % 5 == 0;
        let events = if steps { &EVENTS[..] } else { &EVENTS[..1] };
        let _ = write!(toml, "[[snippet]]\nevents = {events:?}\nasm = \"{asm}\"\n");
    }
    for counting in ways {
        let (first, second) = (on(model, counting, &toml), on(model, counting, &toml));
        assert_eq!(first.results().len(), kept.clone().count());
        repeat(model, runs, &first, &second);
    }
}

fn repeat(model: Model, runs: usize, first: &Ran, second: &Ran) {
    for result in first.results() {
        let name = &result.name;
        assert!(result.uncounted.is_empty() && result.metrics.len() > 1, "{model:?}: {name}");
        // The hypervisor executes CPUID, and not always in the same time.
        let times = usize::from(name.contains("cpuid"));
        for metric in &result.metrics[times..] {
            for series in &metric.series {
                let values = series.values.as_ref().unwrap();
                let distinct: BTreeSet<_> = values.iter().collect();
                let seen = (values.len(), distinct.len(), series.distinct);
                assert_eq!(seen, (runs, 1, 1), "{model:?}: {name}: {}", metric.event);
            }
        }
    }
    // No field may differ: even the times are counted in instructions.
    assert!(first.raw == second.raw, "{model:?}: the records of two boots differ");
}

/// Every generic event, and the named ones that the model is known to count.
fn empty_is_zero(model: Model) {
    let named = models::MODELS.iter().filter(|(other, _)| *other == model);
    let named = named.flat_map(|(_, groups)| groups.iter().flat_map(|group| group.2));
    let events: Vec<&str> =
        named.map(|(event, _)| *event).chain(Generic::all().map(Generic::name)).collect();
    let defaults = format!(
        "allow-uncounted = true\n[defaults]\nunroll = 3\nruns = 2\nwarmup = 1\nevents = {events:?}\n"
    );
    let toml = format!("{defaults}[[snippet]]\nasm = \"\"\n[[snippet]]\nasm = \"nop\"\n");
    for counting in ways_on(model) {
        is_zero(model, &on(model, counting, &toml), events.len());
    }
}

fn is_zero(model: Model, ran: &Ran, events: usize) {
    let [empty, nop] = ran.results()[..] else { panic!("two results") };
    let nonzero = |result: &SnippetResult| -> Vec<(String, f64)> {
        let all = result.metrics.iter().map(|one| (one.event.clone(), one.value.median));
        all.filter(|(_, value)| *value != 0.0).collect()
    };
    assert_eq!(nonzero(empty), []);
    for metric in &empty.metrics {
        assert_eq!((metric.value.min, metric.value.max), (0.0, 0.0), "{model:?}: {metric:?}");
    }
    // The events do count: a NOP is an instruction and takes time.
    let counted = nonzero(nop);
    assert!(counted.len() >= 3, "{model:?}: {counted:?}");
    assert_eq!(empty.metrics.len() + empty.uncounted.len(), 1 + events);
    assert!(empty.metrics.len() > 5, "{model:?}: {:?}", empty.uncounted);
}

macro_rules! on_each {
    ($($name:ident: $model:ident),* $(,)?) => {
        /// No model is left out.
        #[test]
        fn all_models_are_here() {
            let here = [Model::None, $(Model::$model),*];
            assert_eq!(here, Model::ALL);
        }

        $(mod $name {
            use super::*;

            #[test]
            fn x2_counts_of_snippets_are_exact() {
                let model = Model::$model;
                counts_are_exact(model, effort(model), &ways_on(model));
            }

            #[test]
            fn x2_runs_and_two_boots_give_the_same() {
                let model = Model::$model;
                runs_and_boots_repeat(model, effort(model), ways_on(model));
            }

            #[test]
            #[ignore = "cargo xtask test --soak"]
            fn x2_counts_are_exact_and_repeat_soak() {
                counts_are_exact(Model::$model, ALL, &both_ways());
                runs_and_boots_repeat(Model::$model, ALL, both_ways());
            }

            #[test]
            fn x2_an_empty_snippet_is_zero_in_every_event() {
                empty_is_zero(Model::$model);
            }
        })*
    };
}

on_each! {
    core2: Core2,
    nehalem: Nehalem,
    haswell: Haswell,
    skylake: Skylake,
    ice_lake: IceLake,
    sapphire_rapids: SapphireRapids,
    arrow_lake: ArrowLake,
    k10: K10,
    zen2: Zen2,
    zen4: Zen4,
    golden_cove: GoldenCove,
    gracemont: Gracemont,
    cougar_cove: CougarCove,
}
