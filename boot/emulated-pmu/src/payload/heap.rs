//! A heap for the instruction decoder, which unpacks its tables at its first use: some 500 KiB.

use talc::TalcLock;
use talc::source::Claim;

const BYTES: usize = 1 << 20;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Claim> = TalcLock::new({
    static mut MEMORY: [u8; BYTES] = [0; BYTES];
    // SAFETY: nothing else names this memory.
    unsafe { Claim::array(&raw mut MEMORY) }
});
