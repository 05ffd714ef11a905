//! Ending foreign code that does not end by itself.
//!
//! A counter that no event needs counts cycles all the time that the code runs, the gate open or closed, and raises an
//! NMI when it overflows. Neither CLI nor a destroyed stack pointer keeps that out. The handler ends the running
//! [`crate::call`] at its exit, as an exception would.
//!
//! What it cannot end: code that halts with interrupts off, as no counter counts cycles then; code that stops the counter or
//! masks its entry in the local APIC. The APIC's own timer cannot be used: its LVT entry has no delivery mode (SDM vol. 3, figure
//! 10-8), so it cannot send an NMI. [`second`]: another processor can. Code that destroys the interrupt table is ended by nobody
//! but the machine's own watchdog, which resets it: [`machine`].

pub mod machine;
pub mod second;

use crate::apic::{self, Register};
use crate::call;
use crate::interrupts;
use crate::msr::{self, Msr};
use crate::pmu::driver::Write;
use crate::pmu::{Capabilities, Counter, Driver, Fault, PmuError, Registers, Selection};
use crate::smp::{self, Processor};
use crate::time::tsc;
use crate::trap::{TrapFrame, exception};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// LVT delivery mode NMI: bits 10:8 (SDM vol. 3, 10.5.1).
const MODE_NMI: u32 = 0b100 << 8;
const LVT_MASK: u32 = 1 << 16;

/// A counter that watches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watchdog {
    counter: Counter,
    register: Msr,
    /// Where each stretch starts from.
    preset: u64,
    /// Where the test of itself starts from.
    near: u64,
    /// Where it starts from when the counter is done before the time is: a core's clock may be faster than the TSC.
    again: u64,
    /// The limit in ticks of the TSC.
    limit: u64,
    /// Stretches of the limit: a counter may be too narrow for all of it.
    stretches: u64,
    /// Global status and the register that clears it; `None`: the top bit tells.
    status: Option<[Msr; 2]>,
    /// The counter's bit in the status, or its top bit.
    mask: u64,
    on: Write,
    off: Write,
}

/// What the handler works with, on each processor.
pub(crate) struct Armed {
    register: AtomicU32,
    preset: AtomicU64,
    left: AtomicU64,
    again: AtomicU64,
    /// How often it may: code can set the TSC back.
    tries: AtomicU64,
    /// TSC at which the time is over.
    deadline: AtomicU64,
    status: AtomicU32,
    clear: AtomicU32,
    mask: AtomicU64,
    off_register: AtomicU32,
    off_value: AtomicU64,
    /// Overflows that were handled.
    seen: AtomicU64,
}

impl Armed {
    /// Nothing is watched.
    pub(crate) const fn idle() -> Self {
        Self {
            register: AtomicU32::new(0),
            preset: AtomicU64::new(0),
            left: AtomicU64::new(0),
            again: AtomicU64::new(0),
            tries: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            status: AtomicU32::new(0),
            clear: AtomicU32::new(0),
            mask: AtomicU64::new(0),
            off_register: AtomicU32::new(0),
            off_value: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }
    }
}

/// Unhalted cycles on a general-purpose counter: UnHalted Core Cycles, architectural (SDM vol. 3, table 20-1); CPU
/// Clocks not Halted, PMCx076 (AMD PPR).
///
/// Where nothing counts cycles, or not this counter, instructions do: a limit in instructions ends code as well, if later.
fn cycles(has: &Capabilities, counter: u8) -> Selection {
    let code = if has.is_intel() { 0x3c } else { 0x76 };
    let dead =
        |fault: &Fault| matches!(fault, Fault::Event { event, umask: 0, .. } if *event == code);
    let cannot = has.cycles & 1 << counter == 0 || has.faults.iter().any(dead);
    let code = if cannot { 0xc0 } else { code };
    Selection::of(code, 0).with_interrupt()
}

/// Cycles until the overflow of a test.
const NEAR: u64 = 1_000;

/// A counter that is done too early goes on for this part of the limit.
const AGAIN: u64 = 8;
/// So often at most: no core's clock is five times as fast as its TSC.
const TRIES: u64 = 4 * AGAIN;

/// Counters in the order of choice: Intel's fixed counters of reference cycles, which pass as the TSC does, and of core cycles;
/// then the last general-purpose ones, which events need least, and of these at first those that can count cycles.
fn candidates(has: &Capabilities) -> impl Iterator<Item = Counter> {
    let fixed = [2, 1].map(Counter::Fixed).into_iter().filter(|&counter| has.has(counter));
    let parts = [has.general & has.cycles, has.general & !has.cycles];
    let generals = parts
        .into_iter()
        .flat_map(|part| (0..32).rev().filter(move |n| part & 1 << n != 0).map(Counter::General));
    fixed.chain(generals)
}

impl Watchdog {
    /// Takes a free counter, which then is no part of the driver's gate. `None`: every counter is programmed, or none
    /// can be set as far back. `limit`: of one run, in ticks of the TSC. As many unhalted cycles are counted, and then the TSC decides.
    pub fn program(driver: &mut Driver, registers: &mut dyn Registers, limit: u64) -> Option<Self> {
        let has = driver.capabilities().clone();
        let free = candidates(&has).filter(|counter| driver.programmed() & counter.bit() == 0);
        for counter in free.collect::<alloc::vec::Vec<_>>() {
            match Self::on(driver, registers, counter, limit) {
                Ok(dog) => return Some(dog),
                // What was tried must not count together with the events.
                Err(_) => drop(driver.release(registers, counter)),
            }
        }
        None
    }

    fn on(
        driver: &mut Driver,
        registers: &mut dyn Registers,
        counter: Counter,
        limit: u64,
    ) -> Result<Self, PmuError> {
        let has = driver.capabilities().clone();
        let selection = match counter {
            Counter::Fixed(_) => Selection::of(0, 0).with_interrupt(),
            Counter::General(counter) => cycles(&has, counter),
        };
        driver.program(registers, counter, &selection)?;
        let layout = *driver.layout();
        let longest = match layout.global {
            _ if layout.extends_sign(counter) => 1 << 31,
            None => has.mask(counter) / 2,
            Some(_) => has.mask(counter),
        };
        let stretches = limit.max(1).div_ceil(longest);
        let preset = driver.preset(counter, (limit / stretches).max(1))?;
        let near = driver.preset(counter, NEAR)?;
        let again = driver.preset(counter, (limit / stretches / AGAIN).max(1))?;
        let status = layout.global.map(|global| [global.status, global.clear]);
        let mask = if status.is_some() { counter.bit() } else { (has.mask(counter) >> 1) + 1 };
        let [on, off] = driver.free_run(counter)?;
        let register = layout.counter(counter);
        Ok(Self { counter, register, preset, near, again, limit, stretches, status, mask, on, off })
    }

    /// The counter.
    #[must_use]
    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// The writes that start and stop it, and its limit in cycles.
    #[cfg(test)]
    pub(crate) fn parts(&self, mask: u64) -> ([Write; 2], u64) {
        ([self.on, self.off], self.stretches * (self.preset.wrapping_neg() & mask))
    }

    /// Runs `code`, which may take as long as the limit; then what runs is the foreign code of a call, and its end is
    /// the exit with [`call::Cause::TimeLimit`].
    ///
    /// # Safety
    /// The counter must still be programmed as by [`Watchdog::program`], the interrupt table loaded, the APIC on.
    pub unsafe fn watch<R>(&self, code: impl FnOnce() -> R) -> R {
        // SAFETY: the caller's promise.
        handling(|| unsafe { self.watch_here(code) })
    }

    /// The same on one of several processors that run within [`handling`].
    ///
    /// # Safety
    /// As for [`Watchdog::watch`], on the processor whose counter it is.
    pub unsafe fn watch_here<R>(&self, code: impl FnOnce() -> R) -> R {
        // SAFETY: the registers took such values when the counter was programmed.
        unsafe { self.start() };
        let result = code();
        // SAFETY: as above.
        unsafe { self.stop() };
        result
    }

    unsafe fn start(&self) {
        let (relaxed, armed) = (Ordering::Relaxed, &smp::this().armed);
        armed.register.store(self.register.0, relaxed);
        armed.preset.store(self.preset, relaxed);
        armed.left.store(self.stretches - 1, relaxed);
        armed.again.store(self.again, relaxed);
        armed.tries.store(TRIES, relaxed);
        armed.deadline.store(tsc::now().saturating_add(self.limit), relaxed);
        let [status, clear] = self.status.unwrap_or([Msr(0); 2]);
        armed.status.store(status.0, relaxed);
        armed.clear.store(clear.0, relaxed);
        armed.mask.store(self.mask, relaxed);
        armed.off_register.store(self.off.msr, relaxed);
        armed.off_value.store(self.off.value, relaxed);
        apic::write(Register::LvtPmc, MODE_NMI);
        // SAFETY: the caller's promise.
        unsafe {
            msr::write(self.register, self.preset);
            msr::write(Msr(self.on.msr), self.on.value);
        }
    }

    unsafe fn stop(&self) {
        // SAFETY: the caller's promise. A snippet may have written the registers, but not removed them.
        unsafe {
            let _ = msr::try_write(Msr(self.off.msr), self.off.value);
            if let Some([_, clear]) = self.status {
                let _ = msr::try_write(clear, self.mask);
            }
        }
        apic::write(Register::LvtPmc, LVT_MASK);
    }

    /// Whether NMIs of this counter arrive at all: lets it overflow.
    ///
    /// # Safety
    /// As for [`Watchdog::watch`].
    #[must_use]
    pub unsafe fn works(&self) -> bool {
        /// How long the overflow is waited for: far more cycles, even for a hypervisor.
        const ROUNDS: u32 = 100_000;
        let armed = &smp::this().armed;
        let before = armed.seen.load(Ordering::Relaxed);
        // SAFETY: the caller's promise; nothing foreign runs, so the handler only counts.
        unsafe {
            Self { preset: self.near, stretches: 1, limit: 0, ..*self }.watch(|| {
                (0..ROUNDS).any(|_| {
                    core::hint::spin_loop();
                    armed.seen.load(Ordering::Relaxed) != before
                })
            })
        }
    }
}

/// Runs `work`, in which processors watch their calls: the handler of NMIs is one for all of them.
pub fn handling<R>(work: impl FnOnce() -> R) -> R {
    interrupts::set_handler(exception::NMI.0, Some(on_nmi));
    let result = work();
    interrupts::set_handler(exception::NMI.0, second::at_rest());
    result
}

fn on_nmi(frame: &mut TrapFrame) {
    let (relaxed, armed) = (Ordering::Relaxed, &Processor::of_frame(frame).armed);
    if second::takes(frame) {
        return;
    }
    if armed.register.load(relaxed) == 0 {
        // No counter has ever watched.
        interrupts::unexpected(frame);
        return;
    }
    let (status, mask) = (Msr(armed.status.load(relaxed)), armed.mask.load(relaxed));
    let counter = Msr(armed.register.load(relaxed));
    // SAFETY: the registers that `start` used.
    let overflowed = unsafe {
        match status.0 {
            0 => msr::read(counter) & mask == 0,
            _ => msr::read(status) & mask != 0,
        }
    };
    if !overflowed {
        // INT 2, or somebody else's.
        interrupts::unexpected(frame);
        return;
    }
    armed.seen.fetch_add(1, relaxed);
    let left = armed.left.load(relaxed);
    let next = next(left, tsc::now(), armed);
    // SAFETY: as above, with values that they took.
    unsafe {
        if let Some((left, preset)) = next {
            armed.left.store(left, relaxed);
            msr::write(counter, preset);
        } else {
            msr::write(Msr(armed.off_register.load(relaxed)), armed.off_value.load(relaxed));
        }
        if status.0 != 0 {
            msr::write(Msr(armed.clear.load(relaxed)), mask);
        }
    }
    // Intel's APIC has masked the entry at delivery (SDM vol. 3, 10.5.4).
    apic::write(Register::LvtPmc, MODE_NMI);
    if next.is_none() && call::runs(frame) {
        call::end(frame, call::Cause::TimeLimit);
    }
}

/// What follows the overflow that came at `now`: how many stretches are left then, and where the counter starts from. `None`: the
/// time is over.
fn next(left: u64, now: u64, armed: &Armed) -> Option<(u64, u64)> {
    let relaxed = Ordering::Relaxed;
    let is_early = now < armed.deadline.load(relaxed);
    if !is_early {
        return None;
    }
    if left > 0 {
        return Some((left - 1, armed.preset.load(relaxed)));
    }
    let tries = armed.tries.load(relaxed).checked_sub(1)?;
    armed.tries.store(tries, relaxed);
    Some((0, armed.again.load(relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed() -> Armed {
        Armed {
            preset: AtomicU64::new(100),
            again: AtomicU64::new(12),
            tries: AtomicU64::new(TRIES),
            deadline: AtomicU64::new(5_000),
            ..Armed::idle()
        }
    }

    /// The counter counts core cycles, which at turbo are more than the TSC's ticks.
    #[test]
    fn the_time_is_over_when_the_tsc_says_so() {
        let armed = armed();
        assert_eq!(next(2, 1_000, &armed), Some((1, 100)));
        assert_eq!(next(0, 4_999, &armed), Some((0, 12)));
        assert_eq!(next(0, 5_000, &armed), None);
        assert_eq!(next(3, 5_000, &armed), None, "a slow clock");
    }

    #[test]
    fn code_that_sets_the_tsc_back_ends_all_the_same() {
        let armed = armed();
        let more = (0..1_000).take_while(|_| next(0, 0, &armed).is_some()).count();
        assert_eq!(more as u64, TRIES);
    }
}
