//! Which processors share a cache: CPUID's word, next to how quickly a line goes between them.
//!
//! CPUID has for each cache how many ids of local APICs share it, of the processor that was asked (SDM vol. 2, leaf 4, EAX\[25:14\];
//! APM vol. 3, 0x8000001D): ids that are alike without their lowest bits. A line between two processors of a group goes through that
//! cache. So such pairs must be nearer than those of two groups; those that share a cache of an inner level as well are left out.

use super::told::Says;
use super::{Row, number};
use protocol::record::{CoreFacts, FactsResult, LineMatrix};

/// Levels of caches that CPUID can have.
const LEVELS: std::ops::RangeInclusive<u32> = 1..=4;

/// A row for each cache.
pub(crate) fn rows(sheet: &FactsResult, facts: &CoreFacts) -> Vec<Row> {
    if facts.processors.len() < 2 {
        return Vec::new();
    }
    let says = Says::of(&sheet.cpuid);
    let levels = LEVELS.filter_map(|level| Some((level, says.cache(level)?.shared())));
    let levels: Vec<(u32, u32)> = levels.collect();
    let row = |(place, (level, shared)): (usize, &(u32, u32))| {
        let inner = place.checked_sub(1).map_or(1, |inner| levels[inner].1);
        let (told, evidence) = compared(facts, inner, *shared);
        Row {
            figure: format!("L{level} data, shared by"),
            value: groups(facts, *shared),
            told,
            evidence: format!("CPUID of the boot processor; {evidence}"),
        }
    };
    levels.iter().enumerate().map(row).collect()
}

/// What ids of APICs have in common if so many of them share something.
const fn group(apic_id: u32, shared: u32) -> u32 {
    match apic_id.checked_shr(shared.next_power_of_two().trailing_zeros()) {
        Some(group) => group,
        None => 0,
    }
}

/// Numbers of the processors, group by group.
fn groups(facts: &CoreFacts, shared: u32) -> String {
    let mut all: std::collections::BTreeMap<u32, Vec<String>> = std::collections::BTreeMap::new();
    for one in &facts.processors {
        all.entry(group(one.apic_id, shared)).or_default().push(one.number.to_string());
    }
    if all.values().all(|group| group.len() == 1) {
        return "nobody".to_string();
    }
    all.values().map(|group| group.join(" ")).collect::<Vec<_>>().join(" | ")
}

/// How far the times of a line agree.
fn compared(facts: &CoreFacts, inner: u32, shared: u32) -> (String, String) {
    if facts.in_turn {
        return ("not compared".into(), "a line's time is that of turns".into());
    }
    let Some(matrix) = facts.matrices.first() else {
        return ("not compared".into(), "no line was passed".into());
    };
    let [mut inside, mut between] = pairs(facts, matrix, inner, shared);
    let (Some(near), Some(far)) = (median(&mut inside), median(&mut between)) else {
        let lacks = if inside.is_empty() { "inside a group" } else { "between groups" };
        return ("not compared".into(), format!("there is no pair {lacks}"));
    };
    // Half of the pairs inside are nearer than `near`, and all but a tenth have to be nearer than the middle one of the others.
    let strays = inside.iter().filter(|ticks| **ticks >= far).count();
    let told = match (near < far, strays * 10 <= inside.len()) {
        (true, true) => "agrees".to_string(),
        (true, false) => format!("varies: {strays} of {} pairs contradict", inside.len()),
        (false, _) => "contradicts".to_string(),
    };
    let ticks = |tenths: u64| number(tenths as f64 / 10.0);
    let (near, far) = (ticks(near), ticks(far));
    (told, format!("a line takes {near} ticks inside a group, {far} between groups"))
}

/// Medians of pairs inside a group that share nothing nearer, and between groups.
fn pairs(facts: &CoreFacts, matrix: &LineMatrix, inner: u32, shared: u32) -> [Vec<u64>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for (one, row) in facts.processors.iter().zip(&matrix.tenths) {
        for (other, cell) in facts.processors.iter().zip(row) {
            let Some([_, median, _]) = cell else { continue };
            let is_one = |shared| group(one.apic_id, shared) == group(other.apic_id, shared);
            match (is_one(inner), is_one(shared)) {
                (true, _) => {}
                (false, same) => all[usize::from(!same)].push(*median),
            }
        }
    }
    all
}

fn median(ticks: &mut [u64]) -> Option<u64> {
    ticks.sort_unstable();
    ticks.get(ticks.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::{CorePlace, LineAccess};

    /// Processors, whose lines take the time of the nearest cache that both share.
    fn machine(count: u32, really: &[u32], draw: &mut impl FnMut(u64) -> u64) -> CoreFacts {
        let place = |number| CorePlace { number, apic_id: number, core: number, package: 0 };
        let mut time = |one: u32, other: u32| {
            let level =
                really.iter().position(|shared| group(one, *shared) == group(other, *shared));
            let tenths = 300 + 400 * level.unwrap_or(really.len()) as u64 + draw(100);
            (one != other).then_some([tenths, tenths, tenths])
        };
        let row = |one| (0..count).map(|other| time(one, other)).collect();
        let tenths = (0..count).map(row).collect();
        let matrix = LineMatrix { by: LineAccess::Plain, rounds: 1, samples: 1, tenths };
        CoreFacts {
            processors: (0..count).map(place).collect(),
            matrices: vec![matrix],
            ..CoreFacts::default()
        }
    }

    #[test]
    fn d1_sharing_as_cpuid_has_it_agrees_on_200_machines_and_a_wrong_one_contradicts() {
        let mut state = 5u64;
        let mut draw = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..200 {
            let threads = 1 << draw(2);
            let second = threads << draw(3);
            let third = second << (1 + draw(2));
            let groups = 2 + draw(3) as u32;
            let really = [threads, second, third];
            let facts = machine(third * groups, &really, &mut draw);
            for (inner, shared) in [(threads, second), (second, third)] {
                let (told, evidence) = compared(&facts, inner, shared);
                let alone = inner == shared;
                assert_eq!(told, if alone { "not compared" } else { "agrees" }, "{evidence}");
            }
            // The last level is said to be shared by neighbours that in truth share nothing.
            let shifted = CoreFacts {
                processors: facts
                    .processors
                    .iter()
                    .map(|one| CorePlace { apic_id: one.apic_id.reverse_bits() >> 20, ..*one })
                    .collect(),
                ..facts
            };
            let (told, evidence) = compared(&shifted, 1, 1 << 11);
            let told = told.split(':').next().unwrap();
            assert!(matches!(told, "contradicts" | "varies"), "{told}: {evidence}");
        }
    }

    #[test]
    fn d1_groups_are_named_by_numbers_of_processors() {
        let facts = machine(4, &[1], &mut |_| 0);
        assert_eq!(groups(&facts, 2), "0 1 | 2 3");
        assert_eq!(groups(&facts, 1), "nobody");
        assert_eq!(groups(&facts, 3), "0 1 2 3");
        let in_turn = CoreFacts { in_turn: true, ..facts };
        assert_eq!(compared(&in_turn, 1, 2).0, "not compared");
    }

    #[test]
    fn d1_a_group_whose_lines_are_no_nearer_than_others_contradicts() {
        // All four share one cache: each pair takes as long as any other.
        let facts = machine(4, &[1, 4], &mut |_| 0);
        let (told, evidence) = compared(&facts, 1, 2);
        assert_eq!(told, "contradicts");
        assert_eq!(evidence, "a line takes 70 ticks inside a group, 70 between groups");
    }
}
