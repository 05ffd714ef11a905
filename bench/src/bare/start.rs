//! The program under Linux: nobody needs it there but Callgrind, which can count what the firmware counts, in the same file.

use crate::entry::{Entry, entries};
use core::hint::black_box;

/// Runs everything thrice, and then once more through [`barecount_measured`], and ends the process.
pub extern "C" fn start() -> ! {
    const WARMUP: usize = 3;
    for entry in entries().iter().filter(|entry| entry.is_valid()) {
        (0..WARMUP).for_each(|_| entry.run());
        entry.run_through(barecount_measured);
    }
    // SAFETY: exit(2) of x86-64 Linux.
    unsafe {
        core::arch::asm!("syscall", in("rax") 60, in("rdi") 0, options(noreturn, nostack));
    }
}

/// The only caller of what is measured: in Callgrind's file, the costs of the calls below this name.
#[unsafe(no_mangle)]
#[inline(never)]
fn barecount_measured(entry: &Entry) {
    entry.call();
    // Something after the call, so that it is not a jump.
    black_box(());
}
