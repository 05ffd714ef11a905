//! Emitted code that runs on the host.

use super::*;

pub(super) const CODE_BYTES: usize = 1 << 20;

pub(super) const AREA_BYTES: usize = 1 << 16;

/// Memory for data, code and one area, and the code emitted into it.
pub(super) struct Host {
    pub(super) base: *mut u8,
    pub(super) place: Place,
}

impl Host {
    pub(super) fn new() -> Self {
        let bytes = 4096 + CODE_BYTES + AREA_BYTES;
        let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: requests fresh memory at any address.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                rights,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let at = base as u64;
        let middle = at + 4096 + (CODE_BYTES + AREA_BYTES / 2) as u64;
        let place = Place { code: at + 4096, data: at, pointers: [middle; 5] };
        Self { base: base.cast(), place }
    }

    pub(super) fn emit(&mut self, snippet: &Snippet, copies: u64) -> Emitted {
        // SAFETY: the code part of the mapping, which nobody else uses.
        let memory =
            unsafe { core::slice::from_raw_parts_mut(self.place.code as *mut u8, CODE_BYTES) };
        emit(memory, &self.place, snippet, copies, &Gate::EMPTY)
    }

    pub(super) fn run(&mut self, emitted: &Emitted) -> Data {
        // SAFETY: emitted code is such a function, and the snippets of these tests are harmless.
        unsafe {
            let function: extern "sysv64" fn() = core::mem::transmute(emitted.function.start);
            function();
            *(self.place.data as *const Data)
        }
    }

    pub(super) fn word(&self, offset: i64) -> u64 {
        let at = self.place.pointers[4].wrapping_add_signed(offset);
        // SAFETY: within the area.
        unsafe { (at as *const u64).read() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.base.cast(), 4096 + CODE_BYTES + AREA_BYTES) };
    }
}
