//! Memory areas in other pages than the [`super::arena`]'s own: larger ones, of another memory type, or for ring 3.
//!
//! Each combination has a place of its own, below 4 GiB but for pages of 1 GiB, and physical memory of its own, so that none is mapped
//! with two types but for the map of all physical memory, through which nothing reaches for it. It is made when it is
//! first requested, and kept.

use super::arena::{AREA_BYTES, AREA_STRIDE, AREAS};
use super::space::{DATA, MapError, USER};
use super::{Frames, Space, layout};
use crate::memory::cache;
use x86_64::VirtAddr;
use x86_64::structures::paging::{PageSize, PageTableFlags, Size1GiB, Size2MiB, Size4KiB};

/// Pages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the names are the sizes")]
pub enum Size {
    Small4K,
    Large2M,
    Giant1G,
}

/// Memory types. Their numbers are entries of the page attribute table, as [`crate::cpu::features`] sets it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the names are the manuals'")]
pub enum Type {
    WriteBack = 0,
    WriteCombining = 1,
    WriteThrough = 2,
    Uncacheable = 3,
}

/// One way to map the areas.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kind {
    /// Pages.
    pub size: Size,
    /// Memory type.
    pub memory: Type,
    /// Ring 3 may use them.
    pub user: bool,
}

/// Bytes from one place to the next.
const PLACE: u64 = 32 << 20;
/// The same for pages of 1 GiB.
const GIANT_PLACE: u64 = 8 << 30;
/// From one area to the next in large pages, each of which begins one.
const LARGE_STRIDE: u64 = 4 << 20;
const KINDS: usize = 24;

/// The areas that have been made.
#[derive(Debug, Default)]
pub struct Areas {
    made: [bool; KINDS],
}

impl Size {
    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Small4K => Size4KiB::SIZE,
            Self::Large2M => Size2MiB::SIZE,
            Self::Giant1G => Size1GiB::SIZE,
        }
    }
}

impl Kind {
    /// What the arena itself offers.
    pub const ORDINARY: Self = Self { size: Size::Small4K, memory: Type::WriteBack, user: false };

    fn index(self) -> usize {
        let size = match self.size {
            Size::Small4K => 0,
            Size::Large2M => 1,
            Size::Giant1G => 2,
        };
        (size * 4 + self.memory as usize) * 2 + usize::from(self.user)
    }

    /// First byte of area `index`.
    #[must_use]
    pub fn area(self, index: u64) -> u64 {
        let number = self.index() as u64;
        match self.size {
            Size::Giant1G => layout::GIANT_AREAS + number * GIANT_PLACE + index * LARGE_STRIDE,
            Size::Large2M => layout::AREAS + number * PLACE + index * LARGE_STRIDE,
            Size::Small4K => layout::AREAS + number * PLACE + index * AREA_STRIDE,
        }
    }

    /// What is in the entry of a page.
    pub(super) fn flags(self) -> PageTableFlags {
        let entry = self.memory as u64;
        let mut flags = DATA;
        flags.set(PageTableFlags::WRITE_THROUGH, entry & 1 != 0);
        flags.set(PageTableFlags::NO_CACHE, entry & 2 != 0);
        flags.set(USER, self.user);
        flags
    }
}

impl Areas {
    /// Makes sure that the areas are there, all zero.
    ///
    /// # Errors
    /// Out of memory: a 1 GiB page takes 1 GiB in one piece.
    pub fn map(
        &mut self,
        space: &mut Space,
        frames: &mut Frames,
        kind: Kind,
    ) -> Result<(), MapError> {
        if !self.made[kind.index()] {
            map(space, frames, kind)?;
            self.made[kind.index()] = true;
        }
        for index in 0..AREAS {
            let area = kind.area(index) as *mut u64;
            for word in 0..AREA_BYTES as usize / 8 {
                // SAFETY: mapped above, and a snippet's memory, which none uses now.
                unsafe { area.add(word).write_volatile(0) };
            }
        }
        Ok(())
    }
}

fn map(space: &mut Space, frames: &mut Frames, kind: Kind) -> Result<(), MapError> {
    let flags = kind.flags();
    let at = |index| VirtAddr::new(kind.area(index));
    // The new memory may be in a cache as write-back through the map of physical memory.
    // SAFETY: ring 0.
    unsafe { cache::write_back_all() };
    match kind.size {
        Size::Giant1G => {
            let to = frames.allocate(Size1GiB::SIZE, Size1GiB::SIZE)?;
            space.map_page::<Size1GiB>(frames, at(0), to, flags)?;
        }
        Size::Large2M => {
            for index in 0..AREAS {
                let to = frames.allocate(Size2MiB::SIZE, Size2MiB::SIZE)?;
                space.map_page::<Size2MiB>(frames, at(index), to, flags)?;
            }
        }
        Size::Small4K => {
            for index in 0..AREAS {
                let to = frames.allocate(AREA_BYTES, Size4KiB::SIZE)?;
                space.map_range(frames, at(index), to, AREA_BYTES, flags)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_at_the_middles_of_areas_are_in_different_sets_of_a_tlb() {
        let small = |memory| Kind { size: Size::Small4K, memory, user: false };
        let areas = [Type::WriteBack, Type::Uncacheable].map(small).map(|kind| {
            let area = move |index| kind.area(index);
            Box::new(area) as Box<dyn Fn(u64) -> u64>
        });
        for area in areas.into_iter().chain([Box::new(super::super::arena::area) as Box<_>]) {
            let mut sets: Vec<u64> = (0..AREAS)
                .map(|index| (area(index) + AREA_BYTES / 2) / Size4KiB::SIZE)
                .flat_map(|middle| [(middle - 1) % 16, middle % 16, (middle + 1) % 16])
                .collect();
            sets.sort_unstable();
            sets.dedup();
            assert_eq!(sets.len(), 3 * AREAS as usize);
        }
    }

    #[test]
    fn n5_each_kind_has_its_place_and_its_entry_of_the_page_attribute_table() {
        use PageTableFlags as Flags;
        let mut places = Vec::new();
        for size in [Size::Small4K, Size::Large2M, Size::Giant1G] {
            for (memory, bits) in [
                (Type::WriteBack, Flags::empty()),
                (Type::WriteCombining, Flags::WRITE_THROUGH),
                (Type::WriteThrough, Flags::NO_CACHE),
                (Type::Uncacheable, Flags::WRITE_THROUGH | Flags::NO_CACHE),
            ] {
                for user in [false, true] {
                    let kind = Kind { size, memory, user };
                    let both = Flags::WRITE_THROUGH | Flags::NO_CACHE;
                    assert_eq!(kind.flags() & both, bits);
                    assert_eq!(kind.flags().contains(USER), user);
                    let (page, end) = match size {
                        Size::Giant1G => (1 << 30, layout::USER_CODE),
                        _ => (2 << 20, layout::REQUESTED.start),
                    };
                    assert!(kind.area(0).is_multiple_of(page));
                    assert!(kind.area(AREAS) <= end);
                    places.push(kind.area(0)..kind.area(AREAS));
                }
            }
        }
        places.sort_unstable_by_key(|place| place.start);
        assert_eq!(places.len(), KINDS);
        assert!(places.windows(2).all(|two| two[0].end <= two[1].start));
        assert!(super::super::arena::area(AREAS) <= places[0].start);
    }
}
