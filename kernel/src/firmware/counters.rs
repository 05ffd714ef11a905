//! One processor's counters, as a measurement uses them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::driver::SLOTS;
use arch::pmu::registers::Slots;
use arch::pmu::{self, Capabilities, Counter, Driver, Gate};
use arch::watchdog::Watchdog;
use kernel::snippet::events::{Counted, metrics_apart};
use kernel::snippet::retired::Records;
use kernel::snippet::standing::Standing;

/// The counters of a pass. All methods that touch registers have to run on the processor whose they are.
pub struct Counters {
    /// The PMU's registers.
    pub registers: pmu::Machine,
    /// What programs them; `None`: there is no PMU.
    pub driver: Option<Driver>,
    /// The counters in use.
    pub counters: Vec<Counter>,
    counts: Vec<u64>,
    /// What they held after the last run.
    values: Vec<u64>,
    /// Where the registers stood when the current run began.
    standing: Standing,
    /// The fields of PERF_METRICS that are meant instead of the counter itself, one for each of `counters`.
    metrics: Vec<Option<u8>>,
    /// Whether PERF_METRICS overflowed in a run of the pass, so that its fields are worth nothing.
    pub metrics_overflowed: bool,
    /// What starts and stops them.
    pub gate: Gate,
    /// The records that the counters write, in a pass of retire latencies.
    pub records: Option<Records>,
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
            metrics_overflowed: false,
            counts: Vec::new(),
            values: Vec::new(),
            standing: Standing::default(),
            gate: Gate::EMPTY,
            records: None,
            watchdog: None,
        }
    }

    /// Programs a pass of retire latencies, whose counters write a record for so many events, and frees everything else. There is no
    /// watchdog: the buffer's interrupt would come to it.
    ///
    /// # Errors
    /// Which event cannot be programmed, and why.
    pub fn program_records(
        &mut self,
        pass: &[Counted],
        periods: &[u64],
    ) -> Result<(), (usize, String)> {
        self.program(&[], None)?;
        let driver = self.driver.as_mut().ok_or_else(|| (0, "there is no PMU".to_string()))?;
        driver.reset(&mut self.registers).map_err(|error| (0, error.to_string()))?;
        self.records = Some(Records::arm(&mut self.registers, driver, pass, periods)?);
        self.gate = driver.gate();
        self.counters = pass.iter().map(|one| one.counter).collect();
        self.metrics = alloc::vec![None; pass.len()];
        self.counts = alloc::vec![0; pass.len()];
        self.values = alloc::vec![0; pass.len()];
        self.standing = Standing::new(pass.len());
        Ok(())
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
        (self.watchdog, self.metrics, self.metrics_overflowed) = (None, Vec::new(), false);
        self.standing = Standing::default();
        if self.records.is_some() {
            // The processor must not have its memory any more.
            if let Some(driver) = &mut self.driver {
                driver.reset(&mut self.registers).map_err(|error| (0, error.to_string()))?;
            }
            self.records = None;
        }
        if let Some(apart) = metrics_apart(&pass.iter().collect::<Vec<_>>()) {
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
        self.values = alloc::vec![0; pass.len()];
        self.standing = Standing::new(pass.len());
        Ok(())
    }

    /// Everything to 0, or to be counted from what the registers hold ([`Standing::begin`]). The registers took their values in
    /// `prepare`, so they take these.
    pub fn clear(&mut self) {
        let Some(driver) = self.driver.as_ref().filter(|_| self.records.is_none()) else { return };
        let greatest = self.counters.iter().map(|&counter| driver.capabilities().mask(counter));
        if !self.standing.begin(greatest) {
            return;
        }
        for &counter in &self.counters {
            let _ = driver.write(&mut self.registers, counter, 0);
        }
        if self.metrics.iter().any(Option::is_some) {
            let _ = driver.clear_metrics(&mut self.registers);
        }
    }

    /// Reads the counters after a run. `running`: the code that stops them was not reached.
    pub fn collect(&mut self, running: bool) {
        let Some(driver) = self.driver.as_ref().filter(|_| !self.counters.is_empty()) else {
            return;
        };
        if running {
            let _ = driver.stop(&mut self.registers);
        }
        if let Some(records) = &mut self.records {
            return records.take(&mut self.registers, driver, &mut self.counts);
        }
        let slots = slots(driver, &mut self.registers, &self.metrics);
        let all = self.counters.iter().zip(&self.metrics);
        for (index, (&counter, &metric)) in all.enumerate() {
            let value = read(driver, &mut self.registers, counter, (metric, slots));
            self.values[index] = value;
            self.counts[index] =
                self.standing.since(index, value, driver.capabilities().mask(counter));
        }
        if slots.is_none() {
            self.standing.stand(&self.values);
        } else {
            // Slots and PERF_METRICS are cleared together, before each run. A status that cannot be read vouches for nothing.
            let overflowed = driver.metrics_overflowed(&mut self.registers);
            self.metrics_overflowed |= overflowed.unwrap_or(true);
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
        let slots = slots(driver, registers, &self.metrics);
        let all = self.counters.iter().zip(&self.metrics);
        let values = all.enumerate().map(|(index, (&counter, &metric))| {
            let value = read(driver, registers, counter, (metric, slots));
            self.standing.since(index, value, driver.capabilities().mask(counter))
        });
        values.collect()
    }
}

/// One reading of slots and PERF_METRICS for all events of the pass that stand on them; `None`: none of them is a field.
fn slots(driver: &Driver, registers: &mut pmu::Machine, metrics: &[Option<u8>]) -> Option<Slots> {
    let wanted = metrics.iter().any(Option::is_some);
    wanted.then(|| driver.slots(registers).unwrap_or_default())
}

/// A counter; of the counter of slots what the pass's one reading says, and of that the field, if one is meant.
fn read(
    driver: &Driver,
    registers: &mut pmu::Machine,
    counter: Counter,
    (metric, slots): (Option<u8>, Option<Slots>),
) -> u64 {
    match slots {
        Some(slots) if counter == SLOTS => slots.of(metric),
        _ => driver.read(registers, counter).unwrap_or(0),
    }
}
