//! How fast data are moved: by loads, by stores, by both, and by stores with a non-temporal hint, in order of addresses.
//!
//! | figure | how | source |
//! | --- | --- | --- |
//! | read, write, copy | loops over a working set, many passes less one | J. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers" (1995), STREAM; `bw_mem` of lmbench (L. McVoy, C. Staelin, 1996) |
//! | non-temporal | the same by stores that go around the caches | `likwid-bench`, T. Röhl et al. (2017) |
//! | of a level | a working set in its middle, and another one in it that must be as fast | |
//! | by all | each processor moves data of its own at the same time; the sum of what each moves in its own time | STREAM; `bw_mem -P` |
//!
//! Bytes are those that instructions load and store. A line that a store brings first, and one that is written back, are not counted, as
//! in STREAM.

mod sets;

use crate::cores::MOST;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::record::{BandwidthFacts, BandwidthPoint, BandwidthSum, MemoryFacts, Moving, Times};
use sets::{Set, UNIT, rounded};

/// Bytes of a turn of the loop: 8 vector registers of 64 bytes.
pub const TURN: u64 = 512;
/// Passes before those that are measured. The first brings lines into a level, the second those that a level in front still had; after
/// the third no line is on its way from farther.
pub const WARM: u32 = 3;
/// The least working set of the curve.
const LEAST: u64 = 4 << 10;
/// Bytes between processors' areas are a multiple of this.
const PAGE: u64 = 4 << 10;

/// Data that are moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stream {
    /// How.
    pub by: Moving,
    /// Bytes from the start of the memory to the working set: a multiple of a page.
    pub at: u64,
    /// Bytes of the working set: a multiple of twice [`TURN`]. A copy goes from its first half to its second.
    pub bytes: u64,
    /// How often all of it is passed through.
    pub passes: u32,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of each point.
    pub samples: u32,
    /// Bytes that a sample moves at least.
    pub moved: u64,
    /// The largest working set.
    pub most: u64,
}

/// Processors that move data in one memory, physically contiguous.
pub trait Mover {
    /// Bytes of the memory.
    fn bytes(&self) -> u64;

    /// Bytes of the registers that data are moved through.
    fn width(&self) -> u32;

    /// Ticks of the TSC in a second.
    fn hz(&self) -> u64;

    /// How much is measured.
    fn effort(&self) -> Effort;

    /// How many processors there are.
    fn processors(&self) -> usize;

    /// Whether one runs at a time.
    fn in_turn(&self) -> bool;

    /// How many processors share a cache, at most; 1 if nobody says.
    fn sharers(&self, level: u32) -> u32;

    /// Empties the caches: with other data in them, some policies would not keep what comes.
    fn empty(&mut self);

    /// Moves data by the boot processor: cycles, and ticks of the TSC.
    fn alone(&mut self, stream: &Stream) -> [u64; 2];

    /// Moves data by all processors at the same time, up to [`MOST`], each `apart` bytes after the one before, and with so many more passes again, from empty caches: what
    /// the further passes take each of them.
    ///
    /// # Errors
    /// One of them does not come, in a sentence.
    fn together(
        &mut self,
        stream: &Stream,
        apart: u64,
        further: u32,
    ) -> Result<Vec<[u64; 2]>, String>;

    /// Work has gone on; whoever waits may be informed.
    fn beat(&mut self) {}
}

/// Measures all of it, in the levels that were found.
pub fn measure(mover: &mut dyn Mover, memory: &MemoryFacts) -> BandwidthFacts {
    let effort = mover.effort();
    let (sets, reasons) = sets::of(memory, mover.bytes().min(effort.most));
    let mut facts = BandwidthFacts {
        width: mover.width(),
        tsc_hz: mover.hz(),
        processors: 1,
        reasons,
        ..BandwidthFacts::default()
    };
    let last = sets.iter().map(|set| set.bytes).max().unwrap_or(0);
    for by in Moving::ALL {
        // Non-temporal stores go to memory whatever the size.
        let own: Vec<&Set> = sets.iter().filter(|set| is_of(by, set)).collect();
        let mut sizes: Vec<u64> = own.iter().flat_map(|set| [set.bytes, set.other]).collect();
        sizes.extend((0..64).map(|power| LEAST << power).take_while(|bytes| *bytes <= last));
        sizes.sort_unstable();
        sizes.dedup();
        let mut points: Vec<BandwidthPoint> =
            sizes.into_iter().map(|bytes| point(mover, by, bytes)).collect();
        for set in own {
            mark(&mut points, set);
        }
        facts.alone.append(&mut points);
    }
    all(mover, &sets, &mut facts);
    facts
}

/// Whether a set says something of this way.
fn is_of(by: Moving, set: &Set) -> bool {
    by != Moving::NonTemporal || set.level == 0
}

/// Passes by which a sample moves enough.
fn passes(effort: Effort, bytes: u64) -> u32 {
    effort.moved.div_ceil(bytes).clamp(1, 1 << 20) as u32
}

fn point(mover: &mut dyn Mover, by: Moving, bytes: u64) -> BandwidthPoint {
    let effort = mover.effort();
    let further = passes(effort, bytes);
    mover.empty();
    let mut run = |passes| mover.alone(&Stream { by, at: 0, bytes, passes });
    run(WARM);
    let (mut cycles, mut ticks) = (Vec::new(), Vec::new());
    for _ in 0..effort.samples {
        let (few, many) = (run(1), run(1 + further));
        let [own, of_tsc] = [0, 1].map(|clock| many[clock].saturating_sub(few[clock]));
        cycles.push(own);
        ticks.push(of_tsc);
    }
    mover.beat();
    let (cycles, ticks) = (Times::of(&mut cycles), Times::of(&mut ticks));
    let moved = bytes * u64::from(further);
    BandwidthPoint { by, bytes, level: None, moved, cycles, ticks, doubts: Vec::new() }
}

/// Gives a level its point. Both of its working sets are as fast, within a 32nd, or the level in front serves part of one.
fn mark(points: &mut [BandwidthPoint], set: &Set) {
    let of = |points: &[BandwidthPoint], bytes| points.iter().position(|it| it.bytes == bytes);
    let (Some(own), Some(other)) = (of(points, set.bytes), of(points, set.other)) else { return };
    let rates = [own, other].map(|at| points[at].per_cycle());
    let point = &mut points[own];
    point.level = Some(set.level);
    point.doubts.clone_from(&set.doubts);
    match rates {
        [Some(own), Some(rate)] if (own - rate).abs() * 32.0 > own.max(rate) => {
            let bytes = set.other;
            let text = format!("another set of this level, of {bytes} bytes, has {rate:.2}");
            point.doubts.push(text);
        }
        [Some(_), Some(_)] => {}
        _ => point.doubts.push("no time passes that is seen".to_string()),
    }
}

/// What all processors move at once.
fn all(mover: &mut dyn Mover, sets: &[Set], facts: &mut BandwidthFacts) {
    let there = mover.processors();
    let count = there.min(MOST);
    if count < 2 {
        facts.reasons.push("all processors together: there is one".to_string());
        return;
    }
    if count < there {
        facts.reasons.push(format!("of {there} processors the first {count} move data together"));
    }
    (facts.processors, facts.in_turn) = (count as u32, mover.in_turn());
    let mut doubts = Vec::new();
    let parts: Vec<(&Set, u64)> = sets
        .iter()
        .filter_map(|set| match part(mover, set, count as u64) {
            Ok((bytes, doubt)) => {
                doubts.push(doubt);
                Some((set, bytes))
            }
            Err(reason) => {
                facts.reasons.push(reason);
                None
            }
        })
        .collect();
    for ((set, bytes), doubt) in parts.into_iter().zip(doubts) {
        for by in Moving::ALL.into_iter().filter(|by| is_of(*by, set)) {
            match sum(mover, by, (set.level, bytes)) {
                Ok(mut sum) => {
                    let alone = facts.of(by, set.level).map(|point| point.doubts.clone());
                    sum.doubts = alone.into_iter().flatten().chain(doubt.clone()).collect();
                    facts.together.push(sum);
                }
                Err(reason) => {
                    // Each waits as long as anybody does; who does not come once does not come again.
                    facts.reasons.push(format!("all processors together: {reason}"));
                    return;
                }
            }
        }
    }
}

type Part = (u64, Option<String>);

/// Each processor's bytes of a level's working set, with what is doubtful about it.
fn part(mover: &dyn Mover, set: &Set, count: u64) -> Result<Part, String> {
    let room = mover.bytes() / count / PAGE * PAGE;
    let (name, mut doubt) = (set.name(), None);
    let bytes = match set.level {
        0 => {
            let bytes = room.min(set.bytes);
            let sharers = u64::from(mover.sharers(set.caches)).clamp(1, count);
            let (all, last) = (bytes * sharers, set.front);
            if all < 2 * last {
                return Err(format!(
                    "{name} by all processors: {bytes} bytes for each are less than twice the last cache of {last}; give the item more memory"
                ));
            }
            if all < 4 * last {
                doubt = Some("less than four times the last cache: part may be in it".to_string());
            }
            bytes
        }
        level => {
            let sharers = u64::from(mover.sharers(level)).clamp(1, count);
            let bytes = rounded(set.bytes / sharers);
            if set.front > 0 && bytes < set.front * 3 / 2 {
                return Err(format!(
                    "{name} by all processors: CPUID has it shared by {sharers}, and the part of each, {bytes} bytes, would lie in the level before"
                ));
            }
            if bytes.next_multiple_of(PAGE) > room {
                return Err(format!(
                    "{name} by all processors: {count} times {bytes} bytes are more than the memory of the item; give it more"
                ));
            }
            bytes
        }
    };
    match bytes < UNIT {
        true => Err(format!("{name} by all processors: no memory is left for each")),
        false => Ok((bytes, doubt)),
    }
}

fn sum(
    mover: &mut dyn Mover,
    by: Moving,
    (level, bytes): (u32, u64),
) -> Result<BandwidthSum, String> {
    let effort = mover.effort();
    let further = passes(effort, bytes);
    let (apart, moved) = (bytes.next_multiple_of(PAGE), bytes * u64::from(further));
    let mut samples = Vec::new();
    for _ in 0..effort.samples {
        samples.push(mover.together(&Stream { by, at: 0, bytes, passes: 1 }, apart, further)?);
        mover.beat();
    }
    let count = samples.first().map_or(0, Vec::len);
    let median = |of: usize, clock: usize| {
        let mut all: Vec<u64> =
            samples.iter().filter_map(|one| Some(one.get(of)?[clock])).collect();
        Times::of(&mut all).median
    };
    let each = (0..count).map(|of| [0, 1].map(|clock| median(of, clock))).collect();
    let milli = |clock: usize| {
        let rate = |one: &[u64; 2]| moved * 1000 / one[clock].max(1);
        let mut sums: Vec<u64> = samples.iter().map(|one| one.iter().map(rate).sum()).collect();
        Times::of(&mut sums)
    };
    let (milli_per_cycle, milli_per_tick) = (milli(0), milli(1));
    let doubts = Vec::new();
    Ok(BandwidthSum { by, bytes, level, moved, each, milli_per_cycle, milli_per_tick, doubts })
}
