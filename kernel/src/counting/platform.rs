//! What counting needs of the machine.

use super::access::OneByOne;
use super::charged::Charged;
use super::{Counts, Session};
use arch::pmu::pmi::ControlBlock;
use arch::pmu::{Counter, Gate, Registers};

/// The PMU's registers of one processor, and its performance monitoring interrupt.
///
/// The last three methods are there so that the processor itself can do by a plan, register by register, what it is asked
/// for by one call.
pub trait Platform: Registers {
    /// The TSC.
    fn tsc(&mut self) -> u64;

    /// How often the handler has found this counter overflowed since the last [`Platform::deliver`]. The handler
    /// counts up at any time, also between two calls.
    fn overflows(&mut self, counter: Counter) -> u64;

    /// What this counter has counted since its overflows and the handler has not set it back by
    /// ([`arch::pmu::pmi::ControlBlock::owed`]). It changes only with its overflows.
    fn owed(&mut self, counter: Counter) -> u64;

    /// Interrupts of the PMU since the last [`Platform::deliver`] that found an overflow: no counter's overflows have changed
    /// as long as this has not.
    fn interrupts(&mut self) -> u64;

    /// Takes `block` for the handler, and lets the interrupt come.
    fn deliver(&mut self, block: ControlBlock);

    /// Other counters are programmed, none of which is reloaded: the handler's block has `counters` and `enabled` from now on
    /// ([`ControlBlock::follow`]). The counters stand still.
    fn follow(&mut self, counters: u64, enabled: u64);

    /// The interrupt does not come any more.
    fn withdraw(&mut self);

    /// How often interrupts or exceptions of each vector were taken since boot.
    fn taken(&mut self, to: &mut [u64; 256]);

    /// How often any of them was.
    fn taken_in_all(&mut self) -> u64;

    /// How often counters that ran were stopped on the way into the kernel since the last time that this was asked; 0 where
    /// nothing stops them there ([`arch::pmu::Deferred`]).
    fn closings(&mut self) -> u64;

    /// Lets the counters of `gate` run `times` times from a breakpoint to the next one, with so many NOPs in between.
    fn windows(&mut self, gate: &Gate, nops: u64, times: u64);

    /// [`Session::read_planned`].
    fn read(&mut self, counts: &mut Counts, session: &mut Session) -> bool {
        session.read_planned(&mut OneByOne(self), counts)
    }

    /// [`Session::charge_planned`].
    fn charge(&mut self, session: &mut Session, last: &mut Charged, to: &mut Counts) -> bool {
        session.charge_planned(&mut OneByOne(self), last, to)
    }

    /// [`Session::next_planned`].
    fn next(&mut self, session: &mut Session) -> bool {
        session.next_planned(&mut OneByOne(self))
    }
}
