//! A freeze that somebody else takes back.

use super::*;
use crate::msr::{Absent, Msr};
use crate::pmu::numbers::DEBUGCTL;

/// A machine whose system management code keeps DEBUGCTL as it wants it, from some moment on.
struct Kept {
    pmu: Pmu,
    keeps: bool,
}

impl Registers for Kept {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.pmu, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        Registers::rdmsr(&mut self.pmu, msr)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        let kept = if self.keeps && msr == DEBUGCTL { value & !(0b11 << 11) } else { value };
        Registers::wrmsr(&mut self.pmu, msr, kept)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(&mut self.pmu, index)
    }
}

#[test]
fn t7_a_freeze_that_was_found_at_the_start_is_looked_at_again_each_time() {
    for (model, pmu, driver) in machines() {
        if driver.capabilities().freeze == FreezeKind::None {
            continue;
        }
        let mut machine = Kept { pmu, keeps: false };
        assert_eq!(driver.set_freeze(&mut machine, Freeze::COUNTERS), Ok(()), "{model:?}");
        machine.keeps = true;
        assert_eq!(driver.set_freeze(&mut machine, Freeze::empty()), Ok(()), "{model:?}");
        let lost = driver.set_freeze(&mut machine, Freeze::COUNTERS).unwrap_err();
        assert!(
            matches!(lost, PmuError::Freeze { value, found: 0 } if value & 1 << 12 != 0),
            "{lost}"
        );
    }
}
