//! What is programmed, and how far it is.

use super::Session;
use crate::counting::{CountingError, Counts, Platform};
use alloc::string::String;
use alloc::vec::Vec;
use arch::msr::Msr;
use arch::pmu::{Counter, PmuError, numbers};

/// A request, and what counts it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Programmed {
    /// The request.
    pub request: usize,
    /// Its event's name in the processor's table, or its code.
    pub event: String,
    /// The group that it counts in. A request that counts in every pass is listed with each.
    pub group: usize,
    /// Whether it is programmed now.
    pub now: bool,
    /// The counter.
    pub counter: Counter,
    /// Its control register, and what is written there: a select, or the field of a fixed counter.
    pub control: (Msr, u64),
}

/// A session at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Status {
    /// Control and status registers, the selects and the counters of what is programmed, as they were read.
    pub registers: Vec<(Msr, u64)>,
    /// Counts now.
    pub now: Counts,
    /// Counts at the last interrupt, if there was one since the last start from the presets.
    pub at_interrupt: Option<Counts>,
    /// The group that has the counters.
    pub group: usize,
    /// Passes that are over.
    pub passes: u64,
    /// Whether it counts.
    pub running: bool,
    /// Whether it has ended.
    pub ended: bool,
}

impl Session {
    /// What is programmed for each request.
    ///
    /// # Errors
    /// None on a session that could be bound.
    pub fn query(&self) -> Result<Vec<Programmed>, PmuError> {
        let has = self.driver.capabilities();
        let mut list = Vec::new();
        for (group, members) in self.set.groups().iter().enumerate() {
            for (request, one) in members {
                let interrupt = has.has_global() || self.set.requests()[*request].every.is_some();
                let selection = arch::pmu::Selection { interrupt, ..one.selection };
                let control = match one.counter {
                    Counter::General(n) => {
                        (self.driver.layout().select(n), selection.encode(one.counter, has)?)
                    }
                    Counter::Fixed(_) => {
                        let field = selection.field(one.counter, has)?;
                        (numbers::FIXED_CTR_CTRL, u64::from(field.bits()))
                    }
                };
                list.push(Programmed {
                    request: *request,
                    event: one.counting.name.clone(),
                    group,
                    now: self.active().iter().any(|active| {
                        active.request == *request && active.count.counter() == one.counter
                    }) && group == self.group,
                    counter: one.counter,
                    control,
                });
            }
        }
        Ok(list)
    }

    /// Registers and counts.
    ///
    /// # Errors
    /// A register cannot be read.
    pub fn status(&mut self, platform: &mut dyn Platform) -> Result<Status, CountingError> {
        let mut now = Counts::new(&self.set);
        self.sample(platform, &mut now)?;
        let layout = *self.driver.layout();
        let mut list: Vec<Msr> =
            layout.global.iter().flat_map(|global| [global.control, global.status]).collect();
        if self.driver.capabilities().fixed != 0 {
            list.push(numbers::FIXED_CTR_CTRL);
        }
        for active in self.active() {
            if let Counter::General(n) = active.count.counter() {
                list.push(layout.select(n));
            }
            list.push(layout.counter(active.count.counter()));
        }
        let mut registers = Vec::with_capacity(list.len());
        for msr in list {
            registers.push((msr, platform.rdmsr(msr).map_err(|_| PmuError::Read(msr))?));
        }
        Ok(Status {
            registers,
            now,
            at_interrupt: self.interrupted.then(|| self.at_interrupt.clone()),
            group: self.group,
            passes: self.passes,
            running: self.running,
            ended: self.ended,
        })
    }
}
