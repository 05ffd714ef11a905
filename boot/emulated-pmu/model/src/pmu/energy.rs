//! The registers of energy (RAPL): by the clock, whatever runs and whatever is counted.

use super::Pmu;
use crate::model::energy::{Domain, UPDATE};
use crate::msr;
use crate::mutation::Mutation;

impl Pmu {
    /// Tells the time, in ticks of the guest's TSC, for the registers of energy. Tell it before each [`Pmu::read_msr`].
    pub const fn set_time(&mut self, tsc: u64) {
        self.time = tsc;
    }

    /// What the register of energy with this number reads.
    pub(super) fn read_energy(&self, number: usize) -> u64 {
        let Some(energy) = &self.spec().energy else { return 0 };
        match number.checked_sub(1).and_then(|domain| energy.domains.get(domain)) {
            None if self.is(Mutation::EnergyUnitLost) => 0,
            None => energy.unit,
            Some(domain) => self.energy_of(domain),
        }
    }

    fn energy_of(&self, domain: &Domain) -> u64 {
        let updates = self.time >> UPDATE;
        let is_cores = matches!(domain.register, msr::PP0_ENERGY | msr::AMD_CORE_ENERGY);
        let value = match updates {
            _ if self.is(Mutation::EnergyStandsStill) => domain.value(0),
            updates if self.is(Mutation::EnergyRunsBackwards) => !domain.value(updates),
            updates if is_cores && self.is(Mutation::EnergyOfCoresTooLarge) => {
                Domain { per_update: 4 * domain.per_update, ..*domain }.value(updates)
            }
            updates => domain.value(updates),
        };
        let wide = if self.is(Mutation::EnergyUpperHalfSet) { 1 << 32 } else { 0 };
        u64::from(value) | wide
    }
}
