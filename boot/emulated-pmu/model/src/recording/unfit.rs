//! Why a recorded processor cannot be presented.

use thiserror::Error;

/// What the recording has that no emulated processor could.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Unfit {
    /// Leaf 1 is missing.
    #[error("it has no leaf 0x1")]
    NoSignature,
    /// No counters are announced.
    #[error("its CPUID announces no performance counters")]
    NoPmu,
    /// No long mode.
    #[error(
        "it is a 32-bit processor (leaf 0x80000001 EDX bit 29 is 0); barecount runs in 64-bit mode"
    )]
    ThirtyTwoBit,
    /// Counters that the state has no room for.
    #[error(
        "its general-purpose counters are the bits of {bitmap:#x}; the emulated PMU has room for {room}"
    )]
    Counters { bitmap: u32, room: usize },
    /// As above.
    #[error("its fixed counters are the bits of {bitmap:#x}; the emulated PMU has room for {room}")]
    FixedCounters { bitmap: u32, room: usize },
    /// Counters that are too narrow or too wide.
    #[error("its counters have {bits} bits; the emulated PMU's can have {least} to {most}")]
    Width { bits: u8, least: u8, most: u8 },
}
