//! The status register, with bits in it that mean nothing.

use super::*;
use crate::msr::{Absent, Msr};
use raw_cpuid::CpuIdResult;

/// A processor that sets reserved bits of PERF_CNTR_GLOBAL_STATUS, as Zen 4 may.
struct Reserved(Pmu);

/// Bits 57:16: between the counters and the frozen bits (AMD APM vol. 2, 13.2.1).
const RESERVED: u64 = 0x03ff_ffff_ffff_0000;

impl Registers for Reserved {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        Registers::cpuid(&self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        let value = Registers::rdmsr(&mut self.0, msr)?;
        Ok(if msr == numbers::AMD_GLOBAL_STATUS { value | RESERVED } else { value })
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        Registers::wrmsr(&mut self.0, msr, value)
    }
    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}

#[test]
fn m12_reserved_bits_of_amds_status_are_no_overflows() {
    let mut seen = 0;
    for (model, pmu, mut driver) in machines() {
        if driver.capabilities().is_intel() || !driver.capabilities().has_global() {
            continue;
        }
        seen += 1;
        let mut machine = Reserved(pmu);
        driver.reset(&mut machine).unwrap();
        assert_eq!(driver.status(&mut machine).unwrap().bits(), 0, "{model:?}");
        let counter = Counter::General(0);
        driver.program(&mut machine, counter, &INSTRUCTIONS).unwrap();
        let preset = driver.preset(counter, 5).unwrap();
        driver.write(&mut machine, counter, preset).unwrap();
        driver.start(&mut machine).unwrap();
        machine.0.advance(&pmu_model::Delta::bulk(pmu_model::Ring::Kernel, 7));
        assert_eq!(driver.status(&mut machine).unwrap().bits(), counter.bit(), "{model:?}");
    }
    assert!(seen > 0, "a model has the register");
}
