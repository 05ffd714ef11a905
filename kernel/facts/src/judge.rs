//! Which replacement policies a cache's evidence leaves.

use alloc::vec;
use alloc::vec::Vec;
use pmu_model::uarch::replacement::{Dice, Policy, Set};
use protocol::record::{CacheFact, PolicyEvidence};

/// What is determined of a policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Told {
    /// These do what was seen, and no other one that is known.
    OneOf(Vec<Policy>),
    /// The same accesses gave different results: a random policy, or one that looks at more than the set.
    Random,
    /// None of those that are known.
    NoneKnown,
    /// It was not looked for, or the level in front does not let every access through.
    NotTold(&'static str),
}

/// The policies that are left for cache number `level` of these, from 0.
#[must_use]
pub fn policies(caches: &[CacheFact], level: usize) -> Told {
    let Some(evidence) = caches.get(level).and_then(|cache| cache.policy.as_ref()) else {
        return Told::NotTold("its sets and ways are not told, or are too many");
    };
    let random = |cache: &CacheFact| cache.policy.as_ref().is_some_and(is_random);
    if caches[..level].iter().any(random) {
        return Told::NotTold("a level in front is random, and keeps lines that it should lose");
    }
    if is_random(evidence) {
        return Told::Random;
    }
    let left: Vec<Policy> = Policy::all(evidence.ways as usize)
        .filter(|policy| *policy != Policy::Random && agrees(*policy, evidence))
        .collect();
    if left.is_empty() { Told::NoneKnown } else { Told::OneOf(left) }
}

/// Whether sequences gave now this, now that.
fn is_random(evidence: &PolicyEvidence) -> bool {
    evidence.sequences.iter().any(|one| one.hits != 0 && one.hits != evidence.runs)
}

fn agrees(policy: Policy, evidence: &PolicyEvidence) -> bool {
    evidence.sequences.iter().all(|one| {
        let lines: Vec<u32> = one.lines.chars().filter_map(|line| line.to_digit(36)).collect();
        last_hits(policy, evidence.ways, &lines) == (one.hits > 0)
    })
}

/// Whether the last access of a sequence finds its line.
#[must_use]
pub fn last_hits(policy: Policy, ways: u32, lines: &[u32]) -> bool {
    let ways = ways as usize;
    let (mut tags, mut state, mut dice) = (vec![0; ways], vec![0; ways], Dice::NEW);
    let mut set = Set { tags: &mut tags, state: &mut state };
    let mut hit = false;
    for line in lines {
        hit = set.touch(u64::from(*line) + 1, policy, &mut dice);
    }
    hit
}
