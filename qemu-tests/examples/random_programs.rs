//! The random programs of the test of this name, for those who look for what makes one of them differ: runs some of them by
//! stepping and by the plugin, and says in what they differ.
//!
//! `cargo run -p qemu-tests --example random_programs -- show 0..50 --model haswell`
#![allow(dead_code, reason = "the test uses more of what both share")]

#[path = "../tests/random_programs/access.rs"]
mod access;
#[path = "../tests/random_programs/assemble.rs"]
mod assemble;
#[path = "../tests/random_programs/compatibility.rs"]
mod compatibility;
#[path = "../tests/random_programs/draw.rs"]
mod draw;
#[path = "../tests/random_programs/emit.rs"]
mod emit;
#[path = "../tests/random_programs/flow.rs"]
mod flow;
#[path = "../tests/random_programs/fragment.rs"]
mod fragment;
#[path = "../tests/random_programs/machine.rs"]
mod machine;
#[path = "../tests/random_programs/plan.rs"]
mod plan;
#[path = "../tests/random_programs/report.rs"]
mod report;
#[path = "../tests/random_programs/strategy.rs"]
mod strategy;
#[path = "../tests/random_programs/system.rs"]
mod system;

use clap::{Parser, ValueEnum};
use draw::{draw, smallest};
use machine::{Way, run};
use pmu_model::Model;
use std::ops::Range;
use xtask::output::say;

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// What differs; of a single program, all that is known of it as well.
    Show,
    /// Each of them that differs, as small as it can be made in a minute and a half.
    Smaller,
}

/// Random programs, counted by stepping and by the plugin.
#[derive(Parser)]
struct Arguments {
    what: What,
    /// Numbers of programs.
    #[arg(value_name = "FROM..TO", value_parser = numbers)]
    programs: Range<u64>,
    #[arg(long, default_value = "skylake", value_parser = model)]
    model: Model,
    /// Code is translated for what each program counts, not for what those before it counted as well.
    #[arg(long)]
    exact: bool,
}

fn numbers(text: &str) -> Result<Range<u64>, String> {
    let parsed =
        text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed
        .filter(|range| !range.is_empty())
        .ok_or_else(|| "not two numbers, FROM..TO, with FROM below TO".to_string())
}

fn model(text: &str) -> Result<Model, String> {
    Model::by_name(text).ok_or_else(|| {
        let names: Vec<_> = xtask::cli::models().map(|model| model.spec().name).collect();
        format!("not one of {}", names.join(", "))
    })
}

fn main() {
    let Arguments { what, programs, model, exact } = Arguments::parse();
    let ways = [Way::Stepping, if exact { Way::Exact } else { Way::Plugin }];
    match what {
        What::Show => show(model, programs, ways),
        What::Smaller => programs.for_each(|number| match smallest(number, model, ways) {
            Some((drawn, text)) => say(&format!("{text}{}", report::describe(&drawn))),
            None => say(&format!("program {number} is the same where it runs alone")),
        }),
    }
}

fn show(model: Model, numbers: Range<u64>, ways: [Way; 2]) {
    let mut programs = draw(model, numbers);
    programs.iter_mut().for_each(|drawn| drawn.assembled.program.detailed = true);
    let [stepping, plugin] = ways.map(|way| run(model, way, &programs));
    if let ([drawn], [report]) = (&programs[..], &stepping[..]) {
        say(&format!("{}{report:#?}", report::describe(drawn)));
    }
    let differences = report::all_differences(&programs, &stepping, &plugin);
    say(if differences.is_empty() { "no difference" } else { differences.trim_end() });
}
