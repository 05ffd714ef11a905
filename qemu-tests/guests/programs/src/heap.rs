//! A heap for one program at a time.

use talc::TalcLock;
use talc::source::Claim;

const BYTES: usize = 2 << 20;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Claim> = TalcLock::new({
    static mut MEMORY: [u8; BYTES] = [0; BYTES];
    // SAFETY: nothing else names this memory.
    unsafe { Claim::array(&raw mut MEMORY) }
});
