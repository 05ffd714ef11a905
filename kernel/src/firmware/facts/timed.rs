//! Following pointers between two readings of a clock, without another access to memory; and calling code.

use core::arch::asm;
use facts::Flush;

/// Loads that stand in a row in the code.
pub const BLOCK: u64 = 64;

/// What is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// A counter, by its number for RDPMC.
    Counter(u32),
    /// The TSC.
    Tsc,
}

/// Bits of what is emptied.
const fn bits(flush: Flush) -> u64 {
    match flush {
        Flush::Nothing => 0,
        Flush::Caches => 1,
        Flush::Tlbs => 2,
        Flush::Both => 3,
    }
}

/// WBINVD for bit 0. For bit 1 all translations go, global ones included: by CR4.PGE, or CR3 where that is off (SDM vol. 3, 4.10.4.1).
macro_rules! empty {
    () => {
        "test {flush:e}, 1
         jz 20f
         wbinvd
         20:
         test {flush:e}, 2
         jz 22f
         mov rax, cr4
         btr rax, 7
         jnc 21f
         mov cr4, rax
         bts rax, 7
         mov cr4, rax
         jmp 22f
         21:
         mov rax, cr3
         mov cr3, rax
         22:
         test {skip}, {skip}
         jz 24f
         23:
         mov rdi, [rdi]
         dec {skip}
         jnz 23b
         24:"
    };
}

/// Reads the clock into a register, after everything before and before everything after.
macro_rules! now {
    ($read:literal, $into:literal) => {
        concat!(
            "lfence\nmov ecx, {index:e}\n",
            $read,
            "\nshl rdx, 32\nor rax, rdx\nmov ",
            $into,
            ", rax\nlfence"
        )
    };
}

/// One load, with nothing beside it.
macro_rules! one {
    ($read:literal, $start:expr, $skip:expr, $index:expr, $flush:expr, $begin:ident, $end:ident) => {
        asm!(
            empty!(),
            now!($read, "{begin}"),
            "mov rdi, [rdi]",
            now!($read, "{end}"),
            flush = in(reg) bits($flush),
            skip = inout(reg) $skip => _,
            index = in(reg) $index,
            begin = out(reg) $begin,
            end = out(reg) $end,
            inout("rdi") $start => _,
            out("rax") _,
            out("rcx") _,
            out("rdx") _,
            options(nostack),
        )
    };
}

/// Any number of loads: blocks of them, then the end of a last one, each load of which has three bytes.
macro_rules! many {
    ($read:literal, $start:expr, $skip:expr, $count:expr, $index:expr, $flush:expr, $begin:ident, $end:ident) => {
        asm!(
            empty!(),
            "lea {target}, [rip + 27f]",
            "lea {rest}, [{rest} + {rest} * 2]",
            "sub {target}, {rest}",
            now!($read, "{rest}"),
            "test {blocks}, {blocks}",
            "jz 26f",
            "25:",
            ".rept 64",
            "mov rdi, [rdi]",
            ".endr",
            "dec {blocks}",
            "jnz 25b",
            "26:",
            "jmp {target}",
            ".rept 64",
            "mov rdi, [rdi]",
            ".endr",
            "27:",
            now!($read, "{blocks}"),
            flush = in(reg) bits($flush),
            skip = inout(reg) $skip => _,
            index = in(reg) $index,
            target = out(reg) _,
            rest = inout(reg) $count % BLOCK => $begin,
            blocks = inout(reg) $count / BLOCK => $end,
            inout("rdi") $start => _,
            out("rax") _,
            out("rcx") _,
            out("rdx") _,
            options(nostack),
        )
    };
}

/// Empties what is to be emptied, follows `skip` pointers from `start` on, and then `count` more; returns what the clock says of
/// those.
///
/// # Safety
/// Ring 0, interrupts off. The clock may be read; every pointer leads to the next one.
pub unsafe fn follow(clock: Clock, start: u64, (skip, count): (u64, u64), flush: Flush) -> u64 {
    let (begin, end): (u64, u64);
    // SAFETY: the caller's promises; the flags are taken as changed, and memory keeps its content.
    unsafe {
        match (clock, count) {
            (Clock::Counter(index), 1) => {
                one!("rdpmc", start, skip, index, flush, begin, end);
            }
            (Clock::Counter(index), _) => {
                many!("rdpmc", start, skip, count, index, flush, begin, end);
            }
            (Clock::Tsc, 1) => one!("rdtsc", start, skip, 0, flush, begin, end),
            (Clock::Tsc, _) => many!("rdtsc", start, skip, count, 0, flush, begin, end),
        }
    }
    end.wrapping_sub(begin)
}

/// Reads a clock, after everything before and before everything after.
///
/// # Safety
/// Ring 0; the clock may be read.
pub unsafe fn now(clock: Clock) -> u64 {
    let now: u64;
    // SAFETY: the caller's promises; it changes nothing.
    unsafe {
        match clock {
            Clock::Counter(index) => asm!(
                now!("rdpmc", "{now}"),
                index = in(reg) index, now = out(reg) now,
                out("rax") _, out("rcx") _, out("rdx") _, options(nostack),
            ),
            Clock::Tsc => asm!(
                now!("rdtsc", "{now}"),
                index = in(reg) 0_u32, now = out(reg) now,
                out("rax") _, out("rcx") _, out("rdx") _, options(nostack),
            ),
        }
    }
    now
}

/// A call of code that was written, after a call of other code, if it is given as `first`: "call rax".
macro_rules! call {
    ($first:literal, $read:literal, $before:expr, $entry:expr, $data:expr, $index:expr, $begin:ident, $end:ident) => {
        asm!(
            $first,
            now!($read, "{begin}"),
            "call {entry}",
            now!($read, "{end}"),
            entry = in(reg) $entry,
            index = in(reg) $index,
            begin = out(reg) $begin,
            end = out(reg) $end,
            inout("rax") $before => _,
            out("rcx") _,
            out("rdx") _,
            in("rsi") $data,
            out("rdi") _,
            out("r8") _,
            out("r9") _,
            out("r10") _,
        )
    };
}

/// Calls code, with the address of its data; returns what the clock says of it. What is to be done before is called right before the
/// clock is read, so that nothing comes in between.
///
/// # Safety
/// Ring 0, interrupts off. The clock may be read; the code is one of [`facts::pipeline::code`], and its data can be written.
pub unsafe fn call(clock: Clock, before: Option<u64>, entry: u64, data: u64) -> u64 {
    let (begin, end): (u64, u64);
    // SAFETY: the caller's promises; the code changes these registers, and leaves the stack as it was. It also changes vector registers
    // and MXCSR, which the kernel's own code does not use, and in which no task has anything while a sheet is measured.
    unsafe {
        match (clock, before) {
            (Clock::Counter(index), None) => {
                call!("", "rdpmc", 0_u64, entry, data, index, begin, end);
            }
            (Clock::Counter(index), Some(before)) => {
                call!("call rax", "rdpmc", before, entry, data, index, begin, end);
            }
            (Clock::Tsc, None) => call!("", "rdtsc", 0_u64, entry, data, 0, begin, end),
            (Clock::Tsc, Some(before)) => {
                call!("call rax", "rdtsc", before, entry, data, 0, begin, end);
            }
        }
    }
    end.wrapping_sub(begin)
}
