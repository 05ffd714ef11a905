//! What one PMI leaves in the log.

use crate::descriptors::is_compatibility;

/// What one PMI leaves in the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Sample {
    /// The instruction at which the interrupt came.
    pub rip: u64,
    /// The counters that had overflowed, as bits of the global status.
    pub status: u64,
    /// The TSC.
    pub tsc: u64,
    /// What [`ControlBlock::task`](super::ControlBlock::task) was.
    pub task: u32,
    /// The interrupted code's CS; its lowest two bits are the ring.
    pub cs: u16,
    /// The retire latency of a record that states it; else 0.
    pub retire_latency: u16,
}

impl Sample {
    /// Ring of the interrupted code.
    #[must_use]
    pub const fn ring(&self) -> u8 {
        (self.cs & 3) as u8
    }

    /// Whether 32-bit code was interrupted.
    #[must_use]
    pub const fn is_compatibility(&self) -> bool {
        is_compatibility(self.cs as u64)
    }
}
