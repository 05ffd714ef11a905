//! Bits of CFG_C 63:32, which sub-leaf 4 of leaf 0x23 has in EBX and the header of a record in the same place (Linux,
//! `arch/x86/include/asm/msr-index.h`, `ARCH_PEBS_*`; `union arch_pebs_header` in `asm/perf_event.h`).

/// The counter's value may be in records of others.
pub(crate) const ALLOW: u64 = 1 << 35;
/// Values of general-purpose counters, of fixed ones, and of PERF_METRICS with that of slots.
pub(crate) const GENERAL: u64 = 1 << 36;
pub(crate) const FIXED: u64 = 1 << 37;
pub(crate) const METRICS: u64 = 1 << 38;
/// Branch records: none, 8, 16, or as many as IA32_LBR_DEPTH says.
pub(crate) const BRANCHES: u64 = 3 << 40;
pub(crate) const BRANCHES_AT: u32 = 40;
/// XMM0 to XMM15.
pub(crate) const VECTORS: u64 = 1 << 49;
/// The upper halves of YMM0 to YMM15.
pub(crate) const YMM_UPPER: u64 = 1 << 50;
/// General registers.
pub(crate) const REGISTERS: u64 = 1 << 61;
/// The data's address, source and latency.
pub(crate) const AUXILIARY: u64 = 1 << 62;
/// In CFG_C: the counter writes records. In a header: the basic group is there.
pub(crate) const ENABLE: u64 = 1 << 63;
/// What the model does. What came with AVX-512, bits 53 to 55, is not among it: QEMU's translator does not have that.
pub(crate) const OFFERED: u64 =
    ALLOW | GENERAL | FIXED | METRICS | BRANCHES | VECTORS | YMM_UPPER | REGISTERS | AUXILIARY;
