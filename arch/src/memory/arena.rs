//! The memory that a measured snippet lives in.
//!
//! | offset | bytes | what | rights |
//! | --- | --- | --- | --- |
//! | 0 | 4096 | the measuring code's data | RW |
//! | 2 MiB | 16 MiB | code, in 2 MiB pages | RX |
//! | 32 MiB + n x (4 MiB + 12 KiB) | 1 MiB | memory area n, in 4 KiB pages: RSP, RBP, RDI, RSI, R14 point to the middle of areas 0 to 4 | RW |
//!
//! Between the pieces nothing is mapped.
//!
//! Each processor has an arena of its own at the same addresses, in an address space of its own ([`Arena::copy_for_processor`]); the
//! code is one and the same for all, or one for those with a PMU and one for those without.

use super::space::{CODE, Clean, DATA, MapError};
use super::{Frames, Space, layout};
use x86_64::structures::paging::{PageSize, Size2MiB, Size4KiB};
use x86_64::{PhysAddr, VirtAddr};

/// Bytes of the code area; `protocol::job::limits::CODE_AREA_BYTES` has the same value.
pub const CODE_BYTES: u64 = 16 << 20;
/// Bytes of one memory area.
pub const AREA_BYTES: u64 = 1 << 20;
/// How many memory areas there are.
pub const AREAS: u64 = 5;
/// Where the measuring code keeps its data.
pub const DATA_AT: u64 = layout::ARENA;
/// Where code runs.
pub const CODE_AT: u64 = layout::ARENA + (2 << 20);
const AREAS_AT: u64 = layout::ARENA + (32 << 20);
/// Three pages more than a power of two: the middles of the areas, and the pages beside them, are then in different sets of a TLB,
/// which takes the lowest bits of the page number (16 sets of 4 ways in Skylake's first-level data TLB: Intel, "64 and IA-32
/// Architectures Optimization Reference Manual", Skylake client microarchitecture). A snippet that uses all five pointers would
/// otherwise miss there.
pub(super) const AREA_STRIDE: u64 = (4 << 20) + (3 << 12);
/// Where the second code area is written.
const SECOND_WRITE_VIEW: u64 = layout::CODE_WRITE_VIEW + (1 << 30);

/// First byte of memory area `index`.
#[must_use]
pub const fn area(index: u64) -> u64 {
    AREAS_AT + index * AREA_STRIDE
}

/// The middle of memory area `index`: what a snippet finds in the register.
#[must_use]
pub const fn area_middle(index: u64) -> u64 {
    area(index) + AREA_BYTES / 2
}

/// Which code a processor runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Code {
    /// That of the boot processor.
    Shared,
    /// The other one.
    Second,
}

/// The boot processor's arena, mapped. There is one.
pub struct Arena {
    code: PhysAddr,
    second: Option<PhysAddr>,
    /// The page tables of the memory areas while the areas are clean.
    clean: [Option<Clean>; AREAS as usize],
}

impl Arena {
    /// Maps the arena with fresh memory.
    ///
    /// # Errors
    /// Out of memory, or the arena is there already.
    pub fn map(space: &mut Space, frames: &mut Frames) -> Result<Self, MapError> {
        space.map_fresh(frames, VirtAddr::new(DATA_AT), Size4KiB::SIZE, DATA)?;
        let code = frames.allocate(CODE_BYTES, Size2MiB::SIZE)?;
        for offset in (0..CODE_BYTES).step_by(Size2MiB::SIZE as usize) {
            let (run, write) = (CODE_AT + offset, layout::CODE_WRITE_VIEW + offset);
            space.map_page::<Size2MiB>(frames, VirtAddr::new(run), code + offset, CODE)?;
            space.map_page::<Size2MiB>(frames, VirtAddr::new(write), code + offset, DATA)?;
        }
        for index in 0..AREAS {
            space.map_fresh(frames, VirtAddr::new(area(index)), AREA_BYTES, DATA)?;
        }
        let clean = |index| space.clean(VirtAddr::new(area(index as u64)), AREA_BYTES);
        Ok(Self { code, second: None, clean: core::array::from_fn(clean) })
    }

    /// Makes an address space for another processor: that of the boot processor, which is `space`, with an arena of its
    /// own at the same addresses. What `space` maps later into parts that are empty now is missing there.
    ///
    /// # Errors
    /// Out of memory.
    pub fn copy_for_processor(
        &mut self,
        space: &mut Space,
        frames: &mut Frames,
        code: Code,
    ) -> Result<Space, MapError> {
        let code = match (code, self.second) {
            (Code::Shared, _) => self.code,
            (Code::Second, Some(second)) => second,
            (Code::Second, None) => {
                let second = frames.allocate(CODE_BYTES, Size2MiB::SIZE)?;
                for offset in (0..CODE_BYTES).step_by(Size2MiB::SIZE as usize) {
                    let write = VirtAddr::new(SECOND_WRITE_VIEW + offset);
                    space.map_page::<Size2MiB>(frames, write, second + offset, DATA)?;
                }
                self.second = Some(second);
                second
            }
        };
        let mut copy = space.fork(frames, VirtAddr::new(layout::ARENA))?;
        copy.map_fresh(frames, VirtAddr::new(DATA_AT), Size4KiB::SIZE, DATA)?;
        for offset in (0..CODE_BYTES).step_by(Size2MiB::SIZE as usize) {
            copy.map_page::<Size2MiB>(
                frames,
                VirtAddr::new(CODE_AT + offset),
                code + offset,
                CODE,
            )?;
        }
        for index in 0..AREAS {
            copy.map_fresh(frames, VirtAddr::new(area(index)), AREA_BYTES, DATA)?;
        }
        Ok(copy)
    }

    /// The second code area, writable, once a copy requested it.
    pub fn second_code_mut(&mut self) -> Option<&mut [u8]> {
        self.second?;
        // SAFETY: as for `code_mut`, with the place that `copy` mapped.
        Some(unsafe {
            core::slice::from_raw_parts_mut(SECOND_WRITE_VIEW as *mut u8, CODE_BYTES as usize)
        })
    }

    /// The code area, writable.
    pub fn code_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped by `map` at this address and size for as long as the firmware runs; the exclusive
        // borrow of the only arena makes this the only reference, and code runs through another view.
        unsafe {
            core::slice::from_raw_parts_mut(layout::CODE_WRITE_VIEW as *mut u8, CODE_BYTES as usize)
        }
    }

    /// Lets ring 3 execute the code area, or not any more.
    pub fn set_user_code(&mut self, space: &mut Space, user: bool) {
        space.set_user(VirtAddr::new(CODE_AT), CODE_BYTES, user);
    }

    /// Zeroes what was written to in the memory areas since the last call, and puts their page tables back where foreign
    /// code changed them ([`crate::state::take_restored`]). Costs a look at each page's
    /// dirty bit, and a write of only those pages that changed.
    pub fn reset(&mut self, space: &mut Space) {
        // SAFETY: `self` is the arena of the boot processor's space, and borrowed exclusively.
        unsafe { reset_with(space, &self.clean) };
    }
}

/// The same for the arena of the address space in use on this processor, which is `space`.
///
/// # Safety
/// Nothing may hold a reference into the memory areas.
pub unsafe fn reset(space: &mut Space) {
    // SAFETY: the caller's promise.
    unsafe { reset_with(space, &[const { None }; AREAS as usize]) };
}

unsafe fn reset_with(space: &mut Space, clean: &[Option<Clean>; AREAS as usize]) {
    for (index, clean) in (0..).zip(clean) {
        space.take_dirty(VirtAddr::new(area(index)), AREA_BYTES, clean.as_ref(), |page| {
            // SAFETY: a mapped page of the arena, which the caller gave.
            unsafe {
                core::ptr::write_bytes(page.as_mut_ptr::<u8>(), 0, Size4KiB::SIZE as usize);
            }
        });
    }
}
