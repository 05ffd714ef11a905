//! The table of direct jumps.

use super::Row;
use crate::primitives::number;
use protocol::record::{DirectFact, DirectLoops};

pub(super) fn row(fact: &DirectFact, unit: &str) -> Row {
    let doubtful: u32 = fact.loops.iter().map(|one| one.doubtful).sum();
    let shown: Vec<String> = fact.loops.iter().filter_map(steps).collect();
    Row {
        figure: "direct jumps".to_string(),
        value: fact.entries.map_or("not told".to_string(), |entries| format!("{entries} entries")),
        told: match (fact.entries, doubtful) {
            (None, _) => String::new(),
            (_, 0) => "steady".to_string(),
            (_, 1) => "varies in 1 loop".to_string(),
            (_, loops) => format!("varies in {loops} loops"),
        },
        evidence: match shown.is_empty() {
            true => String::new(),
            false => format!("{unit} of each jump of a loop: {}", shown.join("; ")),
        },
    }
}

/// Of one distance: up to so many jumps each costs so much, then more.
fn steps(loops: &DirectLoops) -> Option<String> {
    let cost = |tenths: u64| number(tenths as f64 / 10.0);
    let [.., after] = loops.steps.last()?;
    let before = loops.steps.iter();
    let before = before.map(|[jumps, before, _]| format!("{} up to {jumps}", cost(*before)));
    let before: Vec<String> = before.collect();
    Some(format!("{} bytes apart {}, then {}", loops.distance, before.join(", "), cost(*after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_a_table_of_direct_jumps_is_told_by_the_steps_of_its_loops() {
        let of = |distance, steps| DirectLoops { distance, steps, ..DirectLoops::default() };
        let two = vec![[512, 10, 45], [4096, 45, 123]];
        let mut loops = vec![of(8, Vec::new()), of(16, two), of(32, vec![[2048, 10, 20]])];
        let entries = Some(4096);
        let fact = DirectFact { entries, reason: None, loops: loops.clone() };
        let told = row(&fact, "cycles");
        assert_eq!((&*told.value, &*told.told), ("4096 entries", "steady"));
        assert_eq!(
            told.evidence,
            "cycles of each jump of a loop: 16 bytes apart 1 up to 512, 4.5 up to 4096, then 12.3; 32 bytes apart 1 up to 2048, then 2"
        );
        loops[0].doubtful = 1;
        loops[2].doubtful = 2;
        let told = row(&DirectFact { loops, ..fact }, "cycles").told;
        assert_eq!(told, "varies in 3 loops");
        let nothing = row(&DirectFact::default(), "cycles");
        assert_eq!((&*nothing.value, &*nothing.evidence), ("not told", ""));
    }
}
