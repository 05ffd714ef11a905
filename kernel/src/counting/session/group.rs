//! What is planned for each group when it is programmed for the first time, so that its next turns take a list of writes
//! and no decisions.

use super::Session;
use crate::counting::reading::Reading;
use crate::counting::{Group, Platform, Set, VirtualCounter};
use alloc::boxed::Box;
use alloc::vec::Vec;
use arch::msr::{Absent, Msr};
use arch::pmu::driver::Write;
use arch::pmu::registers::GlobalStatus;
use arch::pmu::{Counter, Driver, Registers, numbers};
use raw_cpuid::CpuIdResult;

/// A request that has a counter.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub request: usize,
    pub count: VirtualCounter,
    /// Overflows that were acted on.
    pub told: u64,
}

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Its requests that count, in their order; as they are while it has the counters.
    pub active: Vec<Active>,
    /// How all its counts are read at once; `None` for the group whose turn it is, as the session has it.
    pub reading: Option<Box<Reading>>,
    /// How it gets the counters; `None`: only step by step.
    pub turn: Option<Turn>,
}

/// What is written when the group gets the counters from another one, while these stand still.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// The driver as it is then.
    pub driver: Driver,
    /// The events, and what switches all counters off that other groups have and this one has not.
    pub writes: Vec<Write>,
    /// The counters that interrupt, as bits of the status.
    pub counters: u64,
    /// The global control, and its values while the group counts and while it stands still.
    pub control: Msr,
    pub on: u64,
    pub off: u64,
}

/// Bits of the status that say that the counters stand still.
pub(super) const FROZEN: u64 = GlobalStatus::LBR_FROZEN.union(GlobalStatus::COUNTERS_FROZEN).bits();

/// No reading.
pub(super) fn empty() -> Box<Reading> {
    Box::new(Reading::with_capacity(0))
}

impl Planned {
    /// Nothing but room for each group of `set`.
    pub fn all(set: &Set) -> Vec<Self> {
        let one = |group: &Group| {
            let reading = Some(Box::new(Reading::with_capacity(group.len())));
            Self { active: Vec::with_capacity(group.len()), reading, turn: None }
        };
        set.groups().iter().map(one).collect()
    }
}

impl Turn {
    /// The turn of a group that `driver` has programmed by `writes`. `None`, which is step by step: if a request overflows
    /// after a period or waits for another, if a counter cannot tell of its overflow, or if there is no global control.
    fn new(set: &Set, group: usize, driver: &Driver, mut writes: Vec<Write>) -> Option<Self> {
        let (has, layout) = (driver.capabilities(), driver.layout());
        let global = layout.global?;
        let periods = set.requests().iter().any(|request| request.every.is_some());
        let programs =
            |group: usize| set.groups()[group].iter().flat_map(|(_, counted)| counted.programs());
        let records = programs(group).any(|(_, selection)| selection.precise);
        if periods || records || driver.programmed() & has.no_overflow != 0 {
            return None;
        }
        for other in 0..set.groups().len() {
            for (counter, _) in programs(other) {
                let msr = match counter {
                    Counter::General(n) => layout.select(n),
                    Counter::Fixed(_) => numbers::FIXED_CTR_CTRL,
                };
                if !writes.iter().any(|write| write.msr == msr.0) {
                    writes.push(Write::new(msr, 0));
                }
            }
        }
        let gate = driver.gate();
        let (on, off) = (gate.on().first()?.value, gate.off().first()?.value);
        let counters = driver.programmed();
        Some(Self { driver: driver.clone(), writes, counters, control: global.control, on, off })
    }
}

impl Session {
    /// The group was programmed by `writes`: what is to be known of it the next time.
    pub(super) fn plan_turn(&mut self, writes: Vec<Write>) {
        let waits = self.started.iter().any(|started| !started);
        let turn = Turn::new(&self.set, self.group, &self.driver, writes);
        self.planned[self.group].turn = turn.filter(|_| !waits);
    }
}

/// Registers that note what is written, the last value of each.
pub(super) struct Noted<'a> {
    pub inner: &'a mut dyn Platform,
    pub writes: &'a mut Vec<Write>,
}

impl Registers for Noted<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.inner.cpuid(leaf, subleaf)
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.inner.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.inner.wrmsr(msr, value)?;
        let write = Write::new(msr, value);
        match self.writes.iter_mut().find(|before| before.msr == msr.0) {
            Some(before) => *before = write,
            None => self.writes.push(write),
        }
        Ok(())
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        self.inner.rdpmc(index)
    }
}
