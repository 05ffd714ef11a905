//! Pieces of code whose architectural counts are known, because they were counted by hand.
//!
//! Each piece of ring 0 is a function that takes a number of turns; its RET is part of its counts. The pieces of
//! ring 3 are copied to a page that ring 3 may execute, and leave it with `int 0x88`.

use core::arch::global_asm;
use core::ops::Range;

/// What happens architecturally.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: u64,
    /// Branches retired, taken or not.
    pub branches: u64,
    /// Branches taken.
    pub taken: u64,
    /// Conditional branches, taken or not.
    pub conditional: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            instructions: self.instructions + other.instructions,
            branches: self.branches + other.branches,
            taken: self.taken + other.taken,
            conditional: self.conditional + other.conditional,
        }
    }
}

/// A piece of ring 0. `n` is at least 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ring0Code {
    /// `ret`.
    Empty,
    /// n times `dec; jnz`.
    Loop,
    /// n times a conditional jump that is never taken, in a loop.
    NotTaken,
    /// n times a call of a function that returns at once.
    Calls,
    /// n times a conditional jump whose direction a predictor cannot know. Both ways have two instructions.
    Unpredictable,
    /// n loads, each of another line that was flushed from the caches before.
    ColdLoads,
    /// 512 NOPs of one byte each: an address states how many of them have retired. Takes no turns.
    Straight,
    /// A WRMSR, then n times `dec; jnz`: for writes to a counter that runs.
    Rewrite,
}

global_asm!(
    ".pushsection .text.barecount_pieces, \"ax\", @progbits",
    ".balign 64",
    ".global barecount_piece_empty",
    "barecount_piece_empty: ret",
    ".balign 64",
    ".global barecount_piece_loop",
    "barecount_piece_loop:",
    "2: dec rdi",
    "jnz 2b",
    "ret",
    ".balign 64",
    ".global barecount_piece_not_taken",
    "barecount_piece_not_taken:",
    "2: test rdi, rdi",
    "jz 3f",
    "dec rdi",
    "jnz 2b",
    "3: ret",
    ".balign 64",
    ".global barecount_piece_calls",
    ".global barecount_piece_calls_jump",
    ".global barecount_piece_calls_return",
    ".global barecount_piece_calls_leaf",
    "barecount_piece_calls:",
    "2: call barecount_piece_calls_leaf",
    "dec rdi",
    "barecount_piece_calls_jump: jnz 2b",
    "barecount_piece_calls_return: ret",
    "barecount_piece_calls_leaf: ret",
    ".balign 64",
    ".global barecount_piece_unpredictable",
    // A linear congruential generator (Knuth's MMIX constants); bit 60 of it has a period of 2^61.
    "barecount_piece_unpredictable:",
    "mov rcx, 6364136223846793005",
    "mov rdx, 1442695040888963407",
    "mov rax, rdi",
    "2: imul rax, rcx",
    "add rax, rdx",
    "bt rax, 60",
    "jc 3f",
    "nop",
    "jmp 4f",
    "3: nop",
    "nop",
    "4: dec rdi",
    "jnz 2b",
    "ret",
    ".balign 64",
    ".global barecount_piece_cold_loads",
    "barecount_piece_cold_loads:",
    "2: clflush [rsi]",
    "mfence",
    "mov rax, [rsi]",
    "add rsi, 64",
    "dec rdi",
    "jnz 2b",
    "ret",
    ".balign 64",
    ".global barecount_piece_straight",
    "barecount_piece_straight:",
    ".fill 512, 1, 0x90",
    "ret",
    ".balign 64",
    ".global barecount_piece_rewrite",
    "barecount_piece_rewrite:",
    "mov ecx, [rsi]",
    "mov eax, [rsi + 8]",
    "mov edx, [rsi + 12]",
    "wrmsr",
    "2: dec rdi",
    "jnz 2b",
    "ret",
    ".popsection",
);

unsafe extern "sysv64" {
    static barecount_piece_empty: u8;
    static barecount_piece_loop: u8;
    static barecount_piece_not_taken: u8;
    static barecount_piece_calls: u8;
    static barecount_piece_calls_jump: u8;
    static barecount_piece_calls_return: u8;
    static barecount_piece_calls_leaf: u8;
    static barecount_piece_unpredictable: u8;
    static barecount_piece_cold_loads: u8;
    static barecount_piece_straight: u8;
    static barecount_piece_rewrite: u8;
}

/// Addresses of [`Ring0Code::Calls`], as branch records show them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallsSites {
    /// The call, and the piece's first instruction.
    pub call: u64,
    /// After the call.
    pub after: u64,
    /// The loop's jump.
    pub jump: u64,
    /// The piece's own return.
    pub piece_return: u64,
    /// The called function, which is its return.
    pub leaf: u64,
}

/// NOPs of [`Ring0Code::Straight`].
pub const STRAIGHT_INSTRUCTIONS: u64 = 512;

/// Bytes of `call rel32`.
const CALL_BYTES: u64 = 5;

/// See [`CallsSites`].
#[must_use]
pub fn calls_sites() -> CallsSites {
    let call = (&raw const barecount_piece_calls) as u64;
    CallsSites {
        call,
        after: call + CALL_BYTES,
        jump: (&raw const barecount_piece_calls_jump) as u64,
        piece_return: (&raw const barecount_piece_calls_return) as u64,
        leaf: (&raw const barecount_piece_calls_leaf) as u64,
    }
}

impl Ring0Code {
    /// Address of the function. RDI is the number of turns, RSI what the piece needs too: the memory of
    /// [`Ring0Code::ColdLoads`], the [`super::driver::Write`] of [`Ring0Code::Rewrite`].
    #[must_use]
    pub fn address(self) -> u64 {
        let symbol = match self {
            Self::Empty => &raw const barecount_piece_empty,
            Self::Loop => &raw const barecount_piece_loop,
            Self::NotTaken => &raw const barecount_piece_not_taken,
            Self::Calls => &raw const barecount_piece_calls,
            Self::Unpredictable => &raw const barecount_piece_unpredictable,
            Self::ColdLoads => &raw const barecount_piece_cold_loads,
            Self::Straight => &raw const barecount_piece_straight,
            Self::Rewrite => &raw const barecount_piece_rewrite,
        };
        symbol as u64
    }

    /// What `n` turns are. For [`Ring0Code::Unpredictable`] the instructions alone are certain: a turn's jump is taken, or
    /// falls through to another that is; `branches` and `taken` are the least.
    #[must_use]
    pub const fn counts(self, n: u64) -> Counts {
        // The loop's jump is taken n - 1 times, and each piece ends in a RET.
        match self {
            Self::Empty => counts(1, 1, 1, 0),
            Self::Loop => counts(2 * n + 1, n + 1, n, n),
            Self::NotTaken => counts(4 * n + 1, 2 * n + 1, n, 2 * n),
            Self::Calls => counts(4 * n + 1, 3 * n + 1, 3 * n, n),
            Self::Unpredictable => counts(8 * n + 4, 2 * n + 1, 2 * n, 2 * n),
            Self::ColdLoads => counts(6 * n + 1, n + 1, n, n),
            Self::Straight => counts(STRAIGHT_INSTRUCTIONS + 1, 1, 1, 0),
            Self::Rewrite => counts(2 * n + 5, n + 1, n, n),
        }
    }

    /// Instructions of [`Ring0Code::Rewrite`] after its WRMSR.
    #[must_use]
    pub const fn after_rewrite(n: u64) -> u64 {
        2 * n + 1
    }
}

const fn counts(instructions: u64, branches: u64, taken: u64, conditional: u64) -> Counts {
    Counts { instructions, branches, taken, conditional }
}

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

/// Vector of the software interrupt of [`Ring3Code::Interrupts`].
pub const USER_VECTOR: u8 = 0x81;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(address: u64) -> [u8; N] {
        // SAFETY: the pieces are code of this program, which can be read, and followed by more of it.
        unsafe { core::ptr::read(address as *const [u8; N]) }
    }

    /// Three turns, counted in the listing above.
    #[test]
    fn c6_what_three_turns_of_each_piece_are() {
        for (piece, [instructions, branches, taken, conditional]) in [
            (Ring0Code::Empty, [1, 1, 1, 0]),
            (Ring0Code::Loop, [7, 4, 3, 3]),
            (Ring0Code::NotTaken, [13, 7, 3, 6]),
            (Ring0Code::Calls, [13, 10, 9, 3]),
            (Ring0Code::Unpredictable, [28, 7, 6, 6]),
            (Ring0Code::ColdLoads, [19, 4, 3, 3]),
            (Ring0Code::Straight, [513, 1, 1, 0]),
            (Ring0Code::Rewrite, [11, 4, 3, 3]),
        ] {
            let expected = Counts { instructions, branches, taken, conditional };
            assert_eq!(piece.counts(3), expected, "{piece:?}");
            let twice = expected.and(expected);
            let seen = [twice.instructions, twice.branches, twice.taken, twice.conditional];
            assert_eq!(seen, [instructions, branches, taken, conditional].map(|count| 2 * count));
        }
        assert_eq!(Ring0Code::after_rewrite(3), 7);
        for (piece, instructions, interrupts) in [
            (Ring3Code::Loop, 6, 1),
            (Ring3Code::Interrupts, 6, 4),
            (Ring3Code::Faults, 7, 1),
            (Ring3Code::Rdpmc, 4, 1),
            (Ring3Code::Rdtsc, 3, 1),
            (Ring3Code::SystemCalls, 6, 1),
        ] {
            assert_eq!((piece.instructions(3), piece.interrupts(3)), (instructions, interrupts));
        }
    }

    #[test]
    fn c6_the_addresses_are_those_of_the_instructions() {
        let sites = calls_sites();
        assert_eq!(sites.call, Ring0Code::Calls.address());
        assert_eq!(bytes(sites.call), [0xe8], "CALL");
        assert_eq!(bytes(sites.after), [0x48, 0xff, 0xcf], "DEC RDI");
        assert_eq!(bytes(sites.jump), [0x75], "JNZ");
        assert_eq!((bytes(sites.piece_return), bytes(sites.leaf)), ([0xc3], [0xc3]), "RET");
        assert_eq!((sites.jump, sites.leaf), (sites.after + 3, sites.piece_return + 1));
        let end = Ring0Code::Straight.address() + STRAIGHT_INSTRUCTIONS;
        assert_eq!(bytes(end - 1), [0x90, 0xc3], "the last NOP, and RET");
    }

    #[test]
    fn c6_the_pieces_of_ring_3_begin_at_their_offsets() {
        let code = user_code();
        for (piece, begin) in [
            (Ring3Code::Loop, &[0x49, 0xff, 0xc9, 0x75][..]),
            (Ring3Code::Interrupts, &[0xcd, USER_VECTOR]),
            (Ring3Code::Faults, &[0x45, 0x31, 0xc0]),
            (Ring3Code::Rdpmc, &[0x44, 0x89, 0xc9, 0x0f, 0x33]),
            (Ring3Code::Rdtsc, &[0x0f, 0x31]),
            (Ring3Code::SystemCalls, &[0x0f, 0x05]),
        ] {
            assert!(code[piece.offset() as usize..].starts_with(begin), "{piece:?}");
        }
        // SYSCALL, DEC, JNZ, INT 0x88: the end.
        assert_eq!(code[code.len() - 2..], [0xcd, 0x88]);
        // MOV RAX, [R8 + disp32].
        assert_eq!(fault_bytes(), 7);
    }
}
