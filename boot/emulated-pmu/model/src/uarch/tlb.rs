//! The data TLBs.

use super::cache::{Access, AccessKind};
use super::set_assoc::SetAssoc;
use super::sink::Sink;
use crate::occurrence::Occurrence;

/// Bytes in a page. The model knows no other size.
pub const PAGE_BYTES: u64 = 4096;

/// Where a translation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Translation {
    /// In the first level.
    Hit,
    /// In the second level.
    SecondLevel,
    /// In the page tables.
    Walk,
}

/// First-level data TLB and second-level TLB.
#[derive(Clone, Debug, Default)]
pub struct Tlb {
    first: SetAssoc<16, 4>,
    second: SetAssoc<128, 12>,
}

impl Tlb {
    /// Empty TLBs.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: SetAssoc::new(), second: SetAssoc::new() }
    }

    /// Translates a linear page number.
    pub fn translate(&mut self, page: u64) -> Translation {
        if self.first.touch(page) {
            Translation::Hit
        } else if self.second.touch(page) {
            Translation::SecondLevel
        } else {
            Translation::Walk
        }
    }

    /// Whether a linear page is the last one that its set of the first level was requested.
    #[inline]
    pub(super) fn is_newest(&self, page: u64) -> bool {
        self.first.is_newest(page)
    }

    /// INVLPG of a linear address.
    pub fn invlpg(&mut self, linear: u64) {
        self.first.remove(linear / PAGE_BYTES);
        self.second.remove(linear / PAGE_BYTES);
    }

    /// All translations go: a write to CR3, with PCID and global pages left aside.
    pub fn flush(&mut self) {
        self.first.clear();
        self.second.clear();
    }

    /// Translates the pages of an access and notes the misses.
    pub(super) fn access(&mut self, access: &Access, sink: &mut impl Sink) {
        use Occurrence::*;
        let (first, last) = access.pages();
        let pages = if first == last { [Some(first), None] } else { [Some(first), Some(last)] };
        for page in pages.into_iter().flatten() {
            let load = access.kind != AccessKind::Store;
            match (self.translate(page), load) {
                (Translation::Hit, _) => {}
                (Translation::SecondLevel, true) => sink.add(LoadStlbHit, 1),
                (Translation::SecondLevel, false) => sink.add(StoreStlbHit, 1),
                (Translation::Walk, true) => sink.add(LoadWalk, 1),
                (Translation::Walk, false) => sink.add(StoreWalk, 1),
            }
        }
    }
}
