//! Two pages for ring 3: code that was copied there, and a stack.

use super::space::{CODE, DATA, MapError, USER};
use super::{Frames, Space, layout};
use x86_64::VirtAddr;
use x86_64::structures::paging::{PageSize, Size4KiB};

/// The pages, mapped. There is one set.
#[derive(Debug)]
pub struct UserPages {
    _private: (),
}

impl UserPages {
    /// Copies `code`, at most a page of it, to where ring 3 may execute it, and maps a stack.
    ///
    /// # Errors
    /// Out of memory, or the pages are there already.
    pub fn map(space: &mut Space, frames: &mut Frames, code: &[u8]) -> Result<Self, MapError> {
        let page = frames.allocate(Size4KiB::SIZE, Size4KiB::SIZE)?;
        let bytes = code.len().min(Size4KiB::SIZE as usize);
        // SAFETY: a fresh frame, reachable through the map of physical memory, used by nobody yet.
        unsafe {
            let at = (layout::PHYSICAL + page.as_u64()) as *mut u8;
            core::ptr::write_bytes(at, 0xcc, Size4KiB::SIZE as usize);
            core::ptr::copy_nonoverlapping(code.as_ptr(), at, bytes);
        }
        let at = VirtAddr::new(layout::USER_CODE);
        space.map_page::<Size4KiB>(frames, at, page, CODE | USER)?;
        space.map_fresh(frames, VirtAddr::new(layout::USER_STACK), Size4KiB::SIZE, DATA | USER)?;
        Ok(Self { _private: () })
    }

    /// Where the code begins.
    #[must_use]
    pub fn code(&self) -> u64 {
        layout::USER_CODE
    }

    /// Stack pointer of an empty stack, aligned as the ABI wants it.
    #[must_use]
    pub fn stack(&self) -> u64 {
        layout::USER_STACK + Size4KiB::SIZE
    }
}
