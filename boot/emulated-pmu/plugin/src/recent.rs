//! The lines and pages that were used last: for them nothing in the caches and TLBs would move, or two lines of a set would change places.

use pmu_model::uarch::{Access, LINE_BYTES, PAGE_BYTES};

/// Sets of the first-level cache: a line's set is the same by linear and by physical address.
const SETS: u64 = PAGE_BYTES / LINE_BYTES;
/// Sets of the first-level TLB ([`pmu_model::uarch`]).
const PAGE_SETS: u64 = 16;

/// What an access would find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Found {
    /// The line that its set was requested last.
    Newest,
    /// The one before. Two arrays a multiple of a page apart have their lines in turn in the same sets.
    Second,
}

/// A line that was used.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Its linear number, plus 1.
    linear: u64,
    /// Its physical one, plus 1; 0 if it is not known.
    physical: u64,
}

/// By set of the cache: the lines that were used last, and last but one. By set of the TLB: the linear number of the page that was used
/// last, plus 1.
#[derive(Clone, Debug)]
pub struct Recent {
    lines: [[Line; 2]; SETS as usize],
    pages: [u64; PAGE_SETS as usize],
}

impl Default for Recent {
    fn default() -> Self {
        Self { lines: [[Line::default(); 2]; SETS as usize], pages: [0; PAGE_SETS as usize] }
    }
}

impl Recent {
    /// What an access of so many bytes within a line finds, if its page was used last as well. If it is the second line, that is the
    /// newest one now.
    #[inline]
    pub fn find(&mut self, linear: u64, bytes: u64) -> Option<Found> {
        let (line, page) = (linear / LINE_BYTES, linear / PAGE_BYTES);
        if self.pages[(page % PAGE_SETS) as usize] != page + 1
            || linear % LINE_BYTES + bytes > LINE_BYTES
        {
            return None;
        }
        let set = &mut self.lines[(line % SETS) as usize];
        if set[0].linear == line + 1 {
            Some(Found::Newest)
        } else if set[1].linear == line + 1 {
            set.swap(0, 1);
            Some(Found::Second)
        } else {
            None
        }
    }

    /// The access went through the caches and TLBs.
    pub fn note(&mut self, access: &Access) {
        let last = access.linear.wrapping_add(u64::from(access.bytes.max(1)) - 1);
        let (first, end) = (access.linear / LINE_BYTES, last / LINE_BYTES);
        let physical = if first == end { access.physical / LINE_BYTES + 1 } else { 0 };
        for line in first..=end {
            let set = &mut self.lines[(line % SETS) as usize];
            let newest = Line { linear: line + 1, physical };
            // Two linear lines may be one, which is in the cache once.
            let differ = set[0].physical != physical && set[0].physical != 0 && physical != 0;
            *set = [newest, if differ { set[0] } else { Line::default() }];
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

    /// Pages lie the other way round in physical memory, and each two are one.
    fn physical(page: u64) -> u64 {
        (100 - page / 2) * PAGE_BYTES
    }

    fn access(page: u64, offset: u64, bytes: u32) -> Access {
        Access {
            physical: physical(page) + offset,
            physical_next_page: physical(page + 1),
            ..Access::identity(page * PAGE_BYTES + offset, bytes, AccessKind::Load)
        }
    }

    proptest! {
        /// What the filter leaves out would have counted as a hit of the first level, and would have moved no more than the filter does.
        #[test]
        fn what_is_recent_moves_no_more_than_two_lines(
            list in prop::collection::vec((0..40_u64, prop_oneof![0..4096_u64, 0..80_u64], 1..9_u32), 1..400)
        ) {
            let (mut core, mut llc) = (made::<Core>(), made::<Llc>());
            let (mut filtered, mut filtered_llc) = (made::<Core>(), made::<Llc>());
            let mut recent = Recent::default();
            for (page, offset, bytes) in list {
                let access = access(page, offset, bytes);
                let mut plain = Delta::step(Ring::User);
                core.access(&access, &mut llc, Parts::ALL, &mut plain);
                let mut quick = Delta::step(Ring::User);
                if let Some(found) = recent.find(access.linear, bytes.into()) {
                    use pmu_model::Occurrence::{Load, LoadL1Hit};
                    quick = quick.with(Load, 1).with(LoadL1Hit, 1);
                    if found == Found::Second {
                        filtered.exchange_recent(access.linear);
                    }
                } else {
                    filtered.access(&access, &mut filtered_llc, Parts::ALL, &mut quick);
                    recent.note(&access);
                }
                prop_assert_eq!(plain, quick);
            }
        }
    }

    #[test]
    fn two_lines_of_a_set_in_turn_are_found_unless_they_are_one() {
        let mut recent = Recent::default();
        let find = |recent: &mut Recent, page: u64| recent.find(page * PAGE_BYTES + 8, 8);
        for page in [1, 4] {
            assert_eq!(find(&mut recent, page), None);
            recent.note(&access(page, 0, 8));
        }
        for page in [1, 4, 1] {
            assert_eq!(find(&mut recent, page), Some(Found::Second));
            assert_eq!(find(&mut recent, page), Some(Found::Newest));
        }
        // Pages 4 and 5 are one.
        recent.note(&access(4, 0, 8));
        recent.note(&access(5, 0, 8));
        assert_eq!(find(&mut recent, 4), None);
        assert_eq!(find(&mut recent, 5), Some(Found::Newest));
        // Of an access to two lines it is not known where the second one lies.
        recent.note(&access(1, 60, 8));
        assert_eq!(find(&mut recent, 5), None);
        recent.clear();
        assert_eq!(find(&mut recent, 1), None);
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
