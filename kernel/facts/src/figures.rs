//! All figures, one after the other.

use crate::curve;
use crate::finder::{Finder, Level, TRIES, What};
use crate::policy;
use crate::prefetch;
use crate::probe::{Flush, LARGE, Probe, Run};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{CacheFact, MemoryFacts, TlbFact};

/// A line, where it is not determined: that of every x86-64 processor so far.
const USUAL_LINE: u32 = 64;
/// Cycles by which a miss of the first level is slower than a hit, at least.
const MISS: u64 = 3;

/// Finds out what the caches and TLBs are.
pub fn measure(probe: &mut impl Probe) -> MemoryFacts {
    let (line, line_evidence) = line(probe);
    let bytes = u64::from(line.unwrap_or(USUAL_LINE));
    let first_tenths = probe.hit_tenths();
    let farthest = cold(probe, bytes);
    let levels = Finder::new(probe, What::Caches, bytes, farthest, 0).levels();
    let cache = |(at, level): (usize, &Level)| CacheFact {
        level: at as u32 + 1,
        tenths: is_there(at, level).then_some(first_tenths + 10 * level.cycles),
        ways: level.shape.map(|(ways, _)| ways),
        set_stride: level.shape.map(|(_, stride)| stride),
        reason: level.reason.map(ToString::to_string),
        evidence: level.evidence.clone(),
        policy: policy::evidence(probe, bytes, &levels[..=at]),
    };
    let caches: Vec<CacheFact> = levels.iter().enumerate().map(cache).collect();
    let ways = caches.first().and_then(|first| first.ways).unwrap_or(1);
    let mut tlbs = Vec::new();
    for what in [What::SmallPages, What::LargePages] {
        tlbs.extend(tlb(probe, what, bytes, ways));
    }
    MemoryFacts {
        line,
        line_evidence,
        first_tenths,
        memory_tenths: first_tenths + 10 * farthest,
        caches,
        tlbs,
        prefetch: Some(prefetch::measure(probe, bytes, farthest).into()),
        crossing_tenths: crossings(probe, bytes),
        curve: curve::measure(probe, bytes, first_tenths),
    }
}

/// Whether it is determined that there is such a level.
const fn is_there(at: usize, level: &Level) -> bool {
    at == 0 || level.cycles > 0
}

/// The bytes of a line: how far from a line that is there a load does not find its data.
fn line(probe: &mut impl Probe) -> (Option<u32>, Vec<[u64; 2]>) {
    const LINES: u64 = 8;
    let (mut line, mut evidence) = (None, Vec::new());
    for distance in [8, 16, 32, 64, 128, 256] {
        // Of different sets, in one large page.
        let there = (0..LINES).map(|index| (index * (8192 + 512)) | LARGE);
        let beside = there.clone().map(|place| place + distance);
        let places: Vec<u64> = there.chain(beside).collect();
        let run = Run { flush: Flush::Caches, places: &places, skip: LINES as usize, tries: TRIES };
        let cycles = probe.cycles(&run);
        evidence.push([distance, cycles / LINES]);
        if cycles > LINES * MISS && line.is_none() {
            line = Some(distance as u32);
        }
    }
    // A prefetcher that is quick enough would hide it.
    (line.filter(|line| *line > 8), evidence)
}

/// Cycles of a load that no cache serves, beyond a hit.
fn cold(probe: &mut impl Probe, line: u64) -> u64 {
    // The first one brings the page.
    let places = [(probe.large_page() / 2 + 3 * line) | LARGE, LARGE];
    probe.cycles(&Run { flush: Flush::Caches, places: &places, skip: 1, tries: TRIES })
}

fn tlb(probe: &mut impl Probe, what: What, line: u64, ways: u32) -> Vec<TlbFact> {
    let (flag, page) = match what {
        What::LargePages => (LARGE, probe.large_page()),
        _ => (0, 4096),
    };
    let run = Run { flush: Flush::Tlbs, places: &[flag], skip: 0, tries: TRIES + 1 };
    let walk = probe.cycles(&run);
    if walk <= MISS {
        // The page tables are as quick as a TLB, or the TLBs cannot be emptied.
        let reason = Some("an empty TLB makes loads no slower".to_string());
        return [TlbFact { level: 1, page, reason, ..TlbFact::default() }].into();
    }
    let levels = Finder::new(probe, what, line, walk, ways).levels();
    let fact = |(at, level): (usize, Level)| TlbFact {
        level: at as u32 + 1,
        page,
        tenths: is_there(at, &level).then_some(10 * level.cycles),
        ways: level.shape.map(|(ways, _)| ways),
        sets: level.shape.map(|(_, stride)| (stride / page) as u32),
        reason: level.reason.map(ToString::to_string),
        walk_tenths: 10 * walk,
        evidence: level.evidence,
    };
    levels.into_iter().enumerate().map(fact).collect()
}

/// Tenths of a cycle that loads take beyond others which cross a line, and a page of 4 KiB.
fn crossings(probe: &mut impl Probe, line: u64) -> [u64; 2] {
    const PLACES: u64 = 3;
    let mut of = |distance: u64, edge: u64| {
        let edges = (0..PLACES).map(|index| index * distance + edge);
        // Both lines are there, each by another of its words.
        let warm = edges.clone().flat_map(|edge| [edge - 16, edge + 8]);
        let places: Vec<u64> = warm.chain(edges.map(|edge| edge - 4)).collect();
        let skip = 2 * PLACES as usize;
        let run = Run { flush: Flush::Caches, places: &places, skip, tries: TRIES };
        probe.cycles(&run) * 10 / PLACES
    };
    [of(2 * line, line), of(2 * 4096, 4096)]
}

#[cfg(test)]
mod tests {
    use crate::chain::Chain;
    use crate::probe::LARGE;

    #[test]
    fn a_chain_uses_another_word_of_a_line_each_time() {
        let mut chain = Chain::default();
        [0, 64, LARGE, 0].into_iter().for_each(|place| chain.load(place));
        assert_eq!((chain.visits(0), chain.visits(64), chain.len()), (3, 1, 4));
    }
}
