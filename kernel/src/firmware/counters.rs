//! One processor's counters, as a measurement uses them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::{self, Capabilities, Counter, Driver, Gate};
use arch::watchdog::Watchdog;
use kernel::snippet::events::{Counted, metrics_apart};

/// The counters of a pass. All methods that touch registers have to run on the processor whose they are.
pub struct Counters {
    /// The PMU's registers.
    pub registers: pmu::Machine,
    /// What programs them; `None`: there is no PMU.
    pub driver: Option<Driver>,
    /// The counters in use.
    pub counters: Vec<Counter>,
    counts: Vec<u64>,
    /// The fields of PERF_METRICS that are meant instead of the counter itself, one for each of `counters`.
    metrics: Vec<Option<u8>>,
    /// What starts and stops them.
    pub gate: Gate,
    /// The counter that ends runs, if one is free.
    pub watchdog: Option<Watchdog>,
}

impl Counters {
    /// None in use.
    ///
    /// # Safety
    /// As for [`pmu::Machine::new`], on the processor that will use them.
    pub unsafe fn new(pmu: Option<Capabilities>) -> Self {
        Self {
            // SAFETY: passed on.
            registers: unsafe { pmu::Machine::new() },
            driver: pmu.map(Driver::new),
            counters: Vec::new(),
            metrics: Vec::new(),
            counts: Vec::new(),
            gate: Gate::EMPTY,
            watchdog: None,
        }
    }

    /// What the last run counted, by event of the pass.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Programs the events of a pass and frees everything else. `limit`: ticks after which the watchdog ends a run, if a
    /// counter is left for it; `None`: there is none.
    ///
    /// # Errors
    /// Which event cannot be programmed, and why.
    pub fn program(&mut self, pass: &[Counted], limit: Option<u64>) -> Result<(), (usize, String)> {
        (self.counters, self.counts, self.gate) = (Vec::new(), Vec::new(), Gate::EMPTY);
        (self.watchdog, self.metrics) = (None, Vec::new());
        if let Some(apart) = metrics_apart(pass) {
            return Err(apart);
        }
        let idle = pass.is_empty() && limit.is_none();
        let Some(driver) = self.driver.as_mut().filter(|_| !idle) else {
            return Ok(());
        };
        driver.reset(&mut self.registers).map_err(|error| (0, error.to_string()))?;
        for (index, one) in pass.iter().enumerate() {
            for (counter, selection) in one.programs() {
                let done = driver.program(&mut self.registers, counter, &selection);
                done.map_err(|error| (index, error.to_string()))?;
            }
        }
        if let Some(index) = pass.iter().position(|one| one.metric.is_some()) {
            driver.enable_metrics().map_err(|error| (index, error.to_string()))?;
        }
        let dog = limit.map(|limit| Watchdog::program(driver, &mut self.registers, limit));
        self.watchdog = dog.flatten();
        self.gate = if pass.is_empty() { Gate::EMPTY } else { driver.gate() };
        self.counters = pass.iter().map(|one| one.counter).collect();
        self.metrics = pass.iter().map(|one| one.metric).collect();
        self.counts = alloc::vec![0; pass.len()];
        Ok(())
    }

    /// Everything to 0. The registers took their values in `prepare`, so they take these.
    pub fn clear(&mut self) {
        let Some(driver) = &self.driver else { return };
        for &counter in &self.counters {
            let _ = driver.write(&mut self.registers, counter, 0);
        }
        if self.metrics.iter().any(Option::is_some) {
            let _ = driver.clear_metrics(&mut self.registers);
        }
    }

    /// Reads the counters. A snippet that ended early left them running.
    pub fn collect(&mut self) {
        let Some(driver) = self.driver.as_ref().filter(|_| !self.counters.is_empty()) else {
            return;
        };
        let _ = driver.stop(&mut self.registers);
        let all = self.counters.iter().zip(&self.metrics);
        for (count, (&counter, &metric)) in self.counts.iter_mut().zip(all) {
            *count = read(driver, &mut self.registers, counter, metric);
        }
    }

    /// Lets the counters of the pass count.
    pub fn start(&mut self) {
        if let Some(driver) = self.driver.as_ref().filter(|_| !self.counters.is_empty()) {
            let _ = driver.start(&mut self.registers);
        }
    }

    /// Reads the counters while they count.
    pub fn peek(&mut self) -> Vec<u64> {
        let Some(driver) = &self.driver else { return Vec::new() };
        let registers = &mut self.registers;
        let all = self.counters.iter().zip(&self.metrics);
        all.map(|(&counter, &metric)| read(driver, registers, counter, metric)).collect()
    }
}

/// A counter, or the part of it that a field of PERF_METRICS is.
fn read(
    driver: &Driver,
    registers: &mut pmu::Machine,
    counter: Counter,
    metric: Option<u8>,
) -> u64 {
    let Some(field) = metric else { return driver.read(registers, counter).unwrap_or(0) };
    // The shares first: slots that come between the two readings are none of theirs.
    let Ok(shares) = driver.metrics(registers) else { return 0 };
    shares.part(driver.read(registers, counter).unwrap_or(0), field)
}
