//! Memory: which frames are free ([`frames`]), where things lie ([`layout`]), and the address space that
//! the firmware builds for itself ([`space`]).

pub mod areas;
pub mod arena;
pub mod cache;
pub mod copy;
pub mod frames;
pub mod handover;
pub mod image;
pub mod layout;
pub mod mapped;
pub mod mtrr;
pub mod program;
pub mod requested;
pub mod space;
pub mod user;

pub use frames::{Frames, OutOfMemory, Region};
pub use handover::Handover;
pub use mapped::Mapped;
pub use space::Space;

use space::Window;
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::Translate as _;
use x86_64::structures::paging::mapper::{MappedPageTable, PageTableFrameMapping as _};
use x86_64::{PhysAddr, VirtAddr};

/// The physical address of a linear one, by the page tables in use; `None` if it is not canonical or not mapped.
///
/// # Safety
/// Ring 0, physical memory mapped at [`layout::PHYSICAL`], and nobody changes the page tables meanwhile.
#[must_use]
pub unsafe fn physical(linear: u64) -> Option<u64> {
    let window = Window::PHYSICAL;
    // SAFETY: the caller's promise; the tables are looked at only.
    let tables =
        unsafe { MappedPageTable::new(&mut *window.frame_to_pointer(Cr3::read().0), window) };
    tables.translate_addr(VirtAddr::try_new(linear).ok()?).map(PhysAddr::as_u64)
}
