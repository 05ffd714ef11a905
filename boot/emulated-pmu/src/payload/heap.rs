//! A small heap for the instruction decoder's tables of used registers.

use talc::TalcLock;
use talc::source::Claim;

const BYTES: usize = 64 << 10;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Claim> = TalcLock::new({
    static mut MEMORY: [u8; BYTES] = [0; BYTES];
    // SAFETY: nothing else names this memory.
    unsafe { Claim::array(&raw mut MEMORY) }
});
