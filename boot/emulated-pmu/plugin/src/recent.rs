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
    /// Whether an access of so many bytes is in one line, and both this line and its page were used last.
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

/// Where linear pages lie, so that QEMU need not be asked at each access, which takes longer than the caches; and for
/// instructions that name an address which QEMU does not access.
/// Until it is flushed the guest's processor may keep a translation, and QEMU does.
#[derive(Clone, Debug)]
pub struct Translations {
    /// By the lowest bits of the linear page.
    entries: Vec<Entry>,
    /// How often all were flushed.
    flushes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The linear page, plus 1.
    page: u64,
    /// The physical one.
    physical: u64,
    /// After which flush it was noted.
    flushes: u64,
}

const ENTRIES: usize = 1024;

impl Default for Translations {
    fn default() -> Self {
        Self { entries: vec![Entry::default(); ENTRIES], flushes: 0 }
    }
}

impl Translations {
    /// A linear page lies there.
    #[inline]
    pub fn note(&mut self, linear: u64, physical: u64) {
        let page = linear / PAGE_BYTES;
        let (physical, flushes) = (physical / PAGE_BYTES, self.flushes);
        self.entries[page as usize % ENTRIES] = Entry { page: page + 1, physical, flushes };
    }

    /// The physical address of a linear one, if its page was seen since the last flush, and lately.
    #[inline]
    pub fn find(&self, linear: u64) -> Option<u64> {
        let page = linear / PAGE_BYTES;
        let entry = &self.entries[page as usize % ENTRIES];
        let found = entry.page == page + 1 && entry.flushes == self.flushes;
        found.then(|| entry.physical * PAGE_BYTES + linear % PAGE_BYTES)
    }

    /// All of them go.
    pub fn clear(&mut self) {
        self.flushes += 1;
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
                    page_bits: 12,
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
        translations.clear();
        assert_eq!(translations.find(0x5123), None);
        translations.note(0x5123, 0xa123);
        assert_eq!(translations.find(0x5001), Some(0xa001));
    }
}
