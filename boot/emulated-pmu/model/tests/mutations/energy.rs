//! Faults of the registers of energy.

use crate::common::read;
use pmu_model::{Mutation, Pmu};

/// One update of the registers of energy.
pub(super) fn energy_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    let mut moved = |msr: u32| {
        let mut at = |time: u64| {
            pmu.set_time(time << 20);
            read(pmu, msr)
        };
        [at(5000), at(5001)]
    };
    let grown = |[before, behind]: [u64; 2]| behind.wrapping_sub(before);
    match fault {
        EnergyStandsStill | EnergyRunsBackwards => grown(moved(0x611)) == 256,
        EnergyOfCoresTooLarge => grown(moved(0x639)) < grown(moved(0x611)),
        EnergyUpperHalfSet => moved(0x611)[1] >> 32 == 0,
        EnergyUnitLost => read(pmu, 0x606) >> 8 & 0x1F == 14,
        EnergyWriteAccepted => pmu.write_msr(0x611, 0).is_err(),
        EnergyRegistersAbsent => pmu.read_msr(0x611).is_ok(),
        _ => unreachable!("{fault:?} is none of energy"),
    }
}
