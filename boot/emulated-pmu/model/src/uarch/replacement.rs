//! Replacement policies: which line of a set makes room.
//!
//! LRU, FIFO, tree PLRU and MRU (bit PLRU) are those of J. Grund and J. Reineke, "Toward precise PLRU cache analysis"
//! (WCET 2010) and of A. Abel and J. Reineke, "Measurement-based modeling of the cache replacement policy" (RTAS 2013). QLRU,
//! with its names for variants, is that of A. Abel and J. Reineke, "nanoBench" (ISPASS 2020), section VI-B; Intel's patents call
//! it quad-age LRU. Empty ways are filled first, under each of them.

use core::fmt;

/// Which line of a set makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The least recently used one.
    #[default]
    Lru,
    /// The one that came first.
    Fifo,
    /// The one that a binary tree of bits points to; ways are a power of two.
    TreePlru,
    /// The first one that was not used since all others were.
    Mru,
    /// Any one: by a generator with a fixed seed, so that two runs are the same.
    Random,
    /// By ages of two bits.
    Qlru(Qlru),
}

/// A variant of quad-age LRU. Ages are 0 to 3; a line of age 3 makes room, the leftmost one if there are several, or the leftmost
/// line of all if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qlru {
    /// The ages that a hit gives to a line of age 3 and to one of age 2; younger ones get 0.
    pub hit: (u8, u8),
    /// The age of a line that comes.
    pub miss: u8,
    /// Empty ways are filled from the right (R2), not from the left (R0).
    pub from_right: bool,
    /// How ages grow when no line has age 3, 0 to 3 (U0 to U3): all by what the oldest one lacks; all but the accessed one by that;
    /// all by one; all but the accessed one by one.
    pub update: u8,
}

impl Qlru {
    /// The names of what a hit does.
    const HITS: [(u8, u8); 5] = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)];

    /// How many variants there are.
    const COUNT: u8 = 160;

    /// By its number, below [`Self::COUNT`].
    const fn variant(number: u8) -> Self {
        Self {
            hit: Self::HITS[(number / 32) as usize % Self::HITS.len()],
            miss: number / 8 % 4,
            from_right: number / 4 % 2 == 1,
            update: number % 4,
        }
    }

    /// Every variant.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self::variant)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lru => f.write_str("lru"),
            Self::Fifo => f.write_str("fifo"),
            Self::TreePlru => f.write_str("plru"),
            Self::Mru => f.write_str("mru"),
            Self::Random => f.write_str("random"),
            Self::Qlru(Qlru { hit: (x, y), miss, from_right, update }) => {
                let from = if *from_right { 2 } else { 0 };
                write!(f, "qlru_h{x}{y}_m{miss}_r{from}_u{update}")
            }
        }
    }
}

impl Policy {
    /// Those that are not variants.
    pub const PLAIN: [Self; 5] = [Self::Lru, Self::Fifo, Self::TreePlru, Self::Mru, Self::Random];

    /// Every policy that a cache of so many ways can have.
    pub fn all(ways: usize) -> impl Iterator<Item = Self> {
        let all =
            (0..Self::PLAIN.len() as u16 + u16::from(Qlru::COUNT)).filter_map(Self::by_number);
        all.filter(move |one| *one != Self::TreePlru || ways.is_power_of_two())
    }

    /// By its name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        if let Some(plain) = match name {
            "lru" => Some(Self::Lru),
            "fifo" => Some(Self::Fifo),
            "plru" => Some(Self::TreePlru),
            "mru" => Some(Self::Mru),
            "random" => Some(Self::Random),
            _ => None,
        } {
            return Some(plain);
        }
        let digits = name.strip_prefix("qlru_h")?.as_bytes();
        let &[x, y, b'_', b'm', miss, b'_', b'r', from, b'_', b'u', update] = digits else {
            return None;
        };
        let wanted = [x, y, miss, from, update].map(|digit| digit.wrapping_sub(b'0'));
        let found = Qlru::all().find(|one| {
            let from = if one.from_right { 2 } else { 0 };
            [one.hit.0, one.hit.1, one.miss, from, one.update] == wanted
        });
        found.map(Self::Qlru)
    }

    /// As a number, for those who talk over a page of words.
    #[must_use]
    pub fn number(self) -> u16 {
        let own = |one: Self| Self::all(2).position(|other| other == one);
        own(self).unwrap_or_default() as u16
    }

    /// By its number.
    #[must_use]
    pub fn by_number(number: u16) -> Option<Self> {
        let behind = number.checked_sub(Self::PLAIN.len() as u16);
        match behind {
            None => Self::PLAIN.get(usize::from(number)).copied(),
            Some(variant) if variant < Qlru::COUNT.into() => {
                Some(Self::Qlru(Qlru::variant(variant as u8)))
            }
            Some(_) => None,
        }
    }

    /// Whether a second access in a row to the line that was used last changes nothing.
    #[must_use]
    pub const fn forgets_repeats(self) -> bool {
        !matches!(self, Self::Qlru(_))
    }
}

/// Bits of a pseudo-random generator (Marsaglia's xorshift64): what [`Policy::Random`] draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dice(u64);

impl Dice {
    /// The first state.
    pub const NEW: Self = Self(0x9e37_79b9_7f4a_7c15);

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}

/// One set: the tags of its ways, 0 for an empty one, and a byte of state for each. All zeros is the empty set.
#[derive(Debug)]
pub struct Set<'a> {
    /// Tags by way.
    pub tags: &'a mut [u64],
    /// State by way; of a tree, its bits.
    pub state: &'a mut [u8],
}

impl Set<'_> {
    /// Looks a tag up, which is not 0, and brings it in. True if it was there.
    pub fn touch(&mut self, tag: u64, policy: Policy, dice: &mut Dice) -> bool {
        let found = self.tags.iter().position(|way| *way == tag);
        let way = found.unwrap_or_else(|| self.room(policy, dice));
        self.tags[way] = tag;
        match policy {
            Policy::Lru => self.rank(way, found.is_none()),
            Policy::Fifo if found.is_none() => self.rank(way, true),
            Policy::Fifo | Policy::Random => {}
            Policy::TreePlru => self.point_away(way),
            Policy::Mru => self.mark(way),
            Policy::Qlru(qlru) => self.age(way, found.is_some(), qlru),
        }
        found.is_some()
    }

    /// Takes a tag out.
    pub fn remove(&mut self, tag: u64, policy: Policy) {
        let Some(way) = self.tags.iter().position(|way| *way == tag) else { return };
        self.tags[way] = 0;
        if policy != Policy::TreePlru {
            self.state[way] = 0;
        }
    }

    /// The way that makes room.
    fn room(&self, policy: Policy, dice: &mut Dice) -> usize {
        let ways = self.tags.len();
        let empty = |way: &usize| self.tags[*way] == 0;
        let from_right = matches!(policy, Policy::Qlru(qlru) if qlru.from_right);
        let free = if from_right { (0..ways).rev().find(empty) } else { (0..ways).find(empty) };
        if let Some(free) = free {
            return free;
        }
        let oldest = || (0..ways).max_by_key(|way| self.state[*way]);
        let marked = |state: u8| self.state.iter().position(|way| *way == state);
        match policy {
            Policy::Lru | Policy::Fifo => oldest().unwrap_or(0),
            Policy::TreePlru => self.pointed_to(),
            Policy::Mru => marked(0).unwrap_or(0),
            Policy::Random => dice.below(ways),
            Policy::Qlru(_) => marked(3).unwrap_or(0),
        }
    }

    /// Makes a way the first one of an order, which those have that are not empty.
    fn rank(&mut self, way: usize, is_new: bool) {
        let before = if is_new { u8::MAX } else { self.state[way] };
        for other in 0..self.tags.len() {
            if other != way && self.tags[other] != 0 && self.state[other] < before {
                self.state[other] += 1;
            }
        }
        self.state[way] = 0;
    }

    fn point_away(&mut self, way: usize) {
        let (mut node, mut low, mut high) = (0, 0, self.tags.len());
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let is_right = way >= middle;
            self.state[node] = u8::from(!is_right);
            (low, high) = if is_right { (middle, high) } else { (low, middle) };
            node = 2 * node + 1 + usize::from(is_right);
        }
    }

    fn pointed_to(&self) -> usize {
        let (mut node, mut low, mut high) = (0, 0, self.tags.len());
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let is_right = self.state[node] != 0;
            (low, high) = if is_right { (middle, high) } else { (low, middle) };
            node = 2 * node + 1 + usize::from(is_right);
        }
        low
    }

    fn mark(&mut self, way: usize) {
        self.state[way] = 1;
        if self.state.iter().all(|mark| *mark == 1) {
            self.state.fill(0);
            self.state[way] = 1;
        }
    }

    fn age(&mut self, way: usize, hit: bool, qlru: Qlru) {
        self.state[way] = match (hit, self.state[way]) {
            (false, _) => qlru.miss,
            (true, 3) => qlru.hit.0,
            (true, 2) => qlru.hit.1,
            (true, _) => 0,
        };
        // An empty way counts as one of age 3.
        let oldest = self.state.iter().copied().max().unwrap_or(3);
        if oldest >= 3 || self.tags.contains(&0) {
            return;
        }
        let by = if qlru.update < 2 { 3 - oldest } else { 1 };
        let spared = (qlru.update % 2 == 1).then_some(way);
        for (other, age) in self.state.iter_mut().enumerate() {
            if spared != Some(other) {
                *age = (*age + by).min(3);
            }
        }
    }
}

#[cfg(test)]
mod tests;
