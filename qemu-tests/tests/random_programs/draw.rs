//! Programs by number: the same number is the same program, on every machine and at any time.

use super::assemble::{Assembled, assemble};
use super::fragment::Code;
use super::machine::{Way, run};
use super::plan::{PmuPlan, resolve};
use super::report::difference;
use super::strategy;
use pmu_model::Model;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A program for a model.
pub struct Drawn {
    pub number: u64,
    pub code: Code,
    pub plan: PmuPlan,
    pub assembled: Assembled,
    /// What each counter counts.
    pub counters: Vec<String>,
}

/// The tree of program `number`, to be made smaller.
pub fn tree(number: u64) -> impl ValueTree<Value = (Code, PmuPlan)> {
    let mut seed = [0x5a; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy::program().new_tree(&mut runner).unwrap_or_else(|reason| panic!("{number}: {reason}"))
}

/// A program written down for a model.
pub fn build(number: u64, model: Model, code: Code, plan: PmuPlan) -> Drawn {
    let (pmu, counters) = resolve(&plan, model);
    let assembled = assemble(&code, pmu).unwrap_or_else(|error| panic!("{number}: {error}"));
    Drawn { number, code, plan, assembled, counters }
}

/// Programs for a model.
pub fn draw(model: Model, numbers: Range<u64>) -> Vec<Drawn> {
    numbers
        .map(|number| {
            let (code, plan) = tree(number).current();
            build(number, model, code, plan)
        })
        .collect()
}

/// The smallest program found, starting from program `number`, of which the two ways say different things, and what they
/// say. `None` if they agree where it is the only one.
pub fn smallest(number: u64, model: Model, ways: [Way; 2]) -> Option<(Drawn, String)> {
    // A boot takes a second or two, and somebody waits.
    const PATIENCE: Duration = Duration::from_secs(90);
    let start = Instant::now();
    let differing = |(code, plan): (Code, PmuPlan)| {
        let mut drawn = build(number, model, code, plan);
        drawn.assembled.program.detailed = true;
        let programs = [drawn];
        let [one, other] = ways.map(|way| run(model, way, &programs));
        let (_, text) = difference(&programs, &one, &other)?;
        let [drawn] = programs;
        Some((drawn, text))
    };
    let mut tree = tree(number);
    let mut found = differing(tree.current())?;
    let mut more = tree.simplify();
    while more && start.elapsed() < PATIENCE {
        more = match differing(tree.current()) {
            Some(smaller) => {
                found = smaller;
                tree.simplify()
            }
            None => tree.complicate(),
        };
    }
    Some(found)
}
