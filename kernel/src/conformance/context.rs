//! What every check has at hand.

use super::bounds::Bounds;
use super::machine::{TestMachine, Work};
use alloc::vec::Vec;
use arch::pmu::errata::{Effect, Erratum};
use arch::pmu::pmi::{ControlBlock, Delivery};
use arch::pmu::window;
use arch::pmu::workload::{Counts, Ring0Code};
use arch::pmu::{
    Capabilities, Counter, Driver, Emulated, Gate, Ownership, PmuError, Registers, Selection,
};

/// The PMU under test.
pub struct Context<'a> {
    /// The machine.
    pub machine: &'a mut dyn TestMachine,
    /// The driver, whose counters are free when a check begins.
    pub driver: Driver,
    /// How the PMU was found.
    pub found: &'a Ownership,
    /// The PMU is an emulated one: no instruction is lost to anything, and expectations are exact.
    pub emulated: Option<Emulated>,
    /// How far it may be off.
    pub bounds: Bounds,
    /// Bits of the status cannot be cleared, so that no check may freeze the counters: they would stay so for good.
    pub stuck: bool,
    /// There is a hypervisor.
    pub hypervisor: bool,
}

/// Retired instructions.
pub const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);

impl Context<'_> {
    /// What the PMU can do.
    pub fn has(&self) -> &Capabilities {
        self.driver.capabilities()
    }

    /// Its registers.
    pub fn registers(&mut self) -> &mut dyn Registers {
        self.machine
    }

    /// Frees and zeroes every counter.
    pub fn fresh(&mut self) -> Result<(), PmuError> {
        self.driver.reset(self.machine)?;
        for counter in self.has().counters() {
            self.driver.write(self.machine, counter, 0)?;
        }
        Ok(())
    }

    /// Gives a counter an event.
    pub fn program(&mut self, counter: Counter, event: &Selection) -> Result<(), PmuError> {
        self.driver.program(self.machine, counter, event)
    }

    /// Sets a counter.
    pub fn set(&mut self, counter: Counter, value: u64) -> Result<(), PmuError> {
        self.driver.write(self.machine, counter, value)
    }

    /// Sets a counter so that it overflows after `period` events.
    pub fn arm(&mut self, counter: Counter, period: u64) -> Result<u64, PmuError> {
        let preset = self.driver.preset(counter, period)?;
        self.set(counter, preset)?;
        Ok(preset)
    }

    /// Reads a counter.
    pub fn get(&mut self, counter: Counter) -> Result<u64, PmuError> {
        self.driver.read(self.machine, counter)
    }

    /// Runs `work` while everything that is programmed counts. Returns ticks of the TSC.
    pub fn run(&mut self, work: Work) -> u64 {
        let gate = self.driver.gate();
        self.machine.run(&gate, work)
    }

    /// What `counters`, each with its event and from 0, count of `work`.
    pub fn count(
        &mut self,
        counters: &[(Counter, Selection)],
        work: Work,
    ) -> Result<Vec<u64>, PmuError> {
        self.fresh()?;
        for (counter, event) in counters {
            self.program(*counter, event)?;
        }
        self.run(work);
        let mut seen = Vec::with_capacity(counters.len());
        for &(counter, _) in counters {
            seen.push(self.get(counter)?);
        }
        Ok(seen)
    }

    /// What the first counter counts of `work`.
    pub fn count_one(&mut self, event: Selection, work: Work) -> Result<u64, PmuError> {
        let first = self.first();
        Ok(self.count(&[(first, event)], work)?[0])
    }

    /// The first general-purpose counter.
    pub fn first(&self) -> Counter {
        self.has().generals().next().unwrap_or(Counter::General(0))
    }

    /// The second one; every PMU has two.
    pub fn second(&self) -> Counter {
        self.has().generals().nth(1).unwrap_or(Counter::General(1))
    }

    /// What a counter sees of a piece with the gate of what is programmed now.
    pub fn stated(&self, piece: Ring0Code, turns: u64) -> Counts {
        self.stated_with(&self.driver.gate(), piece, turns)
    }

    /// The same with another gate.
    pub fn stated_with(&self, gate: &Gate, piece: Ring0Code, turns: u64) -> Counts {
        window::overhead(gate.on().len() as u64).and(piece.counts(turns))
    }

    /// Lets PMIs come. The block is that of what is programmed, changed by `change`.
    pub fn deliver(
        &mut self,
        delivery: Delivery,
        change: impl FnOnce(&mut ControlBlock, &Driver) -> Result<(), PmuError>,
    ) -> Result<(), PmuError> {
        let mut block = ControlBlock::of(&self.driver);
        change(&mut block, &self.driver)?;
        self.machine.deliver(block, delivery);
        Ok(())
    }

    /// Core cycles, in this processor's code.
    pub fn cycles(&self) -> Selection {
        match (self.has().is_intel(), self.has().cycles) {
            // Zhaoxin and VIA (Linux, `arch/x86/events/zhaoxin/core.c`).
            (true, 0) => Selection::of(0x82, 0),
            (true, _) => Selection::of(0x3c, 0),
            (false, _) => Selection::of(0x76, 0),
        }
    }

    /// Retired branches, if there is such an event.
    pub fn branches(&self) -> Option<Selection> {
        self.architectural(5, Selection::of(0xc4, 0), Selection::of(0xc2, 0))
    }

    /// Mispredicted branches, likewise.
    pub fn mispredictions(&self) -> Option<Selection> {
        self.architectural(6, Selection::of(0xc5, 0), Selection::of(0xc3, 0))
    }

    /// An architectural event by its bit, on AMD another one that every processor has.
    pub fn architectural(&self, bit: u32, intel: Selection, amd: Selection) -> Option<Selection> {
        match self.has().is_intel() {
            true => (self.has().events & self.has().coded() & 1 << bit != 0).then_some(intel),
            false => Some(amd),
        }
    }

    /// An erratum that explains wrong counts of instructions.
    pub fn instructions_erratum(&self) -> Option<&'static Erratum> {
        self.errata().find(|row| row.spoils_instructions())
    }

    /// An erratum that explains wrong counts of branches.
    pub fn branches_erratum(&self) -> Option<&'static Erratum> {
        self.errata().find(|row| row.spoils_branches())
    }

    /// An erratum that explains that interrupts are missing where two counters are enabled.
    pub fn interrupts_erratum(&self) -> Option<&'static Erratum> {
        self.errata().find(|row| row.effect == Effect::LostInterrupts)
    }

    /// The processor's: the emulated PMU has its name, and not its errata.
    pub fn errata(&self) -> impl Iterator<Item = &'static Erratum> {
        let is_real = self.emulated.is_none();
        self.has().errata.iter().copied().filter(move |_| is_real)
    }
}
