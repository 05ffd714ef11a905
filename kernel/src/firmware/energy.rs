//! The registers of energy, which a processor of each package reads.

use super::per_cpu::BOOT;
use super::probe::Machine;
use alloc::vec::Vec;
use arch::cpu::{Topology, native};
use arch::pmu::energy::{self, Domain, Energy, Located, NoEnergy, Place, Shared, Source};
use arch::pmu::{self, Registers as _};
use arch::smp;
use arch::time::tsc;

/// The registers, and the clock beside them.
pub struct EnergyMeters {
    energy: Energy,
    hz: u64,
    /// Where all processors are, if several are measured.
    all: Vec<Located>,
    /// The numbers of those that are measured.
    members: Vec<u32>,
}

impl EnergyMeters {
    /// The registers that were found when the machine was.
    pub fn new(machine: &Machine) -> Result<Self, NoEnergy> {
        let (all, members) = (Vec::new(), Vec::new());
        Ok(Self { energy: machine.energy?, hz: machine.clock.hz, all, members })
    }

    /// From now on these processors are measured; without any, the boot processor.
    pub fn measure(&mut self, members: &[u32]) {
        self.members = members.to_vec();
        if !members.is_empty() && self.all.is_empty() {
            self.all = located();
        }
    }
}

/// Where each processor in use is.
pub(super) fn located() -> Vec<Located> {
    let places = smp::on_all(|_| Topology::read(&native())).expect(BOOT);
    let place = |(processor, topology): (&smp::Processor, Topology)| {
        let [core, package] = topology.place();
        Located { number: processor.index() as u32, core, package }
    };
    smp::in_use().zip(places).map(place).collect()
}

/// What a domain's register reads on this processor.
fn here(energy: &Energy, domain: Domain) -> u32 {
    // SAFETY: ring 0, interrupt table loaded; nothing but energy is read, which changes nothing.
    let mut registers = unsafe { pmu::Machine::new() };
    // A domain that was found has a register, which reading does not take away.
    let register = energy.register(domain).ok();
    register.and_then(|register| registers.rdmsr(register).ok()).unwrap_or_default() as u32
}

impl Source for EnergyMeters {
    fn read(&mut self, Place { domain, processor }: Place) -> u32 {
        let energy = self.energy;
        match processor {
            0 => here(&energy, domain),
            other => smp::run_on(other as usize, || here(&energy, domain)).unwrap_or_default(),
        }
    }

    fn now(&mut self) -> u64 {
        tsc::now()
    }

    fn hz(&self) -> u64 {
        self.hz
    }

    fn energy(&self) -> &Energy {
        &self.energy
    }

    fn shared(&self, domain: Domain) -> Vec<Shared> {
        match &self.members[..] {
            [] => Vec::from([Shared { reader: 0, processors: Vec::new() }]),
            members => energy::shared((domain, self.energy.is_amd()), &self.all, members),
        }
    }
}
