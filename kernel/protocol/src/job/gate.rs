//! Where counting of a task starts and stops.

use serde::{Deserialize, Serialize};

/// An address at which counting starts or stops.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
pub struct GatePoint {
    /// Index of the task.
    pub task: u16,
    /// The address.
    pub at: GateAt,
    /// What has to be done there.
    pub on: GateOn,
    /// What happens.
    pub act: GateAct,
}

/// An address of a task.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
pub enum GateAt {
    /// Bytes from the beginning of the task's init code.
    Code(u64),
    /// Bytes from where a register points to at the task's start: one of [`REGISTERS`], by its place.
    Register(u8, i32),
}

/// The registers that point to a task's memory at its start. In 32-bit code EBX stands for R14.
pub const REGISTERS: [&str; 5] = ["rsp", "rbp", "rdi", "rsi", "r14"];

/// What has to be done at an address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
pub enum GateOn {
    /// The instruction there is about to be executed: counting starts or stops before it.
    #[default]
    Execute,
    /// One of so many bytes was written: counting starts or stops behind the instruction.
    Write(u8),
    /// One of so many bytes was read or written: likewise.
    Access(u8),
}

impl GateOn {
    /// Bytes of data; `None`: an instruction.
    #[must_use]
    pub const fn bytes(self) -> Option<u8> {
        match self {
            Self::Execute => None,
            Self::Write(bytes) | Self::Access(bytes) => Some(bytes),
        }
    }
}

/// What happens at an address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateAct {
    /// Counting starts.
    #[default]
    Start,
    /// Counting stops.
    Stop,
}
