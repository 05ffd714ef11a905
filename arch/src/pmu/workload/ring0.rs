//! Pieces of ring 0.

use super::{Counts, counts};
use core::arch::global_asm;

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
    /// [`Ring0Code::ColdLoads`], the [`crate::pmu::driver::Write`] of [`Ring0Code::Rewrite`].
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
