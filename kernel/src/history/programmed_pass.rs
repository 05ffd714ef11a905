//! Single runs that end at a number of the clock's events.

use super::Historian;
use super::plan::{CLOCK_NUMBER, WITNESS_NUMBER, place};
use crate::snippet::events::Counted;
use crate::snippet::measure::{METRICS_OVERFLOWED, Unmeasured};
use crate::snippet::repeat_on_smi::repeat_on_smi;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::registers::Slots;
use arch::pmu::stop_on_overflow::{Stop, StopOnOverflow};
use arch::pmu::{Driver, PmuError, Registers};
use protocol::job::Snippet;
use protocol::record::Within;

/// The clock does not get so far: what runs repeat_on_smi takes fewer events. Every counter can be set back by this.
pub(super) const NEVER: u64 = 1 << 30;

/// What was counted in one run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// By event of the pass; the clock's from where it was set.
    pub counts: Vec<u64>,
    /// The clock stopped the counters; else the code ended before.
    pub stopped: bool,
    /// Where the clock's interrupt came.
    pub at: u64,
}

/// A pass, programmed.
pub(super) struct ProgrammedPass<'a, M: Historian> {
    pub machine: &'a mut M,
    snippet: &'a Snippet<'a>,
    pass: &'a [Counted],
    on_overflow: StopOnOverflow,
    /// Places in the pass.
    pub clock: usize,
    pub witness: usize,
    /// Instructions that the witness counts after the body, and of the clock's handler.
    pub closing: u64,
    pub handling: u64,
}

fn refused(error: impl ToString) -> Unmeasured {
    Unmeasured::Refused(error.to_string())
}

impl<'a, M: Historian> ProgrammedPass<'a, M> {
    /// Programs the pass.
    ///
    /// # Errors
    /// Which event the PMU refuses, and why.
    pub(super) fn new(
        machine: &'a mut M,
        snippet: &'a Snippet<'a>,
        pass: &'a [Counted],
        stop: Stop,
    ) -> Result<Self, Unmeasured> {
        // Nothing that an ordinary run left: neither watchdog nor counters.
        machine.program(&[]).map_err(|(_, reason)| Unmeasured::Refused(reason))?;
        let find = |number| place(pass, number).expect("it is in every pass");
        let (clock, witness) = (find(CLOCK_NUMBER), find(WITNESS_NUMBER));
        let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
        let (registers, driver) = (pmu.registers, pmu.driver);
        driver.reset(registers).map_err(refused)?;
        for (index, one) in pass.iter().enumerate() {
            program(driver, registers, one, index == clock)
                .map_err(|error| Unmeasured::Refused(error_of(one, &error)))?;
        }
        if let Some(one) = pass.iter().find(|one| one.metric.is_some()) {
            driver.enable_metrics().map_err(|error| Unmeasured::Refused(error_of(one, &error)))?;
        }
        let on_overflow =
            StopOnOverflow::new(driver, registers, pass[clock].counter, stop).map_err(refused)?;
        let own = pass[witness].counter;
        let (closing, handling) =
            (on_overflow.closing(driver, own), on_overflow.handling(driver, own));
        machine.arm(&on_overflow);
        Ok(Self { machine, snippet, pass, on_overflow, clock, witness, closing, handling })
    }

    /// Loads so many copies of a snippet and warms them up.
    pub(super) fn load(&mut self, snippet: &Snippet, copies: u64) -> Result<(), Unmeasured> {
        self.machine.load_within(snippet, copies, self.on_overflow.gate());
        (0..self.snippet.warmup).try_for_each(|_| self.once(NEVER).map(|_| ()))
    }

    /// Tells how far the item is.
    pub(super) fn beat(&mut self, within: Within) {
        self.machine.beat(within);
    }

    /// What stops the counters.
    pub(super) fn stop(&self) -> Stop {
        self.on_overflow.stop()
    }

    /// One run that is not stopped by a system management interrupt, as far as these may be repeated.
    pub(super) fn once(&mut self, events: u64) -> Result<Run, Unmeasured> {
        let (_, repeats) = self.machine.smis();
        let repeated = repeat_on_smi(
            self,
            repeats,
            |bench| bench.machine.smis().0,
            |bench| bench.single(events),
        )?;
        Ok(repeated.result)
    }

    fn single(&mut self, events: u64) -> Result<Run, Unmeasured> {
        let (on_overflow, pass, clock) = (&mut self.on_overflow, self.pass, self.clock);
        let pmu = self.machine.pmu().map_err(Unmeasured::Refused)?;
        for one in pass {
            pmu.driver.write(pmu.registers, one.counter, 0).map_err(refused)?;
        }
        let has_fields = pass.iter().any(|one| one.metric.is_some());
        if has_fields {
            pmu.driver.clear_metrics(pmu.registers).map_err(refused)?;
        }
        on_overflow.set(pmu.driver, pmu.registers, events).map_err(refused)?;
        let before = self.machine.interrupts();
        let ended = self.machine.run_armed();
        let came = self.machine.interrupts() != before;
        let pmu = self.machine.pmu().map_err(Unmeasured::Refused)?;
        // A snippet that ended early left them counting.
        on_overflow.gate().off().iter().for_each(|one| {
            let _ = pmu.registers.wrmsr(arch::msr::Msr(one.msr), one.value);
        });
        let slots = has_fields.then(|| pmu.driver.slots(pmu.registers)).transpose();
        let mut read = |one: &Counted, slots: Option<Slots>| match (one.metric, slots) {
            (Some(field), Some(slots)) => Ok(slots.nearest(field)),
            _ => pmu.driver.read(pmu.registers, one.counter),
        };
        let counts: Result<Vec<u64>, PmuError> =
            slots.and_then(|slots| pass.iter().map(|one| read(one, slots)).collect());
        if let Err(trap) = ended {
            let fault = self.machine.explain(&trap, self.snippet);
            return Err(Unmeasured::Fault(Box::new(fault)));
        }
        let mut counts = counts.map_err(refused)?;
        if has_fields && pmu.driver.metrics_overflowed(pmu.registers).unwrap_or(true) {
            return Err(refused(METRICS_OVERFLOWED));
        }
        counts[clock] = on_overflow.counted(counts[clock]);
        let overflowed = counts[clock] >= events;
        let stopped = overflowed && (came || on_overflow.stop() == Stop::Freeze);
        Ok(Run { counts, stopped, at: self.machine.interrupted() })
    }

    /// As many runs as the job requests.
    pub(super) fn runs(&mut self, events: u64) -> Result<Vec<Run>, Unmeasured> {
        (0..self.snippet.runs).map(|_| self.once(events)).collect()
    }
}

impl<M: Historian> Drop for ProgrammedPass<'_, M> {
    fn drop(&mut self) {
        // The counters' interrupt and the freeze are not for what comes after, and nothing overflows when the interrupt is
        // given back.
        if let Ok(pmu) = self.machine.pmu() {
            let _ = pmu.driver.reset(pmu.registers);
        }
        self.machine.disarm();
    }
}

fn program(
    driver: &mut Driver,
    registers: &mut dyn Registers,
    one: &Counted,
    is_clock: bool,
) -> Result<(), PmuError> {
    one.programs().try_for_each(|(counter, selection)| {
        let selection = if is_clock { selection.with_interrupt() } else { selection };
        driver.program(registers, counter, &selection)
    })
}

fn error_of(one: &Counted, error: &PmuError) -> String {
    alloc::format!("{}: {error}", one.event)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter that is written with 32 bits takes the sign of bit 31 (SDM vol. 3, 20.2.1.1 on full-width writes).
    #[test]
    fn a_counter_of_32_bits_can_be_set_back_by_never() {
        assert_eq!(NEVER, 0x4000_0000);
    }
}
