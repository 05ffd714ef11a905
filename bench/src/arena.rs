//! The heap of a benchmark: a fixed piece of memory.

#[cfg(barecount_bare)]
use bare::Heap;
use core::alloc::{GlobalAlloc, Layout};

/// An allocator over `BYTES` bytes of the program itself, for a `#[global_allocator]`.
///
/// Talc gives out the memory, by the same rules on every machine, so a run that frees what it took finds the heap as the run
/// before did, and its counts repeat. Where the arena is full, an allocation fails: `alloc`'s types then panic, and the
/// message says how large the arena is. Some kilobytes of it are Talc's own.
///
/// On the host it passes everything on to the system's allocator.
#[derive(Debug)]
pub struct Arena<const BYTES: usize> {
    #[cfg(barecount_bare)]
    heap: Heap<BYTES>,
}

impl<const BYTES: usize> Arena<BYTES> {
    /// An empty arena.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it stands in a static alone")]
    pub const fn new() -> Self {
        Self {
            #[cfg(barecount_bare)]
            heap: Heap::new(),
        }
    }
}

#[cfg(not(barecount_bare))]
// SAFETY: the system's allocator is one.
unsafe impl<const BYTES: usize> GlobalAlloc for Arena<BYTES> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system requests.
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: likewise.
        unsafe { std::alloc::System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: likewise.
        unsafe { std::alloc::System.realloc(block, layout, bytes) }
    }
}

#[cfg(barecount_bare)]
// SAFETY: Talc is an allocator.
unsafe impl<const BYTES: usize> GlobalAlloc for Arena<BYTES> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that Talc requests.
        let block = unsafe { self.heap.talc().alloc(layout) };
        if block.is_null() {
            crate::bare::arena_is_full(BYTES);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: likewise.
        unsafe { self.heap.talc().dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: likewise.
        let block = unsafe { self.heap.talc().realloc(block, layout, bytes) };
        if block.is_null() {
            crate::bare::arena_is_full(BYTES);
        }
        block
    }
}

#[cfg(barecount_bare)]
mod bare {
    use core::cell::{Cell, UnsafeCell};
    use core::mem::MaybeUninit;
    use talc::TalcCell;
    use talc::source::Manual;

    /// Every byte of it is zero before its first use, so that it is in `.bss` and makes no file larger.
    #[repr(C, align(4096))]
    pub(super) struct Heap<const BYTES: usize> {
        memory: UnsafeCell<[MaybeUninit<u8>; BYTES]>,
        talc: TalcCell<Manual>,
        is_claimed: Cell<bool>,
    }

    // SAFETY: benchmarks run one after the other, on one processor, and nothing that interrupts them allocates.
    unsafe impl<const BYTES: usize> Sync for Heap<BYTES> {}

    impl<const BYTES: usize> core::fmt::Debug for Heap<BYTES> {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            write!(f, "{BYTES} bytes")
        }
    }

    impl<const BYTES: usize> Heap<BYTES> {
        pub(super) const fn new() -> Self {
            Self {
                memory: UnsafeCell::new([const { MaybeUninit::zeroed() }; BYTES]),
                talc: TalcCell::new(Manual),
                is_claimed: Cell::new(false),
            }
        }

        /// The allocator, which gets the memory at the first call.
        pub(super) fn talc(&self) -> &TalcCell<Manual> {
            if !self.is_claimed.replace(true) {
                // SAFETY: the memory is this heap's own, and given away once. Too little of it gives an allocator of nothing.
                let _ = unsafe { self.talc.claim(self.memory.get().cast(), BYTES) };
            }
            &self.talc
        }
    }
}
