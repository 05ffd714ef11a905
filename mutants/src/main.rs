//! Runs cargo-mutants' mutants without a build for each.
//!
//! All mutants of a package are written into one copy of its source, each after a switch that is read when the tests
//! run (*mutant schemata*). What does not build is found by what the compiler says of the copy. One run of each test
//! states which mutants it reaches, and a mutant is tried on the tests that reach it. What is computed while the compiler
//! runs cannot be switched and gets a build of its own.
//!
//! The mutants are those of `cargo mutants --list --json`; the account has the form of its `outcomes.json`.

mod blame;
mod build;
mod copy;
mod group;
mod items;
mod journal;
mod mutant;
mod plan;
mod rewrite;
mod run;
mod sites;
mod tests;
mod text;

use anyhow::{Context, Result};
use clap::Parser;
use mutant::Mutant;
use std::path::PathBuf;
use std::{fs, process};

/// Runs mutants without a build for each.
#[derive(Parser)]
struct Arguments {
    /// The checkout.
    #[arg(long)]
    source: PathBuf,
    /// A copy of it, which is made and written to, with a build folder of its own.
    #[arg(long)]
    copy: PathBuf,
    /// What `cargo mutants --list --json` answered.
    #[arg(long)]
    list: PathBuf,
    /// The account that is written, in the form of `outcomes.json`.
    #[arg(long)]
    outcomes: PathBuf,
    /// Packages whose tests they are tried on; without any, those that have mutants.
    #[arg(long)]
    package: Vec<String>,
    /// Mutants that are tried at a time; without it, as many as there are processors.
    #[arg(long)]
    jobs: Option<usize>,
    /// The journal, in which each outcome is kept as soon as it is known.
    #[arg(long)]
    journal: PathBuf,
    /// Take over of the journal what was noticed, or does not build, in code that has not changed since.
    #[arg(long)]
    resume: bool,
    /// Leave out what needs a build of its own.
    #[arg(long)]
    no_alone: bool,
}

fn main() {
    if let Err(error) = start(&Arguments::parse()) {
        say(&format!("{error:#}"));
        process::exit(2);
    }
}

fn start(arguments: &Arguments) -> Result<()> {
    copy::copy(&arguments.source, &arguments.copy)?;
    let text = fs::read_to_string(&arguments.list).context("the list cannot be read")?;
    let mutants = Mutant::list(&text).context("the list is none of cargo-mutants")?;
    let tried = run::Run::new(&mutants, arguments)?.run()?;
    let outcomes: Vec<_> =
        tried.iter().map(|(number, fate, how)| mutants[*number].outcome(fate, how)).collect();
    let account = serde_json::to_string_pretty(&serde_json::json!({ "outcomes": outcomes }))?;
    fs::write(&arguments.outcomes, account).context("the account cannot be written")
}

/// Tells how far it is, and what is missed.
fn say(text: &str) {
    eprintln!("schemata: {text}");
}
