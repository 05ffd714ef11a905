//! AMD: leaves 0x80000001, 0x80000008, 0x8000001B and 0x80000022.

use super::{Architecture, Capabilities, FreezeKind};
use crate::cpu::has_leaf;
use crate::pmu::access::{Registers, leaves};
use crate::pmu::numbers;

/// Leaf 0x80000001 ECX: PerfCtrExtCore.
const PERF_CTR_EXT_CORE: u32 = 1 << 23;
/// Leaf 0x80000001 ECX: IBS.
const IBS: u32 = 1 << 10;
/// Leaf 0x80000008 EBX: the instructions-retired counter.
const IRPERF: u32 = 1 << 1;
/// Leaf 0x80000022 EAX: PerfMonV2.
const PERFMON_V2: u32 = 1 << 0;
/// Leaf 0x80000022 EAX: branch records and counters can be frozen by a PMI.
const FREEZE_ON_PMI: u32 = 1 << 2;
/// Counters 0 to 2, which alone count event 0x76 on family 15h (Linux, `amd_f15_PMC20`).
const PMC_2_0: u32 = 0b111;

pub(super) fn read(registers: &mut dyn Registers, family: u32) -> Option<Capabilities> {
    let cpuid = leaves(registers);
    // Every AMD processor with long mode has the four legacy counters without announcing them. A smaller
    // family is an emulator's: QEMU's `-cpu max` says AMD, family 6.
    if family < 0xf || !has_leaf(&cpuid, 0x8000_0001) {
        return None;
    }
    let features = registers.cpuid(0x8000_0001, 0).ecx;
    let v2 = if has_leaf(&cpuid, 0x8000_0022) { registers.cpuid(0x8000_0022, 0) } else { ZERO };
    let (version, counters) = match (v2.eax & PERFMON_V2 != 0, features & PERF_CTR_EXT_CORE != 0) {
        (true, _) => (2, v2.ebx & 0xf),
        (_, true) => (1, 6),
        _ => (0, 4),
    };
    let mut seen = Capabilities::nothing(Architecture::Amd, version);
    seen.general = (1 << counters) - 1;
    // The width is not enumerated: 48 on all of them (APM vol. 2, 13.2.1).
    seen.general_bits = 48;
    if family == 0x15 {
        seen.cycles = PMC_2_0;
    }
    if v2.eax & FREEZE_ON_PMI != 0 && version == 2 {
        seen.freeze = FreezeKind::Streamlined;
    }
    seen.irperf =
        has_leaf(&cpuid, 0x8000_0008) && registers.cpuid(0x8000_0008, 0).ebx & IRPERF != 0;
    // The leaf came with revision C of family 10h; before it there are both units (Linux, `IBS_CAPS_DEFAULT`).
    let has_leaf = has_leaf(&cpuid, 0x8000_001b);
    let ibs = || if has_leaf { registers.cpuid(0x8000_001b, 0).eax } else { 0 };
    seen.ibs = (features & IBS != 0).then(ibs);
    seen.ibs_erratum_420 = family == 0x10;
    drop(cpuid);
    seen.lose_global(registers, [numbers::AMD_GLOBAL_CTL, numbers::AMD_GLOBAL_STATUS]);
    let lost = "nothing is frozen on a PMI";
    if seen.freeze != FreezeKind::None && !seen.there(registers, numbers::DEBUGCTL, lost) {
        seen.freeze = FreezeKind::None;
    }
    Some(seen)
}

const ZERO: raw_cpuid::CpuIdResult = raw_cpuid::CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    /// APM vol. 3, appendix E: functions 8000_0001, 8000_0008 and 8000_0022.
    #[test]
    fn the_bits_are_where_the_manual_has_them() {
        assert_eq!((PERF_CTR_EXT_CORE, IBS), (0x80_0000, 0x400));
        assert_eq!((IRPERF, PERFMON_V2, FREEZE_ON_PMI), (2, 1, 4));
    }
}
