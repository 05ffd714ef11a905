//! A recorded processor as the machine: CPUID is what was recorded, and every register holds what is written to it.

use arch::msr::{Absent, Msr};
use arch::pmu::Registers;
use raw_cpuid::CpuIdResult;
use recorded::Leaves;
use std::collections::BTreeMap;

/// The machine.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    leaves: &'a Leaves,
    registers: Option<BTreeMap<u32, u64>>,
}

impl<'a> Recorded<'a> {
    /// With registers.
    pub fn new(leaves: &'a Leaves) -> Self {
        Self { leaves, registers: Some(BTreeMap::new()) }
    }

    /// The same under a hypervisor that lets nobody at them: each raises an exception.
    pub fn without_registers(leaves: &'a Leaves) -> Self {
        Self { leaves, registers: None }
    }
}

impl Registers for Recorded<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = self.leaves.answer(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        let registers = self.registers.as_ref().ok_or(Absent)?;
        Ok(registers.get(&msr.0).copied().unwrap_or(0))
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.registers.as_mut().ok_or(Absent)?.insert(msr.0, value);
        Ok(())
    }

    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}
