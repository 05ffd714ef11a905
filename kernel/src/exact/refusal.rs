//! Why a snippet was not stepped to its end.

use alloc::string::String;
use core::fmt;
use thiserror::Error;

/// Where code is, in terms that do not depend on where it was emitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Site {
    /// So many bytes from the beginning of a copy of the body.
    Body(u64),
    /// In compiled code, at this address of its image.
    Program(u64),
    /// Init and what else is emitted around the body.
    Around,
}

/// Follows `at` and `from`.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Body(offset) => write!(f, "byte {offset} of the body"),
            Self::Program(address) => write!(f, "{address:#x} of the program"),
            Self::Around => f.write_str("code around the body"),
        }
    }
}

/// What exact mode cannot do.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Refusal {
    /// An instruction that leaves for code that is not the snippet's, or waits.
    #[error("exact mode cannot step over `{opcode}` at {site}")]
    Unsteppable {
        /// Its mnemonic.
        opcode: String,
        /// Where it is.
        site: Site,
    },
    /// POPF or IRET with TF, which is in use.
    #[error("the snippet sets the trap flag (RFLAGS.TF), which exact mode steps with")]
    TrapFlag,
    /// It runs too long.
    #[error(
        "the snippet was not done after {0} instructions: lower unroll or loop, or raise exact.steps (--steps)"
    )]
    TooLong(u64),
    /// It executes something else than its code, after the instruction that is there.
    #[error("the snippet left for code outside of itself, from {0}")]
    Outside(Site),
    /// What executed after the instruction that is there was not what was expected to: DEBUGCTL.BTF was set, or a transaction began.
    #[error("lost the snippet's trace: from {0} it went on elsewhere, without a branch")]
    Lost(Site),
    /// A filter names an opcode that does not exist.
    #[error("the filter's opcode `{0}` does not exist")]
    UnknownOpcode(String),
}
