//! How late the local APIC's timer comes.

use crate::firmware::cores::patience::Patience;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::apic::{self, Timer};
use arch::interrupts;
use arch::time::{Clock, tsc};
use arch::trap::TrapFrame;
use core::sync::atomic::{AtomicU64, Ordering};
use facts::gaps::buckets;
use protocol::record::{TimerJitter, Times};
use x86_64::instructions::interrupts::{disable, enable};

/// The timer's interrupt.
const VECTOR: u8 = 0xe5;
/// TSC when it came; 0: not yet.
static CAME: AtomicU64 = AtomicU64::new(0);
/// Microseconds that the timer is set to.
const PERIOD_US: u64 = 50;

fn on_timer(_: &mut TrapFrame) {
    CAME.store(tsc::now(), Ordering::Release);
    apic::end_of_interrupt();
}

/// Lets it come so often.
///
/// # Errors
/// It does not count, or does not come.
pub fn measure(clock: &Clock, timer_hz: u64, runs: usize) -> Result<TimerJitter, String> {
    let period = clock.ticks_of_us(PERIOD_US);
    interrupts::set_handler(VECTOR, Some(on_timer));
    // SAFETY: ring 0, APIC on, the handler is set; between two items nobody uses the timer.
    let timer = unsafe { Timer::new(clock, timer_hz, VECTOR) };
    let mut timer = timer.ok_or_else(|| "the local APIC's timer does not count".to_string())?;
    let patience = Patience::new(clock.hz, true);
    let mut late = Vec::with_capacity(runs);
    for _ in 0..runs {
        CAME.store(0, Ordering::Release);
        let due = tsc::now() + period;
        timer.once(period);
        enable();
        let came = patience.wait(|| CAME.load(Ordering::Acquire) != 0);
        disable();
        if !came {
            break;
        }
        late.push(CAME.load(Ordering::Acquire).saturating_sub(due));
    }
    timer.stop();
    // One that is on its way comes now, while its handler is set.
    enable();
    x86_64::instructions::nop();
    disable();
    if late.len() < runs {
        return Err(
            "an interrupt of the local APIC's timer did not come within a second".to_string()
        );
    }
    let buckets = buckets(&late);
    Ok(TimerJitter { period, late: Times::of(&mut late), buckets })
}
