//! The memory of a program: compiled code at the addresses that it was linked to.
//!
//! Frames are taken once and kept. What may be written to is restored before each use; what may be executed never may be
//! written to.

use super::space::{CODE, DATA, MapError, USER};
use super::{Frames, OutOfMemory, Space, layout};
use alloc::vec::Vec;
use core::ops::Range;
use x86_64::structures::paging::{PageSize, PageTableFlags, Size4KiB};
use x86_64::{PhysAddr, VirtAddr};

/// A piece of a program, as it is at the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// First address, at a page.
    pub address: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// Its content; zeros follow.
    pub bytes: &'a [u8],
    /// It may be written to.
    pub write: bool,
    /// It may be executed.
    pub execute: bool,
}

/// The same in memory.
#[derive(Debug)]
struct MappedSegment {
    pages: Range<u64>,
    frames: PhysAddr,
    write: bool,
    execute: bool,
}

/// A program in memory.
#[derive(Debug)]
pub struct Image {
    segments: Vec<MappedSegment>,
}

impl MappedSegment {
    fn bytes(&self) -> u64 {
        self.pages.end - self.pages.start
    }

    /// Through the map of physical memory.
    fn pointer(&self) -> *mut u8 {
        (layout::PHYSICAL + self.frames.as_u64()) as *mut u8
    }

    fn flags(&self, user: bool) -> PageTableFlags {
        let mut flags = match (self.write, self.execute) {
            (true, _) => DATA,
            (false, true) => CODE,
            (false, false) => DATA.difference(PageTableFlags::WRITABLE),
        };
        flags.set(USER, user);
        flags
    }

    /// Makes it what it is at the beginning.
    ///
    /// # Safety
    /// Nobody may use it.
    unsafe fn fill(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(self.bytes() as usize);
        // SAFETY: the frames are `self`'s own, of this size, and the map of physical memory covers them.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer(), count);
            core::ptr::write_bytes(self.pointer().add(count), 0, self.bytes() as usize - count);
        }
    }
}

impl Image {
    /// Takes memory for `parts` and fills it.
    ///
    /// # Errors
    /// There is not enough.
    pub fn new<'a>(
        parts: impl Iterator<Item = Part<'a>>,
        frames: &mut Frames,
    ) -> Result<Self, OutOfMemory> {
        let mut segments = Vec::new();
        for part in parts {
            let pages = part.address..(part.address + part.memory).next_multiple_of(Size4KiB::SIZE);
            let to = frames.allocate(pages.end - pages.start, Size4KiB::SIZE)?;
            let mut piece =
                MappedSegment { pages, frames: to, write: part.write, execute: part.execute };
            // SAFETY: fresh frames.
            unsafe { piece.fill(part.bytes) };
            segments.push(piece);
        }
        Ok(Self { segments })
    }

    /// Puts back what may be written to. `parts` are those that it was made of.
    ///
    /// # Safety
    /// The program must not be running.
    pub unsafe fn refill<'a>(&mut self, parts: impl Iterator<Item = Part<'a>>) {
        for (piece, part) in self.segments.iter_mut().zip(parts).filter(|(piece, _)| piece.write) {
            // SAFETY: the caller's promise.
            unsafe { piece.fill(part.bytes) };
        }
    }

    /// Maps it into `space`, for ring 3 as well if `user`.
    ///
    /// # Errors
    /// Out of memory, or something is mapped there already.
    pub fn map(&self, space: &mut Space, frames: &mut Frames, user: bool) -> Result<(), MapError> {
        for piece in &self.segments {
            let from = VirtAddr::new(piece.pages.start);
            space.map_range(frames, from, piece.frames, piece.bytes(), piece.flags(user))?;
        }
        Ok(())
    }

    /// Takes it out of `space`, which is in use on this processor.
    pub fn unmap(&self, space: &mut Space) {
        for piece in &self.segments {
            space.unmap_range(VirtAddr::new(piece.pages.start), piece.bytes());
        }
    }

    /// What is at `address` now: `count` bytes, if the program has so many there.
    #[must_use]
    pub fn read(&self, address: u64, count: u64) -> Option<&[u8]> {
        let piece = self.segments.iter().find(|piece| piece.pages.contains(&address))?;
        let offset = address - piece.pages.start;
        if count > piece.bytes() - offset {
            return None;
        }
        // SAFETY: within the frames, which `self` owns and the map of physical memory covers; the program does not run
        // while the firmware looks.
        Some(unsafe {
            core::slice::from_raw_parts(piece.pointer().add(offset as usize), count as usize)
        })
    }

    /// The addresses of what may be executed.
    pub fn code(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.segments.iter().filter(|piece| piece.execute).map(|piece| piece.pages.clone())
    }
}
