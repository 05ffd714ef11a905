//! The heap: one contiguous piece of physical memory.

use arch::memory::{Frames, layout};
use talc::TalcLock;
use talc::source::Manual;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Manual> = TalcLock::new(Manual);

/// Enough for a job of 100,000 items. A machine with little memory gets half of its largest piece.
const HEAP_BYTES: u64 = 48 << 20;

/// Gives the allocator its memory.
///
/// # Panics
/// If there is none.
pub fn init(frames: &mut Frames) {
    let bytes = HEAP_BYTES.min(frames.largest_bytes() / 2);
    let start = frames
        .allocate(bytes, 4096)
        .unwrap_or_else(|error| panic!("no heap: {error}"));
    let at = (layout::PHYSICAL + start.as_u64()) as *mut u8;
    // SAFETY: fresh memory that nobody else gets, mapped at the same place in both address spaces.
    let claimed = unsafe { HEAP.lock().claim(at, bytes as usize) };
    assert!(
        claimed.is_some(),
        "no heap: the allocator refuses {bytes} bytes"
    );
}

/// Whether nobody is in the middle of an allocation.
pub fn is_free() -> bool {
    HEAP.try_lock().is_some()
}
