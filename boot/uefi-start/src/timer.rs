//! The firmware's timer below the hypervisor. Its handler executes CPUID some six times, and each is an exit: with an interrupt each
//! 10 ms of a clock that counts instructions they are most of what a boot has.
//!
//! So at least 2^22 instructions come between two interrupts. By the host's time that is still some ten milliseconds.

use core::arch::asm;
use core::arch::x86_64::{_mm_lfence, _rdtsc};
use uefi::Status;
use uefi::boot::{self, ScopedProtocol};
use uefi::proto::unsafe_protocol;

/// Instructions between two interrupts, at least.
const INSTRUCTIONS: u64 = 1 << 22;
/// Instructions of a loop that says what one takes.
const LOOP: u64 = 1 << 12;
/// Ticks of the TSC in 100 ns: it is the machine's clock (1 GHz).
const TICKS: u64 = 100;
/// No machine here takes longer for an instruction: QEMU's largest shift is 10.
const MOST_TICKS: u64 = 1 << 10;

/// EFI_TIMER_ARCH_PROTOCOL (UEFI Platform Initialization Specification 1.8, vol. 2, 12.10).
#[repr(C)]
#[unsafe_protocol("26baccb3-6f42-11d4-bce7-0080c73c8881")]
struct Timer {
    register_handler: usize,
    set_period: unsafe extern "efiapi" fn(this: *mut Self, period: u64) -> Status,
    get_period: unsafe extern "efiapi" fn(this: *mut Self, period: *mut u64) -> Status,
    generate_soft_interrupt: usize,
}

/// The period as it was; dropped, it is that again.
#[derive(Debug)]
#[must_use]
pub struct Slowed(u64);

/// After what time the firmware's timer interrupts, in units of 100 ns; 0: it is off. `None`: the firmware does not say.
#[must_use]
pub fn period() -> Option<u64> {
    timer()?.period()
}

/// Makes the firmware's interrupts rarer, where it has the protocol and they are too frequent.
pub fn slow() -> Option<Slowed> {
    let mut timer = timer()?;
    let period = timer.period()?;
    let wanted = INSTRUCTIONS * ticks_of_an_instruction() / TICKS;
    (period > 0 && period < wanted && timer.set(wanted)).then_some(Slowed(period))
}

impl Drop for Slowed {
    fn drop(&mut self) {
        // Whether it takes it back: it did before.
        let _ = timer().is_some_and(|mut timer| timer.set(self.0));
    }
}

fn timer() -> Option<ScopedProtocol<Timer>> {
    let handle = boot::get_handle_for_protocol::<Timer>().ok()?;
    boot::open_protocol_exclusive::<Timer>(handle).ok()
}

impl Timer {
    /// In units of 100 ns; 0: it is off.
    fn period(&mut self) -> Option<u64> {
        let mut period = 0;
        // SAFETY: the firmware's function, with its own protocol and a place for the result.
        let status = unsafe { (self.get_period)(self, &mut period) };
        status.is_success().then_some(period)
    }

    /// Sets it. A timer that cannot count so far takes the longest that it can.
    fn set(&mut self, period: u64) -> bool {
        // SAFETY: the firmware's function, with its own protocol.
        unsafe { (self.set_period)(self, period) }.is_success()
    }
}

/// The least of a few measurements: an interrupt may come.
fn ticks_of_an_instruction() -> u64 {
    let once = || {
        // SAFETY: all processors in 64-bit mode have both.
        let now = || unsafe {
            _mm_lfence();
            _rdtsc()
        };
        let start = now();
        // SAFETY: two instructions, so many times; registers alone change.
        unsafe {
            asm!("2: dec {0}", "jnz 2b", inout(reg) LOOP / 2 => _, options(nomem, nostack));
        }
        now().wrapping_sub(start) / LOOP
    };
    (0..3).map(|_| once()).min().unwrap_or(0).clamp(1, MOST_TICKS)
}
