//! Names of the registers that a bring-up reads: Intel SDM vol. 4, chapter 2; AMD APM vol. 2, appendix A.

/// First number, how many follow each other, and the name; `#` stands for the number among them.
const NAMES: &[(u32, u32, &str)] = &[
    (0x10, 1, "IA32_TIME_STAMP_COUNTER"),
    (0x1b, 1, "IA32_APIC_BASE"),
    (0x34, 1, "MSR_SMI_COUNT"),
    (0x3a, 1, "IA32_FEATURE_CONTROL"),
    (0x8b, 1, "IA32_BIOS_SIGN_ID"),
    (0xc1, 8, "IA32_PMC#"),
    (0xce, 1, "MSR_PLATFORM_INFO"),
    (0xe7, 1, "IA32_MPERF"),
    (0xe8, 1, "IA32_APERF"),
    (0x10a, 1, "IA32_ARCH_CAPABILITIES"),
    (0x186, 8, "IA32_PERFEVTSEL#"),
    (0x198, 1, "IA32_PERF_STATUS"),
    (0x199, 1, "IA32_PERF_CTL"),
    (0x19a, 1, "IA32_CLOCK_MODULATION"),
    (0x1a0, 1, "IA32_MISC_ENABLE"),
    (0x1a4, 1, "MSR_PREFETCH_CONTROL"),
    (0x1a6, 2, "MSR_OFFCORE_RSP_#"),
    (0x1ad, 1, "MSR_TURBO_RATIO_LIMIT"),
    (0x1b0, 1, "IA32_ENERGY_PERF_BIAS"),
    (0x1c8, 1, "MSR_LBR_SELECT"),
    (0x1c9, 1, "MSR_LASTBRANCH_TOS"),
    (0x1d9, 1, "IA32_DEBUGCTL"),
    (0x1db, 1, "MSR_LASTBRANCH_FROM_IP"),
    (0x1dc, 1, "MSR_LASTBRANCH_TO_IP"),
    (0x1dd, 1, "MSR_LER_FROM_LIP"),
    (0x1de, 1, "MSR_LER_TO_LIP"),
    (0x309, 7, "IA32_FIXED_CTR#"),
    (0x329, 1, "MSR_PERF_METRICS"),
    (0x345, 1, "IA32_PERF_CAPABILITIES"),
    (0x38d, 1, "IA32_FIXED_CTR_CTRL"),
    (0x38e, 1, "IA32_PERF_GLOBAL_STATUS"),
    (0x38f, 1, "IA32_PERF_GLOBAL_CTRL"),
    (0x390, 1, "IA32_PERF_GLOBAL_STATUS_RESET"),
    (0x391, 1, "IA32_PERF_GLOBAL_STATUS_SET"),
    (0x392, 1, "IA32_PERF_GLOBAL_INUSE"),
    (0x3f1, 1, "IA32_PEBS_ENABLE"),
    (0x3f2, 1, "MSR_PEBS_DATA_CFG"),
    (0x3f6, 1, "MSR_PEBS_LD_LAT"),
    (0x3f7, 1, "MSR_PEBS_FRONTEND"),
    (0x4c1, 8, "IA32_A_PMC#"),
    (0x570, 1, "IA32_RTIT_CTL"),
    (0x600, 1, "IA32_DS_AREA"),
    (0x606, 1, "MSR_RAPL_POWER_UNIT"),
    (0x611, 1, "MSR_PKG_ENERGY_STATUS"),
    (0x619, 1, "MSR_DRAM_ENERGY_STATUS"),
    (0x639, 1, "MSR_PP0_ENERGY_STATUS"),
    (0x641, 1, "MSR_PP1_ENERGY_STATUS"),
    (0x64d, 1, "MSR_PLATFORM_ENERGY_COUNTER"),
    (0x770, 1, "IA32_PM_ENABLE"),
    (0x771, 1, "IA32_HWP_CAPABILITIES"),
    (0x774, 1, "IA32_HWP_REQUEST"),
    (0x14ce, 1, "IA32_LBR_CTL"),
    (0x14cf, 1, "IA32_LBR_DEPTH"),
    (0x1920, 1, "IA32_PMC_GP8_CTR"),
    (0x1921, 1, "IA32_PMC_GP8_CFG_A"),
    (0x1924, 1, "IA32_PMC_GP9_CTR"),
    (0x1925, 1, "IA32_PMC_GP9_CFG_A"),
    (0x1928, 1, "IA32_PMC_GP10_CTR"),
    (0x1929, 1, "IA32_PMC_GP10_CFG_A"),
    (0xc000_00e7, 1, "MPerfReadOnly"),
    (0xc000_00e8, 1, "APerfReadOnly"),
    (0xc000_00e9, 1, "IRPerfCount"),
    (0xc000_010e, 1, "LbrSelect"),
    (0xc000_010f, 1, "DebugExtnCtl"),
    (0xc000_0300, 1, "PerfCntrGlobalStatus"),
    (0xc000_0301, 1, "PerfCntrGlobalCtl"),
    (0xc000_0302, 1, "PerfCntrGlobalStatusClr"),
    (0xc000_0303, 1, "PerfCntrGlobalStatusSet"),
    (0xc001_0000, 4, "PERF_LEGACY_CTL#"),
    (0xc001_0004, 4, "PERF_LEGACY_CTR#"),
    (0xc001_0015, 1, "HWCR"),
    (0xc001_0061, 1, "PStateCurLim"),
    (0xc001_0062, 1, "PStateCtl"),
    (0xc001_0063, 1, "PStateStat"),
    (0xc001_0064, 8, "PStateDef#"),
    (0xc001_0299, 1, "RAPL_PWR_UNIT"),
    (0xc001_029a, 1, "CORE_ENERGY_STAT"),
    (0xc001_029b, 1, "PKG_ENERGY_STAT"),
    (0xc001_1029, 1, "DE_CFG"),
    (0xc001_1030, 13, "instruction-based sampling, register #"),
];
/// In turns: control and counter.
const PAIRS: &[(u32, u32, [&str; 2])] = &[
    (0xc001_0200, 6, ["PERF_CTL#", "PERF_CTR#"]),
    (0xc001_0230, 6, ["ChL3PmcCfg#", "ChL3Pmc#"]),
    (0xc001_0240, 4, ["DF_PERF_CTL#", "DF_PERF_CTR#"]),
];

/// The register's name; its number alone for one that is not listed.
#[must_use]
pub fn name(msr: u32) -> String {
    let numbered = |name: &str, number: u32| name.replace('#', &number.to_string());
    let single = NAMES.iter().find(|(first, count, _)| msr.wrapping_sub(*first) < *count);
    let pair = PAIRS.iter().find(|(first, count, _)| msr.wrapping_sub(*first) < 2 * count);
    match (single, pair) {
        (Some((first, _, name)), _) => numbered(name, msr - first),
        (None, Some((first, _, names))) => {
            numbered(names[((msr - first) % 2) as usize], (msr - first) / 2)
        }
        (None, None) => format!("MSR {msr:#x}"),
    }
}
