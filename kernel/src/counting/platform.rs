//! What counting needs of the machine.

use arch::pmu::pmi::ControlBlock;
use arch::pmu::{Counter, Registers};

/// The PMU's registers of one processor, and its performance monitoring interrupt.
pub trait Platform: Registers {
    /// The TSC.
    fn tsc(&mut self) -> u64;

    /// How often the handler has found this counter overflowed since the last [`Platform::deliver`]. The handler
    /// counts up at any time, also between two calls.
    fn overflows(&mut self, counter: Counter) -> u64;

    /// Takes `block` for the handler, and lets the interrupt come.
    fn deliver(&mut self, block: ControlBlock);

    /// The interrupt does not come any more.
    fn withdraw(&mut self);

    /// How often interrupts or exceptions of each vector were taken since boot.
    fn taken(&mut self) -> [u64; 256];
}
