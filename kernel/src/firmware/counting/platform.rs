//! A processor's PMU, and its interrupt.

use super::watch::on_pmi;
use arch::interrupts;
use arch::msr::{Absent, Msr};
use arch::pmu::pmi::{self, ControlBlock};
use arch::pmu::{self, Counter, Registers};
use arch::time::tsc;
use kernel::counting::reading::{Access, Reading};
use kernel::counting::{Count, Platform};
use raw_cpuid::CpuIdResult;

/// The processor that this runs on.
pub struct Processor {
    registers: pmu::Machine,
}

impl Processor {
    /// Takes the PMI for [`on_pmi`].
    ///
    /// # Safety
    /// Ring 0, interrupt table loaded, APIC on, interrupts off; the firmware owns the PMU. To be used on this processor
    /// only, and to be [closed](Processor::close).
    pub unsafe fn open() -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            pmi::install_for(on_pmi);
            Self { registers: pmu::Machine::new() }
        }
    }

    /// Gives the PMI back.
    pub fn close(self) {
        // SAFETY: ring 0, interrupt table loaded, interrupts off, as at the beginning.
        unsafe { pmi::uninstall() };
    }
}

/// Accesses that cannot fail: a plan names registers that were read before.
struct Known;

impl Access for Known {
    #[inline]
    fn msr(&mut self, msr: Msr) -> Option<u64> {
        // SAFETY: the counters and the status register of the driver, which it has read when the set was bound.
        Some(unsafe { arch::msr::read(msr) })
    }

    #[inline]
    fn interrupts(&mut self) -> u64 {
        // SAFETY: the handler counts up in it, which a read may see before or after.
        unsafe { (&raw const (*pmi::block()).pmis).read_volatile() }
    }
}

impl Registers for Processor {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.registers.cpuid(leaf, subleaf)
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.registers.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.registers.wrmsr(msr, value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        self.registers.rdpmc(index)
    }
}

impl Platform for Processor {
    fn tsc(&mut self) -> u64 {
        tsc::now()
    }

    fn overflows(&mut self, counter: Counter) -> u64 {
        // SAFETY: the handler counts up in it, which a read may see before or after.
        unsafe { (*pmi::block()).overflows(counter) }
    }

    fn interrupts(&mut self) -> u64 {
        Known.interrupts()
    }

    fn read(&mut self, plan: &mut Reading, ticks: u64, to: &mut [Count]) -> bool {
        plan.run(&mut Known, ticks, to)
    }

    fn deliver(&mut self, block: ControlBlock) {
        // SAFETY: `open` has installed the handler; interrupts are off. The block is of what is programmed, and has no
        // log.
        unsafe { pmi::exchange(block) };
    }

    fn withdraw(&mut self) {
        pmi::mask();
    }

    fn taken(&mut self, to: &mut [u64; 256]) {
        interrupts::taken(to);
    }

    fn taken_in_all(&mut self) -> u64 {
        interrupts::taken_in_all()
    }
}
