//! The counters of a snippet: programmed for a pass, cleared before a run, read behind it.

use super::probe::Machine;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::{self, Counter, Driver, Gate};
use arch::time::tsc;
use arch::watchdog::Watchdog;
use kernel::snippet::events::{self, Counted, Plan};
use protocol::job::Snippet;

/// The counters of the current snippet.
pub struct Counting {
    pub registers: pmu::Machine,
    pub driver: Option<Driver>,
    pub counters: Vec<Counter>,
    pub counts: Vec<u64>,
    pub gate: Gate,
    /// The counter that ends runs, if one is free.
    pub watchdog: Option<Watchdog>,
    /// The last plan and what it is for: most items of a job ask for the same events.
    pub plan: (Vec<String>, Rc<Plan>),
}

impl Counting {
    pub fn prepare(&mut self, snippet: &Snippet, machine: &Machine) -> Rc<Plan> {
        let texts = &snippet.events;
        if !texts.is_empty() && self.plan.0 == *texts {
            return self.plan.1.clone();
        }
        let begin = tsc::now();
        let plan = match (&machine.known, &machine.pmu) {
            (Some(known), _) if machine.emulated.is_some() => {
                events::plan(texts, known).with_time_apart()
            }
            (Some(known), _) => events::plan(texts, known),
            (_, Err(missing)) => Plan::without_pmu(texts, &format!("there is no PMU: {missing}")),
            (_, Ok(_)) => Plan::without_pmu(texts, "the PMU's events are not known"),
        };
        let ticks = if texts.is_empty() { 0 } else { tsc::now().wrapping_sub(begin) };
        let texts = texts.iter().map(ToString::to_string).collect();
        // The ticks are those of the item that the plan was made for.
        self.plan = (texts, Rc::new(plan.clone()));
        Rc::new(Plan { ticks, ..plan })
    }

    /// `limit`: ticks after which the watchdog ends a run; `None`: there is none.
    pub fn program(&mut self, pass: &[Counted], limit: Option<u64>) -> Result<(), (usize, String)> {
        (self.counters, self.counts, self.gate) = (Vec::new(), Vec::new(), Gate::EMPTY);
        self.watchdog = None;
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
        let dog = limit.map(|limit| Watchdog::program(driver, &mut self.registers, limit));
        self.watchdog = dog.flatten();
        self.gate = if pass.is_empty() { Gate::EMPTY } else { driver.gate() };
        self.counters = pass.iter().map(|one| one.counter).collect();
        self.counts = alloc::vec![0; pass.len()];
        Ok(())
    }

    /// Everything to 0. The registers took their values in `prepare`, so they take these.
    pub fn clear(&mut self) {
        let Some(driver) = &self.driver else { return };
        for &counter in &self.counters {
            let _ = driver.write(&mut self.registers, counter, 0);
        }
    }

    /// Reads the counters. A snippet that ended early left them running.
    pub fn collect(&mut self) {
        let Some(driver) = self.driver.as_ref().filter(|_| !self.counters.is_empty()) else {
            return;
        };
        let _ = driver.stop(&mut self.registers);
        for (count, &counter) in self.counts.iter_mut().zip(&self.counters) {
            *count = driver.read(&mut self.registers, counter).unwrap_or(0);
        }
    }
}
