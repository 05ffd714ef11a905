//! The micro-op cache, the loop buffer and the decoders.

use super::{Row, instructions};
use crate::primitives::number;
use protocol::record::{FrontEndFact, NopLoops};

pub(super) fn rows(fact: &FrontEndFact, unit: &str) -> [Row; 3] {
    let entries = |entries: Option<u32>| entries.map(|entries| format!("{entries} entries"));
    let untold = || "not told".to_string();
    let none = if fact.loops.is_empty() { "not told" } else { "none seen" };
    let row = |figure: &str, value: String, is_told: bool, evidence| Row {
        figure: figure.to_string(),
        value,
        told: if is_told { sureness(fact) } else { String::new() },
        evidence,
    };
    let steps = |looped: bool| {
        let shown: Vec<String> = fact.loops.iter().flat_map(|one| steps(one, looped)).collect();
        match shown.is_empty() {
            true => String::new(),
            false => format!("{unit} of each NOP of a loop: {}", shown.join("; ")),
        }
    };
    [
        row(
            "micro-op cache",
            entries(fact.uop_cache).unwrap_or_else(untold),
            fact.uop_cache.is_some(),
            steps(false),
        ),
        row(
            "loop buffer",
            entries(fact.loop_buffer).unwrap_or_else(|| none.to_string()),
            fact.loop_buffer.is_some(),
            steps(true),
        ),
        row(
            "decoding",
            fact.decode.map_or_else(untold, instructions),
            fact.decode.is_some(),
            longest(fact, unit),
        ),
    ]
}

fn sureness(fact: &FrontEndFact) -> String {
    match fact.loops.iter().map(|one| one.doubtful).sum() {
        0 => "steady".to_string(),
        1 => "varies in 1 loop".to_string(),
        loops => format!("varies in {loops} loops"),
    }
}

/// Of one density, where a loop buffer can be or beyond it: up to so many instructions each costs so much, then more.
fn steps(loops: &NopLoops, looped: bool) -> impl Iterator<Item = String> + '_ {
    let is_own = move |[instructions, ..]: &&[u64; 3]| {
        (*instructions <= FrontEndFact::MOST_LOOPED.into()) == looped
    };
    let own = loops.steps.iter().filter(is_own);
    own.map(|[instructions, before, after]| {
        let [before, after] = [before, after].map(|cost| thousandths(*cost));
        format!("{} in 32 bytes {before} up to {instructions}, then {after}", loops.density)
    })
}

/// The longest loop of the densest NOPs.
fn longest(fact: &FrontEndFact, unit: &str) -> String {
    let densest = fact.loops.iter().max_by_key(|one| one.density);
    let last = densest.and_then(|one| one.evidence.last());
    last.map_or_else(String::new, |[instructions, each]| {
        format!("{} {unit} of each instruction of a loop of {instructions}", thousandths(*each))
    })
}

fn thousandths(cost: u64) -> String {
    number(cost as f64 / 1000.0)
}

/// What was not determined, and why, in sentences.
pub(super) fn untold(fact: &FrontEndFact) -> impl Iterator<Item = String> + '_ {
    let cache = fact.reason.iter().map(|why| format!("the micro-op cache: {why}"));
    cache.chain(fact.decode_reason.iter().map(|why| format!("the width of decoding: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_a_front_end_is_told_by_the_steps_of_its_loops() {
        let of = |density, steps: &[[u64; 3]], last| NopLoops {
            density,
            steps: steps.to_vec(),
            doubtful: 0,
            evidence: vec![[24, 167], last],
        };
        let loops = vec![
            of(6, &[[64, 167, 200], [1536, 200, 333]], [5000, 333]),
            of(16, &[[64, 167, 200]], [14_000, 252]),
        ];
        let (uop_cache, loop_buffer, decode) = (Some(1536), Some(64), Some(4));
        let fact =
            FrontEndFact { uop_cache, loop_buffer, decode, loops, ..FrontEndFact::default() };
        let [cache, buffer, decoding] = rows(&fact, "cycles");
        assert_eq!((&*cache.value, &*cache.told), ("1536 entries", "steady"));
        let steps = "cycles of each NOP of a loop: 6 in 32 bytes 0.2 up to 1536, then 0.333";
        assert_eq!(cache.evidence, steps);
        assert_eq!((&*buffer.value, &*buffer.told), ("64 entries", "steady"));
        assert!(buffer.evidence.ends_with("; 16 in 32 bytes 0.167 up to 64, then 0.2"));
        assert_eq!(decoding.value, "4 instructions a cycle");
        assert_eq!(decoding.evidence, "0.252 cycles of each instruction of a loop of 14000");
        let mut doubtful = fact.clone();
        doubtful.loops[0].doubtful = 2;
        doubtful.loop_buffer = None;
        let [cache, buffer, _] = rows(&doubtful, "cycles");
        assert_eq!((&*cache.told, &*buffer.value), ("varies in 2 loops", "none seen"));
        assert_eq!(buffer.told, "");
        let nothing = rows(&FrontEndFact::default(), "cycles");
        assert!(nothing.iter().all(|row| row.value == "not told" && row.evidence.is_empty()));
        let [reason, decode_reason] = ["why", "that"].map(|why| Some(why.to_string()));
        let fact = FrontEndFact { reason, decode_reason, ..FrontEndFact::default() };
        let all: Vec<String> = untold(&fact).collect();
        assert_eq!(all, ["the micro-op cache: why", "the width of decoding: that"]);
    }
}
