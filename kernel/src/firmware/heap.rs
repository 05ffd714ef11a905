//! The heap: one contiguous piece of physical memory.

use arch::memory::{Frames, layout};
use core::sync::atomic::{AtomicBool, Ordering};
use talc::TalcLock;
use talc::source::Manual;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Manual> = TalcLock::new(Manual);

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
    let claimed = unsafe { HEAP.lock().claim(at, bytes as usize) };
    assert!(claimed.is_some(), "no heap: the allocator refuses {bytes} bytes");
    READY.store(true, Ordering::Relaxed);
}

/// Whether allocations can be made now: there is a heap, and nobody is in the middle of one.
pub fn is_usable() -> bool {
    READY.load(Ordering::Relaxed) && HEAP.try_lock().is_some()
}
