//! The local APIC's timer: its rate, and its interrupt.
//!
//! Times are TSC ticks. Where the processor compares the TSC itself (TSC-deadline mode) and the TSC is steady, an
//! interval is exact to the tick and periods do not drift; else the timer counts down at a rate of its own, which
//! [`timer_hz`] measured.

use super::{Apic, LVT_MASK, Register, write};
use crate::cpu::native;
use crate::msr::{self, Msr};
use crate::time::{Clock, tsc};
use core::arch::asm;
use raw_cpuid::CpuIdReader as _;

/// Divide configuration 0b1011: divide by 1 (SDM vol. 3, figure 10-10).
const DIVIDE_BY_1: u32 = 0b1011;
/// How long the timer is watched.
const WATCH_US: u64 = 100;

/// Measures the timer against the TSC, with the timer's interrupt masked. In Hz before the divider; 0 if
/// it does not count.
pub fn timer_hz(apic: &mut Apic, clock: &Clock) -> u64 {
    let registers = &mut apic.registers;
    registers.write(Register::LvtTimer, LVT_MASK);
    registers.write(Register::TimerDivide, DIVIDE_BY_1);
    registers.write(Register::TimerInitialCount, u32::MAX);
    let (start, first) = (tsc::now(), registers.read(Register::TimerCurrentCount));
    tsc::wait(clock.ticks_of_us(WATCH_US));
    let (end, last) = (tsc::now(), registers.read(Register::TimerCurrentCount));
    registers.write(Register::TimerInitialCount, 0);
    let (counted, ticks) = (u128::from(first - last), u128::from(end - start));
    (counted * u128::from(clock.hz) / ticks) as u64
}

/// IA32_TSC_DEADLINE.
const TSC_DEADLINE: Msr = Msr(0x6e0);
/// LVT timer modes, bits 18:17 (SDM vol. 3, 10.5.4); 0 counts down once.
const PERIODIC: u32 = 0b01 << 17;
const DEADLINE: u32 = 0b10 << 17;

/// What makes the interrupts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// The countdown.
    Countdown(Scale),
    /// The TSC.
    Deadline,
}

/// The timer of the processor that this runs on, with an interrupt.
#[derive(Debug)]
pub struct Timer {
    kind: Kind,
    vector: u8,
    /// TSC-deadline mode has no periods of its own: the next deadline and what to add to it.
    period: Option<(u64, u64)>,
}

impl Timer {
    /// The timer, stopped, with `vector` for its interrupts. `hz` as returned by [`timer_hz`]. `None` if it does not
    /// count.
    ///
    /// # Safety
    /// Ring 0, APIC on, interrupt table loaded with a handler of the vector; nobody else may use the timer.
    #[must_use]
    pub unsafe fn new(clock: &Clock, hz: u64, vector: u8) -> Option<Self> {
        // SAFETY: the caller's promise.
        let deadline = clock.invariant && unsafe { has_deadline() };
        if hz == 0 && !deadline {
            return None;
        }
        let countdown = || Kind::Countdown(Scale::new(hz, clock.hz));
        let kind = if deadline { Kind::Deadline } else { countdown() };
        let mut timer = Self { kind, vector, period: None };
        timer.stop();
        Some(timer)
    }

    /// One interrupt, `ticks` from now; earlier if the timer cannot count so far.
    pub fn once(&mut self, ticks: u64) {
        self.period = None;
        match self.kind {
            Kind::Deadline => self.deadline(tsc::now().wrapping_add(ticks)),
            Kind::Countdown(scale) => self.countdown(0, ticks, scale),
        }
    }

    /// An interrupt every `ticks`, the first one so far from now.
    pub fn every(&mut self, ticks: u64) {
        match self.kind {
            Kind::Deadline => {
                let first = tsc::now().wrapping_add(ticks);
                self.period = Some((first, ticks));
                self.deadline(first);
            }
            Kind::Countdown(scale) => self.countdown(PERIODIC, ticks, scale),
        }
    }

    /// To be called at each interrupt of [`Timer::every`].
    #[inline]
    pub fn ticked(&mut self) {
        if let Some((last, ticks)) = self.period {
            self.deadline_after(last, ticks);
        }
    }

    #[inline(never)]
    fn deadline_after(&mut self, last: u64, ticks: u64) {
        let next = following(last, ticks, tsc::now());
        self.period = Some((next, ticks));
        self.deadline(next);
    }

    /// No interrupt any more. One that was raised already may still come.
    pub fn stop(&mut self) {
        self.period = None;
        write(Register::LvtTimer, LVT_MASK);
        write(Register::TimerInitialCount, 0);
        // As it was before a long time was requested.
        if let Kind::Countdown(_) = self.kind {
            write(Register::TimerDivide, DIVIDE_BY_1);
        }
    }

    fn deadline(&self, at: u64) {
        write(Register::LvtTimer, DEADLINE | u32::from(self.vector));
        // SAFETY: CPUID says that the register exists. In xAPIC mode the write above is a store, which must be
        // complete before this one (SDM vol. 3, 10.5.4.1).
        unsafe {
            asm!("mfence", options(nostack, preserves_flags));
            msr::write(TSC_DEADLINE, at);
        }
    }

    fn countdown(&self, mode: u32, ticks: u64, scale: Scale) {
        let (divide, count) = scale.setting(ticks);
        write(Register::LvtTimer, mode | u32::from(self.vector));
        write(Register::TimerDivide, divide);
        write(Register::TimerInitialCount, count);
    }
}

/// Whether TSC-deadline mode is announced (leaf 1 ECX bit 24) and its register holds a deadline: emulators announce
/// more than they have.
///
/// # Safety
/// As for [`Timer::new`].
unsafe fn has_deadline() -> bool {
    if native().cpuid1(1).ecx & 1 << 24 == 0 {
        return false;
    }
    // Outside this mode the register reads 0 and ignores writes (SDM vol. 3, 10.5.4.1).
    write(Register::LvtTimer, DEADLINE | LVT_MASK);
    let far = tsc::now() | 1 << 62;
    // SAFETY: the timer's interrupt is masked, and the deadline is taken back.
    unsafe {
        asm!("mfence", options(nostack, preserves_flags));
        let held =
            msr::try_write(TSC_DEADLINE, far).is_ok() && msr::try_read(TSC_DEADLINE) == Ok(far);
        let _ = msr::try_write(TSC_DEADLINE, 0);
        held
    }
}

/// The deadline after `last`. One that has passed already is left out, as each is one interrupt at most.
fn following(last: u64, ticks: u64, now: u64) -> u64 {
    let next = last.wrapping_add(ticks);
    if next > now { next } else { now.wrapping_add(ticks) }
}

/// Codes of the divide configuration from 1 to 128 (SDM vol. 3, figure 10-10).
const DIVIDES: [u32; 8] = [DIVIDE_BY_1, 0b0000, 0b0001, 0b0010, 0b0011, 0b1000, 0b1001, 0b1010];

/// Counts of the timer per TSC tick, times 2^32: each tick of the timer would be too often for a division of 128 bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Scale(u64);

impl Scale {
    fn new(hz: u64, tsc_hz: u64) -> Self {
        let scaled = (u128::from(hz) << 32) / u128::from(tsc_hz.max(1));
        Self(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Divide configuration and initial count for `ticks` of the TSC. The count is at least 1, as 0 stops the timer,
    /// and the greatest if the time is longer than the timer can count.
    fn setting(self, ticks: u64) -> (u32, u32) {
        let count = (u128::from(ticks) * u128::from(self.0)) >> 32;
        let fits = |shift: usize| u32::try_from(count >> shift).ok();
        let found = (0..DIVIDES.len()).find_map(|shift| Some((DIVIDES[shift], fits(shift)?)));
        let (divide, count) = found.unwrap_or((DIVIDES[7], u32::MAX));
        (divide, count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_becomes_the_finest_count_that_fits() {
        let setting = |ticks| Scale::new(1_000_000_000, 2_000_000_000).setting(ticks);
        assert_eq!(setting(2_000), (DIVIDE_BY_1, 1_000));
        assert_eq!(setting(1), (DIVIDE_BY_1, 1));
        // Ten seconds are 10^10 counts: a quarter of them fits.
        assert_eq!(setting(20_000_000_000), (0b0001, 2_500_000_000));
        assert_eq!(setting(2 * (1 << 32)), (0b0000, 1 << 31));
        assert_eq!(setting(u64::MAX), (0b1010, u32::MAX));
        // Rates without a simple ratio: 1 in 2^32 is lost at most, and what that rounds.
        let uneven = Scale::new(24_000_000, 3_192_000_001).setting(3_192_000_001);
        assert!(uneven.1.abs_diff(24_000_000) <= 1, "{uneven:?}");
    }

    #[test]
    fn deadlines_do_not_drift_and_are_never_in_the_past() {
        assert_eq!(following(1_000, 100, 1_030), 1_100);
        assert_eq!(following(1_000, 100, 1_100), 1_200);
        assert_eq!(following(1_000, 100, 5_000), 5_100);
    }
}
