//! The register-level model as the machine: for host tests, of this crate and of others.

use super::access::Registers;
use super::driver::{Gate, Write};
use super::stop_on_overflow::StopOnOverflow;
use super::trial;
use crate::msr::{Absent, Msr};
use pmu_model::{
    Branch, BranchKind, CpuidResult, Delta, GuestMemory, Outcome, Pmu, Retirement, Ring,
};
use raw_cpuid::CpuIdResult;

impl Registers for Pmu {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        // A host that fills nothing in but the highest leaves and sub-leaf.
        let eax = match (leaf, subleaf) {
            (0, _) => pmu_model::Host::EXAMPLE.highest_basic,
            (7, 0) => 1,
            (0x8000_0000, _) => pmu_model::Host::EXAMPLE.highest_extended,
            _ => 0,
        };
        let host = CpuidResult { eax, ebx: 0, ecx: 0, edx: 0 };
        let CpuidResult { eax, ebx, ecx, edx } = Self::cpuid(self, leaf, subleaf, host);
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.read_msr(msr.0).map_err(|_| Absent)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.write_msr(msr.0, value).map(|_| ()).map_err(|_| Absent)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Self::rdpmc(self, index).map_err(|_| Absent)
    }
}

impl trial::TrialMachine for Pmu {
    fn run(&mut self, gate: &Gate, turns: u64) {
        let plain = |pmu: &mut Self, count| {
            let _ = pmu.advance(&Delta::bulk(Ring::Kernel, count));
        };
        let branch = |pmu: &mut Self, kind, taken| {
            let (from, to, mispredicted, ring) = (0x1000, 0x1010, false, Ring::Kernel);
            let branch = Branch { from, to, kind, taken, mispredicted, ring, cycles: 1 };
            let mut delta = Delta::step(ring);
            delta.add_branch(&branch);
            let _ = pmu.advance(&delta);
        };
        // See `window`: three MOVs and the WRMSR, which is counted with what was enabled before; ADD, DEC, JNZ.
        let side = |pmu: &mut Self, writes: &[Write]| {
            for (index, write) in writes.iter().enumerate() {
                plain(pmu, 4);
                let _ = pmu.write_msr(write.msr, write.value);
                plain(pmu, 2);
                branch(pmu, BranchKind::Conditional, index + 1 < writes.len());
            }
        };
        side(self, gate.on());
        branch(self, BranchKind::IndirectCall, true);
        for turn in 1..=turns {
            plain(self, 1);
            branch(self, BranchKind::Conditional, turn < turns);
        }
        branch(self, BranchKind::Return, true);
        side(self, gate.off());
    }

    fn run_until(&mut self, on_overflow: &StopOnOverflow, turns: u64) {
        trial::TrialMachine::run(self, on_overflow.gate(), turns);
    }
}

/// The memory of the test's own process, by address: where a debug store lies that the model writes to.
struct Process;

impl GuestMemory for Process {
    fn read(&mut self, linear: u64) -> Option<u64> {
        // SAFETY: the model reads where IA32_DS_AREA points, or the area it finds there: a store of the driver's, which
        // lives while PEBS is on.
        (linear != 0).then(|| unsafe { (linear as *const u64).read_volatile() })
    }

    fn write(&mut self, linear: u64, value: u64) -> Option<()> {
        // SAFETY: as above; the store's own memory.
        (linear != 0).then(|| unsafe { (linear as *mut u64).write_volatile(value) })
    }

    /// The buffer that IA32_PEBS_BASE names: memory is mapped one to one, as it were.
    fn write_physical(&mut self, physical: u64, value: u64) -> Option<()> {
        self.write(physical, value)
    }
}

/// Reports `delta`, of the instruction `retired`, and writes the PEBS records and takes the samples that follow.
pub fn retire(pmu: &mut Pmu, delta: &Delta, retired: &Retirement) -> Outcome {
    let outcome = pmu.advance(delta);
    if outcome.due == 0 {
        return outcome;
    }
    let more = pmu.write_record(outcome.due, retired, &mut Process);
    Outcome {
        pmi: outcome.pmi | more.pmi,
        overflowed: outcome.overflowed | more.overflowed,
        ibs: outcome.ibs | more.ibs,
        ..outcome
    }
}

/// A model on a processor with energy filtering: whether CPUID announces IA32_ARCH_CAPABILITIES, whether that announces the
/// filtering, and whether it is on.
#[derive(Debug)]
pub struct EnergyFiltering(pub Pmu, pub [bool; 3]);

impl Registers for EnergyFiltering {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let mut seen = Registers::cpuid(&self.0, leaf, subleaf);
        if leaf == 7 && self.1[0] {
            seen.edx |= 1 << 29;
        }
        seen
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        match msr.0 {
            0x10a => Ok(u64::from(self.1[1]) << 11),
            0xbc => Ok(self.1[2].into()),
            _ => Registers::rdmsr(&mut self.0, msr),
        }
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        Registers::wrmsr(&mut self.0, msr, value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        Registers::rdpmc(&mut self.0, index)
    }
}
