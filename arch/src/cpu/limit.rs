//! "Limit CPUID Maximum", an option of many firmwares for old systems, which hides everything after leaf 2 or 3: the PMU, the
//! topology, XSAVE's components (SDM vol. 4, table 2-2: IA32_MISC_ENABLE bit 22).

use super::{Cpuid, native};
use crate::msr;

/// IA32_MISC_ENABLE: CPUID's leaf 0 says that there is no leaf after 2 or 3.
const LIMIT_CPUID: u64 = 1 << 22;
/// EBX of leaf 0 of Intel's processors: "Genu".
const GENU: u32 = 0x756e_6547;

/// Lifts the limit, where there is one. To be called before anything else is read by CPUID, on each processor.
///
/// # Safety
/// Ring 0, interrupt table loaded.
pub unsafe fn lift() {
    if !may_have(&native()) {
        return;
    }
    // SAFETY: guarded; the bit has no other effect than that of CPUID.
    unsafe {
        if let Ok(value) = msr::try_read(msr::IA32_MISC_ENABLE)
            && value & LIMIT_CPUID != 0
        {
            let _ = msr::try_write(msr::IA32_MISC_ENABLE, value & !LIMIT_CPUID);
        }
    }
}

/// Whether the processor may have the bit: Intel's from family 6 model 0xd on (Linux, `intel_unlock_cpuid_leafs`). Leaves 0 and 1
/// are never hidden.
fn may_have(cpuid: &impl Cpuid) -> bool {
    let signature = cpuid.cpuid1(1).eax;
    let family = signature >> 8 & 0xf;
    let model = signature >> 4 & 0xf | signature >> 12 & 0xf0;
    cpuid.cpuid1(0).ebx == GENU && (family > 6 || family == 6 && model >= 0xd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests::{INTEL, table};

    #[test]
    fn the_limit_is_looked_for_on_intels_processors_that_have_it() {
        let core_2 = table(&[(0, 0, [2, INTEL[0], INTEL[1], INTEL[2]]), (1, 0, [0x6f6, 0, 0, 0])]);
        let skylake =
            table(&[(0, 0, [2, INTEL[0], INTEL[1], INTEL[2]]), (1, 0, [0x506e3, 0, 0, 0])]);
        let netburst =
            table(&[(0, 0, [2, INTEL[0], INTEL[1], INTEL[2]]), (1, 0, [0xf41, 0, 0, 0])]);
        let pentium_3 =
            table(&[(0, 0, [2, INTEL[0], INTEL[1], INTEL[2]]), (1, 0, [0x6b1, 0, 0, 0])]);
        let amd = table(&[(0, 0, [1, 0x6874_7541, 0, 0]), (1, 0, [0x80_0f11, 0, 0, 0])]);
        assert!(may_have(&core_2) && may_have(&skylake) && may_have(&netburst));
        assert!(!may_have(&pentium_3) && !may_have(&amd));
    }
}
