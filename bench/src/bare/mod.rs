//! What a program without an operating system needs, and the standard library brings along elsewhere.

mod memory;
pub mod start;
mod unwind;

use crate::message::Message;
use core::cell::{Cell, UnsafeCell};
use core::fmt::Write;
use core::panic::PanicInfo;

/// Something that only benchmarks touch, one after the other.
#[repr(transparent)]
pub struct Alone<T>(T);

// SAFETY: a benchmark has one processor and one thread.
unsafe impl<T> Sync for Alone<T> {}

/// Why the program ended itself. The firmware finds it by this name.
#[unsafe(no_mangle)]
#[used]
pub static __barecount_message: Alone<UnsafeCell<Message>> = Alone(UnsafeCell::new(Message::new()));

/// Size of the arena that had no room for an allocation.
static FULL: Alone<Cell<Option<usize>>> = Alone(Cell::new(None));

/// Notes that an allocation failed, for a panic's message.
#[cfg(feature = "arena")]
#[cold]
pub fn arena_is_full(bytes: usize) {
    FULL.0.set(Some(bytes));
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // SAFETY: nothing else writes to it: the program ends here.
    let message = unsafe { &mut *__barecount_message.0.get() };
    message.clear();
    // A message takes what fits and never fails.
    let _ = write!(message, "panicked: {}", info.message());
    // An allocation may have failed long before, in a benchmark that does without.
    let full = FULL.0.get().filter(|_| message.is_of_memory());
    message.end_with(|end| {
        if let Some(bytes) = full {
            let _ = write!(end, " (the arena of {bytes} bytes is full)");
        }
        if let Some(place) = info.location() {
            let _ = write!(end, ", at {}:{}:{}", place.file(), place.line(), place.column());
        }
    });
    end()
}

/// Ends the item by an invalid opcode, at which the firmware looks for a message.
fn end() -> ! {
    // SAFETY: UD2 does nothing but raise #UD.
    unsafe { core::arch::asm!("ud2", options(noreturn, nomem, nostack)) }
}
