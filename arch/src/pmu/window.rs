//! Code between the two sides of a gate, with a known number of instructions around it.
//!
//! What one run executes, `n` being the writes of the gate:
//!
//! ```text
//! open:   mov, mov, mov, WRMSR, add, dec, jnz      n times
//!         call
//!         ... the code, its RET included ...
//! close:  mov, mov, mov, WRMSR, add, dec, jnz      n times
//! ```
//!
//! A WRMSR that switches a counter on is not counted by it, one that switches it off is. So every counter sees
//! [`overhead`] with the code, whichever of the writes is its own.

use super::driver::Gate;
use super::workload::Counts;
use core::arch::global_asm;
use core::ops::Range;

/// Argument of the assembly: fields by offset.
#[repr(C)]
struct Frame {
    on: *const super::driver::Write,
    off: *const super::driver::Write,
    count: u64,
    code: u64,
    arguments: [u64; 2],
    start: u64,
    stop: u64,
}

global_asm!(
    ".pushsection .text.barecount_window, \"ax\", @progbits",
    ".balign 64",
    ".global barecount_window",
    "barecount_window:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "mov rbx, rdi",
    "mov r12, [rbx]",
    "mov r14, [rbx + 8]",
    "mov r13, [rbx + 16]",
    "mov r15, r13",
    "mov rbp, [rbx + 24]",
    "mov rdi, [rbx + 32]",
    "mov rsi, [rbx + 40]",
    "lfence",
    "rdtsc",
    "mov [rbx + 48], eax",
    "mov [rbx + 52], edx",
    "lfence",
    "2: mov ecx, [r12]",
    "mov eax, [r12 + 8]",
    "mov edx, [r12 + 12]",
    "wrmsr",
    "add r12, 16",
    "dec r13",
    "jnz 2b",
    ".global barecount_window_call",
    "barecount_window_call:",
    "call rbp",
    ".global barecount_window_return",
    "barecount_window_return:",
    "3: mov ecx, [r14]",
    "mov eax, [r14 + 8]",
    "mov edx, [r14 + 12]",
    "wrmsr",
    ".global barecount_window_closed",
    "barecount_window_closed:",
    "add r14, 16",
    "dec r15",
    "jnz 3b",
    "lfence",
    "rdtsc",
    "mov [rbx + 56], eax",
    "mov [rbx + 60], edx",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".global barecount_window_end",
    "barecount_window_end:",
    ".popsection",
);

unsafe extern "sysv64" {
    fn barecount_window(frame: *mut Frame);
    static barecount_window_call: u8;
    static barecount_window_return: u8;
    static barecount_window_closed: u8;
    static barecount_window_end: u8;
}

/// Where a gate of one write is closed. Of several, each but the first is made by code in front of it.
#[must_use]
pub fn closed() -> Range<u64> {
    (&raw const barecount_window_closed) as u64..(&raw const barecount_window_end) as u64
}

/// What a counter sees of the gate itself, the code excluded: its gate has `writes` writes on each side.
#[must_use]
pub const fn overhead(writes: u64) -> Counts {
    // Between WRMSR and call: 3 for its own turn, 7 for each turn after it; before the closing WRMSR: 7 for each
    // turn before it, and 4. Each turn but the last of the opening side and all before the own one of the closing
    // side end in a jump that is taken.
    let others = writes.saturating_sub(1);
    Counts {
        instructions: 7 * others + 8,
        branches: others + 2,
        taken: others + 1,
        conditional: others + 1,
    }
}

/// Addresses of the call of the code and of the instruction after it, as branch records show them.
#[must_use]
pub fn call_site() -> [u64; 2] {
    [(&raw const barecount_window_call) as u64, (&raw const barecount_window_return) as u64]
}

/// Runs `code` once between the two sides of `gate`. Returns the ticks of the TSC from before the first write to
/// after the last one.
///
/// # Safety
/// Ring 0; the gate's registers must exist and take its values; `code` must be a function of the C ABI that takes the
/// arguments in RDI and RSI, and is sound to call.
pub unsafe fn run(gate: &Gate, code: u64, arguments: [u64; 2]) -> u64 {
    let mut frame = Frame {
        on: gate.on().as_ptr(),
        off: gate.off().as_ptr(),
        count: gate.on().len() as u64,
        code,
        arguments,
        start: 0,
        stop: 0,
    };
    if frame.count == 0 {
        return 0;
    }
    // SAFETY: the caller's promises; the frame is laid out as the assembly reads it.
    unsafe { barecount_window(&raw mut frame) };
    frame.stop.wrapping_sub(frame.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_assembly_reads_the_frame_where_it_is() {
        assert_eq!(offset_of!(Frame, off), 8);
        assert_eq!(offset_of!(Frame, count), 16);
        assert_eq!(offset_of!(Frame, code), 24);
        assert_eq!(offset_of!(Frame, arguments), 32);
        assert_eq!(offset_of!(Frame, start), 48);
        assert_eq!(offset_of!(Frame, stop), 56);
        assert_eq!(size_of::<super::super::driver::Write>(), 16);
    }

    #[test]
    fn the_overhead_does_not_depend_on_whose_write_it_is() {
        // Counted from the listing: turn `own` of `n` on both sides.
        for n in 1..=8u64 {
            for own in 0..n {
                let opening = 3 + 7 * (n - 1 - own);
                let closing = 7 * own + 4;
                assert_eq!(opening + 1 + closing, overhead(n).instructions);
            }
        }
    }

    /// One write and three: the jumps, and the call; the last turn of the opening side and the own one of the closing side
    /// fall out of their loops unseen.
    #[test]
    fn the_overhead_of_branches_is_that_of_the_listing() {
        let of = |writes| {
            let seen = overhead(writes);
            [seen.instructions, seen.branches, seen.taken, seen.conditional]
        };
        assert_eq!(of(1), [8, 2, 1, 1]);
        assert_eq!(of(3), [22, 4, 3, 3]);
    }

    #[test]
    fn the_call_of_the_code_is_where_branch_records_show_it() {
        let [call, behind] = call_site();
        // SAFETY: code of this program, which can be read.
        let bytes = unsafe { *(call as *const [u8; 2]) };
        assert_eq!((bytes, behind - call), ([0xff, 0xd5], 2), "CALL RBP");
    }
}
