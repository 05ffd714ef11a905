//! The end of a run: what the job wants to happen then.

use super::output::Line;
use super::probe::Machine;
use super::saved;
use alloc::format;
use alloc::string::ToString;
use arch::power;
use core::sync::atomic::{AtomicU32, Ordering};
use kernel::report::Report;
use protocol::job::{Job, OnEnd};
use protocol::record::{End, Outcome};
use spin::Mutex;

/// Added to the exit code, so that no outcome looks like an exit of QEMU itself.
const EXIT_BASE: u32 = 0x10;
/// No exit device.
const NO_PORT: u32 = u32::MAX;

static EXIT_PORT: AtomicU32 = AtomicU32::new(NO_PORT);
/// In a lock that is held for a moment only, so that a crash can take it.
static ON_END: Mutex<OnEnd> = Mutex::new(OnEnd::Halt);

/// How the run is to end.
pub struct Terms {
    exit_port: Option<u16>,
    on_end: OnEnd,
}

impl Terms {
    /// Those of a job; without one, the machine halts.
    pub fn of(job: Option<&Job>) -> Self {
        let on_end = job.map_or_else(OnEnd::default, |job| job.on_end);
        Self { exit_port: job.and_then(|job| job.exit_port), on_end }
    }
}

/// Notes the terms, also for a crash.
pub fn agree(terms: Terms) {
    EXIT_PORT.store(terms.exit_port.map_or(NO_PORT, u32::from), Ordering::Relaxed);
    *ON_END.lock() = terms.on_end;
}

/// What the job wants the machine to do then, for a crash.
pub fn on_end() -> OnEnd {
    ON_END.try_lock().map_or_else(OnEnd::default, |on_end| *on_end)
}

/// Ends QEMU, if the job named an exit device.
pub fn exit_qemu(outcome: Outcome) {
    let Ok(port) = u16::try_from(EXIT_PORT.load(Ordering::Relaxed)) else {
        return;
    };
    // SAFETY: the host tool put the port into the job because it attached the device there.
    unsafe { power::debug_exit(port, EXIT_BASE + u32::from(outcome.exit_code())) };
}

/// The machine could not be switched off: the screen says so, and has the end that it has where a job does not want that.
fn stays_on(error: &str, end: &End, report: &mut Report<Line>, machine: &Machine) {
    if let Some(display) = &machine.display {
        let mut display = display.lock();
        let mut ways = report.sink_mut().ways();
        ways.working.insert(0, format!("not switched off: {error}"));
        display.finish(end, ways);
        display.page_for_ever(machine.clock.hz);
    }
}

/// Writes the end record and ends the run as the job wants it.
pub fn finish(end: End, report: &mut Report<Line>, machine: &Machine) -> ! {
    let (outcome, on_end, platform) = (end.outcome, end.on_end, &machine.platform);
    report.end(end.clone());
    report.sink_mut().drain();
    super::crash::disarm();
    exit_qemu(outcome);
    if saved::finish(on_end) {
        // SAFETY: the report is out and kept, and nothing else runs.
        unsafe { power::reset(machine.platform.reset) }
    }
    if let (Some(display), OnEnd::Halt) = (&machine.display, on_end) {
        let mut display = display.lock();
        display.finish(&end, report.sink_mut().ways());
        display.page_for_ever(machine.clock.hz);
    }
    // SAFETY: the report is out, and nothing else runs.
    unsafe {
        match on_end {
            OnEnd::Halt => {}
            OnEnd::Reboot => power::reset(platform.reset),
            OnEnd::PowerOff => {
                if let Err(error) = platform.power_off() {
                    stays_on(&error.to_string(), &end, report, machine);
                }
            }
        }
    }
    power::stop()
}
