//! Pieces of ring 3.

use core::arch::global_asm;
use core::ops::Range;

/// A piece of ring 3: position-independent code that finds its argument in R9.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ring3Code {
    /// n times `dec; jnz`.
    Loop,
    /// n times `int 0x81; dec; jnz`.
    Interrupts,
    /// n times a load from an address that is not mapped, which the handler skips, and `dec; jnz`.
    Faults,
    /// RDPMC with ECX = n; the result in RAX.
    Rdpmc,
    /// RDTSC; the result in RAX.
    Rdtsc,
    /// n times `syscall; dec; jnz`. Who runs it says where SYSCALL leads.
    SystemCalls,
}

global_asm!(
    ".pushsection .text.barecount_user, \"ax\", @progbits",
    ".global barecount_user_start",
    ".global barecount_user_loop",
    ".global barecount_user_interrupts",
    ".global barecount_user_faults",
    ".global barecount_user_fault",
    ".global barecount_user_fault_end",
    ".global barecount_user_rdpmc",
    ".global barecount_user_rdtsc",
    ".global barecount_user_system_calls",
    ".global barecount_user_end",
    ".balign 64",
    "barecount_user_start:",
    "barecount_user_loop:",
    "2: dec r9",
    "jnz 2b",
    "int 0x88",
    ".balign 64",
    "barecount_user_interrupts:",
    "2: int 0x81",
    "dec r9",
    "jnz 2b",
    "int 0x88",
    ".balign 64",
    "barecount_user_faults:",
    "xor r8d, r8d",
    "2:",
    "barecount_user_fault: mov rax, [r8 + 0x6000]",
    "barecount_user_fault_end: dec r9",
    "jnz 2b",
    "int 0x88",
    ".balign 64",
    "barecount_user_rdpmc:",
    "mov ecx, r9d",
    "rdpmc",
    "shl rdx, 32",
    "or rax, rdx",
    "int 0x88",
    ".balign 64",
    "barecount_user_rdtsc:",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "int 0x88",
    ".balign 64",
    "barecount_user_system_calls:",
    "2: syscall",
    "dec r9",
    "jnz 2b",
    "int 0x88",
    "barecount_user_end:",
    ".popsection",
);

unsafe extern "sysv64" {
    static barecount_user_start: u8;
    static barecount_user_loop: u8;
    static barecount_user_interrupts: u8;
    static barecount_user_faults: u8;
    static barecount_user_fault: u8;
    static barecount_user_fault_end: u8;
    static barecount_user_rdpmc: u8;
    static barecount_user_rdtsc: u8;
    static barecount_user_system_calls: u8;
    static barecount_user_end: u8;
}

/// The code of all pieces of ring 3, to be copied to where ring 3 may execute it.
#[must_use]
pub fn user_code() -> &'static [u8] {
    let range = user_range();
    // SAFETY: the two symbols enclose the section's content, which is readable.
    unsafe {
        core::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
    }
}

fn user_range() -> Range<u64> {
    (&raw const barecount_user_start) as u64..(&raw const barecount_user_end) as u64
}

/// Bytes of the load that faults: what its handler adds to RIP.
#[must_use]
pub fn fault_bytes() -> u64 {
    (&raw const barecount_user_fault_end) as u64 - (&raw const barecount_user_fault) as u64
}

impl Ring3Code {
    /// Offset of the piece in [`user_code`].
    #[must_use]
    pub fn offset(self) -> u64 {
        let symbol = match self {
            Self::Loop => &raw const barecount_user_loop,
            Self::Interrupts => &raw const barecount_user_interrupts,
            Self::Faults => &raw const barecount_user_faults,
            Self::Rdpmc => &raw const barecount_user_rdpmc,
            Self::Rdtsc => &raw const barecount_user_rdtsc,
            Self::SystemCalls => &raw const barecount_user_system_calls,
        };
        symbol as u64 - user_range().start
    }

    /// Instructions that retire in ring 3 in `n` turns, without the `int`s and `syscall`s: whether one counts for the ring that
    /// it leaves or the one that it enters is the processor's choice.
    #[must_use]
    pub const fn instructions(self, n: u64) -> u64 {
        match self {
            Self::Loop | Self::Interrupts | Self::SystemCalls => 2 * n,
            // The load that faults does not retire.
            Self::Faults => 2 * n + 1,
            Self::Rdpmc => 4,
            Self::Rdtsc => 3,
        }
    }

    /// `int`s executed in `n` turns.
    #[must_use]
    pub const fn interrupts(self, n: u64) -> u64 {
        match self {
            Self::Interrupts => n + 1,
            Self::Loop | Self::Faults | Self::Rdpmc | Self::Rdtsc | Self::SystemCalls => 1,
        }
    }
}
