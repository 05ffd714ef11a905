//! Numbers of the PMU's model-specific registers. Intel: SDM vol. 4, chapter 2; AMD: APM vol. 2, appendix A.

use crate::msr::Msr;

/// LBR FROM and TO of Core, Bonnell and Silvermont.
pub const LBR_CORE_FROM: u32 = 0x40;
/// See [`LBR_CORE_FROM`].
pub const LBR_CORE_TO: u32 = 0x60;
/// IA32_PMC0; 32 bits of it can be written.
pub const PMC: u32 = 0xc1;
/// IA32_PERFEVTSEL0.
pub const PERFEVTSEL: u32 = 0x186;
/// MSR_OFFCORE_RSP_0.
pub const OFFCORE_RSP_0: Msr = Msr(0x1a6);
/// MSR_OFFCORE_RSP_1.
pub const OFFCORE_RSP_1: Msr = Msr(0x1a7);
/// MSR_LBR_SELECT.
pub const LBR_SELECT: Msr = Msr(0x1c8);
/// MSR_LASTBRANCH_TOS.
pub const LBR_TOS: Msr = Msr(0x1c9);
/// IA32_DEBUGCTL, the same on AMD.
pub const DEBUGCTL: Msr = Msr(0x1d9);
/// The branch before the last one taken, on processors with a single record (P6 layout, AMD).
pub const LAST_BRANCH_FROM: Msr = Msr(0x1db);
/// See [`LAST_BRANCH_FROM`].
pub const LAST_BRANCH_TO: Msr = Msr(0x1dc);
/// IA32_FIXED_CTR0.
pub const FIXED_CTR: u32 = 0x309;
/// MSR_PERF_METRICS.
pub const PERF_METRICS: Msr = Msr(0x329);
/// IA32_PERF_CAPABILITIES.
pub const PERF_CAPABILITIES: Msr = Msr(0x345);
/// IA32_FIXED_CTR_CTRL.
pub const FIXED_CTR_CTRL: Msr = Msr(0x38d);
/// IA32_PERF_GLOBAL_STATUS.
pub const GLOBAL_STATUS: Msr = Msr(0x38e);
/// IA32_PERF_GLOBAL_CTRL.
pub const GLOBAL_CTRL: Msr = Msr(0x38f);
/// IA32_PERF_GLOBAL_OVF_CTRL; from version 4 on called IA32_PERF_GLOBAL_STATUS_RESET.
pub const GLOBAL_OVF_CTRL: Msr = Msr(0x390);
/// IA32_PERF_GLOBAL_STATUS_SET, version 4. On Nehalem to Broadwell this number is an uncore register.
pub const GLOBAL_STATUS_SET: Msr = Msr(0x391);
/// IA32_PERF_GLOBAL_INUSE, version 4; the same warning.
pub const GLOBAL_INUSE: Msr = Msr(0x392);
/// IA32_PEBS_ENABLE.
pub const PEBS_ENABLE: Msr = Msr(0x3f1);
/// MSR_PEBS_DATA_CFG.
pub const PEBS_DATA_CFG: Msr = Msr(0x3f2);
/// IA32_PEBS_BASE: the buffer of architectural PEBS.
pub const PEBS_BASE: Msr = Msr(0x3f4);
/// IA32_PEBS_INDEX: where its next record goes.
pub const PEBS_INDEX: Msr = Msr(0x3f5);
/// MSR_PEBS_LD_LAT_THRESHOLD.
pub const LOAD_LATENCY: Msr = Msr(0x3f6);
/// MSR_PEBS_FRONTEND.
pub const FRONTEND: Msr = Msr(0x3f7);
/// IA32_A_PMC0: all bits of [`PMC`], with PERF_CAPABILITIES\[13\].
pub const A_PMC: u32 = 0x4c1;
/// IA32_DS_AREA.
pub const DS_AREA: Msr = Msr(0x600);
/// LBR FROM of Nehalem and later.
pub const LBR_FROM: u32 = 0x680;
/// LBR TO of Nehalem and later.
pub const LBR_TO: u32 = 0x6c0;
/// LBR INFO of Skylake and later.
pub const LBR_INFO: u32 = 0xdc0;
/// IA32_LBR_0_INFO of the architectural LBR.
pub const ARCH_LBR_INFO: u32 = 0x1200;
/// IA32_LBR_CTL.
pub const ARCH_LBR_CTL: Msr = Msr(0x14ce);
/// IA32_LBR_DEPTH.
pub const ARCH_LBR_DEPTH: Msr = Msr(0x14cf);
/// IA32_LBR_0_FROM_IP.
pub const ARCH_LBR_FROM: u32 = 0x1500;
/// IA32_LBR_0_TO_IP.
pub const ARCH_LBR_TO: u32 = 0x1600;
/// IA32_PMC_GP0_CTR of version 6; four registers a counter: counter, select, two more.
pub const V6_GENERAL: u32 = 0x1900;
/// IA32_PMC_FX0_CTR of version 6; likewise.
pub const V6_FIXED: u32 = 0x1980;

/// AMD: instructions retired, read-only.
pub const AMD_IRPERF: Msr = Msr(0xc000_00e9);
/// AMD LBRv2: filter.
pub const AMD_LBR_SELECT: Msr = Msr(0xc000_010e);
/// AMD LBRv2: DebugExtnCtl, bit 6 switches on.
pub const AMD_DEBUG_EXTN: Msr = Msr(0xc000_010f);
/// AMD PerfMonV2: PerfCntrGlobalStatus.
pub const AMD_GLOBAL_STATUS: Msr = Msr(0xc000_0300);
/// AMD PerfMonV2: PerfCntrGlobalCtl.
pub const AMD_GLOBAL_CTL: Msr = Msr(0xc000_0301);
/// AMD PerfMonV2: PerfCntrGlobalStatusClr.
pub const AMD_GLOBAL_STATUS_CLR: Msr = Msr(0xc000_0302);
/// AMD PerfMonV2: PerfCntrGlobalStatusSet.
pub const AMD_GLOBAL_STATUS_SET: Msr = Msr(0xc000_0303);
/// AMD: PerfEvtSel of the four counters of every 64-bit processor.
pub const AMD_LEGACY_CTL: u32 = 0xc001_0000;
/// AMD: their counters.
pub const AMD_LEGACY_CTR: u32 = 0xc001_0004;
/// AMD: HWCR; bit 30 switches the instructions-retired counter on.
pub const AMD_HWCR: Msr = Msr(0xc001_0015);
/// AMD with PerfCtrExtCore: control and counter in turns.
pub const AMD_PERF_CTL: u32 = 0xc001_0200;
/// AMD LBRv2: FROM and TO in turns.
pub const AMD_LBR: u32 = 0xc001_0300;
