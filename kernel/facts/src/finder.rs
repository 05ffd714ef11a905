//! Ways and sets of a level, be it of caches or of TLBs.
//!
//! Places of one set are those that are far enough apart, a power of two. From an empty cache on as many of them as there are ways
//! come in and stay, whatever the policy; one more makes one of them leave. So the ways are determined; and the sets by how near the
//! places may come to each other before one more fits.
//!
//! What the levels in front have would hide that. So between bringing places in and looking for them, these levels are filled with
//! others, which share their sets but not those of the level that is looked at: odd multiples of their stride.

use crate::chain::Chain;
use crate::probe::{Flush, LARGE, Probe};
use alloc::vec::Vec;
use protocol::record::{Fit, slack};

/// Most places that are tried: no level has more ways.
const MOST: u32 = 128;
/// Tries of a run, of which the quickest counts.
pub const TRIES: u32 = 3;
/// Ways of a level, times this: so many other lines push all of its own out, by any policy but a random one.
const OTHERS: u32 = 3;
/// Rounds of them: a random policy keeps one line in some thousand.
const ROUNDS: u32 = 4;

/// What is looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum What {
    /// Caches, through large pages.
    Caches,
    /// TLBs for pages of 4 KiB.
    SmallPages,
    /// TLBs for large pages.
    LargePages,
}

/// A level that was found.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// What it takes beyond a hit of the first level, in cycles; of a level after the first, 0: whether there is one is not determined.
    pub cycles: u64,
    /// Its ways and the bytes from a place to the next of its set; `None`: not determined.
    pub shape: Option<(u32, u64)>,
    /// Why they are not determined.
    pub reason: Option<&'static str>,
    /// What they were determined from.
    pub evidence: Vec<Fit>,
}

/// A search.
pub struct Finder<'p, P> {
    pub probe: &'p mut P,
    what: What,
    /// Bytes of a line.
    line: u64,
    /// Bytes of a line or page: the least stride.
    unit: u64,
    /// What no level has, in cycles beyond a hit.
    farthest: u64,
    /// Ways of the first cache.
    ways: u32,
}

const EDGE: &str =
    "its sets repeat at a greater distance than the memory of the item allows: give it more";
const ROOM: &str = "the memory of the item is too small: give it more";
const KEPT: &str = "the levels in front keep lines that others should push out";
const HIDDEN: &str = "its sets repeat at the same distance as those of the level in front, which cannot be emptied without it";

impl<'p, P: Probe> Finder<'p, P> {
    /// A search for levels, with lines of so many bytes. `farthest`: cycles beyond a hit when no level has what is looked for.
    /// `ways`: of the first cache, which has to have a line of each page.
    pub fn new(probe: &'p mut P, what: What, line: u64, farthest: u64, ways: u32) -> Self {
        let unit = match what {
            What::Caches => line,
            What::SmallPages => 4096,
            What::LargePages => probe.large_page(),
        };
        Self { probe, what, line, unit, farthest, ways }
    }

    /// All levels.
    pub fn levels(&mut self) -> Vec<Level> {
        let mut all: Vec<Level> = Vec::new();
        let mut next = Next::Level(0);
        loop {
            match next {
                Next::Level(cycles) if all.len() < 4 => {
                    let level = self.level(cycles, &all);
                    let told = level.shape.is_some();
                    all.push(level);
                    next = if told { self.behind(&all) } else { Next::Nothing };
                }
                Next::Hidden(cycles, reason) => {
                    all.push(Level { cycles, reason: Some(reason), ..Level::default() });
                    return all;
                }
                Next::Level(_) | Next::Nothing => return all,
            }
            self.probe.beat();
        }
    }

    /// The greatest stride: half of the places that could be are left for the others.
    fn greatest(&self) -> u64 {
        match self.what {
            What::LargePages => (self.probe.bytes() / 8).max(self.unit),
            _ => (self.probe.bytes() / u64::from(MOST)).max(self.unit),
        }
    }

    /// Place number `index` of those that are looked for, or of the others. Of a page, another line each, so that the first cache
    /// has all of them.
    fn place(&self, at: u64, index: u32, (other, shared): (bool, bool)) -> u64 {
        if self.what == What::Caches {
            return at | LARGE;
        }
        let lines = 4096 / self.line;
        let (first, count) = match (shared, other) {
            (false, _) => (0, lines),
            (true, false) => (0, lines / 4),
            (true, true) => (lines / 4, lines - lines / 4),
        };
        let place = at + (first + u64::from(index) % count) * self.line;
        if self.what == What::LargePages { place | LARGE } else { place }
    }

    /// Whether the first cache has room for a line of each page.
    fn is_cached(&self, places: u32, inner: &[Level]) -> bool {
        let lines = (4096 / self.line) as u32;
        let room = self.ways.saturating_sub(1).max(1);
        let others = Self::front(inner).map_or(0, |(ways, _)| OTHERS * ways);
        self.what == What::Caches
            || match inner.is_empty() {
                true => places.div_ceil(lines) <= room,
                false => {
                    places.div_ceil(lines / 4) <= room && others.div_ceil(lines - lines / 4) <= room
                }
            }
    }

    fn flush(&self) -> Flush {
        // With empty caches every line finds an empty way, and stays, whatever the policy.
        if self.what == What::Caches { Flush::Caches } else { Flush::Both }
    }

    /// Loads by which the levels in front lose what they have. False: there is no room for them.
    fn push_out(&self, chain: &mut Chain, inner: &[Level]) -> bool {
        let Some((ways, stride)) = Self::front(inner) else { return true };
        let others = OTHERS * ways;
        if u64::from(2 * others) * stride > self.probe.bytes() {
            return false;
        }
        let rounds = u64::from(ROUNDS).min(self.line / 16);
        for _ in 0..rounds {
            for index in 0..others {
                let at = self.place(u64::from(2 * index + 1) * stride, index, (true, true));
                // Twice: a policy may keep others longer than a line that is used once.
                chain.load(at);
                chain.load(at);
            }
        }
        true
    }

    /// Most ways of the levels in front, and the stride of the last of them.
    fn front(inner: &[Level]) -> Option<(u32, u64)> {
        let stride = inner.last()?.shape?.1;
        let ways = inner.iter().filter_map(|level| Some(level.shape?.0)).max()?;
        Some((ways, stride))
    }

    /// Cycles of so many places when all have come, and the levels in front have lost them; `None`: there is no room.
    fn spent(&mut self, stride: u64, places: u32, inner: &[Level]) -> Option<u64> {
        if u64::from(places) * stride > self.probe.bytes() || !self.is_cached(places, inner) {
            return None;
        }
        let mut chain = Chain::default();
        let all = |chain: &mut Chain, finder: &Self| {
            for index in 0..places {
                let shared = (false, !inner.is_empty());
                chain.load(finder.place(u64::from(index) * stride, index, shared));
            }
        };
        all(&mut chain, self);
        if !self.push_out(&mut chain, inner) {
            return None;
        }
        if self.what == What::Caches {
            for index in 0..places {
                self.warm(&mut chain, u64::from(index) * stride);
            }
        }
        let skip = chain.len();
        all(&mut chain, self);
        Some(chain.cycles(self.probe, self.flush(), skip, TRIES))
    }

    /// A load by which the TLB has the large page of a place: of a line of another set, once for each page.
    fn warm(&self, chain: &mut Chain, at: u64) {
        let page = self.probe.large_page();
        let line = (at / page * page + page / 2 + 3 * self.line) | LARGE;
        if chain.visits(line) == 0 {
            chain.load(line);
        }
    }

    /// What a place takes as soon as so many others of its set have come that the last level in front does not have it any more.
    fn displaced(&mut self, inner: &[Level]) -> Option<u64> {
        let (last, (ways, _)) = (inner.last()?.cycles, Self::front(inner)?);
        let stride = self.greatest();
        for others in 1..=(4 * ways).min(MOST / 2 - 1) {
            if !self.is_cached(others + 1, &[]) {
                return None;
            }
            let mut chain = Chain::default();
            for index in 0..=others {
                let at = u64::from(index) * stride;
                if at + stride > self.probe.bytes() {
                    return None;
                }
                chain.load(self.place(at, index, (false, false)));
            }
            if self.what == What::Caches {
                self.warm(&mut chain, 0);
            }
            let skip = chain.len();
            chain.load(self.place(0, 0, (false, false)));
            let cycles = chain.cycles(self.probe, self.flush(), skip, TRIES);
            if cycles > last + slack(last) {
                return Some(cycles);
            }
        }
        None
    }

    /// Whether so many places fit.
    fn fits(
        &mut self,
        (stride, places): (u64, u32),
        level: &mut Level,
        inner: &[Level],
    ) -> Result<bool, &'static str> {
        let cycles = self.spent(stride, places, inner).ok_or(ROOM)?;
        let allowed = u64::from(places) * level.cycles;
        if cycles + allowed / 16 + slack(level.cycles) < allowed {
            return Err(KEPT);
        }
        let fits = cycles <= allowed + allowed / 16 + slack(level.cycles);
        level.evidence.push(Fit { stride, places, cycles, fits });
        Ok(fits)
    }

    /// The most places of a stride that fit.
    fn most(
        &mut self,
        stride: u64,
        level: &mut Level,
        inner: &[Level],
    ) -> Result<u32, &'static str> {
        let (mut fit, mut next) = (0, 1);
        loop {
            match self.fits((stride, next), level, inner)? {
                true if next < MOST => (fit, next) = (next, next * 2),
                true => return Err(ROOM),
                false => break,
            }
        }
        while next - fit > 1 {
            let middle = u32::midpoint(fit, next);
            match self.fits((stride, middle), level, inner)? {
                true => fit = middle,
                false => next = middle,
            }
        }
        Ok(fit)
    }

    /// Ways and sets of a level that takes so many cycles, after others.
    fn level(&mut self, cycles: u64, inner: &[Level]) -> Level {
        let mut level = Level { cycles, ..Level::default() };
        let greatest = self.greatest();
        let least = Self::front(inner).map_or(self.unit, |(_, stride)| 2 * stride);
        if greatest < 2 * least {
            level.reason = Some(ROOM);
            return level;
        }
        let ways = match self.most(greatest, &mut level, inner) {
            Ok(ways) => ways,
            Err(reason) => {
                level.reason = Some(reason);
                return level;
            }
        };
        if ways == 0 {
            level.reason = Some(HIDDEN);
            return level;
        }
        let mut stride = greatest;
        while stride > least {
            match self.fits((stride / 2, ways + 1), &mut level, inner) {
                Ok(false) => stride /= 2,
                Ok(true) => break,
                Err(reason) => {
                    level.reason = Some(reason);
                    return level;
                }
            }
        }
        match stride == greatest {
            // One more place may be all that a second set allows for.
            true => level.reason = Some(EDGE),
            false => level.shape = Some((ways, stride)),
        }
        level
    }

    /// What lies behind the levels that were found.
    fn behind(&mut self, inner: &[Level]) -> Next {
        let Some(last) = inner.last().map(|level| level.cycles) else { return Next::Nothing };
        let Some(pushed) = self.spent(self.greatest(), 1, inner) else {
            return Next::Hidden(0, ROOM);
        };
        let farthest = self.farthest;
        let is_there =
            |cycles: u64| cycles > last + slack(last) && cycles + slack(cycles) < farthest;
        let displaced = self.displaced(inner);
        let is_kept = pushed <= last + slack(last);
        match displaced {
            // The others push nothing out: only that there is a level can be determined.
            Some(cycles) if is_kept && is_there(cycles) => Next::Hidden(cycles, KEPT),
            Some(_) if is_kept => Next::Nothing,
            None if is_kept => Next::Hidden(0, KEPT),
            // The others have pushed it out of that level as well.
            Some(cycles) if is_there(cycles) && cycles + slack(cycles) < pushed => {
                Next::Hidden(cycles, HIDDEN)
            }
            _ if is_there(pushed) => Next::Level(pushed),
            _ => Next::Nothing,
        }
    }
}

/// What lies behind a level.
enum Next {
    /// No level.
    Nothing,
    /// One that takes so many cycles beyond a hit of the first.
    Level(u64),
    /// The same, of which nothing else can be determined, for this reason. 0: nor whether there is one.
    Hidden(u64, &'static str),
}
