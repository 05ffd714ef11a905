//! Exceptions: in a snippet ([`Fault`]) and in the firmware itself ([`Crash`]).

use crate::bits::record::{is_usual, usual};
use crate::hex::Hex;
use crate::program::ProgramKey;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The register file at an exception.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the names are the registers' own")]
pub struct Registers {
    pub rax: Hex,
    pub rbx: Hex,
    pub rcx: Hex,
    pub rdx: Hex,
    pub rsi: Hex,
    pub rdi: Hex,
    pub rbp: Hex,
    pub rsp: Hex,
    pub r8: Hex,
    pub r9: Hex,
    pub r10: Hex,
    pub r11: Hex,
    pub r12: Hex,
    pub r13: Hex,
    pub r14: Hex,
    pub r15: Hex,
    pub rip: Hex,
    pub rflags: Hex,
    pub cr2: Hex,
}

/// An exception raised by a snippet.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// Vector: of an exception 0 to 31, else of an INT that nobody answers.
    pub vector: u8,
    /// Mnemonic from the manuals: `#UD`, `#PF`, ...; `INT 0x80` and the like; `time limit` if the watchdog ended it.
    pub mnemonic: String,
    /// Error code, for the exceptions that push one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<Hex>,
    /// Which part of the snippet raised it: `init`, `body`, `program` (compiled code), or `outside`.
    pub part: String,
    /// Offset of the instruction in that part, in bytes. For the body: within one copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Which copy of the body, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<u64>,
    /// Bytes of the instruction, as far as they lie within the code: hexadecimal, at most 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// Registers at the exception.
    pub registers: Registers,
    /// 32 if it came in 32-bit code; absent: 64.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub bits: u8,
    /// It came of the stack's end: the address lies in the guard below.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub overrun: bool,
    /// What the program left to be told, such as the message of a panic and its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The program, if it came in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramKey>,
    /// The function of the program that it came in, found by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// File and line of it, found by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// The firmware itself failed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crash {
    /// What kind of failure.
    pub kind: CrashKind,
    /// Message of the panic, or name of the exception.
    pub text: String,
    /// Source file and line of a panic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Vector of the exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<u8>,
    /// Error code, for the exceptions that push one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<Hex>,
    /// Index of the item that was being run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Registers at the failure.
    pub registers: Registers,
    /// Return addresses, innermost first, the failing instruction itself at the front.
    pub backtrace: Vec<Hex>,
}

/// How the firmware failed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CrashKind {
    /// A Rust panic.
    Panic,
    /// A processor exception.
    Exception,
}
