//! What can be wrong with a text.

use crate::Twice;
use thiserror::Error;

/// Why a text holds no processor.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum TextError {
    /// No line is an answer.
    #[error(
        "it has no line of CPUID: neither `CPUID 00000000: 00000016-756E6547-...`, nor `0x00000000 0x00: eax=...` as of \
         `cpuid -r`, nor `00000000,0,00000016,...`"
    )]
    Nothing,
    /// One line.
    #[error("line {line}: {wrong}")]
    Line { line: usize, wrong: Wrong },
    /// A processor without leaf 1.
    #[error("processor {number} of it has no leaf 0x1, so it is not known which processor it is")]
    NoSignature { number: usize },
    /// Too long.
    #[error("it has more than {most} lines: no recording of CPUID is that long")]
    Long { most: usize },
}

/// What is wrong with a line.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Wrong {
    /// A part of it is not a number.
    #[error("the {what} is {text:?}; it must be 1 to 8 hexadecimal digits")]
    Number { what: &'static str, text: String },
    /// Too few or too many parts.
    #[error("it has {found} registers in place of EAX, EBX, ECX and EDX")]
    Registers { found: usize },
    /// A register without its name.
    #[error("a register is {text:?} where `{name}=0x...` is expected")]
    Name { name: &'static str, text: String },
    /// What follows the registers.
    #[error("{text:?} follows the registers")]
    Rest { text: String },
    /// An answer twice.
    #[error(transparent)]
    Twice(Twice),
    /// A leaf before leaf 0.
    #[error("leaf {0:#x} comes before leaf 0, with which a processor begins")]
    Early(u32),
    /// A leaf without sub-leaves that comes too often.
    #[error("leaf {0:#x} comes more than 64 times without a sub-leaf")]
    Often(u32),
}

/// A part of a line for an error, not longer than fits on a terminal's line.
pub(super) fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
