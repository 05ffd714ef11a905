//! Numbers of the registers, with the manuals' names (Intel SDM volume 4, AMD APM volume 2).

/// `IA32_PMC0`; one per counter.
pub const PMC: u32 = 0xC1;
/// `IA32_PERFEVTSEL0`; one per counter.
pub const PERFEVTSEL: u32 = 0x186;
/// `IA32_MISC_ENABLE`.
pub const MISC_ENABLE: u32 = 0x1A0;
/// `MSR_OFFCORE_RSP_0`.
pub const OFFCORE_RSP_0: u32 = 0x1A6;
/// `MSR_OFFCORE_RSP_1`.
pub const OFFCORE_RSP_1: u32 = 0x1A7;
/// `MSR_LBR_SELECT`.
pub const LBR_SELECT: u32 = 0x1C8;
/// `MSR_LASTBRANCH_TOS`.
pub const LBR_TOS: u32 = 0x1C9;
/// `IA32_DEBUGCTL`, AMD's `DebugCtl`.
pub const DEBUGCTL: u32 = 0x1D9;
/// `LastBranchFromIP`: a copy of the newest record.
pub const LAST_BRANCH_FROM: u32 = 0x1DB;
/// `LastBranchToIP`.
pub const LAST_BRANCH_TO: u32 = 0x1DC;
/// `MSR_LER_FROM_LIP`, AMD's `LastIntFromIP`: the last branch before an interrupt or exception.
pub const LER_FROM: u32 = 0x1DD;
/// `MSR_LER_TO_LIP`, AMD's `LastIntToIP`.
pub const LER_TO: u32 = 0x1DE;
/// `IA32_LER_INFO`, with architectural LBRs.
pub const LER_INFO: u32 = 0x1E0;
/// `IA32_FIXED_CTR0`; one per fixed counter.
pub const FIXED_CTR: u32 = 0x309;
/// `MSR_PERF_METRICS`.
pub const PERF_METRICS: u32 = 0x329;
/// `IA32_PERF_CAPABILITIES`.
pub const PERF_CAPABILITIES: u32 = 0x345;
/// `IA32_FIXED_CTR_CTRL`.
pub const FIXED_CTR_CTRL: u32 = 0x38D;
/// `IA32_PERF_GLOBAL_STATUS`.
pub const GLOBAL_STATUS: u32 = 0x38E;
/// `IA32_PERF_GLOBAL_CTRL`.
pub const GLOBAL_CTRL: u32 = 0x38F;
/// `IA32_PERF_GLOBAL_OVF_CTRL`, from version 4 `IA32_PERF_GLOBAL_STATUS_RESET`.
pub const GLOBAL_OVF_CTRL: u32 = 0x390;
/// `IA32_PERF_GLOBAL_STATUS_SET`, version 4.
pub const GLOBAL_STATUS_SET: u32 = 0x391;
/// `IA32_PERF_GLOBAL_INUSE`, version 4.
pub const GLOBAL_INUSE: u32 = 0x392;
/// `MSR_UNC_PERF_FIXED_CTRL`: the uncore's clock.
pub const UNCORE_CLOCK_CTRL: u32 = 0x394;
/// `MSR_UNC_PERF_FIXED_CTR`.
pub const UNCORE_CLOCK: u32 = 0x395;
/// `MSR_UNC_ARB_PERFCTR0`; two of them.
pub const UNCORE_ARB_CTR: u32 = 0x3B0;
/// `MSR_UNC_ARB_PERFEVTSEL0`; two of them.
pub const UNCORE_ARB_SELECT: u32 = 0x3B2;
/// The last of them.
pub const UNCORE_ARB_LAST: u32 = UNCORE_ARB_SELECT + 1;
/// `MSR_UNC_PERF_GLOBAL_CTRL`, as Skylake has it.
pub const UNCORE_GLOBAL: u32 = 0xE01;
/// `IA32_PEBS_ENABLE`.
pub const PEBS_ENABLE: u32 = 0x3F1;
/// `MSR_PEBS_DATA_CFG`.
pub const PEBS_DATA_CFG: u32 = 0x3F2;
/// `IA32_PEBS_BASE`, architectural PEBS.
pub const PEBS_BASE: u32 = 0x3F4;
/// `IA32_PEBS_INDEX`.
pub const PEBS_INDEX: u32 = 0x3F5;
/// `MSR_PEBS_LD_LAT`.
pub const LOAD_LATENCY: u32 = 0x3F6;
/// `MSR_PEBS_FRONTEND`.
pub const FRONTEND: u32 = 0x3F7;
/// `IA32_A_PMC0`: full-width alias of `IA32_PMC0`; one per counter.
pub const A_PMC: u32 = 0x4C1;
/// `IA32_DS_AREA`.
pub const DS_AREA: u32 = 0x600;
/// `MSR_RAPL_POWER_UNIT`.
pub const RAPL_POWER_UNIT: u32 = 0x606;
/// `MSR_PKG_ENERGY_STATUS`.
pub const PKG_ENERGY: u32 = 0x611;
/// `MSR_DRAM_ENERGY_STATUS`.
pub const DRAM_ENERGY: u32 = 0x619;
/// `MSR_PP0_ENERGY_STATUS`: the cores.
pub const PP0_ENERGY: u32 = 0x639;
/// `MSR_PP1_ENERGY_STATUS`: the graphics.
pub const PP1_ENERGY: u32 = 0x641;
/// `MSR_PLATFORM_ENERGY_COUNTER`.
pub const PLATFORM_ENERGY: u32 = 0x64D;
/// LBR stack of Core 2: FROM.
pub const LBR_CORE_FROM: u32 = 0x40;
/// LBR stack of Core 2: TO.
pub const LBR_CORE_TO: u32 = 0x60;
/// LBR stack of Nehalem and later: FROM.
pub const LBR_NHM_FROM: u32 = 0x680;
/// LBR stack of Nehalem and later: TO.
pub const LBR_NHM_TO: u32 = 0x6C0;
/// LBR stack of Skylake and later: INFO.
pub const LBR_INFO: u32 = 0xDC0;
/// `IA32_LBR_0_INFO`.
pub const ARCH_LBR_INFO: u32 = 0x1200;
/// `IA32_LBR_CTL`.
pub const ARCH_LBR_CTL: u32 = 0x14CE;
/// `IA32_LBR_DEPTH`.
pub const ARCH_LBR_DEPTH: u32 = 0x14CF;
/// `IA32_LBR_0_FROM_IP`.
pub const ARCH_LBR_FROM: u32 = 0x1500;
/// `IA32_LBR_0_TO_IP`.
pub const ARCH_LBR_TO: u32 = 0x1600;
/// `IA32_PMC_GP0_CTR`, version 6: counter, selector and two more registers for each counter.
pub const V6_GP: u32 = 0x1900;
/// `IA32_PMC_FX0_CTR`, version 6: counter and three more registers for each fixed counter.
pub const V6_FIXED: u32 = 0x1980;

/// AMD: instructions retired, read-only (`IRPerfCount`).
pub const AMD_IRPERF: u32 = 0xC000_00E9;
/// AMD: `LbrSelect`.
pub const AMD_LBR_SELECT: u32 = 0xC000_010E;
/// AMD: `DebugExtnCtl`.
pub const AMD_DEBUG_EXTN: u32 = 0xC000_010F;
/// AMD: `PerfCntrGlobalStatus`.
pub const AMD_GLOBAL_STATUS: u32 = 0xC000_0300;
/// AMD: `PerfCntrGlobalCtl`.
pub const AMD_GLOBAL_CTL: u32 = 0xC000_0301;
/// AMD: `PerfCntrGlobalStatusClr`.
pub const AMD_GLOBAL_STATUS_CLR: u32 = 0xC000_0302;
/// AMD: `PerfCntrGlobalStatusSet`.
pub const AMD_GLOBAL_STATUS_SET: u32 = 0xC000_0303;
/// AMD: `PERF_LEGACY_CTL0`, four of them.
pub const AMD_LEGACY_CTL: u32 = 0xC001_0000;
/// AMD: `PERF_LEGACY_CTR0`, four of them.
pub const AMD_LEGACY_CTR: u32 = 0xC001_0004;
/// AMD: `HWCR`.
pub const AMD_HWCR: u32 = 0xC001_0015;
/// AMD: `PERF_CTL0` and `PERF_CTR0`, in turn for each counter.
pub const AMD_PERF_CTL: u32 = 0xC001_0200;
/// AMD: `RAPL_PWR_UNIT`.
pub const AMD_RAPL_POWER_UNIT: u32 = 0xC001_0299;
/// AMD: `CORE_ENERGY_STAT`.
pub const AMD_CORE_ENERGY: u32 = 0xC001_029A;
/// AMD: `PKG_ENERGY_STAT`.
pub const AMD_PKG_ENERGY: u32 = 0xC001_029B;
/// AMD: FROM and TO of the LBR stack, in turn for each entry.
pub const AMD_LBR: u32 = 0xC001_0300;
/// AMD: `IBS_FETCH_CTL`, the first of the registers of instruction-based sampling, in the order of their numbers: that, linear
/// and physical address of the fetch; `IBS_OP_CTL`, `IBS_OP_RIP`, three registers of data, linear and physical address of the
/// data; `IBS_CTL`, the branch's target, the fetch's extended control, and a fourth register of data.
pub const AMD_IBS: u32 = 0xC001_1030;
/// AMD: `IBS_CTL`.
pub const AMD_IBS_CTL: u32 = 0xC001_103A;

/// The first of barecount's own registers, see [`crate::qualify`]. They lie in the numbers that no processor will ever have
/// (SDM vol. 4, 2.1: 0x40000000 to 0x4000FFFF), above those that hypervisors use (Hyper-V: up to 0x400001FF). No permission map covers them:
/// every access exits.
pub const QUALIFIERS: u32 = 0x4000_F100;

/// Every register that a PMU of either vendor has had and that this crate answers for, first and
/// last number of each run. What a model has not raises #GP; see [`crate::Pmu::owns`] for the three
/// that depend on the model. All lie within what the permission map of AMD's SVM covers.
pub const RANGES: &[(u32, u32)] = &[
    (LBR_CORE_FROM, LBR_CORE_FROM + 7),
    (LBR_CORE_TO, LBR_CORE_TO + 7),
    // The numbers after the last counter belong to nothing else on any part here.
    (PMC, PMC + 11),
    (PERFEVTSEL, PERFEVTSEL + 15),
    (MISC_ENABLE, MISC_ENABLE),
    (OFFCORE_RSP_0, OFFCORE_RSP_1),
    (LBR_SELECT, LBR_TOS),
    (DEBUGCTL, DEBUGCTL),
    (LAST_BRANCH_FROM, LER_TO),
    (LER_INFO, LER_INFO),
    (FIXED_CTR, FIXED_CTR + 7),
    (PERF_METRICS, PERF_METRICS),
    (PERF_CAPABILITIES, PERF_CAPABILITIES),
    (FIXED_CTR_CTRL, GLOBAL_INUSE),
    (UNCORE_CLOCK_CTRL, UNCORE_CLOCK),
    (UNCORE_ARB_CTR, UNCORE_ARB_LAST),
    // PEBS_ENABLE and PEBS_DATA_CFG; the architectural PEBS base and index; the filters.
    (PEBS_ENABLE, PEBS_DATA_CFG),
    (PEBS_BASE, FRONTEND),
    (A_PMC, A_PMC + 15),
    (DS_AREA, DS_AREA),
    (RAPL_POWER_UNIT, RAPL_POWER_UNIT),
    (PKG_ENERGY, PKG_ENERGY),
    (DRAM_ENERGY, DRAM_ENERGY),
    (PP0_ENERGY, PP0_ENERGY),
    (PP1_ENERGY, PP1_ENERGY),
    (PLATFORM_ENERGY, PLATFORM_ENERGY),
    (LBR_NHM_FROM, LBR_NHM_FROM + 31),
    (LBR_NHM_TO, LBR_NHM_TO + 31),
    (LBR_INFO, LBR_INFO + 31),
    (UNCORE_GLOBAL, UNCORE_GLOBAL),
    (ARCH_LBR_INFO, ARCH_LBR_INFO + 31),
    // Reload values of PEBS through Processor Trace, and the small cores' SNOOP_RSP.
    (0x1309, 0x130F),
    (0x1328, 0x1329),
    (0x14C1, 0x14CA),
    (ARCH_LBR_CTL, ARCH_LBR_DEPTH),
    (ARCH_LBR_FROM, ARCH_LBR_FROM + 31),
    (ARCH_LBR_TO, ARCH_LBR_TO + 31),
    (V6_GP, V6_GP + 0xFF),
    (AMD_IRPERF, AMD_IRPERF),
    (AMD_LBR_SELECT, AMD_DEBUG_EXTN),
    (AMD_GLOBAL_STATUS, AMD_GLOBAL_STATUS_SET),
    (AMD_LEGACY_CTL, AMD_LEGACY_CTR + 3),
    (AMD_HWCR, AMD_HWCR),
    (AMD_PERF_CTL, AMD_PERF_CTL + 15),
    // L2I or L3, and northbridge or data fabric counters.
    (0xC001_0230, 0xC001_023B),
    (0xC001_0240, 0xC001_0247),
    (AMD_RAPL_POWER_UNIT, AMD_PKG_ENERGY),
    (AMD_LBR, AMD_LBR + 31),
    // Instruction-based sampling.
    (AMD_IBS, AMD_IBS + 13),
];

/// Whether a register is one of the uncore's that are modelled.
pub(crate) const fn is_uncore(msr: u32) -> bool {
    matches!(
        msr,
        UNCORE_CLOCK_CTRL | UNCORE_CLOCK | UNCORE_GLOBAL | UNCORE_ARB_CTR..=UNCORE_ARB_LAST
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_rise_and_do_not_touch() {
        for pair in RANGES.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:x?}");
        }
    }

    #[test]
    fn ranges_lie_in_the_permission_map_of_svm() {
        for (first, last) in RANGES {
            for msr in [first, last] {
                let block = msr & !0x1FFF;
                assert!([0, 0xC000_0000, 0xC001_0000].contains(&block), "{msr:#x}");
            }
        }
    }
}
