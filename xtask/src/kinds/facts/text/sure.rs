//! How sure the figures of caches and TLBs are, by the evidence that a record has of them.
//!
//! Ways and sets are determined from whether lines fit. What a line takes that does not fit is a step, from this level to the next one; a try
//! that takes neither nearly nothing of a step, nor nearly one or more, is doubtful. Latencies are of single loads, and the walk in
//! random order is another way to the same figure.

use super::number;
use protocol::record::{CacheFact, Fit, MemoryFacts, PolicyEvidence, TlbFact};

/// In words: how many of so many tries are doubtful.
fn tries(doubtful: usize, all: usize) -> String {
    match (doubtful, all) {
        (_, 0) => String::new(),
        (0, _) => "steady".to_string(),
        (doubtful, all) if doubtful * 8 <= all => format!("varies: {doubtful} of {all} tries"),
        (doubtful, all) => format!("unsteady: {doubtful} of {all} tries"),
    }
}

/// Of fits of a level that takes so many tenths for each place, where the next one takes more.
fn fits(evidence: &[Fit], own: u64, next: u64) -> String {
    let step = next.saturating_sub(own).max(1) * 10;
    let is_doubtful = |fit: &&Fit| {
        let expected = u64::from(fit.places) * own;
        // In hundredths of a cycle, as the step.
        let over = (fit.cycles * 10).saturating_sub(expected) * 10;
        // What several places take may be a little more than as many times one.
        let slack = step / 4 + expected * 10 / 16;
        if fit.fits { over > slack } else { over < step * 3 / 4 }
    };
    tries(evidence.iter().filter(is_doubtful).count(), evidence.len())
}

/// Of the bytes of a line: loads on it are hits, and loads behind it are not.
pub(super) fn line(memory: &MemoryFacts) -> String {
    let Some(line) = memory.line.map(u64::from) else { return String::new() };
    let miss = memory.line_evidence.iter().map(|[_, cost]| *cost).max().unwrap_or(0);
    let is_doubtful = |[far, cost]: &&[u64; 2]| match *far < line {
        true => *cost * 4 > miss,
        false => *cost * 4 < miss * 3,
    };
    let doubtful = memory.line_evidence.iter().filter(is_doubtful).count();
    tries(doubtful, memory.line_evidence.len())
}

/// Of a cache's size and ways.
pub(super) fn cache(memory: &MemoryFacts, at: usize) -> String {
    let cache = &memory.caches[at];
    let (Some(own), Some(_)) = (cache.tenths, cache.ways) else { return String::new() };
    let next = memory.caches.get(at + 1).and_then(|next| next.tenths);
    let beyond = |tenths: u64| tenths.saturating_sub(memory.first_tenths);
    fits(&cache.evidence, beyond(own), beyond(next.unwrap_or(memory.memory_tenths)))
}

/// Of a TLB's.
pub(super) fn tlb(memory: &MemoryFacts, at: usize) -> String {
    let tlb = &memory.tlbs[at];
    let (Some(own), Some(_)) = (tlb.tenths, tlb.ways) else { return String::new() };
    let is_next = |other: &&TlbFact| other.page == tlb.page && other.level == tlb.level + 1;
    let next = memory.tlbs.iter().find(is_next).and_then(|next| next.tenths);
    fits(&tlb.evidence, own, next.unwrap_or(tlb.walk_tenths))
}

/// Of a policy: from an empty set on, a sequence ends in a hit always or never.
pub(super) fn policy(evidence: Option<&PolicyEvidence>) -> String {
    let Some(evidence) = evidence else { return String::new() };
    let is_doubtful = |hits: &u32| *hits != 0 && *hits != evidence.runs;
    let all = &evidence.sequences;
    tries(all.iter().map(|one| one.hits).filter(is_doubtful).count(), all.len())
}

/// Of a latency, by the walk: in the largest working set that a cache holds, loads take no more than it does, and more than the level in
/// front.
pub(super) fn latency(
    memory: &MemoryFacts,
    cache: &CacheFact,
    front: Option<&CacheFact>,
) -> String {
    let (Some(bytes), Some(tenths)) = (cache.bytes(), cache.tenths) else { return String::new() };
    let within =
        memory.curve.iter().filter(|point| point.bytes <= bytes).max_by_key(|point| point.bytes);
    let Some(point) = within else { return String::new() };
    let least = front.and_then(|front| front.tenths).map_or(tenths * 9 / 10, |front| front);
    walk(point.tenths, least..=tenths * 11 / 10)
}

/// Of the memory's: the largest working set has some of its lines in caches, and may miss TLBs.
pub(super) fn memory(memory: &MemoryFacts) -> String {
    let Some(point) = memory.curve.last() else { return String::new() };
    walk(point.tenths, memory.memory_tenths * 3 / 4..=memory.memory_tenths * 5 / 4)
}

fn walk(tenths: u64, expected: std::ops::RangeInclusive<u64>) -> String {
    match expected.contains(&tenths) {
        true => "agrees with the walk".to_string(),
        false => format!("the walk has {}", number(tenths as f64 / 10.0)),
    }
}

#[cfg(test)]
mod edges;
#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::{CurvePoint, PolicySequence};

    fn fit(places: u32, cycles: u64, fits: bool) -> Fit {
        Fit { stride: 4096, places, cycles, fits }
    }

    /// Caches of 4 and 14 cycles before memory of 100.
    fn sheet() -> MemoryFacts {
        let cache = |level: u32, tenths, evidence| CacheFact {
            level,
            tenths: Some(tenths),
            ways: Some(8),
            set_stride: Some(4096 << (2 * level)),
            evidence,
            ..CacheFact::default()
        };
        let first = vec![fit(8, 0, true), fit(9, 10, false), fit(16, 160, false)];
        let second = vec![fit(8, 80, true), fit(9, 180, false)];
        let point = |bytes, tenths| CurvePoint { bytes, tenths };
        MemoryFacts {
            line: Some(64),
            line_evidence: vec![[8, 0], [32, 1], [64, 90], [128, 96]],
            first_tenths: 40,
            memory_tenths: 1000,
            caches: vec![cache(1, 40, first), cache(2, 140, second)],
            curve: vec![point(64 << 10, 40), point(512 << 10, 130), point(64 << 20, 950)],
            ..MemoryFacts::default()
        }
    }

    #[test]
    fn d1_evidence_that_is_clear_is_steady() {
        let sheet = sheet();
        assert_eq!(
            (line(&sheet), cache(&sheet, 0), cache(&sheet, 1)),
            ("steady".into(), "steady".into(), "steady".into())
        );
        let [first, second] = &sheet.caches[..] else { panic!("two caches") };
        assert_eq!(latency(&sheet, first, None), "agrees with the walk");
        assert_eq!(latency(&sheet, second, Some(first)), "agrees with the walk");
        assert_eq!(memory(&sheet), "agrees with the walk");
    }

    #[test]
    fn d1_evidence_between_a_hit_and_a_miss_is_doubtful() {
        let mut sheet = sheet();
        // Half of a step of 10 cycles, on either side.
        sheet.caches[0].evidence[0].cycles = 5;
        assert_eq!(cache(&sheet, 0), "unsteady: 1 of 3 tries");
        sheet.caches[0].evidence[0].cycles = 0;
        sheet.caches[0].evidence[1].cycles = 5;
        assert_eq!(cache(&sheet, 0), "unsteady: 1 of 3 tries");
        sheet.line_evidence[1] = [32, 50];
        assert_eq!(line(&sheet), "unsteady: 1 of 4 tries");
        sheet.curve[2].tenths = 700;
        assert_eq!(memory(&sheet), "the walk has 70");
        sheet.curve[1].tenths = 170;
        assert_eq!(latency(&sheet, &sheet.caches[1], Some(&sheet.caches[0])), "the walk has 17");
        // What is not determined is not sure of anything.
        sheet.caches[1].ways = None;
        assert_eq!(cache(&sheet, 1), "");
        let tlb_fact = TlbFact {
            level: 1,
            page: 4096,
            tenths: Some(0),
            ways: Some(4),
            sets: Some(16),
            walk_tenths: 300,
            evidence: vec![fit(4, 0, true), fit(5, 14, false)],
            ..TlbFact::default()
        };
        sheet.tlbs = vec![tlb_fact];
        assert_eq!(tlb(&sheet, 0), "unsteady: 1 of 2 tries");
        sheet.tlbs[0].evidence[1].cycles = 31;
        assert_eq!(tlb(&sheet, 0), "steady");
    }

    #[test]
    fn d1_a_policy_is_as_sure_as_its_sequences_repeat() {
        let sequence = |hits| PolicySequence { lines: "010".into(), hits };
        let mut evidence = PolicyEvidence { ways: 4, runs: 3, sequences: vec![sequence(3); 8] };
        assert_eq!(policy(Some(&evidence)), "steady");
        evidence.sequences.push(sequence(1));
        assert_eq!(policy(Some(&evidence)), "varies: 1 of 9 tries");
        assert_eq!(policy(None), "");
    }
}
