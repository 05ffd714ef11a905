//! Random programs under the emulated PMU: what it counts is the same however it counts, to the last event, and so is what
//! the programs do.

#[path = "random_programs/access.rs"]
mod access;
#[path = "random_programs/assemble.rs"]
mod assemble;
#[path = "random_programs/draw.rs"]
mod draw;
#[path = "random_programs/emit.rs"]
mod emit;
#[path = "random_programs/flow.rs"]
mod flow;
#[path = "random_programs/machine.rs"]
mod machine;
#[path = "random_programs/narrow.rs"]
mod narrow;
#[path = "random_programs/piece.rs"]
mod piece;
#[path = "random_programs/plan.rs"]
mod plan;
#[path = "random_programs/report.rs"]
mod report;
#[path = "random_programs/strategy.rs"]
mod strategy;
#[path = "random_programs/system.rs"]
mod system;

use draw::draw;
use machine::{Way, run};
use pmu_model::Model;

/// Says everything of the programs `PROGRAMS=FROM..TO` on `MODEL`: to be run by hand.
#[test]
#[ignore = "tells, and asserts nothing"]
fn show() {
    let text = std::env::var("PROGRAMS").expect("PROGRAMS=FROM..TO");
    let (from, to) = text.split_once("..").expect("FROM..TO");
    let numbers = from.parse().expect("a number")..to.parse().expect("a number");
    let name = std::env::var("MODEL").unwrap_or_else(|_| "skylake".to_string());
    let model = Model::by_name(&name).expect("a model");
    let mut programs = draw(model, numbers);
    programs.iter_mut().for_each(|drawn| drawn.assembled.program.detailed = true);
    let reports = run(model, Way::Stepping, &programs);
    for (drawn, report) in programs.iter().zip(&reports) {
        println!("{}{report:#?}", report::describe(drawn));
    }
}

#[test]
fn programs_end_and_do_the_same_on_a_machine_with_more_memory() {
    for model in [Model::Skylake, Model::Zen2] {
        let programs = draw(model, 0..50);
        let first = run(model, Way::Stepping, &programs);
        let again = run(model, Way::Elsewhere, &programs);
        report::same(&programs, &first, &again);
    }
}
