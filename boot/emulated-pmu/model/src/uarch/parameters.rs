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
//! | `mispredict` | cycles that a mispredicted branch costs | 16 |
//! | `returns` | return addresses that the predictor keeps, 1 to 64 | 16 |
//! | `btb` | targets of indirect branches that it keeps, up to 1024 / ways, up to 16 | `1024/1` |
//! | `ports` | micro-operations and ports of classes of instructions: see [`super::ports`] | no ports |
//! | `issue` | with `ports`, instructions that the front end gives in a cycle, 1 to 16 | any number |
//!
//! Whatever is given, all others get these defaults, and loads take their time: without parameters every instruction takes the
//! same. With `ports` cycles are those of the ports, and nothing else takes any.

use super::forward::{Forward, MOST_STORES};
use super::ports::{self, PortMap};
use super::replacement::Policy;
use super::window::WindowShape;
use core::fmt;

/// Levels of data caches.
pub const LEVELS: usize = 3;
/// Most lines of a cache: 64 MiB of the smallest.
const MAX_LINES: u64 = 2 << 20;
/// The word of [`Parameters::words`] at which those of the ports begin.
const PORTS_AT: usize = 24;
/// Most ways of a cache or a TLB.
pub const MAX_WAYS: u32 = 64;
/// Most cycles of forwarding.
const MOST_CYCLES: u16 = 4000;
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

/// A TLB, or the table of targets, which replaces the least recently used entry.
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
    /// Return addresses that the predictor keeps.
    pub returns: u32,
    /// Targets of indirect branches that it keeps, by their addresses.
    pub btb: TlbShape,
    /// The execution ports.
    pub ports: Option<PortMap>,
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
const POLICY: &str = "policies are lru, fifo, plru (ways a power of two), mru, random, and qlru_hXY_mX_rX_uX (hXY: h00, h10, h11, h20 or h21; m0 to m3; r0 or r2; u0 to u3)";
const FORWARD: &str = "forwarding is SAME/NARROW/OFFSET/WIDE/CROSS/ALIAS, six numbers of cycles up to 4000, as forward=5/5/6/13/12/7";
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
        returns: 16,
        btb: TlbShape { entries: super::predictor::TARGETS as u32, ways: 1 },
        ports: None,
    };

    /// Reads them.
    ///
    /// # Errors
    /// The part that is wrong, and what it must be.
    pub fn parse(text: &str) -> Result<Self, ParameterError<'_>> {
        let mut all = Self::DEFAULT;
        for part in text.split(',') {
            let wrong = |reason| ParameterError { part, reason };
            let keys = "parameters are KEY=VALUE, with commas between them; the keys are l1d, l2, l3, l1i, memory, line, dtlb, dtlb2m, stlb, walk, split, cross, mispredict, forward, stores, rob, registers, loads, scheduler, returns, btb, ports and issue";
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
                "stlb" if value == "none" => all.stlb = None,
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
                "rob" | "registers" | "loads" | "scheduler" => {
                    let entries = match value {
                        "none" => Some(0),
                        _ => value.parse().ok().filter(|entries| *entries > 0),
                    };
                    let entries = entries.ok_or(wrong(WINDOW))?;
                    match key {
                        "rob" => all.window = WindowShape { rob: entries, ..WindowShape::NONE },
                        "registers" => all.window.registers = entries,
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
                _ => return Err(wrong(keys)),
            }
            all.check().map_err(wrong)?;
        }
        Ok(all)
    }

    /// Whether the caches have whole sets, and each is slower than the one in front of it.
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
        Ok(())
    }

    /// Sets of a cache.
    #[must_use]
    pub fn sets(&self, cache: &CacheShape) -> u64 {
        cache.bytes / u64::from(self.line) / u64::from(cache.ways)
    }

    /// Words of [`Self::words`].
    pub const WORDS: usize = PORTS_AT + ports::CLASSES;

    /// As words, for those who talk over a page of them; none is all zeros.
    #[must_use]
    pub fn words(&self) -> [u64; Self::WORDS] {
        let cache = |one: &Option<CacheShape>| {
            one.map_or([0; 2], |one| {
                let policy = u64::from(one.policy.number());
                [one.bytes, u64::from(one.ways) | policy << 16 | u64::from(one.cycles) << 32]
            })
        };
        let code = cache(&self.code);
        let [same, narrow, offset, wide, cross, alias] = self.forward.list();
        let [rob, registers, loads, scheduler] = self.window.list();
        let four = |a: u16, b: u16, c: u16, d: u16| {
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
        };
        let tlb = |one: TlbShape| u64::from(one.entries) | u64::from(one.ways) << 32;
        let [[a, b], [c, d], [e, f]] = [0, 1, 2].map(|level| cache(&self.caches[level]));
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let mut words = [0; Self::WORDS];
        let first = [
            pair(self.line, self.memory_cycles),
            a,
            b,
            c,
            d,
            e,
            f,
            tlb(self.dtlb),
            tlb(self.dtlb_large),
            self.stlb.map_or(0, tlb),
            pair(self.stlb_cycles, self.walk_cycles),
            pair(self.split_cycles, self.cross_cycles),
            pair(self.mispredict_cycles, self.returns),
            self.ports.map_or(0, |ports| ports.issue.into()),
            tlb(self.btb),
            code[0],
            code[1],
            four(same, narrow, offset, wide),
            four(cross, alias, self.stores as u16, 0),
            four(rob, registers, loads, scheduler),
        ];
        words[..first.len()].copy_from_slice(&first);
        if let Some(ports) = &self.ports {
            words[PORTS_AT..].copy_from_slice(&ports.words());
        }
        words
    }

    /// The same from words; `None`: there are none, or they are not parameters.
    #[must_use]
    pub fn of_words(words: &[u64; Self::WORDS]) -> Option<Self> {
        let halves = |word: u64| (word as u32, (word >> 32) as u32);
        let cache = |bytes: u64, rest: u64| {
            let policy = Policy::by_number((rest >> 16) as u16)?;
            let shape = CacheShape {
                bytes,
                ways: u32::from(rest as u16),
                policy,
                cycles: (rest >> 32) as u32,
            };
            (bytes > 0).then_some(shape)
        };
        let tlb = |word: u64| {
            let (entries, ways) = halves(word);
            TlbShape { entries, ways }
        };
        let &[
            first,
            a,
            b,
            c,
            d,
            e,
            f,
            dtlb,
            dtlb_large,
            stlb,
            g,
            h,
            i,
            issue,
            targets,
            code,
            code_rest,
            j,
            k,
            window,
            ..,
        ] = words;
        let (line, memory_cycles) = halves(first);
        let (stlb_cycles, walk_cycles) = halves(g);
        let (split_cycles, cross_cycles) = halves(h);
        let (mispredict_cycles, returns) = halves(i);
        let part = |word: u64, at: u32| (word >> (16 * at)) as u16;
        let [same, narrow, offset, wide] = [0, 1, 2, 3].map(|at| part(j, at));
        let forward = Forward { same, narrow, offset, wide, cross: part(k, 0), alias: part(k, 1) };
        let stores = part(k, 2).into();
        let window = WindowShape::of([0, 1, 2, 3].map(|at| part(window, at)));
        let all = Self {
            line,
            caches: [cache(a, b), cache(c, d), cache(e, f)],
            code: cache(code, code_rest),
            memory_cycles,
            dtlb: tlb(dtlb),
            dtlb_large: tlb(dtlb_large),
            stlb: (stlb != 0).then(|| tlb(stlb)),
            stlb_cycles,
            walk_cycles,
            split_cycles,
            cross_cycles,
            mispredict_cycles,
            forward,
            stores,
            window,
            returns,
            btb: tlb(targets),
            ports: PortMap::of_words(&words[PORTS_AT..], issue as u8),
        };
        let is_tlb = |tlb: &TlbShape| is_tlb(*tlb);
        let sound = [32, 64, 128].contains(&line)
            && all
                .caches
                .iter()
                .chain([&all.code])
                .flatten()
                .all(|cache| (1..=MAX_WAYS).contains(&cache.ways))
            && all.code.is_none_or(|code| code.policy == Policy::Lru)
            && [all.dtlb, all.dtlb_large].iter().chain(&all.stlb).all(is_tlb)
            && all.forward.list().iter().all(|cycles| *cycles <= MOST_CYCLES)
            && stores <= MOST_STORES
            && window.is_sound()
            && (1..=64).contains(&returns)
            && is_btb(all.btb);
        (sound && all.check().is_ok()).then_some(all)
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

/// `24k/6:fifo@4`, or `none`.
fn cache(text: &str, cycles: u32) -> Result<Option<CacheShape>, &'static str> {
    if text == "none" {
        return Ok(None);
    }
    let (rest, cycles) = match text.split_once('@') {
        None => (text, Some(cycles)),
        Some((rest, cycles)) => (rest, cycles.parse().ok()),
    };
    let cycles = cycles.filter(|cycles| (1..=4000).contains(cycles)).ok_or(CYCLES)?;
    let (shape, policy) = match rest.split_once(':') {
        None => (rest, Policy::Lru),
        Some((shape, policy)) => (shape, Policy::by_name(policy).ok_or(POLICY)?),
    };
    let (size, ways) = shape.split_once('/').ok_or(CACHE)?;
    let shift = match size.as_bytes().last() {
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        _ => 0,
    };
    let digits = size.trim_end_matches(['k', 'K', 'm', 'M']);
    let bytes = digits.parse::<u32>().map_err(|_| CACHE)?;
    let bytes = u64::from(bytes) << shift;
    let ways = ways.parse().ok().filter(|ways| (1..=MAX_WAYS).contains(ways)).ok_or(SETS)?;
    Ok(Some(CacheShape { bytes, ways, policy, cycles }))
}

/// `32k/8@12`, or `none`.
fn code_cache(text: &str) -> Result<Option<CacheShape>, &'static str> {
    match text.contains(':') {
        true => Err(CODE),
        false => cache(text, 12),
    }
}

/// `5/5/6/13/12/7`.
fn forward(text: &str) -> Option<Forward> {
    let mut all = [0; 6];
    let mut parts = text.split('/');
    for cycles in &mut all {
        *cycles = parts.next()?.parse().ok().filter(|cycles| *cycles <= MOST_CYCLES)?;
    }
    parts.next().is_none().then_some(Forward::of(all))
}

/// `512/4`.
fn btb(text: &str) -> Result<TlbShape, &'static str> {
    tlb(text).ok().filter(|shape| is_btb(*shape)).ok_or(BTB)
}

/// `64/4`.
fn tlb(text: &str) -> Result<TlbShape, &'static str> {
    let (entries, ways) = text.split_once('/').ok_or(TLB)?;
    let (entries, ways) = (entries.parse().map_err(|_| TLB)?, ways.parse().map_err(|_| TLB)?);
    let shape = TlbShape { entries, ways };
    let sets = "entries / ways must be a power of two, with at most 16384 entries";
    is_tlb(shape).then_some(shape).ok_or(sets)
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, cache) in ["l1d", "l2", "l3"].into_iter().zip(&self.caches) {
            match cache {
                Some(CacheShape { bytes, ways, policy, cycles }) => {
                    match bytes.is_multiple_of(1024) {
                        true => write!(f, "{key}={}k", bytes / 1024)?,
                        false => write!(f, "{key}={bytes}")?,
                    }
                    write!(f, "/{ways}:{policy}@{cycles},")?;
                }
                None => write!(f, "{key}=none,")?,
            }
        }
        if let Some(CacheShape { bytes, ways, cycles, .. }) = self.code {
            write!(f, "l1i={bytes}/{ways}@{cycles},")?;
        }
        let Self { line, memory_cycles, dtlb, dtlb_large, walk_cycles, .. } = self;
        write!(f, "memory={memory_cycles},line={line},dtlb={}/{}", dtlb.entries, dtlb.ways)?;
        write!(f, ",dtlb2m={}/{}", dtlb_large.entries, dtlb_large.ways)?;
        match self.stlb {
            Some(stlb) => {
                write!(f, ",stlb={}/{}@{}", stlb.entries, stlb.ways, self.stlb_cycles)?;
            }
            None => f.write_str(",stlb=none")?,
        }
        write!(f, ",walk={walk_cycles},split={},cross={}", self.split_cycles, self.cross_cycles)?;
        write!(f, ",mispredict={}", self.mispredict_cycles)?;
        let [same, narrow, offset, wide, cross, alias] = self.forward.list();
        write!(f, ",forward={same}/{narrow}/{offset}/{wide}/{cross}/{alias}")?;
        match self.stores {
            0 => f.write_str(",stores=none")?,
            stores => write!(f, ",stores={stores}")?,
        }
        let keys = ["rob", "registers", "loads", "scheduler"];
        for (key, entries) in keys.iter().zip(self.window.list()).filter(|(_, one)| *one > 0) {
            write!(f, ",{key}={entries}")?;
        }
        write!(f, ",returns={}", self.returns)?;
        write!(f, ",btb={}/{}", self.btb.entries, self.btb.ways)?;
        let Some(ports) = &self.ports else { return Ok(()) };
        write!(f, ",ports={ports}")?;
        match ports.issue {
            0 => Ok(()),
            issue => write!(f, ",issue={issue}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn d1_what_is_given_stands_and_the_rest_is_the_default() {
        let text = "l1d=24k/6,l2=512k/8:qlru_h00_m1_r2_u1@15,l3=8m/16@42,dtlb=64/4,stlb=none,line=64,btb=512/4";
        let all = Parameters::parse(text).unwrap();
        let first = all.caches[0].unwrap();
        assert_eq!((first.bytes, first.ways, all.sets(&first)), (24 << 10, 6, 64));
        assert_eq!((first.policy, first.cycles), (Policy::Lru, 4));
        assert_eq!(all.caches[1].unwrap().policy.to_string(), "qlru_h00_m1_r2_u1");
        assert_eq!((all.caches[2].unwrap().cycles, all.stlb), (42, None));
        assert_eq!(all.btb, TlbShape { entries: 512, ways: 4 });
        assert_eq!(all.walk_cycles, Parameters::DEFAULT.walk_cycles);
        let coded = Parameters::parse("l1i=48k/12@11").unwrap();
        let code = coded.code.unwrap();
        assert_eq!((code.bytes, code.ways, code.cycles), (48 << 10, 12, 11));
        assert_eq!(Parameters::parse("l1i=none").unwrap().code, None);
        let stored = Parameters::parse("forward=5/6/7/13/12/9,stores=56").unwrap();
        assert_eq!((stored.forward.list(), stored.stores), ([5, 6, 7, 13, 12, 9], 56));
        assert_eq!(Parameters::parse("stores=none").unwrap().stores, 0);
        let windowed = Parameters::parse("rob=224,loads=72,registers=168,scheduler=97").unwrap();
        assert_eq!(windowed.window.list(), [224, 168, 72, 97]);
        // Another reorder buffer has nothing but that.
        let other = Parameters::parse("rob=224,loads=72,rob=64").unwrap();
        assert_eq!(other.window.list(), [64, 0, 0, 0]);
        assert_eq!(Parameters::parse("rob=64,rob=none"), Ok(Parameters::DEFAULT));
        let ported = Parameters::parse("ports=alu:0156/mul:1,issue=4").unwrap();
        assert_eq!(ported.ports.map(|ports| ports.issue), Some(4));
        for all in [all, coded, stored, windowed, ported, Parameters::DEFAULT] {
            assert_eq!(Parameters::parse(&all.to_string()), Ok(all));
            assert_eq!(Parameters::of_words(&all.words()), Some(all));
        }
        assert_eq!(Parameters::of_words(&[0; Parameters::WORDS]), None);
    }

    #[test]
    fn d1_what_is_wrong_is_named() {
        for (text, reason) in [
            ("l1d=24k/5", SETS),
            ("l1d=32k/8:lfu", POLICY),
            ("l1d=24k/6:plru", POLICY),
            ("l2=1m", CACHE),
            ("l1d=none", "each level"),
            ("l1i=32k/8:fifo", CODE),
            ("l1i=32k/7", SETS),
            ("forward=1/2/3/4/5", FORWARD),
            ("forward=1/2/3/4/5/4001", FORWARD),
            ("stores=129", "1 to 128"),
            ("stores=0", "1 to 128"),
            ("rob=15", WINDOW),
            ("rob=1025", WINDOW),
            ("rob=0", WINDOW),
            ("loads=16", WINDOW),
            ("rob=64,loads=65", WINDOW),
            ("rob=64,scheduler=1", WINDOW),
            ("l2=none,l3=8m/16", "each level"),
            ("dtlb=64/5", "power of two"),
            ("dtlb=0/1", "power of two"),
            ("dtlb=64", TLB),
            ("line=63", "32, 64 or 128"),
            ("memory=0", CYCLES),
            ("returns=65", "1 to 64"),
            ("btb=2048/2", BTB),
            ("btb=96/4", BTB),
            ("btb=64/32", BTB),
            ("btb=64", BTB),
            ("ports=3", "ports are CLASS:UOPS"),
            ("ports=alu:0,issue=17", "1 to 16"),
            ("issue=4", "after ports"),
            ("port=3", "the keys are"),
            ("", "the keys are"),
            ("l1d=32k/8,", "the keys are"),
        ] {
            let error = Parameters::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_and_no_words_make_it_panic(text in "(l1d|l1i|l2|stlb|line|forward|stores|rob|loads)?=?[0-9a-z/:@,=]{0,40}", words: [u64; Parameters::WORDS]) {
            let _ = Parameters::parse(&text);
            if let Some(all) = Parameters::of_words(&words) {
                let text = all.to_string();
                prop_assert_eq!(Parameters::parse(&text), Ok(all));
            }
        }
    }
}
