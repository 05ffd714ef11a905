//! The heap: one contiguous piece of physical memory.

use arch::memory::{Frames, layout};
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use protocol::record::HeapUse;
use talc::TalcLock;
use talc::source::Manual;

#[global_allocator]
static HEAP: Counted = Counted(TalcLock::new(Manual));

/// The allocator, and how much of it is in use. One processor allocates, so the two numbers need no lock of their own.
struct Counted(TalcLock<spin::Mutex<()>, Manual>);

static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// Greatest value of `IN_USE` since [`mark`].
static MOST: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    let now = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

fn shrunk(bytes: usize) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every call goes to the allocator within, unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the one that is needed; likewise below.
        let memory = unsafe { self.0.alloc(layout) };
        if !memory.is_null() {
            grown(layout.size());
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(memory, layout) };
        shrunk(layout.size());
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { self.0.realloc(memory, layout, size) };
        if !memory.is_null() {
            match size.checked_sub(layout.size()) {
                Some(more) => grown(more),
                None => shrunk(layout.size() - size),
            }
        }
        memory
    }
}

/// Bytes in use now; from here on the greatest number counts anew.
pub fn mark() -> usize {
    let now = IN_USE.load(Ordering::Relaxed);
    MOST.store(now, Ordering::Relaxed);
    now
}

/// What has happened since [`mark`], which returned `before`.
pub fn used_since(before: usize) -> HeapUse {
    let bytes = |value: &AtomicUsize| value.load(Ordering::Relaxed) as u64;
    HeapUse { before: before as u64, after: bytes(&IN_USE), most: bytes(&MOST) }
}

static READY: AtomicBool = AtomicBool::new(false);

/// Enough for a job of 100,000 items. A machine with little memory gets half of its largest piece.
const HEAP_BYTES: u64 = 48 << 20;

/// Gives the allocator its memory.
///
/// # Panics
/// If there is none.
pub fn init(frames: &mut Frames) {
    let bytes = HEAP_BYTES.min(frames.largest_bytes() / 2);
    let start = frames.allocate(bytes, 4096).unwrap_or_else(|error| panic!("no heap: {error}"));
    let at = (layout::PHYSICAL + start.as_u64()) as *mut u8;
    // SAFETY: fresh memory that nobody else gets, mapped with all physical memory.
    let claimed = unsafe { HEAP.0.lock().claim(at, bytes as usize) };
    assert!(claimed.is_some(), "no heap: the allocator refuses {bytes} bytes");
    READY.store(true, Ordering::Relaxed);
}

/// Whether allocations can be made now: there is a heap, and nobody is in the middle of one.
pub fn is_usable() -> bool {
    READY.load(Ordering::Relaxed) && HEAP.0.try_lock().is_some()
}
