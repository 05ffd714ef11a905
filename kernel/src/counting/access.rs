//! The machine as a plan uses it: one register after the other, without a call of `dyn` and a guard for each.

use super::Platform;
use arch::msr::Msr;
use arch::pmu::Counter;
use arch::pmu::driver::Write;

/// What reading counts and switching between groups need of the machine, all of it tried when the set was bound.
pub trait Access {
    /// RDMSR of a register that a plan names; `None`: it raised an exception.
    fn read(&mut self, msr: Msr) -> Option<u64>;
    /// A write of a plan. Returns whether the register took it.
    fn write(&mut self, write: &Write) -> bool;
    /// The TSC.
    fn tsc(&mut self) -> u64;
    /// See [`Platform::interrupts`].
    fn interrupts(&mut self) -> u64;
    /// See [`Platform::overflows`].
    fn overflows(&mut self, counter: Counter) -> u64;
    /// See [`Platform::follow`].
    fn follow(&mut self, counters: u64, enabled: u64);
}

/// By the platform's own accesses.
pub struct OneByOne<'a, P: ?Sized>(pub &'a mut P);

impl<P: Platform + ?Sized> Access for OneByOne<'_, P> {
    fn read(&mut self, msr: Msr) -> Option<u64> {
        self.0.rdmsr(msr).ok()
    }

    fn write(&mut self, write: &Write) -> bool {
        self.0.wrmsr(Msr(write.msr), write.value).is_ok()
    }

    fn tsc(&mut self) -> u64 {
        self.0.tsc()
    }

    fn interrupts(&mut self) -> u64 {
        self.0.interrupts()
    }

    fn overflows(&mut self, counter: Counter) -> u64 {
        self.0.overflows(counter)
    }

    fn follow(&mut self, counters: u64, enabled: u64) {
        self.0.follow(counters, enabled);
    }
}
