//! Blind recovery: caches and TLBs with parameters that a test draws, and what is determined of them.

mod draw;

use draw::Draw;
use facts::judge::{self, Told};
use facts::{Flush, LARGE, Probe, Run, measure};
use pmu_model::uarch::parameters::{CacheShape, Parameters, TlbShape};
use pmu_model::uarch::prefetcher::{PrefetcherShape, StreamShape};
use pmu_model::uarch::replacement::Policy;
use pmu_model::uarch::{Access, AccessKind, Hierarchy};
use pmu_model::{Delta, Occurrence, Ring};
use protocol::record::{MemoryFacts, Prefetched};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 2 * MIB;
/// Where the memory lies: by pages of 4 KiB, by large ones, and in the machine.
const SMALL: u64 = 0x3000_0020_0000;
const PHYSICAL: u64 = 0x4d60_0000;
const DIRECT: u64 = 0xffff_8000_0000_0000 + PHYSICAL;

/// The emulated PMU's caches, without what is around them.
struct Modelled {
    hierarchy: Hierarchy,
    hit: u64,
    bytes: u64,
}

impl Modelled {
    fn new(parameters: &Parameters, bytes: u64) -> Self {
        let hit = u64::from(parameters.caches[0].unwrap().cycles);
        Self { hierarchy: Hierarchy::new(parameters), hit, bytes }
    }

    /// Cycles beyond a hit.
    fn load(&mut self, place: u64) -> u64 {
        let (offset, large) = (place & !LARGE, place & LARGE != 0);
        let linear = if large { DIRECT } else { SMALL } + offset;
        let physical = PHYSICAL + offset;
        let access = Access {
            linear,
            physical,
            physical_next_page: (physical & !4095) + 4096,
            page_bits: if large { 21 } else { 12 },
            ..Access::identity(linear, 8, AccessKind::Load)
        };
        let mut delta = Delta::step(Ring::Kernel);
        self.hierarchy.access(&access, &mut delta);
        delta.count(Occurrence::MemoryStall) + 1 - self.hit
    }
}

impl Probe for Modelled {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn large_page(&self) -> u64 {
        PAGE
    }

    fn cycles(&mut self, run: &Run<'_>) -> u64 {
        let mut least = u64::MAX;
        for _ in 0..run.tries {
            match run.flush {
                Flush::Nothing => {}
                Flush::Caches => self.hierarchy.flush_caches(),
                Flush::Tlbs => self.hierarchy.flush_tlb(),
                Flush::Both => {
                    self.hierarchy.flush_caches();
                    self.hierarchy.flush_tlb();
                }
            }
            let mut sum = 0;
            for (at, place) in run.places.iter().enumerate() {
                let cycles = self.load(*place);
                sum += if at < run.skip { 0 } else { cycles };
            }
            least = least.min(sum);
        }
        least
    }

    fn hit_tenths(&mut self) -> u64 {
        self.hit * 10
    }

    fn walk_tenths(&mut self, bytes: u64, line: u64) -> u64 {
        // A short walk will do: the curve is not what is tested here.
        let lines = bytes / line;
        let step = (lines / 2 + 1) | 1;
        let mut sum = 0;
        for round in 0..2 {
            let mut at = 0;
            for _ in 0..lines.min(20_000) {
                at = (at + step) % lines;
                let cycles = self.load((at * line) | LARGE);
                sum += if round == 0 { 0 } else { cycles };
            }
        }
        sum * 10 / lines.min(20_000)
    }
}

impl Draw {
    fn policy(&mut self, ways: u32) -> Policy {
        let all: Vec<Policy> = Policy::all(ways as usize).collect();
        // The plain ones as often as the variants of QLRU together.
        let plain: Vec<Policy> =
            all.iter().copied().filter(|one| !matches!(one, Policy::Qlru(_))).collect();
        if self.of(&[true, false]) { self.of(&plain) } else { self.of(&all) }
    }

    fn parameters(&mut self) -> Parameters {
        let line = self.of(&[32, 64, 64, 64, 128]);
        let cache = |sets: u32, ways: u32, cycles: u32, draw: &mut Self| CacheShape {
            bytes: u64::from(sets * ways * line),
            ways,
            policy: draw.policy(ways),
            cycles,
        };
        let first = self.of(&[4, 5, 6, 8, 12]);
        let mut sets = self.of(&[32, 64, 128]);
        let mut cycles = self.of(&[3, 4, 5]);
        let l1d = cache(sets, first, cycles, self);
        sets *= self.of(&[2, 4, 8, 16]);
        cycles += self.of(&[8, 10, 11, 13]);
        let ways = self.of(&[4, 6, 8, 10, 16, 20]);
        let l2 = cache(sets, ways, cycles, self);
        let has_l3 = self.of(&[true, false]);
        sets *= self.of(&[2, 4]);
        cycles += self.of(&[30, 37, 45]);
        let ways = self.of(&[8, 11, 12, 16, 20]);
        let l3 = has_l3.then(|| cache(sets, ways, cycles, self));
        let tlb = |sets: u32, ways: u32| TlbShape { entries: sets * ways, ways };
        let shared = self.of(&[8, 16, 32, 1]);
        let dtlb = match shared {
            1 => tlb(1, self.of(&[16, 32, 48])),
            sets => tlb(sets, self.of(&[2, 4, 6])),
        };
        let factor = self.of(&[2, 4, 8]);
        let stlb = tlb(dtlb.sets().max(8) * factor, self.of(&[4, 6, 8, 12]));
        Parameters {
            line,
            caches: [Some(l1d), Some(l2), l3],
            memory_cycles: cycles + self.of(&[100, 180, 300]),
            dtlb,
            dtlb_large: tlb(8, 4),
            stlb: self.of(&[true, true, false]).then_some(stlb),
            stlb_cycles: self.of(&[5, 7, 9]),
            walk_cycles: self.of(&[20, 30, 50]),
            split_cycles: self.of(&[0, 4, 9]),
            cross_cycles: self.of(&[10, 25]),
            ..Parameters::DEFAULT
        }
    }
}

/// How often each figure was found and how often it was said not to be determined, of how many.
#[derive(Debug, Default)]
struct Tally(BTreeMap<&'static str, [u32; 3]>, [u32; 2]);

impl Tally {
    fn note(&mut self, figure: &'static str, told: Option<bool>) {
        let [found, untold, wrong] = self.0.entry(figure).or_default();
        *match told {
            Some(true) => found,
            None => untold,
            Some(false) => wrong,
        } += 1;
    }
}

/// Whether two policies cannot be distinguished from an empty set on, by long sequences.
fn are_alike(one: Policy, other: Policy, ways: u32) -> bool {
    let mut draw = Draw(7);
    one == other
        || (0..300).all(|number| {
            let lines: Vec<u32> = (0..=ways + number % 3).collect();
            let sequence: Vec<u32> = (0..8 * ways).map(|_| draw.of(&lines)).collect();
            judge::last_hits(one, ways, &sequence) == judge::last_hits(other, ways, &sequence)
        })
}

fn check(parameters: &Parameters, facts: &MemoryFacts, tally: &mut Tally) -> Vec<String> {
    let (mut wrong, mut alone, mut several) = (Vec::new(), 0, 0);
    let mut note = |figure: &'static str, told: Option<String>, really: String| {
        tally.note(figure, told.as_ref().map(|told| *told == really));
        if let Some(told) = told.filter(|told| *told != really) {
            wrong.push(format!("{figure}: told {told}, really {really}"));
        }
    };
    let caches: Vec<CacheShape> = parameters.caches.iter().flatten().copied().collect();
    note("line", facts.line.map(|line| line.to_string()), parameters.line.to_string());
    note(
        "memory",
        Some(facts.memory_tenths.to_string()),
        (parameters.memory_cycles * 10).to_string(),
    );
    let untold = facts.caches.iter().any(|cache| cache.tenths.is_none());
    note("levels", (!untold).then(|| facts.caches.len().to_string()), caches.len().to_string());
    for (level, (cache, fact)) in caches.iter().zip(&facts.caches).enumerate() {
        let names = [
            ["l1d latency", "l1d ways", "l1d size", "l1d policy"],
            ["l2 latency", "l2 ways", "l2 size", "l2 policy"],
            ["l3 latency", "l3 ways", "l3 size", "l3 policy"],
        ][level];
        note(
            names[0],
            fact.tenths.map(|tenths| tenths.to_string()),
            (cache.cycles * 10).to_string(),
        );
        note(names[1], fact.ways.map(|ways| ways.to_string()), cache.ways.to_string());
        note(names[2], fact.bytes().map(|bytes| bytes.to_string()), cache.bytes.to_string());
        let told = match judge::policies(&facts.caches, level) {
            Told::NotTold(_) => None,
            Told::Random => Some("random".to_string()),
            Told::NoneKnown => Some("none that is known".to_string()),
            // A plain policy is distinguished from all others. Variants of QLRU may differ in what few accesses show.
            Told::OneOf(left) if left.contains(&cache.policy) => {
                let other = |one: &&Policy| !are_alike(**one, cache.policy, cache.ways);
                let others: Vec<String> =
                    left.iter().filter(other).map(Policy::to_string).collect();
                let is_variant = matches!(cache.policy, Policy::Qlru(_));
                alone += u32::from(is_variant && others.is_empty());
                several += u32::from(is_variant && !others.is_empty());
                match is_variant {
                    true => Some(cache.policy.to_string()),
                    false => Some([&[cache.policy.to_string()], &others[..]].concat().join(" or ")),
                }
            }
            Told::OneOf(left) => Some(format!("{left:?}")),
        };
        note(names[3], told, cache.policy.to_string());
    }
    let small: Vec<_> = facts.tlbs.iter().filter(|tlb| tlb.page == 4096).collect();
    let really: Vec<TlbShape> =
        [Some(parameters.dtlb), parameters.stlb].into_iter().flatten().collect();
    let untold = small.iter().any(|tlb| tlb.tenths.is_none());
    note("tlb levels", (!untold).then(|| small.len().to_string()), really.len().to_string());
    note(
        "walk",
        small.first().map(|tlb| tlb.walk_tenths.to_string()),
        (parameters.walk_cycles * 10).to_string(),
    );
    for (level, (tlb, fact)) in really.iter().zip(small).enumerate() {
        let names = [["dtlb ways", "dtlb entries"], ["stlb ways", "stlb entries"]][level];
        note(names[0], fact.ways.map(|ways| ways.to_string()), tlb.ways.to_string());
        let entries = fact.ways.zip(fact.sets).map(|(ways, sets)| ways * sets);
        note(names[1], entries.map(|entries| entries.to_string()), tlb.entries.to_string());
    }
    let large = facts.tlbs.iter().find(|tlb| tlb.page == PAGE).unwrap();
    let entries = large.ways.zip(large.sets).map(|(ways, sets)| ways * sets);
    note(
        "dtlb2m entries",
        entries.map(|entries| entries.to_string()),
        parameters.dtlb_large.entries.to_string(),
    );
    let [split, cross] = facts.crossing_tenths;
    note("split", Some(split.to_string()), (parameters.split_cycles * 10).to_string());
    note("cross", Some(cross.to_string()), (parameters.cross_cycles * 10).to_string());
    tally.1[0] += alone;
    tally.1[1] += several;
    wrong
}

/// How often each figure is found, and not determined, of the 200 that the seeds give: the numbers of the guide's table "What is
/// recovered" (`docs/guide/facts.md`). A change of them changes that table.
const RECOVERED: &[(&[&str], [u32; 2])] = &[
    (&["line", "l1d size", "l1d ways", "l1d latency", "l1d policy"], [200, 0]),
    (&["l2 size", "l2 ways", "l2 latency"], [200, 0]),
    (&["l2 policy"], [178, 22]),
    (&["l3 size", "l3 ways"], [83, 10]),
    (&["l3 latency"], [89, 4]),
    (&["l3 policy"], [66, 27]),
    (&["levels"], [179, 21]),
    (&["tlb levels"], [199, 1]),
    (&["dtlb entries", "dtlb ways", "dtlb2m entries"], [200, 0]),
    (&["walk", "memory", "split", "cross"], [200, 0]),
    (&["stlb entries", "stlb ways"], [126, 1]),
    (&["prefetched pairs"], [200, 0]),
    // Of eight distances each.
    (&["prefetched next lines"], [1600, 0]),
    (&["prefetched streams"], [1507, 93]),
];

#[test]
fn d1_blind_recovery_of_200_random_hierarchies() {
    let (mut draw, mut prefetchers) = (Draw(19), Draw(38));
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    for number in 0..200 {
        let parameters = Parameters { prefetch: prefetchers.prefetchers(), ..draw.parameters() };
        let facts = measure(&mut Modelled::new(&parameters, 256 * MIB));
        let mut found = check(&parameters, &facts, &mut tally);
        found.extend(check_prefetchers(&parameters, &facts, &mut tally));
        if !found.is_empty() {
            wrong.push(format!("{number}: {parameters}\n  {}", found.join("\n  ")));
        }
    }
    println!("figure: found, not told, wrong");
    for (figure, counts) in &tally.0 {
        println!("{figure}: {counts:?}");
    }
    println!("variants of QLRU: {} alone, {} among others", tally.1[0], tally.1[1]);
    assert!(
        wrong.is_empty(),
        "{} of 200\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
    // A figure that is never determined is never wrong.
    let rows =
        RECOVERED.iter().flat_map(|(names, counts)| names.iter().map(move |name| (*name, *counts)));
    let expected: BTreeMap<_, _> =
        rows.map(|(name, [found, untold])| (name, [found, untold, 0])).collect();
    assert_eq!(tally.0, expected, "the guide's table says otherwise");
}

impl Draw {
    fn prefetchers(&mut self) -> PrefetcherShape {
        let both = [true, false];
        let numbers: Vec<u16> = (1..=16).collect();
        let stream = StreamShape {
            after: self.of(&[2, 3, 4, 5, 8]),
            ahead: self.of(&numbers),
            stride: self.of(&[1, 2, 3, 4]),
        };
        let stream = self.of(&both).then_some(stream);
        PrefetcherShape { pair: self.of(&both), next: self.of(&both), stream }
    }
}

/// What is wrong about prefetchers.
fn check_prefetchers(
    parameters: &Parameters,
    facts: &MemoryFacts,
    tally: &mut Tally,
) -> Vec<String> {
    let (shape, found) = (parameters.prefetch, facts.prefetch.as_ref().unwrap());
    let mut wrong = Vec::new();
    tally.note("prefetched pairs", found.pairs().map(|pairs| pairs == shape.pair));
    if found.pairs() != Some(shape.pair) {
        wrong.push(format!("pairs: {:?}", found.pairs()));
    }
    let of_page = 4096 / i32::try_from(parameters.line).unwrap();
    for stride in found.strides() {
        let seen = |one: Prefetched| (one.after, one.ahead, one.at_least);
        let [first, other] = found.stream(stride).map(|one| one.map(seen));
        let next = (shape.next && stride == 1).then_some((2, 1, false));
        tally.note("prefetched next lines", Some(first == next));
        if first != next {
            wrong.push(format!("{stride}, first level: {first:?}"));
        }
        let brought = shape.stream.filter(|one| stride.unsigned_abs() <= one.stride.into());
        let brought = brought.map(|one| {
            // The last line before is odd, and the page ends.
            let last = i32::from(one.after - 1) * stride.abs() + 1;
            let room = (of_page - 1 - last - (last + 1) % 2) / stride.abs();
            let (ahead, room) = (u32::from(one.ahead), room as u32);
            (u32::from(one.after), ahead.min(room), ahead >= room)
        });
        let brought = brought.filter(|(_, ahead, _)| *ahead > 0);
        // What has come into the first level already is nothing to a stream: it is seen later, or not.
        let (told, right) = match next {
            None => (true, other == brought),
            Some(_) => {
                (false, other.is_none_or(|(after, ..)| brought.is_some_and(|one| one.0 <= after)))
            }
        };
        tally.note("prefetched streams", (told || !right).then_some(right));
        if !right {
            wrong.push(format!("{stride}: {other:?}, really {brought:?}"));
        }
    }
    let streams = shape.stream.is_some() || shape.next;
    if found.crosses_pages() != streams.then_some([false; 2]) {
        wrong.push(format!("pages: {:?}", found.across));
    }
    wrong
}
