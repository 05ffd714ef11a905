//! A processor's PMU, and its interrupt.

use super::watch::on_pmi;
use alloc::boxed::Box;
use arch::debug;
use arch::interrupts::{self, deferring};
use arch::msr::{Absent, Msr};
use arch::pci::devices::Devices;
use arch::pmu::driver::Write;
use arch::pmu::pmi::{self, ControlBlock};
use arch::pmu::{self, Counter, Deferred, Driver, Gate, Readable, Registers};
use arch::time::tsc;
use kernel::counting::access::Access;
use kernel::counting::charged::Charged;
use kernel::counting::{Counts, Platform, Session};
use raw_cpuid::CpuIdResult;

/// The processor that this runs on.
pub struct Processor {
    registers: pmu::Machine,
    direct: Direct,
    /// What would start counters, if it is put off.
    deferred: Option<*mut Deferred>,
}

// SAFETY: whoever has this uses it on its processor alone, as `Direct`; the block behind the pointer is owned.
unsafe impl Send for Processor {}

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
            let direct = Direct { block: pmi::block() };
            Self { registers: pmu::Machine::new(), direct, deferred: None }
        }
    }

    /// Counters that would run are stopped while the kernel does, with nothing of it in their counts but what is always the
    /// same. For counters of `driver`, none of which runs.
    ///
    /// # Safety
    /// As for [`Processor::open`]; no tasks run on any processor before [`Processor::close`] but those that are counted.
    pub unsafe fn defer(&mut self, driver: &Driver) {
        let deferred = Box::into_raw(Box::new(Deferred::new(driver)));
        self.deferred = Some(deferred);
        // SAFETY: the caller's promise; the box is given back by `close`.
        unsafe { deferring::install(deferred) };
    }

    /// What is put off.
    fn deferred(&mut self) -> Option<&mut Deferred> {
        // SAFETY: made by `defer`; handlers use it in between only, while nobody here does.
        self.deferred.map(|deferred| unsafe { &mut *deferred })
    }

    /// What is to be written in place of this.
    #[cold]
    fn put_off(&mut self, msr: Msr, value: u64) -> Write {
        let write = Write::new(msr, value);
        self.deferred().map_or(write, |deferred| deferred.take(write))
    }

    /// Lets counters run that the PMI's handler let run: its way back starts none of those that are put off.
    pub fn go_on(&mut self) {
        let Some(deferred) = self.deferred() else { return };
        for write in deferred.on() {
            // SAFETY: a register of the driver's, which took such a value when the set was bound.
            unsafe { write.put() };
        }
    }

    /// Gives the PMI back.
    pub fn close(self) {
        if let Some(deferred) = self.deferred {
            // SAFETY: as at `defer`, whose box it is; nobody has the pointer any more.
            unsafe {
                deferring::uninstall();
                drop(Box::from_raw(deferred));
            }
        }
        // SAFETY: ring 0, interrupt table loaded, interrupts off, as at the beginning.
        unsafe { pmi::uninstall() };
    }
}

/// Accesses that cannot fail: a plan names registers that took the same when the set was bound.
struct Direct {
    /// This processor's, which stays where it is.
    block: *mut ControlBlock,
}

// SAFETY: the block is this processor's, as is whoever has this: it is used on no other.
unsafe impl Send for Direct {}

impl Access for Direct {
    #[inline]
    fn read(&mut self, msr: Msr) -> Option<u64> {
        // SAFETY: the counters and the status register of the driver, which it has read when the set was bound.
        Some(unsafe { arch::msr::read(msr) })
    }

    #[inline]
    fn write(&mut self, write: &Write) -> bool {
        // SAFETY: a register of the driver's, which took the value when the set was bound.
        unsafe { write.put() };
        true
    }

    #[inline]
    fn tsc(&mut self) -> u64 {
        tsc::behind()
    }

    #[inline]
    fn interrupts(&mut self) -> u64 {
        // SAFETY: the handler counts up in it, which a read may see before or after.
        unsafe { (&raw const (*self.block).pmis).read_volatile() }
    }

    #[inline]
    fn overflows(&mut self, counter: Counter) -> u64 {
        // SAFETY: as above.
        unsafe { (*self.block).overflows(counter) }
    }

    #[inline]
    fn follow(&mut self, counters: u64, enabled: u64) {
        // SAFETY: the counters stand still and interrupts are off, so that the handler does not run.
        unsafe { (*self.block).follow(counters, enabled) };
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
        let mut value = value;
        if self.deferred.is_some() {
            value = self.put_off(msr, value).value;
        }
        self.registers.wrmsr(msr, value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        self.registers.rdpmc(index)
    }

    fn devices(&mut self) -> Option<&mut dyn Devices> {
        self.registers.devices()
    }

    #[inline]
    fn rdpmc_again(&mut self, counter: Readable) -> u64 {
        self.registers.rdpmc_again(counter)
    }
}

impl Platform for Processor {
    fn tsc(&mut self) -> u64 {
        tsc::now()
    }

    fn overflows(&mut self, counter: Counter) -> u64 {
        self.direct.overflows(counter)
    }

    fn owed(&mut self, counter: Counter) -> u64 {
        // SAFETY: as for the overflows.
        unsafe { (*self.direct.block).owed(counter) }
    }

    fn interrupts(&mut self) -> u64 {
        self.direct.interrupts()
    }

    fn follow(&mut self, counters: u64, enabled: u64) {
        self.direct.follow(counters, enabled);
    }

    fn read(&mut self, counts: &mut Counts, session: &mut Session) -> bool {
        session.read_planned(&mut self.direct, counts)
    }

    // In the scheduler's way, and called from one place.
    #[inline(always)]
    fn charge(&mut self, session: &mut Session, last: &mut Charged, to: &mut Counts) -> bool {
        session.charge_planned(&mut self.direct, last, to)
    }

    fn next(&mut self, session: &mut Session) -> bool {
        // A plan starts the counters at once.
        self.deferred.is_none() && session.next_planned(&mut self.direct)
    }

    fn closings(&mut self) -> u64 {
        self.deferred().map_or(0, Deferred::closings)
    }

    fn windows(&mut self, gate: &Gate, nops: u64, times: u64) {
        let Some(deferred) = self.deferred() else { return };
        for &on in gate.on() {
            let _ = deferred.take(on);
        }
        deferred.keep();
        // SAFETY: `defer`'s caller promises the rest.
        unsafe { debug::windows(nops, times) };
        let Some(deferred) = self.deferred() else { return };
        for &off in gate.off() {
            let _ = deferred.take(off);
        }
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
