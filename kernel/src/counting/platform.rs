//! What counting needs of the machine.

use super::Count;
use super::reading::{OneByOne, Reading};
use arch::pmu::pmi::ControlBlock;
use arch::pmu::{Counter, Registers};

/// The PMU's registers of one processor, and its performance monitoring interrupt.
pub trait Platform: Registers {
    /// The TSC.
    fn tsc(&mut self) -> u64;

    /// How often the handler has found this counter overflowed since the last [`Platform::deliver`]. The handler
    /// counts up at any time, also between two calls.
    fn overflows(&mut self, counter: Counter) -> u64;

    /// Interrupts of the PMU since the last [`Platform::deliver`] that found an overflow: no counter's overflows have changed
    /// as long as this has not.
    fn interrupts(&mut self) -> u64;

    /// Reads counts as planned: see [`Reading::run`].
    fn read(&mut self, plan: &mut Reading, ticks: u64, to: &mut [Count]) -> bool {
        plan.run(&mut OneByOne(self), ticks, to)
    }

    /// Takes `block` for the handler, and lets the interrupt come.
    fn deliver(&mut self, block: ControlBlock);

    /// The interrupt does not come any more.
    fn withdraw(&mut self);

    /// How often interrupts or exceptions of each vector were taken since boot.
    fn taken(&mut self, to: &mut [u64; 256]);

    /// How often any of them was.
    fn taken_in_all(&mut self) -> u64;
}
