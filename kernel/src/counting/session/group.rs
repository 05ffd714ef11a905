//! What is planned for each group when it is programmed for the first time, so that its next turns take a list of writes
//! and no decisions.

use super::Session;
use crate::counting::error::SetError;
use crate::counting::reading::{NEVER, Reading};
use crate::counting::{Group, Platform, Set, VirtualCounter};
use alloc::boxed::Box;
use alloc::vec;
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
    /// The field of MSR_PERF_METRICS that is meant in place of the counter itself.
    pub metric: Option<u8>,
    /// Overflows that were acted on.
    pub told: u64,
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
    /// What lets it count, and what stops it as well as any other group.
    pub start: Write,
    pub stop: Write,
    /// The counters' interrupts up to which the overflows of its counters are noted.
    pub interrupts: u64,
}

/// Bits of the status that say that the counters stand still.
pub(super) const FROZEN: u64 = GlobalStatus::LBR_FROZEN.union(GlobalStatus::COUNTERS_FROZEN).bits();

/// How all counts of a group are read at once, for each group.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    /// Of the group whose turn it is.
    pub now: Box<Reading>,
    /// Of all groups; that of the one whose turn it is stands for nothing.
    #[expect(clippy::vec_box, reason = "a turn exchanges two pointers, not what they point to")]
    all: Vec<Box<Reading>>,
}

impl Readings {
    /// Nothing but room for each group of `set`; it is the turn of `group`.
    pub fn new(set: &Set, group: usize) -> Self {
        let one = |group: &Group| Box::new(Reading::with_capacity(group.len()));
        let mut all: Vec<_> = set.groups().iter().map(one).collect();
        let mut now = Box::new(Reading::with_capacity(0));
        if let Some(own) = all.get_mut(group) {
            core::mem::swap(&mut now, own);
        }
        Self { now, all }
    }

    /// It is the turn of `next`, behind that of `group`.
    #[inline]
    pub fn turn(&mut self, group: usize, next: usize) {
        let groups = self.all.len();
        if group != next && group < groups && next < groups {
            core::mem::swap(&mut self.now, &mut self.all[next]);
            self.all.swap(group, next);
        }
    }
}

impl Turn {
    /// The turn of a group that `driver` has programmed by `writes`. `None`, which is step by step: if a request overflows
    /// after a period or waits for another, if a counter cannot tell of its overflow, if PERF_METRICS is read, if an erratum asks for
    /// more than these writes, or if there is no global control.
    fn new(set: &Set, group: usize, driver: &Driver, mut writes: Vec<Write>) -> Option<Self> {
        let (has, layout) = (driver.capabilities(), driver.layout());
        layout.global?;
        let periods = set.requests().iter().any(|request| request.every.is_some());
        let programs =
            |group: usize| set.groups()[group].iter().flat_map(|(_, counted)| counted.programs());
        let records = programs(group).any(|(_, selection)| selection.precise);
        let steps = periods || records || driver.has_metrics() || driver.has_to_renew();
        if steps || driver.programmed() & has.no_overflow != 0 {
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
        let (start, stop) = (*gate.on().first()?, *gate.off().first()?);
        let (driver, counters) = (driver.clone(), driver.programmed());
        Some(Self { driver, writes, counters, start, stop, interrupts: NEVER })
    }
}

/// Room for the active requests of each group of `set`.
pub(super) fn active(set: &Set) -> Vec<Vec<Active>> {
    set.groups().iter().map(|group| Vec::with_capacity(group.len())).collect()
}

impl Session {
    /// Programs every group once, `last` as the last one, so that what is refused is refused here and not in an interrupt,
    /// and that what will be read and written without a guard is so once with one. Plans the turns: of all groups, or of
    /// none.
    pub(super) fn try_groups(
        &mut self,
        last: usize,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        self.turns.clear();
        let groups = self.set.groups().len();
        let mut turns: Vec<Option<Turn>> = vec![None; groups];
        let others = (0..groups).rev().filter(|&other| other != last);
        for group in others.chain([last]) {
            let mut writes = Vec::new();
            self.load_noting(group, platform, Some(&mut writes))?;
            self.fold(platform)?;
            self.plan_reading(platform.interrupts());
            turns[group] = Turn::new(&self.set, group, &self.driver, writes);
        }
        let wait = self.started.iter().any(|started| !started);
        let all: Option<Vec<Turn>> = turns.into_iter().collect();
        self.turns = all.filter(|_| !wait && groups > 1).unwrap_or_default();
        Ok(())
    }

    /// What is programmed now.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        match self.turns.get(self.group).filter(|_| self.by_plan) {
            Some(turn) => &turn.driver,
            None => &self.driver,
        }
    }

    /// The session as it would be if its group had been programmed step by step.
    pub(super) fn catch_up(&mut self) {
        if !self.by_plan {
            return;
        }
        self.driver = self.driver().clone();
        self.by_plan = false;
        for (active, line) in self.active[self.group].iter_mut().zip(&self.readings.now.lines) {
            active.count.begin(line.at_zero(), active.told);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::tests::fake_machine::FakeMachine;
    use arch::pmu::Selection;
    use pmu_model::Model;

    const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);

    /// A turn changes places and makes none: it comes in an interrupt, where nothing may be allocated.
    #[test]
    fn i1_each_group_keeps_the_room_for_its_plan() {
        let group = |from: u8, to: u8| {
            (from..to).map(|n| (Counter::General(n), INSTRUCTIONS)).collect::<Vec<_>>()
        };
        let set = Set::of_groups(&[group(0, 4), group(0, 1), group(0, 2)]);
        let mut readings = Readings::new(&set, 0);
        let mut room = |group: usize, next: usize| {
            readings.turn(group, next);
            readings.now.lines.capacity()
        };
        assert_eq!(room(0, 0), 4, "it was its turn before");
        assert_eq!([room(0, 1), room(1, 2), room(2, 0), room(0, 2)], [1, 2, 4, 2]);
        // There is no such group.
        assert_eq!([room(2, 3), room(3, 0), room(2, 0)], [2, 2, 4]);
    }

    #[test]
    fn what_is_written_is_noted_once_and_what_is_read_is_the_machines() {
        let mut machine = FakeMachine::new(Model::Skylake);
        let [first, second] = [Msr(0x186), Msr(0x187)];
        machine.wrmsr(Msr(0xc1), 77).unwrap();
        let mut writes = Vec::new();
        let mut noted = Noted { inner: &mut machine, writes: &mut writes };
        for (msr, value) in [(first, 0xc0), (second, 0xc4), (first, 0xc5)] {
            noted.wrmsr(msr, value).unwrap();
        }
        assert_eq!((noted.rdmsr(first), noted.rdpmc(0)), (Ok(0xc5), Ok(77)));
        assert_eq!(writes, [Write::new(first, 0xc5), Write::new(second, 0xc4)]);
    }
}
