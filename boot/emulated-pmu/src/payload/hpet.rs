//! The alarm clock: a timer of the HPET that sends a non-maskable interrupt as a message. IA-PC HPET specification
//! 1.0a, 2.3.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use handover::Refusal;

/// Where PC chipsets, QEMU's included, put it.
const BASE: u64 = 0xfed0_0000;
const CAPABILITIES: u64 = BASE;
const CONFIGURATION: u64 = BASE + 0x10;
pub const COUNTER: u64 = BASE + 0xf0;
/// The first processor's timer: the last of the three that QEMU has without being asked, since the first two may replace
/// the PC's old timers. The other processors have those after it.
const FIRST_TIMER: u64 = 2;
/// From one timer's registers to the next one's.
const TIMER_BYTES: u64 = 0x20;
/// Address of this processor's comparator; the configuration stands before it, the message after.
pub static COMPARATOR: AtomicU64 = AtomicU64::new(BASE + 0x108 + TIMER_BYTES * FIRST_TIMER);

const ENABLE: u64 = 1;
const TIMER_ENABLE: u64 = 1 << 2;
const TIMER_MESSAGES: u64 = 1 << 14;
const TIMER_CAN_MESSAGE: u64 = 1 << 15;
const TIMER_64_BIT: u64 = 1 << 5;
/// Message address of the local APIC with id 0, physical destination; the id is in bits 19:12 (SDM vol. 3, 10.11.1).
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;
const MESSAGE_ID_SHIFT: u32 = 12;
/// Delivery mode NMI, edge.
const MESSAGE_DATA: u64 = 0x400;
const FEMTOSECONDS_PER_NANOSECOND: u64 = 1_000_000;

fn read(register: u64) -> u64 {
    // SAFETY: the HPET's registers, identity mapped; `find` made sure that they are there.
    unsafe { (register as *const u64).read_volatile() }
}

fn comparator() -> u64 {
    COMPARATOR.load(Ordering::Relaxed)
}

fn write(register: u64, value: u64) {
    // SAFETY: as above; the timer is ours.
    unsafe { (register as *mut u64).write_volatile(value) };
}

/// Ticks after which nobody waits any more: hours.
const NEVER: u64 = 1 << 42;

/// Nanoseconds of a tick.
pub static TICK: AtomicU64 = AtomicU64::new(1);
/// The TSC, in nanoseconds, when the counter would have been 0. Both follow QEMU's virtual clock; it is read from
/// samples, and what the reading itself takes is left to the calibration.
pub static ORIGIN: AtomicU64 = AtomicU64::new(0);
/// Samples: their distance in instructions has no divisor in common with the tick at shift 0, so each phase occurs.
const SAMPLES: usize = 64;

/// The timer.
pub struct Alarm {
    armed: bool,
}

/// The TSC, and the counter an instruction or two later.
fn sample() -> (u64, u64) {
    let (low, high, counter): (u64, u64, u64);
    // SAFETY: reads the TSC and the HPET.
    unsafe {
        asm!("rdtsc", "mov {counter}, [{address}]", address = in(reg) COUNTER, counter = out(reg) counter,
            out("rax") low, out("rdx") high, options(nostack));
    }
    (high << 32 | low, counter)
}

impl Alarm {
    /// Finds the HPET and sets the timer of processor number `processor` up, not ringing, whose local APIC has this id.
    pub fn find(processor: u64, apic_id: u64) -> Result<Self, Refusal> {
        let timer = FIRST_TIMER + processor;
        let capabilities = read(CAPABILITIES);
        let period_fs = capabilities >> 32;
        let timers = (capabilities >> 8 & 0x1f) + 1;
        // Reads of nothing give all ones or zeros; the specification allows 10^5 to 10^8 femtoseconds.
        if !(100_000..=100_000_000).contains(&period_fs) {
            return Err(Refusal::NoHpet);
        }
        if timers <= timer {
            return Err(Refusal::NoTimer);
        }
        COMPARATOR.fetch_add(TIMER_BYTES * processor, Ordering::Relaxed);
        let (configuration, message) = (comparator() - 8, comparator() + 8);
        if read(configuration) & TIMER_CAN_MESSAGE == 0 {
            return Err(Refusal::NoHpetMsi);
        }
        let mut alarm = Self { armed: false };
        write(CONFIGURATION, read(CONFIGURATION) | ENABLE);
        alarm.silence();
        let address = MESSAGE_ADDRESS | apic_id << MESSAGE_ID_SHIFT;
        write(message, address << 32 | MESSAGE_DATA);
        write(configuration, TIMER_MESSAGES | TIMER_64_BIT | TIMER_ENABLE);
        let tick = period_fs / FEMTOSECONDS_PER_NANOSECOND;
        TICK.store(tick, Ordering::Relaxed);
        let origin =
            (0..SAMPLES).map(|_| sample()).map(|(tsc, counter)| tsc.wrapping_sub(counter * tick));
        ORIGIN.store(origin.min().unwrap_or(0), Ordering::Relaxed);
        Ok(alarm)
    }

    /// What [`super::switch::enter`] needs to set the clock, which then is armed. `None` if there is not a tick to wait.
    pub fn nanoseconds(&mut self, nanoseconds: u64) -> Option<u64> {
        let worth_it = nanoseconds > 2 * TICK.load(Ordering::Relaxed);
        self.armed |= worth_it;
        worth_it.then(|| nanoseconds.min(NEVER))
    }

    /// Rings no more.
    pub fn silence(&mut self) {
        write(comparator(), read(COUNTER) + NEVER);
        self.armed = false;
    }

    /// Whether the clock is set.
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    /// Rings no more. Returns whether it has rung, and so whether an interrupt of its own is on its way or has come.
    pub fn stop(&mut self) -> bool {
        let due = read(comparator());
        self.silence();
        read(COUNTER) >= due
    }
}
