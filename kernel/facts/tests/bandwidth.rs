//! Blind recovery: what moving data costs in a hierarchy with parameters that a test draws, and what is reported of it.

mod draw;

use draw::Draw;
use facts::bandwidth::{Effort, Mover, Stream, TURN, WARM, measure};
use pmu_model::uarch::parameters::{CacheShape, Parameters};
use pmu_model::uarch::replacement::Policy;
use pmu_model::uarch::transfer::Transfer;
use pmu_model::uarch::{Access, AccessKind, Hierarchy};
use pmu_model::{Delta, Occurrence, Ring};
use protocol::record::{BandwidthFacts, BandwidthPoint, CacheFact, MemoryFacts, Moving};

const KIB: u64 = 1 << 10;
/// Instructions of a turn of the loop beside those that move, and of a pass beside its turns.
const OF_TURN: u64 = 3;
const OF_PASS: u64 = 4;

/// The emulated PMU's caches, and processors that run the loops.
struct Modelled {
    parameters: Parameters,
    /// Of each processor.
    caches: Vec<Hierarchy>,
    width: u64,
    bytes: u64,
    effort: Effort,
    sharers: u32,
    /// The processor that does not come.
    absent: Option<usize>,
    /// Most cycles by which a run takes longer.
    noise: u64,
    state: u64,
}

impl Modelled {
    fn new(parameters: &Parameters, width: u64, processors: usize) -> Self {
        let caches = (0..processors).map(|_| Hierarchy::new(parameters)).collect();
        let effort = Effort { samples: 1, moved: 4 * KIB, most: 1 << 20 };
        let (sharers, absent, noise, state) = (1, None, 0, 1);
        let (parameters, bytes) = (*parameters, 1 << 20);
        Self { parameters, caches, width, bytes, effort, sharers, absent, noise, state }
    }

    /// The loop as it is: cycles and instructions.
    fn run(&mut self, processor: usize, stream: &Stream) -> [u64; 2] {
        let copies = stream.by == Moving::Copy;
        let (mut instructions, mut delta) = (0, Delta::step(Ring::Kernel));
        let caches = &mut self.caches[processor];
        let mut access = |at: u64, kind, non_temporal| {
            let own = Access::identity(1 << 30 | at, self.width as u32, kind);
            caches.access(&Access { non_temporal, page_bits: 30, ..own }, &mut delta);
        };
        let area = if copies { stream.bytes / 2 } else { stream.bytes };
        assert!(area.is_multiple_of(TURN) && stream.at + stream.bytes <= self.bytes, "{stream:?}");
        for _ in 0..stream.passes {
            for turn in (0..area).step_by(TURN as usize) {
                for at in (turn..turn + TURN).step_by(self.width as usize) {
                    let at = stream.at + at;
                    match stream.by {
                        Moving::Read => access(at, AccessKind::Load, false),
                        Moving::Write => access(at, AccessKind::Store, false),
                        Moving::NonTemporal => access(at, AccessKind::Store, true),
                        Moving::Copy => {
                            access(at, AccessKind::Load, false);
                            access(at + area, AccessKind::Store, false);
                        }
                    }
                    instructions += 1 + u64::from(copies);
                }
                instructions += OF_TURN + u64::from(copies);
            }
            instructions += OF_PASS + u64::from(copies);
        }
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = (self.state >> 33) % (self.noise + 1);
        [instructions + delta.count(Occurrence::MemoryStall) + noise, instructions]
    }
}

impl Mover for Modelled {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn width(&self) -> u32 {
        self.width as u32
    }

    fn hz(&self) -> u64 {
        1_000_000_000
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn processors(&self) -> usize {
        self.caches.len()
    }

    fn in_turn(&self) -> bool {
        true
    }

    fn sharers(&self, level: u32) -> u32 {
        if level > 2 { self.sharers } else { 1 }
    }

    fn empty(&mut self) {
        self.caches[0].flush_caches();
    }

    fn alone(&mut self, stream: &Stream) -> [u64; 2] {
        self.run(0, stream)
    }

    fn together(
        &mut self,
        stream: &Stream,
        apart: u64,
        further: u32,
    ) -> Result<Vec<[u64; 2]>, String> {
        if let Some(absent) = self.absent {
            return Err(format!("processor {absent} did not answer"));
        }
        let count = self.caches.len();
        let own = |processor: usize| {
            let at = stream.at + processor as u64 * apart;
            self.caches[processor].flush_caches();
            let mut of = |passes| self.run(processor, &Stream { at, passes, ..*stream });
            of(WARM);
            let (few, many) = (of(1), of(1 + further));
            [many[0] - few[0], many[1] - few[1]]
        };
        Ok((0..count).map(own).collect())
    }
}

/// What is known of the caches: their sizes, as the search for them reports them.
fn found(parameters: &Parameters) -> MemoryFacts {
    let fact = |(at, cache): (usize, &CacheShape)| CacheFact {
        level: at as u32 + 1,
        tenths: Some(u64::from(cache.cycles) * 10),
        ways: Some(cache.ways),
        set_stride: Some(cache.bytes / u64::from(cache.ways)),
        ..CacheFact::default()
    };
    let caches = parameters.caches.iter().flatten().enumerate().map(fact).collect();
    MemoryFacts { line: Some(parameters.line), caches, ..MemoryFacts::default() }
}

/// What a pass through so many bytes takes where level `level` has each line, and none in front of it: the costs of the parameters, each
/// line as long as it takes to use it, or as it keeps the way busy.
fn expected(parameters: &Parameters, (by, level): (Moving, u32), width: u64, bytes: u64) -> u64 {
    let line = u64::from(parameters.line);
    let first = u64::from(parameters.caches[0].unwrap().cycles);
    let Transfer { l2, l3, memory, stream } = parameters.transfer;
    let of_cache = |at: usize| parameters.caches[at].map_or(0, |cache| u64::from(cache.cycles));
    let (latency, busy) = match level {
        1 => (first, 0),
        2 => (of_cache(1), l2),
        3 => (of_cache(2), l3),
        _ => (u64::from(parameters.memory_cycles), memory),
    };
    let (count, busy, stream) = (line / width, u64::from(busy), u64::from(stream));
    let copies = u64::from(by == Moving::Copy);
    let lines = bytes / line;
    let of_lines = match by {
        Moving::Read => lines * busy.max(latency + (count - 1) * first),
        Moving::Write => lines * busy.max(count),
        Moving::NonTemporal => lines * stream.max(count),
        // A line of each half.
        Moving::Copy => lines / 2 * (busy.max(latency) + busy.max((count - 1) * (first + 1) + 1)),
    };
    let turns = bytes / TURN / (1 + copies);
    of_lines + turns * (OF_TURN + copies) + OF_PASS + copies
}

impl Draw {
    fn below(&mut self, most: u16) -> u16 {
        self.of(&(0..most).collect::<Vec<_>>())
    }

    /// With caches that lose what comes around again, or with any.
    fn parameters(&mut self, is_plain: bool) -> Parameters {
        let line = self.of(&[32, 64, 64, 128]);
        let mut bytes = 0;
        let mut cycles = self.of(&[1, 3, 4, 5]);
        let kept = ["lru", "fifo", "plru", "mru"].map(|name| Policy::by_name(name).unwrap());
        let mut cache = |factors: &[u64], further: &[u32], draw: &mut Self| {
            let is_first = bytes == 0;
            let ways = draw.of(&[2, 4, 8, 16]);
            bytes = if bytes == 0 { 4 * KIB } else { bytes } * draw.of(factors);
            cycles += draw.of(further);
            // A first level that loses a line while its words are used fetches it for each: another figure than the level's.
            let all = match is_first {
                true => kept.to_vec(),
                false => Policy::all(ways as usize).collect(),
            };
            let policy =
                if is_plain { draw.of(&[Policy::Lru, Policy::Fifo]) } else { draw.of(&all) };
            CacheShape { bytes, ways, policy, cycles }
        };
        let l1d = cache(&[1, 2], &[0], self);
        let l2 = cache(&[2, 4, 8], &[2, 8, 12], self);
        let l3 = cache(&[2, 4], &[15, 30], self);
        let l3 = self.of(&[Some(l3), None]);
        let memory_cycles = cycles + u32::from(self.below(300));
        let transfer = Transfer::of([20, 60, 250, 300].map(|most| self.below(most)));
        let caches = [Some(l1d), Some(l2), l3];
        Parameters { line, caches, memory_cycles, transfer, ..Parameters::DEFAULT }
    }
}

/// A level's name, and what was measured there.
fn of_levels(facts: &BandwidthFacts) -> impl Iterator<Item = (u32, &BandwidthPoint)> {
    facts.alone.iter().filter_map(|point| Some((point.level?, point)))
}

#[test]
fn d1_blind_recovery_of_200_random_bandwidths() {
    let mut draw = Draw(23);
    let (mut sure, mut doubtful, mut wrong) = ([0; 2], [0; 2], Vec::new());
    for number in 0..200 {
        let is_plain = number % 4 != 0;
        let parameters = draw.parameters(is_plain);
        let width = draw.of(&[16, 32, 32, 64, 8]).min(u64::from(parameters.line));
        let facts = measure(&mut Modelled::new(&parameters, width, 1), &found(&parameters));
        for (level, point) in of_levels(&facts) {
            let passes = point.moved / point.bytes;
            let really = passes * expected(&parameters, (point.by, level), width, point.bytes);
            let is_sure = point.doubts.is_empty();
            *if is_sure { &mut sure } else { &mut doubtful }
                .get_mut(usize::from(is_plain))
                .unwrap() += 1;
            // Where a policy keeps a part, the two sets of a level differ, by a fifth of it at least.
            let far = point.cycles.median.abs_diff(really) * 20 > really * 3;
            let differs = point.cycles.median != really;
            let is_wrong = is_plain && differs || is_sure && far;
            if is_wrong {
                wrong.push(format!("{number}: {parameters}, {width}: {point:?}, really {really}"));
            }
        }
        // Each way has every level, and non-temporal stores memory alone.
        let levels = parameters.caches.iter().flatten().count() + 1;
        assert_eq!(of_levels(&facts).count(), 3 * levels + 1, "{facts:#?}");
        assert!(facts.together.is_empty());
    }
    println!("any policy, LRU and FIFO: sure {sure:?}, doubtful {doubtful:?}");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
    assert!(sure[1] > 1000 && sure[0] > 150, "{sure:?}");
}

#[test]
fn d1_all_processors_move_the_sum_of_what_each_does() {
    let text = "l1d=8k/8:lru@4,l2=32k/8:lru@12,l3=128k/16@30,memory=100,transfer=9/20/120/140";
    let parameters = Parameters::parse(text).unwrap();
    let mut machine = Modelled::new(&parameters, 32, 3);
    machine.bytes = 2 << 20;
    let facts = measure(&mut machine, &found(&parameters));
    assert_eq!((facts.processors, facts.in_turn, facts.together.len()), (3, true, 13));
    for sum in &facts.together {
        let passes = sum.moved / sum.bytes;
        let really = passes * expected(&parameters, (sum.by, sum.level), 32, sum.bytes);
        assert_eq!(sum.each.iter().map(|one| one[0]).collect::<Vec<_>>(), [really; 3], "{sum:?}");
        assert_eq!(sum.milli_per_cycle.median, 3 * (sum.moved * 1000 / really), "{sum:?}");
        let ticks = sum.each[1][1];
        assert_eq!(sum.milli_per_tick.median, 3 * (sum.moved * 1000 / ticks), "{sum:?}");
        assert!(sum.doubts.is_empty(), "{sum:?}");
    }
    // The third level is shared: each has a third of its working set, or none if that were in the second.
    machine.sharers = 3;
    let facts = measure(&mut machine, &found(&parameters));
    assert!(facts.together.iter().all(|sum| sum.level != 3), "{:#?}", facts.together);
    let told = "L3 by all processors: CPUID has it shared by 3";
    assert!(facts.reasons.iter().any(|reason| reason.starts_with(told)), "{:?}", facts.reasons);
    // Who does not come is named, once.
    machine.absent = Some(2);
    let facts = measure(&mut machine, &found(&parameters));
    let last = facts.reasons.last().unwrap();
    assert_eq!((facts.together.len(), last.ends_with("processor 2 did not answer")), (0, true));
}

#[test]
fn d1_too_little_memory_for_all_processors_is_said() {
    let parameters = Parameters::parse("l1d=8k/8:lru@4,l2=128k/8:lru@12").unwrap();
    let mut machine = Modelled::new(&parameters, 16, 4);
    let facts = measure(&mut machine, &found(&parameters));
    // A fourth of 1 MiB is twice the last cache, and no more.
    let memory: Vec<_> = facts.together.iter().filter(|sum| sum.level == 0).collect();
    assert_eq!((memory.len(), memory[0].bytes), (4, 256 * KIB));
    assert!(memory[0].doubts[0].contains("less than four times"), "{memory:?}");
    machine.caches.truncate(2);
    machine.bytes = 512 * KIB;
    let caches = (0..12).map(|_| Hierarchy::new(&machine.parameters));
    machine.caches.extend(caches);
    let facts = measure(&mut machine, &found(&parameters));
    assert!(facts.together.iter().all(|sum| sum.level == 1), "{:#?}", facts.together);
    assert!(facts.reasons.iter().any(|reason| reason.contains("give the item more memory")));
    assert!(facts.reasons.iter().any(|reason| reason.contains("give it more")));
}

#[test]
fn d1_a_clock_that_varies_is_seen_in_the_samples() {
    let parameters = Parameters::parse("l1d=8k/8:lru@4,l2=64k/8:lru@12").unwrap();
    let mut machine = Modelled::new(&parameters, 16, 1);
    (machine.noise, machine.effort.samples) = (4000, 9);
    let facts = measure(&mut machine, &found(&parameters));
    let point = facts.of(Moving::Read, 1).unwrap();
    assert_eq!(point.cycles.runs, 9);
    assert!(point.cycles.ninetieth - point.cycles.least > point.cycles.median / 2, "{point:?}");
}
