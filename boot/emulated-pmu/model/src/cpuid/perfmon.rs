//! Intel's leaves of performance monitoring and of the last-branch records.

use super::CpuidResult;
use crate::Pmu;
use crate::model::LbrKind;
use crate::mutation::Mutation;

/// The sub-leaf of leaf 0x23 whose EBX has the groups of architectural PEBS.
const RECORD_GROUPS: u32 = 4;

impl Pmu {
    pub(super) fn leaf_a(&self) -> CpuidResult {
        let Some(intel) = self.spec().intel() else {
            return CpuidResult::ZERO;
        };
        let mut leaf = CpuidResult::new(intel.leaf_a);
        if self.is(Mutation::OneCounterTooManyEnumerated) {
            leaf.eax += 1 << 8;
        }
        leaf
    }

    pub(super) fn leaf_1c(&self, subleaf: u32) -> CpuidResult {
        match &self.spec().lbr {
            LbrKind::Arch(arch) if subleaf == 0 => {
                let [eax, ebx, ecx] = arch.leaf;
                CpuidResult::new([eax, ebx, ecx, 0])
            }
            _ => CpuidResult::ZERO,
        }
    }

    pub(super) fn leaf_23(&self, subleaf: u32) -> CpuidResult {
        let leaf = self.spec().intel().and_then(|intel| intel.leaf_23);
        leaf.and_then(|leaf| leaf.get(subleaf as usize).copied()).map_or(
            CpuidResult::ZERO,
            |[eax, ebx, ecx, edx]| {
                let ebx = if subleaf == RECORD_GROUPS { self.there(ebx) } else { ebx };
                CpuidResult::new([eax, ebx, ecx, edx])
            },
        )
    }
}
