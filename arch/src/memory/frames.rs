//! The physical frames that are free. What the firmware allocates for itself lives as long as it does; what it allocates
//! for an item of the job is given back after it.

use alloc::vec::Vec;
use thiserror::Error;
use x86_64::PhysAddr;
use x86_64::structures::paging::{FrameAllocator, PageSize, PhysFrame, Size4KiB};

/// A range of free physical memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
}

/// No free range is large enough.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[error("out of memory: {bytes} bytes requested, the largest free range has {largest}")]
pub struct OutOfMemory {
    /// Bytes requested.
    pub bytes: u64,
    /// Bytes of the largest range that is left.
    pub largest: u64,
}

/// Most regions that are kept; a memory map with more loses its smallest ones.
const MAX_REGIONS: usize = 64;
/// Below this lies what BIOS and application processors need.
const LOWEST: u64 = 0x10_0000;

/// Most ranges that are preferred.
const MAX_NEAR: usize = 16;
const NONE: Region = Region { start: 0, end: 0 };

/// The free frames. Each region is near or far as a whole: those that are near are given out first.
#[derive(Clone, Debug)]
pub struct Frames {
    regions: [Region; MAX_REGIONS],
    count: usize,
    total: u64,
    near: [Region; MAX_NEAR],
}

impl Frames {
    /// Takes the usable regions of a memory map: what is below 1 MiB and incomplete frames at the edges
    /// are left out.
    pub fn new(usable: impl Iterator<Item = Region>) -> Self {
        let mut frames =
            Self { regions: [NONE; MAX_REGIONS], count: 0, total: 0, near: [NONE; MAX_NEAR] };
        for region in usable {
            let start = region.start.max(LOWEST).next_multiple_of(Size4KiB::SIZE);
            let end = region.end & !(Size4KiB::SIZE - 1);
            if start < end {
                frames.total += end - start;
                frames.add(Region { start, end });
            }
        }
        frames
    }

    /// Keeps those pieces of each free region that `pieces` gives on, and no others, as if there never were more. Returns how many bytes
    /// are gone.
    pub fn keep(&mut self, pieces: impl Fn(Region, &mut dyn FnMut(Region))) -> u64 {
        let mut gone = 0;
        for region in self.take() {
            gone += region.end - region.start;
            pieces(region, &mut |piece| {
                let start = piece.start.next_multiple_of(Size4KiB::SIZE);
                let end = piece.end & !(Size4KiB::SIZE - 1);
                if start < end {
                    gone -= end - start;
                    self.add(Region { start, end });
                }
            });
        }
        self.total -= gone;
        gone
    }

    /// All regions, which are in the list no more.
    fn take(&mut self) -> impl Iterator<Item = Region> + use<> {
        let count = core::mem::take(&mut self.count);
        core::mem::replace(&mut self.regions, [NONE; MAX_REGIONS]).into_iter().take(count)
    }

    /// From now on memory in these ranges is given out before other memory; more than 16 are not looked at.
    pub fn prefer(&mut self, near: &[Region]) {
        self.near = [NONE; MAX_NEAR];
        for range in self.take() {
            self.free(range);
        }
        for (place, range) in self.near.iter_mut().zip(near) {
            *place = *range;
        }
        for range in self.take() {
            let mut start = range.start;
            while start < range.end {
                let edges = self.near.iter().flat_map(|near| [near.start, near.end]);
                let end = edges.filter(|&edge| start < edge).fold(range.end, u64::min);
                self.add(Region { start, end });
                start = end;
            }
        }
    }

    fn is_near(&self, at: u64) -> bool {
        self.near.iter().any(|near| (near.start..near.end).contains(&at))
    }

    /// Takes memory back that was given out. A list that is full loses its smallest range.
    pub fn free(&mut self, region: Region) {
        let mut free = region;
        let mut index = 0;
        while index < self.count {
            let other = self.regions[index];
            let touches = other.end == free.start || other.start == free.end;
            if touches && self.is_near(other.start) == self.is_near(free.start) {
                free = Region { start: free.start.min(other.start), end: free.end.max(other.end) };
                self.count -= 1;
                self.regions[index] = self.regions[self.count];
            } else {
                index += 1;
            }
        }
        if free.start < free.end {
            self.add(free);
        }
    }

    /// Bytes that are free.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.regions[..self.count].iter().map(|region| region.end - region.start).sum()
    }

    /// Bytes that are free in whole pages of `page` bytes, aligned to it.
    #[must_use]
    pub fn free_in_pages(&self, page: u64) -> u64 {
        self.regions[..self.count].iter().map(|region| in_pages(region, page)).sum()
    }

    /// Takes `bytes`, a multiple of `page`, in as few pieces of whole pages as there can be, all or nothing.
    ///
    /// # Errors
    /// There are not so many pages.
    pub fn allocate_in_pages(&mut self, bytes: u64, page: u64) -> Result<Vec<Region>, OutOfMemory> {
        let mut pieces = Vec::new();
        let mut left = bytes;
        while left > 0 {
            let free = self.regions[..self.count].iter();
            let sizes = free.map(|region| (in_pages(region, page), self.is_near(region.start)));
            let best = sizes.max_by_key(|&(bytes, near)| (near && bytes > 0, bytes));
            let take = best.map_or(0, |(bytes, _)| bytes).min(left);
            let got = if take == 0 { None } else { self.allocate(take, page).ok() };
            let Some(start) = got.map(PhysAddr::as_u64) else {
                pieces.into_iter().for_each(|piece| self.free(piece));
                return Err(OutOfMemory { bytes, largest: self.free_in_pages(page) });
            };
            pieces.push(Region { start, end: start + take });
            left -= take;
        }
        Ok(pieces)
    }

    fn add(&mut self, region: Region) {
        if self.count < MAX_REGIONS {
            self.regions[self.count] = region;
            self.count += 1;
            return;
        }
        let size = |region: &Region| region.end - region.start;
        let smallest = self.regions.iter_mut().min_by_key(|r| size(r)).expect("the list is full");
        if size(smallest) < size(&region) {
            *smallest = region;
        }
    }

    /// Bytes that were free at the beginning.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes of the largest contiguous range that is left.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        self.regions[..self.count].iter().map(|r| r.end - r.start).max().unwrap_or(0)
    }

    /// Takes `bytes` of contiguous memory, aligned to `align` (a power of two, at least 4096). Large pieces
    /// come from the highest addresses and single frames from the lowest, so that frames do not break
    /// up the ranges that large pieces need.
    ///
    /// # Errors
    /// No range is large enough.
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Result<PhysAddr, OutOfMemory> {
        let bytes = bytes.next_multiple_of(Size4KiB::SIZE);
        let place = |region: &Region| -> Option<u64> {
            let start = region.end.checked_sub(bytes)? & !(align - 1);
            (start >= region.start).then_some(start)
        };
        let found = (0..self.count)
            .filter_map(|index| Some((index, place(&self.regions[index])?)))
            .max_by_key(|&(_, start)| (self.is_near(start), start));
        let Some((index, start)) = found else {
            if self.near == [NONE; MAX_NEAR] {
                return Err(OutOfMemory { bytes, largest: self.largest_bytes() });
            }
            // What is near and what is far may have room together.
            let near = self.near;
            self.prefer(&[]);
            let place = self.allocate(bytes, align);
            self.prefer(&near);
            return place;
        };
        let behind = Region { start: start + bytes, end: self.regions[index].end };
        self.regions[index].end = start;
        if behind.start < behind.end {
            self.add(behind);
        }
        Ok(PhysAddr::new(start))
    }

    /// The free regions, for tests and for reporting.
    #[must_use]
    pub fn regions(&self) -> Vec<Region> {
        self.regions[..self.count].iter().copied().filter(|r| r.start < r.end).collect()
    }
}

/// Bytes of a region in whole pages.
fn in_pages(region: &Region, page: u64) -> u64 {
    let end = region.end & !(page - 1);
    region.start.checked_next_multiple_of(page).map_or(0, |start| end.saturating_sub(start))
}

// SAFETY: each frame leaves the list when it is given out, so no frame is given out twice.
unsafe impl FrameAllocator<Size4KiB> for Frames {
    fn allocate_frame(&mut self) -> Option<PhysFrame> {
        let free = |region: &&mut Region| region.start < region.end;
        let near = self.near;
        let is_far = |at: u64| !near.iter().any(|near| (near.start..near.end).contains(&at));
        let regions = self.regions[..self.count].iter_mut().filter(free);
        let region = regions.min_by_key(|region| (is_far(region.start), region.start))?;
        let start = region.start;
        region.start += Size4KiB::SIZE;
        Some(PhysFrame::containing_address(PhysAddr::new(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn region(start: u64, end: u64) -> Region {
        Region { start, end }
    }

    #[test]
    fn low_memory_and_broken_frames_are_left_out() {
        let map =
            [region(0, 0x9_fc00), region(MIB + 1, 2 * MIB + 5), region(3 * MIB, 3 * MIB + 100)];
        let frames = Frames::new(map.into_iter());
        assert_eq!(frames.regions(), [region(MIB + 4096, 2 * MIB)]);
        assert_eq!(frames.total_bytes(), MIB - 4096);
    }

    #[test]
    fn pieces_never_overlap_and_alignment_holds() {
        let mut frames =
            Frames::new([region(MIB, 9 * MIB), region(16 * MIB, 20 * MIB)].into_iter());
        let mut taken: Vec<Region> = Vec::new();
        let mut take = |start: u64, bytes: u64| {
            let new = region(start, start + bytes);
            assert!(taken.iter().all(|old| new.end <= old.start || old.end <= new.start));
            taken.push(new);
        };
        for (bytes, align) in [(2 * MIB, 2 * MIB), (4096, 4096), (3 * MIB, 2 * MIB), (5000, 4096)] {
            let at = frames.allocate(bytes, align).unwrap().as_u64();
            assert_eq!(at % align, 0);
            take(at, bytes.next_multiple_of(4096));
            let frame = frames.allocate_frame().unwrap().start_address().as_u64();
            take(frame, 4096);
        }
    }

    #[test]
    fn all_memory_can_be_had_and_then_none() {
        let mut frames = Frames::new([region(MIB, 2 * MIB)].into_iter());
        let error = frames.allocate(2 * MIB, 4096).unwrap_err();
        assert_eq!(error, OutOfMemory { bytes: 2 * MIB, largest: MIB });
        let count = core::iter::from_fn(|| frames.allocate_frame()).count();
        assert_eq!(count as u64, MIB / 4096);
        assert!(frames.allocate(1, 4096).is_err());
    }

    #[test]
    fn n5_what_is_given_back_can_be_had_again_in_one_piece() {
        let mut frames =
            Frames::new([region(MIB, 9 * MIB), region(16 * MIB, 20 * MIB)].into_iter());
        let before = frames.regions();
        let pieces = frames.allocate_in_pages(9 * MIB, 4096).unwrap();
        assert_eq!(pieces.iter().map(|piece| piece.end - piece.start).sum::<u64>(), 9 * MIB);
        let single = frames.allocate_frame().unwrap().start_address().as_u64();
        assert_eq!(frames.free_bytes(), 3 * MIB - 4096);
        let too_much = frames.allocate_in_pages(4 * MIB, 4096).unwrap_err();
        assert_eq!(too_much, OutOfMemory { bytes: 4 * MIB, largest: 3 * MIB - 4096 });
        assert_eq!(frames.free_bytes(), 3 * MIB - 4096);
        frames.free(region(single, single + 4096));
        pieces.into_iter().for_each(|piece| frames.free(piece));
        let mut after = frames.regions();
        after.sort_by_key(|region| region.start);
        assert_eq!(after, before);
    }

    #[test]
    fn n5_large_pages_are_taken_aligned_and_only_whole_ones() {
        let mut frames =
            Frames::new([region(3 * MIB, 9 * MIB), region(17 * MIB, 20 * MIB)].into_iter());
        assert_eq!((frames.free_bytes(), frames.free_in_pages(2 * MIB)), (9 * MIB, 6 * MIB));
        let pieces = frames.allocate_in_pages(6 * MIB, 2 * MIB).unwrap();
        assert!(pieces.iter().all(|piece| piece.start % (2 * MIB) == 0), "{pieces:?}");
        assert_eq!(frames.free_in_pages(2 * MIB), 0);
        assert!(frames.allocate_in_pages(2 * MIB, 2 * MIB).is_err());
        assert_eq!(frames.allocate_in_pages(3 * MIB, 4096).unwrap().len(), 3);
    }

    #[test]
    fn memory_that_is_not_kept_never_was_there() {
        let mut frames =
            Frames::new([region(MIB, 9 * MIB), region(16 * MIB, 32 * MIB)].into_iter());
        let gone = frames.keep(|whole, each| {
            each(region(whole.start, whole.start + MIB));
            each(region(whole.end - MIB - 1, whole.end - 1));
        });
        assert_eq!(gone, 20 * MIB + 8192);
        let halves = [region(8 * MIB, 9 * MIB - 4096), region(31 * MIB, 32 * MIB - 4096)];
        let wanted = [region(MIB, 2 * MIB), halves[0], region(16 * MIB, 17 * MIB), halves[1]];
        assert_eq!(frames.regions(), wanted);
        assert_eq!(frames.total_bytes(), 4 * MIB - 8192);
    }

    #[test]
    fn a_map_with_too_many_regions_is_not_taken_for_memory_that_is_gone() {
        let mut frames =
            Frames::new((1..=100).map(|at| region(at * 16 * MIB, at * 16 * MIB + 4096)));
        assert_eq!(frames.keep(|whole, each| each(whole)), 0);
        assert_eq!(frames.total_bytes(), 100 * 4096);
    }

    #[test]
    fn memory_that_is_near_is_given_out_first() {
        let map = [region(MIB, 9 * MIB), region(16 * MIB, 32 * MIB)];
        let mut frames = Frames::new(map.into_iter());
        // Within a range, over an edge, and where no memory is.
        let near = [region(2 * MIB, 4 * MIB), region(0, MIB), region(12 * MIB, 20 * MIB)];
        frames.prefer(&near);
        let mut parts = frames.regions();
        parts.sort_by_key(|region| region.start);
        let edges = [1, 2, 4, 9];
        let low = edges.windows(2).map(|edge| region(edge[0] * MIB, edge[1] * MIB));
        let high = [region(16 * MIB, 20 * MIB), region(20 * MIB, 32 * MIB)];
        assert_eq!(parts, low.chain(high).collect::<Vec<_>>());
        assert_eq!(frames.total_bytes(), 24 * MIB);
        // The highest that is near, then the lowest frame that is.
        assert_eq!(frames.allocate(MIB, MIB).unwrap().as_u64(), 19 * MIB);
        assert_eq!(frames.allocate_frame().unwrap().start_address().as_u64(), 2 * MIB);
        // Near ones of 3 and 1 MiB, then the largest of the others.
        let pieces = frames.allocate_in_pages(7 * MIB, MIB).unwrap();
        let starts: Vec<u64> = pieces.iter().map(|piece| piece.start / MIB).collect();
        assert_eq!(starts, [16, 3, 29]);
        pieces.into_iter().for_each(|piece| frames.free(piece));
        // Nothing that is near has so much: far memory, and then more than any one has, over an edge.
        assert_eq!(frames.allocate(8 * MIB, MIB).unwrap().as_u64(), 24 * MIB);
        frames.free(region(19 * MIB, 20 * MIB));
        assert_eq!(frames.allocate(7 * MIB, MIB).unwrap().as_u64(), 17 * MIB);
        frames.prefer(&[]);
        frames.free(region(17 * MIB, 32 * MIB));
        frames.free(region(2 * MIB, 2 * MIB + 4096));
        let mut whole = frames.regions();
        whole.sort_by_key(|region| region.start);
        assert_eq!(whole, map);
    }

    #[test]
    fn a_map_with_too_many_regions_keeps_the_largest() {
        let map = (1..=100).map(|i| region(i * 16 * MIB, i * 16 * MIB + i * 4096));
        let mut frames = Frames::new(map);
        assert_eq!(frames.allocate(100 * 4096, 4096).unwrap().as_u64(), 1600 * MIB);
    }
}
