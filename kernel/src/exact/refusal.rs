//! Why a snippet was not stepped to its end.

use alloc::string::String;
use thiserror::Error;

/// What exact mode cannot do.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Refusal {
    /// An instruction that leaves for code that is not the snippet's, or waits.
    #[error("exact mode cannot step over `{opcode}` at byte {offset} of the body")]
    Unsteppable {
        /// Its mnemonic.
        opcode: String,
        /// Within a copy of the body.
        offset: u64,
    },
    /// POPF or IRET with TF, which is in use.
    #[error("the snippet sets the trap flag (RFLAGS.TF), which exact mode steps with")]
    TrapFlag,
    /// It runs too long.
    #[error(
        "the snippet was not done after {0} instructions: lower unroll or loop, or raise exact.steps (--steps)"
    )]
    TooLong(u64),
    /// It executes something else than its code.
    #[error("the snippet executed code outside of itself, at {0:#x}")]
    Outside(u64),
    /// What executed was not what was expected to: DEBUGCTL.BTF was set, or a transaction began.
    #[error("lost the snippet's trace: from {from:#x} it went to {to:#x}, without a branch")]
    Lost {
        /// Address of the instruction.
        from: u64,
        /// Where execution continued.
        to: u64,
    },
    /// A filter names an opcode that does not exist.
    #[error("the filter's opcode `{0}` does not exist")]
    UnknownOpcode(String),
}
