//! Random programs under the emulated PMU: what it counts is the same however it counts, to the last event, and so is what
//! the programs do. A hundred on each model, each with its own.
//!
//! `cargo run -p qemu-tests --example random_programs -- smaller 916..917 --model zen4` makes one that differs smaller.

mod access;
mod assemble;
mod compatibility;
mod draw;
mod emit;
mod flow;
mod fragment;
mod machine;
mod plan;
mod report;
mod strategy;
mod system;

mod by_hand;
mod deliveries;

use draw::{Drawn, draw, smallest};
use machine::{Way, run};
use pmu_model::Model;
use report::{Report, difference};
use std::collections::HashSet;
use std::ops::Range;
use xtask::cli::models;

/// Asserts that the plugin and stepping say the same of programs.
fn equal(model: Model, numbers: Range<u64>) {
    let programs = draw(model, numbers);
    let stepping = run(model, Way::Stepping, &programs);
    report::whole(&programs, &stepping);
    // What the programs before one counted decides with what its code is translated, unless that is exact.
    for way in [Way::Exact, Way::Plugin] {
        equal_by(model, way, &programs, &stepping);
    }
}

/// The same of one way of the plugin.
fn equal_by(model: Model, way: Way, programs: &[Drawn], stepping: &[Report]) {
    let plugin = run(model, way, programs);
    let Some((index, text)) = difference(programs, stepping, &plugin) else { return };
    let number = programs[index].number;
    let alone = smallest(number, model, [Way::Stepping, way]);
    let (drawn, what) = alone
        .as_ref()
        .map_or((&programs[index], text.as_str()), |(drawn, text)| (drawn, text.as_str()));
    let first = report::all_differences(programs, stepping, &plugin);
    panic!(
        "{model:?}, {way:?}: stepping and plugin differ\n{first}\nthe first of them, {}:\n{what}{}",
        if alone.is_some() { "made smaller" } else { "which is the same where it runs alone" },
        report::describe(drawn)
    );
}

/// And are what they are meant to be: not the same over and over, and counted in many ways.
#[test]
fn all_programs_can_be_written_down() {
    let programs = draw(Model::Skylake, 0..1000);
    let mut codes: Vec<_> = programs.iter().map(|drawn| &drawn.assembled.code).collect();
    codes.sort();
    codes.dedup();
    assert!(codes.len() > 990, "{} different ones", codes.len());
    for model in models() {
        let all: HashSet<_> = programs
            .iter()
            .flat_map(|drawn| plan::resolve(&drawn.plan, model).1)
            .map(|name| name.split(['=', ':', '(', ' ']).nth(1).map(str::to_string))
            .collect();
        let least = pmu_model::events::all(model).count() * 9 / 10;
        assert!(all.len() >= least, "{model:?}: {} events of {least}", all.len());
    }
}

/// Programs of a model in the suite: each has its own.
const EACH: u64 = 100;

fn hundred(model: Model) {
    let place = models().position(|other| other == model).expect("a model with a PMU") as u64;
    equal(model, place * EACH..(place + 1) * EACH);
}

macro_rules! on_each {
    ($($name:ident: $model:ident),* $(,)?) => {
        /// No model is left out.
        #[test]
        fn random_programs_run_on_all_models() {
            assert_eq!([Model::None, $(Model::$model),*], Model::ALL);
        }

        $(#[test]
        fn $name() {
            hundred(Model::$model);
        })*
    };
}

on_each! {
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_core2: Core2,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_nehalem: Nehalem,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_haswell: Haswell,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_skylake: Skylake,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_icelake: IceLake,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_sapphirerapids: SapphireRapids,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_arrowlake: ArrowLake,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_k10: K10,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_zen2: Zen2,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_zen4: Zen4,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_goldencove: GoldenCove,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_gracemont: Gracemont,
    counts_of_1_000_random_programs_are_those_of_stepping_100_on_cougarcove: CougarCove,
}

#[test]
fn programs_end_and_do_the_same_on_a_machine_with_more_memory() {
    for model in [Model::Skylake, Model::Zen2] {
        let programs = draw(model, 0..50);
        let first = run(model, Way::Stepping, &programs);
        report::whole(&programs, &first);
        let again = run(model, Way::Elsewhere, &programs);
        if let Some((index, text)) = difference(&programs, &first, &again) {
            panic!("{model:?}:\n{text}{}", report::describe(&programs[index]));
        }
    }
}
