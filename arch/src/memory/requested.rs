//! Memory of a size that an item requests, in pages that it requests, with nothing mapped around it.
//!
//! It is taken before the item and given back after it. Where it lies was decided with the job, so it is the same on any
//! machine. Several address spaces can have it: that of each processor of the item.

use super::areas::{Kind, Size, Type};
use super::space::MapError;
use super::{Frames, Region, Space};
use crate::memory::cache;
use alloc::vec::Vec;
use core::ops::Range;
use thiserror::Error;
use x86_64::structures::paging::{Size1GiB, Size2MiB, Size4KiB};
use x86_64::{PhysAddr, VirtAddr};

/// What an item leaves of the free memory: page tables, the five areas in other pages (10 MiB in large ones), and tasks take it.
const KEPT_BYTES: u64 = 16 << 20;

/// The machine has not so much free memory.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[error("{asked} bytes are requested, {there} are available in pages of this size")]
pub struct NotSoMuch {
    /// Bytes in whole pages.
    pub asked: u64,
    /// Bytes that could have been had.
    pub there: u64,
}

/// One piece of such memory.
#[derive(Debug)]
pub struct Requested {
    range: Range<u64>,
    kind: Kind,
    pieces: Vec<Region>,
}

/// What could be had in pages of `page` bytes.
fn there(frames: &Frames, page: u64) -> u64 {
    let all = frames.free_bytes();
    // Tables of the lowest level take a 512th of what they map, and those above them as much again at most.
    let usable = all.saturating_sub(KEPT_BYTES + all / 256);
    frames.free_in_pages(page).min(usable) & !(page - 1)
}

impl Requested {
    /// Takes physical memory for `bytes` from address `at` on.
    ///
    /// # Errors
    /// There is not enough; then nothing is taken.
    pub fn take(frames: &mut Frames, at: u64, bytes: u64, kind: Kind) -> Result<Self, NotSoMuch> {
        let page = kind.size.bytes();
        let asked = bytes.checked_next_multiple_of(page).unwrap_or(u64::MAX);
        let there = there(frames, page);
        let short = NotSoMuch { asked, there };
        let range = at..at.checked_add(asked).filter(|_| asked <= there).ok_or(short)?;
        let pieces = frames.allocate_in_pages(asked, page).map_err(|_| short)?;
        Ok(Self { range, kind, pieces })
    }

    /// Maps it into an address space.
    ///
    /// # Errors
    /// Out of memory for page tables, or something is mapped there already. What was mapped by then is to be unmapped.
    pub fn map(&self, space: &mut Space, frames: &mut Frames) -> Result<(), MapError> {
        if self.kind.memory != Type::WriteBack {
            // The memory may are in a cache as write-back, from an item before.
            // SAFETY: ring 0.
            unsafe { cache::write_back_all() };
        }
        let flags = self.kind.flags();
        let mut at = VirtAddr::new(self.range.start);
        for piece in &self.pieces {
            let page = self.kind.size.bytes();
            for to in (piece.start..piece.end).step_by(page as usize).map(PhysAddr::new) {
                match self.kind.size {
                    Size::Small4K => space.map_page::<Size4KiB>(frames, at, to, flags)?,
                    Size::Large2M => space.map_page::<Size2MiB>(frames, at, to, flags)?,
                    Size::Giant1G => space.map_page::<Size1GiB>(frames, at, to, flags)?,
                }
                at += page;
            }
        }
        Ok(())
    }

    /// Takes it out of an address space, as far as it is there. TLBs are the caller's business.
    pub fn unmap(&self, space: &mut Space, frames: &mut Frames) {
        space.remove(&self.range, frames);
    }

    /// Gives the memory back. No address space may have it any more.
    pub fn give_back(self, frames: &mut Frames) {
        self.pieces.into_iter().for_each(|piece| frames.free(piece));
    }

    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Its content.
    ///
    /// # Safety
    /// It is mapped in the address space in use, and nothing else uses it.
    pub unsafe fn words_mut(&mut self) -> &mut [u64] {
        let words = (self.range.end - self.range.start) as usize / size_of::<u64>();
        // SAFETY: the caller's promise; the range begins at a page.
        unsafe { core::slice::from_raw_parts_mut(self.range.start as *mut u64, words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::layout;

    const MIB: u64 = 1 << 20;
    const AT: u64 = layout::REQUESTED.start;

    fn frames(end: u64) -> Frames {
        Frames::new([Region { start: MIB, end }].into_iter())
    }

    #[test]
    fn n5_memory_is_had_up_to_what_is_kept_and_comes_back() {
        let mut frames = frames(257 * MIB);
        let before = frames.regions();
        let there = there(&frames, 4096);
        assert_eq!(there, (256 - 16 - 1) * MIB);
        let most = Requested::take(&mut frames, AT, there, Kind::ORDINARY).unwrap();
        assert_eq!(most.range(), AT..AT + there);
        let more = Requested::take(&mut frames, AT, MIB, Kind::ORDINARY).unwrap_err();
        assert_eq!(more.asked, MIB);
        most.give_back(&mut frames);
        assert_eq!(frames.regions(), before);
        let more = Requested::take(&mut frames, AT, there + 1, Kind::ORDINARY).unwrap_err();
        assert_eq!(more, NotSoMuch { asked: there + 4096, there });
        assert!(Requested::take(&mut frames, AT, u64::MAX, Kind::ORDINARY).is_err());
        assert_eq!(frames.regions(), before);
    }

    #[test]
    fn n5_pages_of_1_gib_are_those_that_are_whole() {
        let kind = Kind { size: Size::Giant1G, ..Kind::ORDINARY };
        let mut frames = frames(2 * 1024 * MIB);
        let error = Requested::take(&mut frames, AT, 1 + 1024 * MIB, kind).unwrap_err();
        assert_eq!(error, NotSoMuch { asked: 2048 * MIB, there: 1024 * MIB });
        let one = Requested::take(&mut frames, AT, MIB, kind).unwrap();
        assert_eq!(one.range(), AT..AT + 1024 * MIB);
    }
}
