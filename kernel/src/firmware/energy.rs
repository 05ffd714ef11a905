//! The boot processor's registers of energy.

use super::probe::Machine;
use arch::pmu::energy::{Domain, Energy, NoEnergy, Source};
use arch::pmu::{self, Registers as _};
use arch::time::tsc;

/// The registers, and the clock beside them.
pub struct EnergyMeters {
    energy: Energy,
    registers: pmu::Machine,
    hz: u64,
}

impl EnergyMeters {
    /// The registers that were found when the machine was.
    ///
    /// # Safety
    /// Ring 0, interrupt table loaded.
    pub unsafe fn new(machine: &Machine) -> Result<Self, NoEnergy> {
        // SAFETY: the caller's promise; nothing but energy is read, which changes nothing.
        let registers = unsafe { pmu::Machine::new() };
        Ok(Self { energy: machine.energy?, registers, hz: machine.clock.hz })
    }
}

impl Source for EnergyMeters {
    fn read(&mut self, domain: Domain) -> u32 {
        // A domain that was found has a register, which reading does not take away.
        let register = self.energy.register(domain).ok();
        register.and_then(|register| self.registers.rdmsr(register).ok()).unwrap_or_default() as u32
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
}
