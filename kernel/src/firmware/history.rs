//! The real machine as one whose counters are stopped by one of them.

use super::target::Target;
use alloc::boxed::Box;
use arch::call::Trap;
use arch::pmu::Gate;
use arch::pmu::stop_on_overflow::{self, StopOnOverflow};
use kernel::history::Historian;
use kernel::snippet::Phase;
use protocol::job::Snippet;

impl Historian for Target<'_> {
    fn load_within(&mut self, snippet: &Snippet, copies: u64, gate: &Gate) {
        self.emit(Phase::Measured, snippet, copies, gate);
    }

    fn arm(&mut self, on_overflow: &StopOnOverflow) {
        // SAFETY: ring 0, interrupt table loaded; neither a watchdog nor a sampler runs beside a history.
        unsafe { stop_on_overflow::install(on_overflow) };
    }

    fn run_armed(&mut self) -> Result<(), Box<Trap>> {
        let function = self.made_ready();
        stop_on_overflow::allow();
        // SAFETY: emitted with its exit, its code mapped executable, interrupts off; ring 0 is what was asked for.
        unsafe { function.run() }
    }

    fn interrupts(&self) -> u64 {
        stop_on_overflow::taken()
    }

    fn interrupted(&self) -> u64 {
        stop_on_overflow::interrupted()
    }

    fn disarm(&mut self) {
        // SAFETY: the gate is closed after every run, and `run_armed` returns after it or after a fault, after which
        // the counters are stopped.
        unsafe { stop_on_overflow::uninstall() };
    }

    fn smis(&self) -> (u64, u32) {
        (self.asked.controls.smi_count(), self.asked.controls.smi_repeats())
    }
}
