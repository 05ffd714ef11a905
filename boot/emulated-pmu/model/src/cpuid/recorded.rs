//! CPUID of a recorded processor: what was recorded, but for features that the machine beneath has not, and what depends on
//! where the code runs. A feature that stands for registers or instructions is shown if both have it.

use super::{
    ARCH_LBR, ARCH_PERFMON_EXT, CpuidResult, DS, DTES64, HYBRID, LEAF_1_ECX_HIDDEN,
    LEAF_7_EBX_HIDDEN, LEAF_7_EDX_HIDDEN, PDCM, XSS_HIDDEN, put,
};
use crate::Pmu;
use crate::model::{LbrKind, PmuKind};
use crate::mutation::Mutation;
use crate::recording::{Leaves, main_23};

/// Leaf 1 ECX: x2APIC, OSXSAVE and hypervisor, which are the machine's.
const LEAF_1_ECX_MACHINE: u32 = 1 << 21 | 1 << 27 | 1 << 31;
/// Leaf 1 EDX: hyper-threading, which says that EBX\[23:16\] counts.
const HTT: u32 = 1 << 28;
/// 0x80000001 ECX: CmpLegacy and TopologyExtensions, which stand for leaves alone.
const LEAVES_ALONE: u32 = 1 << 1 | 1 << 22;
/// The local APIC's id in leaf 1 EBX.
const APIC_ID: u32 = 0xFF << 24;

impl Pmu {
    pub(super) fn recorded_cpuid(
        &self,
        leaves: Leaves,
        leaf: u32,
        subleaf: u32,
        host: CpuidResult,
    ) -> CpuidResult {
        if leaves.has(leaf) {
            return self.recorded_leaf(leaves, leaf, subleaf, host);
        }
        match leaves.echoes() {
            // The host's answer is to another leaf, of which only the machine's own bits are taken.
            true => self.recorded_leaf(leaves, leaves.highest_basic(), subleaf, CpuidResult::ZERO),
            false => CpuidResult::ZERO,
        }
    }

    fn recorded_leaf(
        &self,
        leaves: Leaves,
        leaf: u32,
        subleaf: u32,
        host: CpuidResult,
    ) -> CpuidResult {
        let seen = CpuidResult::new(leaves.answer(leaf, subleaf));
        match leaf {
            1 => self.recorded_1(seen, host),
            7 => self.recorded_7(leaves, subleaf, seen, host),
            0xA => match self.is(Mutation::OneCounterTooManyEnumerated) {
                true => CpuidResult { eax: seen.eax + (1 << 8), ..seen },
                false => seen,
            },
            // Id of this processor in EDX.
            0xB | 0x1F | 0x8000_0026 => CpuidResult { edx: host.edx, ..seen },
            0x8000_001E if seen != CpuidResult::ZERO => CpuidResult { eax: host.eax, ..seen },
            0x1C => self.leaf_1c(subleaf),
            0x23 => self.recorded_23(leaves, subleaf, seen),
            // State of the extended registers, power management, clocks: the machine's, or nothing.
            0x5 | 0x6 => host,
            0xD => extended_state(subleaf, host),
            0x9 | 0xF..=0x12 | 0x14..=0x17 | 0x19 | 0x1B | 0x1D | 0x1E | 0x20..=0x22 | 0x24..
                if leaf < 0x8000_0000 =>
            {
                CpuidResult::ZERO
            }
            0x8000_0001 => self.recorded_extended_1(seen, host),
            0x8000_0007 => {
                CpuidResult { edx: self.with_rapl(seen.edx & host.edx), ..CpuidResult::ZERO }
            }
            0x8000_0008 => self.recorded_extended_8(seen, host),
            0x8000_0021 => both(seen, host),
            0x8000_0022 => self.recorded_v2(seen),
            0x8000_000A => match seen {
                CpuidResult::ZERO => seen,
                _ => self.svm_leaf(),
            },
            super::extended::IBS_LEAF => self.ibs_leaf(),
            // Lightweight profiling, encryption of memory, allocation of caches.
            0x8000_001C | 0x8000_001F | 0x8000_0020 | 0x8000_0023.. => CpuidResult::ZERO,
            _ => seen,
        }
    }

    fn recorded_1(&self, seen: CpuidResult, host: CpuidResult) -> CpuidResult {
        let intel = self.spec().intel();
        let store = intel.is_some_and(|intel| intel.pebs.is_some_and(|pebs| pebs.has_store()));
        let registers = intel.is_some_and(|intel| intel.capabilities != 0);
        let ecx = seen.ecx & host.ecx & !LEAF_1_ECX_HIDDEN | host.ecx & LEAF_1_ECX_MACHINE;
        CpuidResult {
            eax: seen.eax,
            ebx: seen.ebx & !APIC_ID | host.ebx & APIC_ID,
            ecx: put(put(ecx, PDCM, registers), DTES64, store),
            edx: put(seen.edx & (host.edx | HTT), DS, store),
        }
    }

    fn recorded_7(
        &self,
        leaves: Leaves,
        subleaf: u32,
        seen: CpuidResult,
        host: CpuidResult,
    ) -> CpuidResult {
        let host = if subleaf <= self.host().highest_subleaf_7 { host } else { CpuidResult::ZERO };
        let records = matches!(self.spec().lbr, LbrKind::Arch(_));
        let shown = both(seen, host);
        match subleaf {
            0 => CpuidResult {
                eax: seen.eax,
                ebx: shown.ebx & !LEAF_7_EBX_HIDDEN,
                ecx: shown.ecx,
                edx: put(shown.edx & !LEAF_7_EDX_HIDDEN, ARCH_LBR, records) | seen.edx & HYBRID,
            },
            1 => CpuidResult { eax: put(shown.eax, ARCH_PERFMON_EXT, has_23(leaves)), ..shown },
            _ => shown,
        }
    }

    /// Sub-leaves 1 and 3, and those of architectural PEBS, if both are there; that of reload stands for registers that no model has,
    /// and so does EBX\[2\], RDPMC-user-disable.
    fn recorded_23(&self, leaves: Leaves, subleaf: u32, seen: CpuidResult) -> CpuidResult {
        let Some(intel) = self.spec().intel().filter(|_| has_23(leaves)) else {
            return CpuidResult::ZERO;
        };
        match (subleaf, intel.arch_pebs(), &intel.pebs) {
            (0, ..) => {
                let (eax, ebx) = (seen.eax & main_23(intel), seen.ebx & 3);
                CpuidResult { eax, ebx, ..seen }
            }
            (1 | 3, ..) => seen,
            (4, Some(facts), _) => CpuidResult::new([0, self.there(facts.groups), 0, 0]),
            (5, Some(facts), Some(pebs)) => {
                let [enable, precise] = [pebs.enable, facts.distribution];
                let fixed = |bits: u64| (bits >> 32) as u32;
                CpuidResult::new([enable as u32, precise as u32, fixed(enable), fixed(precise)])
            }
            _ => CpuidResult::ZERO,
        }
    }

    fn recorded_extended_1(&self, seen: CpuidResult, host: CpuidResult) -> CpuidResult {
        let extended = self.spec().amd().is_some_and(|amd| amd.extended);
        let ecx = seen.ecx & (host.ecx | LEAVES_ALONE) & !super::extended::HIDDEN;
        let svm = self.offers_svm() && seen.ecx & super::extended::SVM != 0;
        let ecx = self.with_ibs(put(ecx, super::extended::SVM, svm));
        CpuidResult {
            ecx: put(ecx, super::extended::PERFCTR_CORE, extended),
            edx: seen.edx & host.edx,
            ..seen
        }
    }

    /// Widths of addresses are the machine's; ECX says how many processors share a package.
    fn recorded_extended_8(&self, seen: CpuidResult, host: CpuidResult) -> CpuidResult {
        let irperf = self.spec().amd().is_some_and(|amd| amd.irperf);
        let ebx = put(seen.ebx & host.ebx, super::extended::IRPERF, irperf);
        CpuidResult { eax: host.eax, ebx, ..seen }
    }

    /// Without the counters of data fabric and memory controllers.
    fn recorded_v2(&self, seen: CpuidResult) -> CpuidResult {
        let (PmuKind::Amd(amd), lbr) = (&self.spec().pmu, &self.spec().lbr) else {
            return CpuidResult::ZERO;
        };
        if !amd.v2 {
            return CpuidResult::ZERO;
        }
        let (records, entries) = match lbr {
            LbrKind::AmdV2 { entries } => (2, u32::from(*entries)),
            _ => (0, 0),
        };
        let extra = u32::from(self.is(Mutation::OneCounterTooManyEnumerated));
        CpuidResult {
            eax: seen.eax & 5 | records,
            ebx: (u32::from(amd.counters) + extra) | entries << 4,
            ..CpuidResult::ZERO
        }
    }
}

/// Without the states that stand for registers which are not shown.
fn extended_state(subleaf: u32, host: CpuidResult) -> CpuidResult {
    match subleaf {
        1 => CpuidResult { ecx: host.ecx & !XSS_HIDDEN, ..host },
        8 | 15 => CpuidResult::ZERO,
        _ => host,
    }
}

/// Bits that both have.
fn both(one: CpuidResult, other: CpuidResult) -> CpuidResult {
    CpuidResult {
        eax: one.eax & other.eax,
        ebx: one.ebx & other.ebx,
        ecx: one.ecx & other.ecx,
        edx: one.edx & other.edx,
    }
}

fn has_23(leaves: Leaves) -> bool {
    leaves.of(7, 0)[0] >= 1 && leaves.answer(7, 1)[0] & ARCH_PERFMON_EXT != 0 && leaves.has(0x23)
}
