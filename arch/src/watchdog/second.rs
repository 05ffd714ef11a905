//! Another processor that watches: it ends what no counter does, code that halts with interrupts off or stops the counters.
//!
//! Its APIC's timer wakes it several times within the limit, and it is halted in between, so that it takes nothing from the code.
//! When the time is up, it sends an NMI to the boot processor.

use super::on_nmi;
use crate::apic::{self, Timer};
use crate::call;
use crate::interrupts;
use crate::smp;
use crate::time::{Clock, tsc};
use crate::trap::{TrapFrame, exception};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spin::Mutex;

/// Vector of the timer's interrupts there.
const VECTOR: u8 = 0xe3;
/// Looks within the limit.
const LOOKS: u64 = 4;
/// How long an NMI is waited for that another processor sends: far longer than any takes.
const PATIENCE_US: u64 = 20_000;

/// There is a guard, so that NMIs have a handler at any time.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The TSC of the boot processor at which time is up; 0: nothing is watched.
static DEADLINE: AtomicU64 = AtomicU64::new(0);
/// An NMI was sent and has not been taken.
static SENT: AtomicBool = AtomicBool::new(false);
/// NMIs that were taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);
/// What the guard's TSC shows more than the boot processor's, as a two's complement.
static AHEAD: AtomicU64 = AtomicU64::new(0);
/// The guard's timer: its own handler and what the boot processor has it do use it.
static TIMER: Mutex<Option<Timer>> = Mutex::new(None);

/// A processor that watches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Guard {
    index: usize,
    clock: Clock,
    apic_timer_hz: u64,
}

impl Guard {
    /// The last processor, if it is another one and its NMIs arrive.
    ///
    /// # Safety
    /// The boot processor, ring 0, interrupt tables loaded, APICs on; nobody else uses that processor's timer.
    #[must_use]
    pub unsafe fn find(clock: &Clock, apic_timer_hz: u64) -> Option<Self> {
        let (place, processor) =
            smp::in_use().enumerate().last().filter(|(place, _)| *place > 0)?;
        let ahead = smp::offsets().ok()?.get(place)?.ticks;
        AHEAD.store(ahead as u64, Ordering::Relaxed);
        interrupts::set_handler(exception::NMI.0, Some(on_nmi));
        let guard = Self { index: processor.index(), clock: *clock, apic_timer_hz };
        let before = TAKEN.load(Ordering::Relaxed);
        let sent = smp::run_on(guard.index, send);
        let limit = tsc::now() + clock.ticks_of_us(PATIENCE_US);
        while TAKEN.load(Ordering::Relaxed) == before && tsc::now() < limit {
            core::hint::spin_loop();
        }
        let works = sent.is_ok() && TAKEN.load(Ordering::Relaxed) != before;
        IS_ON.store(works, Ordering::Relaxed);
        if !works {
            interrupts::set_handler(exception::NMI.0, None);
        }
        works.then_some(guard)
    }

    /// From now on it looks several times within `limit` ticks.
    pub fn begin(&self, limit: u64) {
        let work = || {
            interrupts::set_handler(VECTOR, Some(on_tick));
            // SAFETY: `find`'s caller promised the timer.
            let timer = unsafe { Timer::new(&self.clock, self.apic_timer_hz, VECTOR) };
            let mut held = TIMER.lock();
            *held = timer;
            if let Some(timer) = &mut *held {
                timer.every((limit / LOOKS).max(1));
            }
        };
        // It is there since `find`.
        let _ = smp::run_on(self.index, work);
    }

    /// It sleeps again.
    pub fn end(&self) {
        let work = || {
            if let Some(mut timer) = TIMER.lock().take() {
                timer.stop();
            }
        };
        let _ = smp::run_on(self.index, work);
    }

    /// Runs `code`, whose foreign part may take `limit` ticks: see [`super::Watchdog::watch`]. Between [`Guard::begin`] and
    /// [`Guard::end`].
    pub fn watch<R>(&self, limit: u64, code: impl FnOnce() -> R) -> R {
        DEADLINE.store(tsc::now().wrapping_add(limit).max(1), Ordering::Release);
        let result = code();
        DEADLINE.store(0, Ordering::Release);
        result
    }
}

/// On the guard: tells the boot processor.
fn send() {
    SENT.store(true, Ordering::Release);
    apic::send_nmi(smp::boot().apic_id());
}

fn on_tick(_: &mut TrapFrame) {
    apic::end_of_interrupt();
    // Work for this processor runs with interrupts off, so nobody holds it now.
    if let Some(mut timer) = TIMER.try_lock()
        && let Some(timer) = &mut *timer
    {
        timer.ticked();
    }
    let (deadline, now) = (DEADLINE.load(Ordering::Acquire), tsc::now());
    let now = now.wrapping_sub(AHEAD.load(Ordering::Relaxed));
    let is_up = deadline != 0 && now.wrapping_sub(deadline) as i64 >= 0;
    if is_up && DEADLINE.compare_exchange(deadline, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    {
        send();
    }
}

/// Whether the NMI is the guard's; then it is done, and foreign code that still runs ends.
pub(super) fn takes(frame: &mut TrapFrame) -> bool {
    if !SENT.swap(false, Ordering::AcqRel) {
        return false;
    }
    TAKEN.fetch_add(1, Ordering::Relaxed);
    if call::runs(frame) {
        call::end(frame, call::Cause::TimeLimit);
    }
    true
}

/// What handles NMIs while no counter watches.
pub(super) fn at_rest() -> Option<interrupts::Handler> {
    IS_ON.load(Ordering::Relaxed).then_some(on_nmi)
}
