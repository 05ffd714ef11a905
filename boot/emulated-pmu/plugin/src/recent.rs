//! The lines and pages that were used last: for them nothing in the caches and TLBs would move.

use pmu_model::uarch::{Access, LINE_BYTES, PAGE_BYTES};

/// Sets of the first-level cache: a line's set is the same by linear and by physical address.
const SETS: u64 = PAGE_BYTES / LINE_BYTES;
/// Sets of the first-level TLB ([`pmu_model::uarch`]).
const PAGE_SETS: u64 = 16;

/// By set: the linear number of the line, and of the page, that was used last; plus 1.
#[derive(Clone, Debug)]
pub struct Recent {
    lines: [u64; SETS as usize],
    pages: [u64; PAGE_SETS as usize],
}

impl Default for Recent {
    fn default() -> Self {
        Self { lines: [0; SETS as usize], pages: [0; PAGE_SETS as usize] }
    }
}

impl Recent {
    /// Whether an access of so many bytes lies in one line, and both this line and its page were used last.
    #[inline]
    pub fn has(&self, linear: u64, bytes: u64) -> bool {
        let (line, page) = (linear / LINE_BYTES, linear / PAGE_BYTES);
        self.lines[(line % SETS) as usize] == line + 1
            && self.pages[(page % PAGE_SETS) as usize] == page + 1
            && linear % LINE_BYTES + bytes <= LINE_BYTES
    }

    /// The access went through the caches and TLBs.
    pub fn note(&mut self, access: &Access) {
        let last = access.linear.wrapping_add(u64::from(access.bytes.max(1)) - 1);
        for line in access.linear / LINE_BYTES..=last / LINE_BYTES {
            self.lines[(line % SETS) as usize] = line + 1;
        }
        for page in access.linear / PAGE_BYTES..=last / PAGE_BYTES {
            self.pages[(page % PAGE_SETS) as usize] = page + 1;
        }
    }

    /// Something was flushed.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Where linear pages lie: for instructions that name an address which QEMU does not access.
#[derive(Clone, Debug)]
pub struct Translations {
    /// By the lowest bits of the linear page: that page plus 1, and the physical one.
    entries: Vec<(u64, u64)>,
}

const ENTRIES: usize = 1024;

impl Default for Translations {
    fn default() -> Self {
        Self { entries: vec![(0, 0); ENTRIES] }
    }
}

impl Translations {
    /// A linear page lies there.
    pub fn note(&mut self, linear: u64, physical: u64) {
        let page = linear / PAGE_BYTES;
        self.entries[page as usize % ENTRIES] = (page + 1, physical / PAGE_BYTES);
    }

    /// The physical address of a linear one, if its page was seen since the last flush, and lately.
    pub fn find(&self, linear: u64) -> Option<u64> {
        let page = linear / PAGE_BYTES;
        let (own, physical) = self.entries[page as usize % ENTRIES];
        (own == page + 1).then(|| physical * PAGE_BYTES + linear % PAGE_BYTES)
    }

    /// A page's translation goes.
    pub fn forget(&mut self, linear: u64) {
        let page = linear / PAGE_BYTES;
        self.entries[page as usize % ENTRIES] = (0, 0);
    }

    /// All of them go.
    pub fn clear(&mut self) {
        self.entries.fill((0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu_model::uarch::{AccessKind, Core, Llc, Parts};
    use pmu_model::{Delta, Ring};
    use proptest::prelude::*;

    /// They are large for a stack.
    #[inline(never)]
    fn made<T: Default>() -> Box<T> {
        Box::default()
    }

    proptest! {
        /// What the filter leaves out would have counted as a hit of the first level and changed nothing.
        #[test]
        fn what_is_recent_moves_nothing(list in prop::collection::vec((0..40_u64, 0..4096_u64, 1..9_u32), 1..400)) {
            let (mut core, mut llc) = (made::<Core>(), made::<Llc>());
            let (mut filtered, mut filtered_llc) = (made::<Core>(), made::<Llc>());
            let mut recent = Recent::default();
            for (page, offset, bytes) in list {
                // Pages lie the other way round in physical memory.
                let physical = |page: u64| (100 - page) * PAGE_BYTES;
                let access = Access {
                    linear: page * PAGE_BYTES + offset,
                    physical: physical(page) + offset,
                    physical_next_page: physical(page + 1),
                    bytes,
                    kind: AccessKind::Load,
                    locked: false,
                };
                let mut plain = Delta::step(Ring::User);
                core.access(&access, &mut llc, Parts::ALL, &mut plain);
                let mut quick = Delta::step(Ring::User);
                if recent.has(access.linear, bytes.into()) {
                    use pmu_model::Occurrence::{Load, LoadL1Hit};
                    quick = quick.with(Load, 1).with(LoadL1Hit, 1);
                } else {
                    filtered.access(&access, &mut filtered_llc, Parts::ALL, &mut quick);
                    recent.note(&access);
                }
                prop_assert_eq!(plain, quick);
            }
        }
    }

    #[test]
    fn translations_are_found_until_they_go() {
        let mut translations = Translations::default();
        translations.note(0x5123, 0x9123);
        assert_eq!(translations.find(0x5456), Some(0x9456));
        assert_eq!(translations.find(0x5456 + (ENTRIES as u64) * PAGE_BYTES), None);
        translations.forget(0x5000);
        assert_eq!(translations.find(0x5456), None);
        translations.note(0x5123, 0x9123);
        translations.clear();
        assert_eq!(translations.find(0x5123), None);
    }
}
