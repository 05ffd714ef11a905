//! What `compiled.rs` measures, compiled by rustc without a library. Counts of the assembly parts are known from its text.
#![no_std]
#![allow(clippy::missing_safety_doc)]

use core::arch::{asm, global_asm};

/// A static library has to have one; an object has not.
#[cfg(library)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

global_asm!(
    // Two instructions a turn, and two around them.
    ".globl turns; .type turns,@function",
    "turns: mov rcx, rdi; 2: dec rcx; jnz 2b; ret; .size turns, . - turns",
    // Recursion without end, a page each time.
    ".globl deep; .type deep,@function",
    "deep: sub rsp, 4096; mov [rsp], rax; call deep; ret; .size deep, . - deep",
    ".globl never; .type never,@function",
    "never: jmp never; .size never, . - never",
    // Writes to its own code.
    ".globl wild; .type wild,@function",
    "wild: mov byte ptr [rip + wild], 0x90; ret; .size wild, . - wild",
    ".globl wide; .type wide,@function",
    // Through a pointer that is computed, which nobody follows before the boot.
    ".globl asks; .type asks,@function",
    "asks: lea rax, [rip + 3f]; jmp rax; 3: int 0x80; ret; .size asks, . - asks",
    "wide: vpaddd ymm0, ymm1, ymm2; vzeroupper; ret; .size wide, . - wide",
);

/// In `.data`, changed by every call.
#[unsafe(no_mangle)]
static mut COUNTER: u64 = 3;
/// In `.bss`.
static mut TABLE: [u64; 5000] = [0; 5000];
/// Set by a constructor.
static mut BUILT: u64 = 0;

unsafe extern "C" {
    // Through the global offset table: the code is position independent.
    #[link_name = "COUNTER"]
    static mut OF_TABLE: u64;
}

extern "C" fn build() {
    // SAFETY: constructors run on one processor, before anything else of the program.
    unsafe { BUILT += 10 }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = build;

/// Two instructions a turn.
#[inline(always)]
unsafe fn spin(turns: u64) {
    // SAFETY: counts a register of its own down.
    unsafe { asm!("2: dec {0}", "jnz 2b", inout(reg) turns => _) }
}

/// Takes longer with every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn grows() {
    // SAFETY: COUNTER by its other name. On two processors an addition may be lost, which nobody counts.
    unsafe {
        OF_TABLE += 1;
        spin(OF_TABLE);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn reset(value: u64) {
    // SAFETY: a plain number, written while no run goes on.
    unsafe { COUNTER = value }
}

/// Faults if a constructor has not run once and once alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn built() {
    // SAFETY: nobody writes it behind the constructors.
    if unsafe { BUILT } != 10 {
        // SAFETY: ends the item, which is meant.
        unsafe { asm!("ud2") }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sums(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) {
    // 1 to 8, each in its place.
    let all = [a, b, c, d, e, f, g, h];
    let mut index = 0;
    while index < 8 {
        // SAFETY: the index is below 8. No bounds check, as a panic would have to be linked.
        if unsafe { *all.as_ptr().add(index) } != index as u64 + 1 {
            // SAFETY: ends the item, which is meant.
            unsafe { asm!("ud2") }
        }
        index += 1;
    }
}

/// Fills a table that every item finds empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fills() {
    let table = &raw mut TABLE as *mut u64;
    let mut index = 0;
    while index < 5000 {
        // SAFETY: the index is below the table's length, and one run goes on at a time.
        unsafe {
            table.add(index).write_volatile(index as u64);
        }
        index += 1;
    }
}

#[repr(C)]
struct Message {
    bytes: u64,
    text: [u8; 512],
}

#[unsafe(no_mangle)]
static mut __barecount_message: Message = Message { bytes: 0, text: [0; 512] };

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gives_up() {
    let text = b"gave up: 7 is odd";
    // SAFETY: an address alone is taken.
    let to = unsafe { &raw mut __barecount_message.text as *mut u8 };
    let mut index = 0;
    while index < text.len() {
        // SAFETY: the text is shorter than the message's 512 bytes.
        unsafe { to.add(index).write_volatile(*text.as_ptr().add(index)) };
        index += 1;
    }
    // SAFETY: written by this function alone, which ends the item.
    unsafe {
        __barecount_message.bytes = index as u64;
        asm!("ud2");
    }
}
