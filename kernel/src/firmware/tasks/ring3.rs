//! A counter of instructions in ring 3 that each task has for itself.

use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::driver::{Rings, Selection};
use arch::pmu::{self, Capabilities, Counter, Driver};
use kernel::tasks::Observer;

/// Counts of one task.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub own: u64,
    pub children: u64,
}

/// Read and zeroed at each switch. What a task has is added to its heir when it exits. A second counter counts the same
/// through, whoever runs.
pub struct UserInstructions {
    has: Capabilities,
    open: Option<Open>,
    /// By task.
    pub counts: Vec<Counts>,
    /// What was counted through; `None`: the PMU refused.
    pub through: Option<u64>,
}

struct Open {
    registers: pmu::Machine,
    driver: Driver,
    counter: Counter,
    through: Counter,
}

impl UserInstructions {
    /// For a processor with this PMU, and so many tasks in all.
    pub fn new(has: Capabilities, tasks: usize) -> Self {
        Self { has, open: None, counts: vec![Counts::default(); tasks], through: None }
    }
}

impl Open {
    /// Starts counting.
    fn new(has: &Capabilities) -> Option<Self> {
        // INST_RETIRED.ANY_P, architectural (SDM vol. 3, table 20-1); AMD: retired instructions, PMCx0C0.
        let selection = Selection::of(0xc0, 0).in_rings(Rings::USER);
        let mut counters = has.generals();
        let (counter, through) = (counters.next()?, counters.next()?);
        // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and no interrupt is armed.
        let mut registers = unsafe { pmu::Machine::new() };
        let mut driver = Driver::new(has.clone());
        driver.reset(&mut registers).ok()?;
        for counter in [counter, through] {
            driver.program(&mut registers, counter, &selection).ok()?;
            driver.write(&mut registers, counter, 0).ok()?;
        }
        driver.start(&mut registers).ok()?;
        Some(Self { registers, driver, counter, through })
    }
}

impl Observer for UserInstructions {
    fn opened(&mut self) {
        self.open = Open::new(&self.has);
    }

    #[inline(never)]
    fn switched(&mut self, from: Option<u16>, _: Option<u16>) {
        let Some(open) = &mut self.open else { return };
        let counted = open.driver.read(&mut open.registers, open.counter).unwrap_or(0);
        let _ = open.driver.write(&mut open.registers, open.counter, 0);
        if let Some(counts) = from.and_then(|task| self.counts.get_mut(usize::from(task))) {
            counts.own += counted;
        }
    }

    fn exited(&mut self, task: u16, heir: Option<u16>) {
        let Counts { own, children } = self.counts[usize::from(task)];
        if let Some(heir) = heir {
            self.counts[usize::from(heir)].children += own + children;
        }
    }

    /// Stops counting and frees the counters.
    fn closed(&mut self) {
        let Some(open) = &mut self.open else { return };
        self.through = Some(open.driver.read(&mut open.registers, open.through).unwrap_or(0));
        // The registers took these writes before.
        let _ = open.driver.reset(&mut open.registers);
    }
}
