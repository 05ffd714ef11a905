//! What CPUID says of caches and TLBs.
//!
//! Intel SDM vol. 2, CPUID: leaf 4 (deterministic cache parameters), leaf 0x18 (deterministic address translation parameters). AMD APM
//! vol. 3, appendix E: 0x80000005, 0x80000006 (caches and TLBs), 0x8000001D (cache topology). Descriptors of leaf 2 are not read.

use std::fmt;

/// A cache, as CPUID has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Cache {
    /// Bytes.
    pub bytes: u64,
    /// Ways.
    pub ways: u32,
    /// Bytes of a line.
    pub line: u32,
    /// Logical processors that share it, at most.
    shared: u32,
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = super::size(self.bytes);
        write!(f, "{size}, {} ways, for up to {} processors", self.ways, self.shared)
    }
}

impl Cache {
    /// One of leaf 4 or 0x8000001D.
    fn of_listed([a, b, c, _]: [u32; 4]) -> Self {
        let (ways, parts, line) = ((b >> 22) + 1, (b >> 12 & 0x3ff) + 1, (b & 0xfff) + 1);
        let bytes = u64::from(ways) * u64::from(parts) * u64::from(line) * (u64::from(c) + 1);
        Self { bytes, ways, line, shared: (a >> 14 & 0xfff) + 1 }
    }

    /// One of leaf 0x80000005.
    fn of_first(first: u32) -> Option<Self> {
        (first >> 24 != 0).then(|| Self {
            bytes: u64::from(first >> 24) << 10,
            ways: first >> 16 & 0xff,
            line: first & 0xff,
            shared: 1,
        })
    }

    /// How many ids of APICs share it.
    pub(super) const fn shared(self) -> u32 {
        self.shared
    }
}

/// The answers.
pub(super) struct Says<'a>(&'a [[u32; 6]]);

impl<'a> Says<'a> {
    pub(super) const fn of(answers: &'a [[u32; 6]]) -> Self {
        Self(answers)
    }

    fn leaf(&self, leaf: u32) -> impl Iterator<Item = [u32; 4]> {
        let own = move |answer: &&[u32; 6]| answer[0] == leaf;
        self.0.iter().filter(own).map(|&[_, _, a, b, c, d]| [a, b, c, d])
    }

    /// A leaf that says something on AMD's processors alone: those without leaf 4.
    fn amd(&self, leaf: u32) -> Option<[u32; 4]> {
        if self.leaf(4).next().is_some() { None } else { self.leaf(leaf).next() }
    }

    /// Data or unified caches, by level.
    pub(super) fn cache(&self, level: u32) -> Option<Cache> {
        // Type 1 is data, 3 unified.
        let is_own = |[a, ..]: &[u32; 4]| matches!(a & 0x1f, 1 | 3) && a >> 5 & 7 == level;
        let listed = self.leaf(4).chain(self.leaf(0x8000_001d)).find(is_own);
        if let Some(listed) = listed {
            return Some(Cache::of_listed(listed));
        }
        let [_, _, first, _] = self.amd(0x8000_0005)?;
        Cache::of_first(first).filter(|_| level == 1)
    }

    /// The first level's instruction cache.
    pub(super) fn code(&self) -> Option<Cache> {
        // Type 2 is instructions.
        let is_own = |[a, ..]: &[u32; 4]| a & 0x1f == 2 && a >> 5 & 7 == 1;
        let listed = self.leaf(4).chain(self.leaf(0x8000_001d)).find(is_own);
        let of_amd = || self.amd(0x8000_0005).and_then(|[.., first]| Cache::of_first(first));
        listed.map(Cache::of_listed).or_else(of_amd)
    }

    /// Bytes of a line of the first level.
    pub(super) fn line(&self) -> Option<u32> {
        self.cache(1).map(|cache| cache.line)
    }

    /// Entries and ways of a TLB for data in pages of so many bytes.
    pub(super) fn tlb(&self, level: u32, page: u64) -> Option<(u32, u32)> {
        let large = page > 4096;
        for [_, b, c, d] in self.leaf(0x18) {
            // Types 1, 3, 4 and 5 translate data; bits of EBX: 4 KiB, 2 MiB.
            let is_own = matches!(d & 0x1f, 1 | 3 | 4) && d >> 5 & 7 == level;
            if is_own && b & (1 << u32::from(large)) != 0 {
                let ways = if d >> 8 & 1 != 0 { (b >> 16) * c } else { b >> 16 };
                return Some(((b >> 16) * c, ways));
            }
        }
        match level {
            1 => {
                let [a, b, ..] = self.amd(0x8000_0005)?;
                let half = (if large { a } else { b }) >> 16;
                let (ways, entries) = (half >> 8, half & 0xff);
                (entries > 0).then_some((entries, if ways == 0xff { entries } else { ways }))
            }
            2 => {
                let [a, b, ..] = self.amd(0x8000_0006)?;
                let half = (if large { a } else { b }) >> 16;
                // Codes of associativity: APM vol. 3, table E-4.
                let ways = [0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0];
                let (ways, entries) = (ways[(half >> 12) as usize], half & 0xfff);
                (entries > 0 && ways > 0).then_some((entries, ways))
            }
            _ => None,
        }
    }
}
