//! The counters of the uncore, which a processor of each package programs and reads.

use super::energy::located;
use alloc::vec::Vec;
use arch::pmu;
use arch::pmu::energy::{self, Domain, Located, Shared};
use arch::pmu::uncore::{NoUncore, Placed, Refusal, Register, Running, Uncore};
use arch::smp;
use kernel::uncore::Counter;

/// Counters that run, of each package that is measured.
#[derive(Debug, Default)]
pub struct UncoreCounters {
    /// Where all processors are, if several are measured.
    all: Vec<Located>,
    /// The numbers of those that are measured; none: the boot processor alone.
    members: Vec<u32>,
    running: Vec<(Shared, Running)>,
    counts: Vec<u64>,
}

/// Has a processor do something with its registers.
fn on<T: Send>(
    Shared { reader, .. }: &Shared,
    work: impl FnOnce(&mut pmu::Machine) -> T + Send,
) -> T {
    // SAFETY: ring 0, interrupt table loaded; nobody else uses these counters, none is given an interrupt, and all registers get the
    // values back that they had.
    let work = || work(&mut unsafe { pmu::Machine::new() });
    match reader {
        0 => work(),
        other => smp::run_on(*other as usize, work).expect("a processor that was found"),
    }
}

impl UncoreCounters {
    /// What the boot processor has. The packages of a machine are alike.
    ///
    /// # Errors
    /// Nothing is known of it.
    pub fn find() -> Result<Uncore, NoUncore> {
        // SAFETY: ring 0, interrupt table loaded; nothing is read but CPUID.
        Uncore::find(&unsafe { pmu::Machine::new() })
    }

    /// From now on these processors are measured; without any, the boot processor.
    pub fn measure(&mut self, members: &[u32]) {
        self.release();
        self.members = members.to_vec();
        if !members.is_empty() && self.all.is_empty() {
            self.all = located();
        }
    }

    /// Who reads the counters of which package, as for its energy: the boot processor if it is in the package, else the first of those
    /// that are measured.
    fn packages(&self) -> Vec<Shared> {
        match &self.members[..] {
            [] => Vec::from([Shared { reader: 0, processors: Vec::new() }]),
            members => energy::shared((Domain::Package, false), &self.all, members),
        }
    }

    /// Gives these events their counters in each package, and frees all others.
    ///
    /// # Errors
    /// The number of an event, and why it is not counted. Everything is as before then.
    pub fn program(&mut self, round: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        self.release();
        let mut counters = Vec::new();
        if round.is_empty() {
            return Ok(counters);
        }
        for shared in self.packages() {
            match on(&shared, |registers| Uncore::program(round, registers)) {
                Ok(running) => {
                    let counter = |(event, place): (usize, (u32, Register))| Counter {
                        event,
                        place,
                        shared: shared.clone(),
                    };
                    counters.extend(running.places().enumerate().map(counter));
                    self.running.push((shared, running));
                }
                Err(refused) => {
                    self.release();
                    return Err(refused);
                }
            }
        }
        Ok(counters)
    }

    /// Whether any counter runs.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// What is measured begins.
    pub fn begin(&mut self) {
        for (shared, running) in &mut self.running {
            on(shared, |registers| running.begin(registers));
        }
    }

    /// What is measured has ended.
    pub fn end(&mut self) {
        self.counts.clear();
        for (shared, running) in &mut self.running {
            on(shared, |registers| running.end(registers));
            self.counts.extend(running.counts());
        }
    }

    /// What each counter has counted, package by package.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Gives all counters back as they were.
    pub fn release(&mut self) {
        for (shared, running) in self.running.drain(..) {
            on(&shared, |registers| running.release(registers));
        }
        self.counts.clear();
    }
}
