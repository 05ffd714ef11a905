//! The parameters of caches, TLBs and predictor, as `l1d=24k/6:fifo@4,l2=1m/16@14,dtlb=64/4`.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `l1d`, `l2`, `l3` | size / ways : policy @ cycles of a load that it serves | `32k/8:lru@4`, `2m/16:lru@14`, none |
//! | `memory` | cycles of a load that no cache serves | 200 |
//! | `l1i` | size / ways @ cycles of fetching a line of code that it does not hold; LRU; or `none` | none: code takes no time |
//! | `line` | bytes of a line: 32, 64 or 128 | 64 |
//! | `dtlb`, `dtlb2m` | entries / ways for pages of 4 KiB, and for larger ones | `64/4`, `32/4` |
//! | `stlb` | entries / ways @ further cycles, for pages of every size; or `none` | `1536/12@7` |
//! | `walk` | further cycles of a load that walks the page tables | 30 |
//! | `split`, `cross` | further cycles of a load that crosses a line, and of one that crosses a page of 4 KiB | 5, 20 |
//! | `forward` | SAME/NARROW/OFFSET/WIDE/CROSS/ALIAS: further cycles of a load of recently stored bytes, see [`super::forward`] | `0/0/0/0/0/0` |
//! | `stores` | entries of the store buffer, 1 to 128; or `none` | none: stores wait for nothing |
//! | `rob` | instructions in flight, 16 to 1024; or `none`, see [`super::window`] | none: every load is waited for |
//! | `registers`, `loads`, `scheduler` | after `rob`, up to as many: of these those that write a register, that load, that wait for a register; or `none` | any number |
//! | `transfer` | L2/L3/MEMORY/STREAM: cycles for which a line keeps the way to the first level busy, see [`super::transfer`] | `0/0/0/0` |
//! | `prefetch` | PAIR/NEXT/AFTER/AHEAD/STRIDE: whether there is a prefetcher of pairs and one of the next line (0 or 1), then a prefetcher of streams or `0/0/0`, see [`super::prefetcher`] | `0/0/0/0/0` |
//! | `mispredict` | cycles that a mispredicted branch costs | 16 |
//! | `returns` | return addresses that the predictor keeps, 1 to 64 | 16 |
//! | `btb` | targets of indirect branches that it keeps, up to 1024 / ways, up to 16 | `1024/1` |
//! | `direct` | entries / ways @ cycles of a direct jump or call that the table of these does not hold; or `none` | none: they cost nothing |
//! | `ports` | micro-operations and ports of classes of instructions: see [`super::ports`] | no ports |
//! | `issue` | with `ports`, instructions that the front end gives in a cycle, 1 to 16 | any number |
//! | `uops` | with `issue`, ENTRIES/WAYS/LINE/BLOCK@DECODE of the micro-op cache, see [`super::front_end`]; or `none` | none: decoding takes no time |
//! | `loop` | with `issue`, ENTRIES@OUTSIDE of the loop buffer, see [`super::front_end`]; or `none` | none |
//!
//! Whatever is given, all others get these defaults, and loads take their time: without parameters every instruction takes the
//! same. With `ports` cycles are those of the ports, and nothing else takes any.

mod shown;
mod value;
mod words;

use super::forward::{Forward, MOST_STORES};
use super::front_end::{self, FrontEndShape};
use super::ports::{self, PortMap};
use super::prefetcher::PrefetcherShape;
use super::replacement::Policy;
use super::transfer::Transfer;
use super::window::WindowShape;
use core::fmt;
use value::{btb, cache, code_cache, direct, forward, prefetch, tlb, transfer};

/// Levels of data caches.
pub const LEVELS: usize = 3;
/// Most lines of a cache: 64 MiB of the smallest.
const MAX_LINES: u64 = 2 << 20;
/// Most ways of a cache or a TLB.
pub const MAX_WAYS: u32 = 64;
/// Most cycles of forwarding.
const MOST_CYCLES: u16 = 4000;
/// More lines than the longest area of XSAVE has (SDM vol. 1, 13.5: 11 KiB with AMX).
const MOST_ACCESSES: u64 = 256;
/// Most entries of a TLB.
const MAX_ENTRIES: u32 = 1 << 14;

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Bytes.
    pub bytes: u64,
    /// Ways.
    pub ways: u32,
    /// Its policy.
    pub policy: Policy,
    /// Cycles of a load that it serves.
    pub cycles: u32,
}

/// A TLB, or a table of branches, which replaces the least recently used entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbShape {
    /// Entries.
    pub entries: u32,
    /// Ways.
    pub ways: u32,
}

impl TlbShape {
    /// Sets.
    #[must_use]
    pub const fn sets(self) -> u32 {
        self.entries / self.ways
    }
}

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bytes of a line.
    pub line: u32,
    /// The data caches, from the first level on; after the last one there is none.
    pub caches: [Option<CacheShape>; LEVELS],
    /// The first-level instruction cache; the cycles are those of a line that it does not hold.
    pub code: Option<CacheShape>,
    /// Cycles of a load that no cache serves.
    pub memory_cycles: u32,
    /// The first-level TLB for pages of 4 KiB.
    pub dtlb: TlbShape,
    /// The one for larger pages.
    pub dtlb_large: TlbShape,
    /// The second level.
    pub stlb: Option<TlbShape>,
    /// Further cycles of a load that it serves.
    pub stlb_cycles: u32,
    /// Further cycles of a load that walks the page tables.
    pub walk_cycles: u32,
    /// Further cycles of a load that crosses a line.
    pub split_cycles: u32,
    /// The same of one that crosses a page, in place of those.
    pub cross_cycles: u32,
    /// Cycles that a mispredicted branch costs.
    pub mispredict_cycles: u32,
    /// Further cycles of a load of recently stored bytes.
    pub forward: Forward,
    /// Entries of the store buffer; 0: any number.
    pub stores: u32,
    /// Instructions in flight.
    pub window: WindowShape,
    /// Cycles for which a line keeps the way to the first level busy.
    pub transfer: Transfer,
    /// Prefetchers of data.
    pub prefetch: PrefetcherShape,
    /// Return addresses that the predictor keeps.
    pub returns: u32,
    /// Targets of indirect branches that it keeps, by their addresses.
    pub btb: TlbShape,
    /// Direct unconditional jumps and calls that it keeps, by their addresses.
    pub direct: Option<TlbShape>,
    /// Cycles of one that it does not hold.
    pub direct_cycles: u32,
    /// The execution ports.
    pub ports: Option<PortMap>,
    /// Micro-op cache, loop buffer and decoders.
    pub front: FrontEndShape,
}

/// What is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterError<'a> {
    /// The part of the text.
    pub part: &'a str,
    /// What it must be.
    pub reason: &'static str,
}

impl fmt::Display for ParameterError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.part, self.reason)
    }
}

const CACHE: &str = "a cache is SIZE/WAYS, then :POLICY and @CYCLES if wanted, as l1d=24k/6:fifo@4";
const CODE: &str =
    "the instruction cache is SIZE/WAYS and @CYCLES of a miss, as l1i=32k/8@12; it is LRU";
const TLB: &str = "a TLB is ENTRIES/WAYS, as dtlb=64/4";
const BTB: &str = "the table of targets is ENTRIES/WAYS, as btb=512/4: a power of two of sets, at most 1024 entries and 16 ways";
const DIRECT: &str = "the table of direct jumps is ENTRIES/WAYS and @CYCLES of a miss, as direct=4096/8@8: a power of two of sets, at most 16384 entries";
const POLICY: &str = "policies are lru, fifo, plru (ways a power of two), mru, random, and qlru_hXY_mX_rX_uX (hXY: h00, h10, h11, h20 or h21; m0 to m3; r0 or r2; u0 to u3)";
const FORWARD: &str = "forwarding is SAME/NARROW/OFFSET/WIDE/CROSS/ALIAS, six numbers of cycles up to 4000, as forward=5/5/6/13/12/7";
const TRANSFER: &str =
    "transfers are L2/L3/MEMORY/STREAM, four numbers of cycles up to 4000, as transfer=4/9/26/30";
const PREFETCH: &str = "prefetchers are PAIR/NEXT/AFTER/AHEAD/STRIDE, as prefetch=1/1/3/4/2: 0 or 1 twice, then 2 to 8, 1 to 16 and 1 to 4, or 0/0/0";
const WINDOW: &str = "the reorder buffer has 16 to 1024 entries, as rob=224; after it registers, loads and scheduler, each 2 to as many, or none";
const CYCLES: &str = "cycles are 1 to 4000";
const SETS: &str = "size / ways / line must be a power of two, with at most 64 ways";

impl Parameters {
    /// The defaults of the module's table.
    pub const DEFAULT: Self = Self {
        line: 64,
        caches: [
            Some(CacheShape { bytes: 32 << 10, ways: 8, policy: Policy::Lru, cycles: 4 }),
            Some(CacheShape { bytes: 2 << 20, ways: 16, policy: Policy::Lru, cycles: 14 }),
            None,
        ],
        code: None,
        memory_cycles: 200,
        dtlb: TlbShape { entries: 64, ways: 4 },
        dtlb_large: TlbShape { entries: 32, ways: 4 },
        stlb: Some(TlbShape { entries: 1536, ways: 12 }),
        stlb_cycles: 7,
        walk_cycles: 30,
        split_cycles: 5,
        cross_cycles: 20,
        mispredict_cycles: 16,
        forward: Forward { same: 0, narrow: 0, offset: 0, wide: 0, cross: 0, alias: 0 },
        stores: 0,
        window: WindowShape::NONE,
        transfer: Transfer::NONE,
        prefetch: PrefetcherShape::NONE,
        returns: 16,
        btb: TlbShape { entries: super::predictor::TARGETS as u32, ways: 1 },
        direct: None,
        direct_cycles: 8,
        ports: None,
        front: FrontEndShape::NONE,
    };

    /// Cycles that no instruction waits longer than: each of its accesses, and of those in flight and in the store buffer before it,
    /// one after the other, each as long as any can take, and a misprediction.
    pub(crate) fn most_waits(&self) -> u64 {
        let longest = |cycles: &[u32]| cycles.iter().copied().max().unwrap_or(0);
        let [first, second, third] = self.caches.map(|cache| cache.map_or(0, |cache| cache.cycles));
        let parts = [
            longest(&[self.memory_cycles, first, second, third]),
            self.code.map_or(0, |code| code.cycles),
            longest(&[self.stlb_cycles, self.walk_cycles]),
            longest(&[self.split_cycles, self.cross_cycles]),
            longest(&self.forward.list().map(u32::from)),
            self.transfer.list().map(u32::from).iter().sum(),
        ];
        let access: u64 = parts.map(u64::from).iter().sum();
        let accesses = MOST_ACCESSES + u64::from(self.window.rob) + u64::from(self.stores);
        // A line that is crossed is two accesses.
        2 * access * accesses + u64::from(self.mispredict_cycles.max(self.direct_cycles))
    }

    /// Reads them.
    ///
    /// # Errors
    /// The part that is wrong, and what it must be.
    pub fn parse(text: &str) -> Result<Self, ParameterError<'_>> {
        let mut all = Self::DEFAULT;
        for part in text.split(',') {
            let wrong = |reason| ParameterError { part, reason };
            let keys = "parameters are KEY=VALUE, with commas between them; the keys are l1d, l2, l3, l1i, memory, line, dtlb, dtlb2m, stlb, walk, split, cross, mispredict, forward, stores, transfer, prefetch, rob, registers, vectors, loads, scheduler, returns, btb, direct, ports, issue, uops and loop";
            let (key, value) = part.split_once('=').ok_or(wrong(keys))?;
            let cycles = |least| {
                let number = value.parse().ok().filter(|number| (least..=4000).contains(number));
                number.ok_or(wrong(CYCLES))
            };
            match key {
                "l1d" => all.caches[0] = cache(value, 4).map_err(wrong)?,
                "l2" => all.caches[1] = cache(value, 14).map_err(wrong)?,
                "l3" => all.caches[2] = cache(value, 40).map_err(wrong)?,
                "l1i" => all.code = code_cache(value).map_err(wrong)?,
                "memory" => all.memory_cycles = cycles(1)?,
                "line" => {
                    let line = value.parse().ok().filter(|line| [32, 64, 128].contains(line));
                    all.line = line.ok_or(wrong("a line has 32, 64 or 128 bytes"))?;
                }
                "dtlb" => all.dtlb = tlb(value).map_err(wrong)?,
                "dtlb2m" => all.dtlb_large = tlb(value).map_err(wrong)?,
                "stlb" if value == "none" => {
                    (all.stlb, all.stlb_cycles) = (None, Self::DEFAULT.stlb_cycles);
                }
                "stlb" => {
                    let (shape, own) = value.split_once('@').unwrap_or((value, "7"));
                    all.stlb = Some(tlb(shape).map_err(wrong)?);
                    let own = own.parse().ok().filter(|number| (1..=4000).contains(number));
                    all.stlb_cycles = own.ok_or(wrong(CYCLES))?;
                }
                "walk" => all.walk_cycles = cycles(1)?,
                "split" => all.split_cycles = cycles(0)?,
                "cross" => all.cross_cycles = cycles(0)?,
                "mispredict" => all.mispredict_cycles = cycles(0)?,
                "forward" => all.forward = forward(value).ok_or(wrong(FORWARD))?,
                "stores" if value == "none" => all.stores = 0,
                "stores" => {
                    let number = value.parse().ok().filter(|one| (1..=MOST_STORES).contains(one));
                    all.stores = number.ok_or(wrong("store buffers have 1 to 128 entries"))?;
                }
                "transfer" => all.transfer = transfer(value).ok_or(wrong(TRANSFER))?,
                "prefetch" => all.prefetch = prefetch(value).ok_or(wrong(PREFETCH))?,
                "rob" | "registers" | "vectors" | "loads" | "scheduler" => {
                    let entries = match value {
                        "none" => Some(0),
                        _ => value.parse().ok().filter(|entries| *entries > 0),
                    };
                    let entries = entries.ok_or(wrong(WINDOW))?;
                    match key {
                        "rob" => all.window = WindowShape { rob: entries, ..WindowShape::NONE },
                        "registers" => all.window.registers = entries,
                        "vectors" => all.window.vectors = entries,
                        "loads" => all.window.loads = entries,
                        _ => all.window.scheduler = entries,
                    }
                    let is_sound = all.window.is_sound();
                    is_sound.then_some(()).ok_or(wrong(WINDOW))?;
                }
                "returns" => {
                    let number = value.parse().ok().filter(|number| (1..=64).contains(number));
                    all.returns = number.ok_or(wrong("return addresses are 1 to 64"))?;
                }
                "btb" => all.btb = btb(value).map_err(wrong)?,
                "direct" if value == "none" => {
                    (all.direct, all.direct_cycles) = (None, Self::DEFAULT.direct_cycles);
                }
                "direct" => {
                    let (shape, cycles) = direct(value).ok_or(wrong(DIRECT))?;
                    (all.direct, all.direct_cycles) = (Some(shape), cycles);
                }
                "ports" => {
                    all.ports = Some(PortMap::parse(value).ok_or(wrong(ports::MAP))?);
                }
                "issue" => {
                    let number = value
                        .parse()
                        .ok()
                        .filter(|number| (1..=ports::MOST_ISSUE).contains(number));
                    let issue = number.ok_or(wrong("instructions of a cycle are 1 to 16"))?;
                    let before = all.ports.as_mut();
                    before.ok_or(wrong("it must come after ports"))?.issue = issue;
                }
                "uops" => {
                    all.front = all.front.with_uops(value).ok_or(wrong(front_end::UOPS))?;
                }
                "loop" => {
                    all.front = all.front.with_loop(value).ok_or(wrong(front_end::LOOP))?;
                }
                _ => return Err(wrong(keys)),
            }
            all.check().map_err(wrong)?;
        }
        Ok(all)
    }

    /// Whether the caches have whole sets, and the front end can be.
    fn check(&self) -> Result<(), &'static str> {
        if self.caches[0].is_none() || self.caches[1].is_none() && self.caches[2].is_some() {
            return Err("there is a cache of each level up to the last one");
        }
        for cache in self.caches.iter().chain([&self.code]).flatten() {
            if !self.sets(cache).is_power_of_two()
                || self.sets(cache) * u64::from(cache.ways * self.line) != cache.bytes
            {
                return Err(SETS);
            }
            if cache.bytes / u64::from(self.line) > MAX_LINES {
                return Err("a cache has at most 2097152 lines");
            }
            if cache.policy == Policy::TreePlru && !cache.ways.is_power_of_two() {
                return Err(POLICY);
            }
        }
        self.front.check(self.ports.map_or(0, |ports| ports.issue))
    }

    /// Whether all cycles can be given. Those of a second TLB and of a missing direct jump are the defaults where there is no such table.
    fn has_cycles(&self) -> bool {
        let some = |cycles: u32| (1..=4000).contains(&cycles);
        let of_table = |is_there: bool, cycles: u32, default: u32| match is_there {
            true => some(cycles),
            false => cycles == default,
        };
        self.caches.iter().chain([&self.code]).flatten().all(|cache| some(cache.cycles))
            && [self.memory_cycles, self.walk_cycles].into_iter().all(some)
            && [self.split_cycles, self.cross_cycles, self.mispredict_cycles]
                .iter()
                .all(|cycles| *cycles <= 4000)
            && of_table(self.stlb.is_some(), self.stlb_cycles, Self::DEFAULT.stlb_cycles)
            && of_table(self.direct.is_some(), self.direct_cycles, Self::DEFAULT.direct_cycles)
    }

    /// Sets of a cache.
    #[must_use]
    pub fn sets(&self, cache: &CacheShape) -> u64 {
        cache.bytes / u64::from(self.line) / u64::from(cache.ways)
    }
}

/// Most ways of the table of targets.
const BTB_WAYS: u32 = 16;

fn is_btb(btb: TlbShape) -> bool {
    is_tlb(btb) && btb.entries as usize <= super::predictor::TARGETS && btb.ways <= BTB_WAYS
}

fn is_tlb(tlb: TlbShape) -> bool {
    (1..=MAX_ENTRIES).contains(&tlb.entries)
        && (1..=tlb.entries).contains(&tlb.ways)
        && tlb.entries.is_multiple_of(tlb.ways)
        && tlb.sets().is_power_of_two()
}

#[cfg(test)]
mod tests;
