//! Intel processors.
//!
//! Sources. Leaves, signatures and brand strings: register dumps of these processors in the
//! InstLatx64 collection (000306C3 i7-4770, 000506E3 i5-6400T, 000706E5 i7-1065G7, 000C0662 Ultra 5
//! 245K); Core 2's leaf 0xA from VirtualBox's processor database, Nehalem's from a published dump
//! and from what Linux logs on such parts; Sapphire Rapids' counters from Linux boot logs, its leaf
//! 0x1C taken over from Arrow Lake's. Writable bits of event selectors, DEBUGCTL, LBR_SELECT and
//! PERF_CAPABILITIES of Core 2, Sandy Bridge and Broadwell: measured on silicon for VirtualBox's
//! database; of the others by analogy. Masks of the extra registers: Linux,
//! `arch/x86/events/intel/core.c`. Slots in a cycle: recalled.
//!
//! What differs from the real part: BTS and TSX are not offered, so DEBUGCTL lacks the BTS bits and
//! the selectors IN_TX. PEBS through Processor Trace, retire latencies and auto-counter-reload are not offered either.

use super::{
    ArchLbr, CoreKind, Identity, Intel, LbrKind, LegacyLbr, PmuKind, Spec, Vendor, energy, pebs,
};
use crate::events;
use crate::msr;

/// All of the low half but AnyThread: Core 2.
const SELECTOR_V2: u64 = 0xFFDF_FFFF;
/// All of the low half: Nehalem.
const SELECTOR_NEHALEM: u64 = 0xFFFF_FFFF;
/// Without pin control, which faults from Sandy Bridge on.
const SELECTOR_V3: u64 = 0xFFF7_FFFF;
/// Without AnyThread, which is deprecated.
pub(super) const SELECTOR_V5: u64 = SELECTOR_V3 & !(1 << 21);
/// With EQ and UMASK2.
const SELECTOR_V6: u64 = SELECTOR_V5 | 0xFF << 40 | 1 << 36;

/// LBR, BTF, both freeze bits, FREEZE_WHILE_SMM.
pub(super) const DEBUGCTL: u64 = 0x5803;
/// And ENABLE_UNCORE_PMI, on Nehalem to Broadwell.
const DEBUGCTL_UNCORE: u64 = DEBUGCTL | 1 << 13;

/// PERF_CAPABILITIES\[12\], FREEZE_WHILE_SMM.
pub(super) const SMM_FREEZE: u64 = 1 << 12;
/// PERF_CAPABILITIES\[13\], full-width writes.
pub(super) const FW_WRITES: u64 = 1 << 13;
/// PERF_CAPABILITIES\[15\].
const PERF_METRICS: u64 = 1 << 15;

/// Bits of an event select that can be written on a processor whose PMU is like that of `model`, by the features that CPUID
/// reports. `own`: it is of that microarchitecture.
pub(crate) fn selector_of(
    model: super::Model,
    own: bool,
    any_thread: bool,
    umask2: bool,
    equal: bool,
) -> u64 {
    use super::Model::{Core2, Nehalem};
    let base = match (model, own) {
        (Core2, _) => SELECTOR_V2,
        (Nehalem, true) => SELECTOR_NEHALEM,
        _ => SELECTOR_V3,
    };
    let put = |bits: u64, on: bool| if on { bits } else { 0 };
    base & !(1 << 21) | put(1 << 21, any_thread) | put(0xFF << 40, umask2) | put(1 << 36, equal)
}

/// Bits of DEBUGCTL that can be written with a PMU of that version; the freeze came with version 2.
pub(crate) fn debugctl_of(version: u8) -> u64 {
    if version >= 2 { DEBUGCTL } else { 0x3 }
}

pub(super) const fn identity(signature: u32, brand: &'static str) -> Option<Identity> {
    Some(Identity { vendor: Vendor::Intel, signature, brand })
}

const fn nehalem_lbr(select: u64, calls_need_jumps: bool) -> LbrKind {
    LbrKind::Legacy(LegacyLbr {
        entries: 16,
        from: msr::LBR_NHM_FROM,
        to: msr::LBR_NHM_TO,
        info: None,
        select: Some(select),
        flags_in_from: true,
        calls_need_jumps,
        tos_faults: true,
    })
}

const SKYLAKE_LBR: LbrKind = LbrKind::Legacy(LegacyLbr {
    entries: 32,
    from: msr::LBR_NHM_FROM,
    to: msr::LBR_NHM_TO,
    info: Some(msr::LBR_INFO),
    select: Some(0x3FF),
    flags_in_from: false,
    calls_need_jumps: false,
    tos_faults: true,
});

/// Depths 8, 16 and 32; all filters, call stack; mispredictions, cycles and types recorded. The
/// dump's ECX\[19:16\], events counted between branches, is not offered.
pub(super) const ARCH_LBR: LbrKind =
    LbrKind::Arch(ArchLbr { leaf: [0x4000_000B, 7, 7], entries: 32, control: 0x7F_000F });

pub(super) const CORE2: Spec = Spec {
    name: "core2",
    identity: identity(0x0001_0676, "Intel(R) Core(TM)2 Duo CPU     E8400  @ 3.00GHz"),
    pmu: PmuKind::Intel(Intel {
        version: 2,
        counters: 0x3,
        width: 40,
        fixed: 0x7,
        fixed_width: 40,
        leaf_a: [0x0728_0202, 0, 0, 0x503],
        leaf_23: None,
        capabilities: 2 | SMM_FREEZE | pebs::capabilities(0),
        any_thread: false,
        metrics: 0,
        pebs: Some(pebs::CORE2),
        core: None,
    }),
    selector_mask: SELECTOR_V2,
    debugctl_mask: DEBUGCTL,
    lbr: LbrKind::Legacy(LegacyLbr {
        entries: 4,
        from: msr::LBR_CORE_FROM,
        to: msr::LBR_CORE_TO,
        info: None,
        select: None,
        flags_in_from: false,
        calls_need_jumps: false,
        tos_faults: false,
    }),
    extra: &[],
    width: 4,
    events: events::CORE2,
    energy: None,
    uncore: false,
};

pub(super) const NEHALEM: Spec = Spec {
    name: "nehalem",
    identity: identity(0x0001_06A5, "Intel(R) Core(TM) i7 CPU         920  @ 2.67GHz"),
    pmu: PmuKind::Intel(Intel {
        version: 3,
        counters: 0xF,
        width: 48,
        fixed: 0x7,
        fixed_width: 48,
        // Reference cycles and mispredicted branches are marked as unavailable (AAJ80).
        leaf_a: [0x0730_0403, 0x44, 0, 0x603],
        leaf_23: None,
        capabilities: 3 | SMM_FREEZE | pebs::capabilities(1),
        any_thread: true,
        metrics: 0,
        pebs: Some(pebs::NEHALEM),
        core: None,
    }),
    selector_mask: SELECTOR_NEHALEM,
    debugctl_mask: DEBUGCTL_UNCORE,
    lbr: nehalem_lbr(0x1FF, true),
    extra: &[(msr::OFFCORE_RSP_0, 0xFFFF), (msr::LOAD_LATENCY, 0xFFFF)],
    width: 4,
    events: events::NEHALEM,
    energy: None,
    uncore: false,
};

pub(super) const HASWELL: Spec = Spec {
    name: "haswell",
    identity: identity(0x0003_06C3, "Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz"),
    pmu: PmuKind::Intel(Intel {
        version: 3,
        counters: 0xF,
        width: 48,
        fixed: 0x7,
        fixed_width: 48,
        leaf_a: [0x0730_0403, 0, 0, 0x603],
        leaf_23: None,
        capabilities: 4 | SMM_FREEZE | FW_WRITES | pebs::capabilities(2),
        any_thread: true,
        metrics: 0,
        pebs: Some(pebs::HASWELL),
        core: None,
    }),
    selector_mask: SELECTOR_V3,
    debugctl_mask: DEBUGCTL_UNCORE,
    lbr: nehalem_lbr(0x3FF, false),
    extra: &[
        (msr::OFFCORE_RSP_0, 0x3F_FFFF_8FFF),
        (msr::OFFCORE_RSP_1, 0x3F_FFFF_8FFF),
        (msr::LOAD_LATENCY, 0xFFFF),
    ],
    width: 4,
    events: events::HASWELL,
    energy: Some(energy::HASWELL),
    uncore: false,
};

pub(super) const SKYLAKE: Spec = Spec {
    name: "skylake",
    identity: identity(0x0005_06E3, "Intel(R) Core(TM) i5-6400T CPU @ 2.20GHz"),
    pmu: PmuKind::Intel(Intel {
        version: 4,
        counters: 0xFF,
        width: 48,
        fixed: 0x7,
        fixed_width: 48,
        leaf_a: [0x0730_0804, 0, 0, 0x603],
        leaf_23: None,
        capabilities: 5 | SMM_FREEZE | FW_WRITES | pebs::capabilities(3),
        any_thread: true,
        metrics: 0,
        pebs: Some(pebs::SKYLAKE),
        core: None,
    }),
    selector_mask: SELECTOR_V3,
    debugctl_mask: DEBUGCTL,
    lbr: SKYLAKE_LBR,
    extra: &[
        (msr::OFFCORE_RSP_0, 0x3F_FFFF_8FFF),
        (msr::OFFCORE_RSP_1, 0x3F_FFFF_8FFF),
        (msr::LOAD_LATENCY, 0xFFFF),
        (msr::FRONTEND, 0x7F_FF17),
    ],
    width: 4,
    events: events::SKYLAKE,
    energy: Some(energy::SKYLAKE),
    uncore: true,
};

pub(super) const ICE_LAKE: Spec = Spec {
    name: "icelake",
    identity: identity(0x0007_06E5, "Intel(R) Core(TM) i7-1065G7 CPU @ 1.30GHz"),
    pmu: PmuKind::Intel(Intel {
        version: 5,
        counters: 0xFF,
        width: 48,
        fixed: 0xF,
        fixed_width: 48,
        leaf_a: [0x0830_0805, 0, 0xF, 0x8604],
        leaf_23: None,
        capabilities: 5 | SMM_FREEZE | FW_WRITES | PERF_METRICS | pebs::adaptive(4),
        any_thread: false,
        metrics: 4,
        pebs: Some(pebs::ICE_LAKE),
        core: None,
    }),
    selector_mask: SELECTOR_V5 | pebs::ADAPTIVE_SELECT,
    debugctl_mask: DEBUGCTL,
    lbr: SKYLAKE_LBR,
    extra: &[
        (msr::OFFCORE_RSP_0, 0x3F_FFFF_BFFF),
        (msr::OFFCORE_RSP_1, 0x3F_FFFF_BFFF),
        (msr::LOAD_LATENCY, 0xFFFF),
        (msr::FRONTEND, 0x7F_FF17),
    ],
    width: 5,
    events: events::ICE_LAKE,
    energy: Some(energy::SKYLAKE),
    uncore: false,
};

pub(super) const SAPPHIRE_RAPIDS: Spec = Spec {
    name: "sapphirerapids",
    identity: identity(0x0008_06F8, "Intel(R) Xeon(R) Platinum 8480+"),
    pmu: PmuKind::Intel(Intel {
        version: 5,
        counters: 0xFF,
        width: 48,
        fixed: 0xF,
        fixed_width: 48,
        leaf_a: [0x0830_0805, 0, 0xF, 0x8604],
        leaf_23: None,
        capabilities: 0x3F | SMM_FREEZE | FW_WRITES | PERF_METRICS | pebs::adaptive(4),
        any_thread: false,
        metrics: 8,
        pebs: Some(pebs::SAPPHIRE_RAPIDS),
        core: None,
    }),
    selector_mask: SELECTOR_V5 | pebs::ADAPTIVE_SELECT,
    debugctl_mask: DEBUGCTL,
    lbr: ARCH_LBR,
    extra: &[
        (msr::OFFCORE_RSP_0, 0x3F_FFFF_FFFF),
        (msr::OFFCORE_RSP_1, 0x3F_FFFF_FFFF),
        (msr::LOAD_LATENCY, 0xFFFF),
        (msr::FRONTEND, 0x7F_FF1F),
    ],
    width: 6,
    events: events::SAPPHIRE_RAPIDS,
    energy: Some(energy::SAPPHIRE_RAPIDS),
    uncore: false,
};

/// The PMU of Arrow Lake's performance cores.
const LION_COVE: Intel = Intel {
    version: 6,
    counters: 0x3FF,
    width: 48,
    fixed: 0xF,
    fixed_width: 48,
    // What the P-core's and the E-core's PMU share; of the Lion Cove kind.
    leaf_a: [0x0D30_0806, 0x280, 0x7, 0x8603],
    leaf_23: Some(&[
        [0x0B, 3, 0, 0],
        [0x3FF, 0xF, 0, 0],
        [0; 4],
        [0x1DFF, 0, 0, 0],
        [0; 4],
        [0; 4],
    ]),
    capabilities: 0x3F | SMM_FREEZE | FW_WRITES | PERF_METRICS | pebs::timed(6),
    any_thread: false,
    metrics: 8,
    pebs: Some(pebs::ARROW_LAKE),
    core: Some(CoreKind { native: 0x4000_0003, hybrid: false }),
};

pub(super) const ARROW_LAKE: Spec = Spec {
    name: "arrowlake",
    identity: identity(0x000C_0662, "Intel(R) Core(TM) Ultra 5 245K"),
    pmu: PmuKind::Intel(LION_COVE),
    selector_mask: SELECTOR_V6 | pebs::ADAPTIVE_SELECT,
    debugctl_mask: DEBUGCTL,
    lbr: ARCH_LBR,
    extra: &[
        (msr::OFFCORE_RSP_0, 0xFFF_FFFF_FFFF),
        (msr::OFFCORE_RSP_1, 0xFFF_FFFF_FFFF),
        (msr::LOAD_LATENCY, 0xFFFF),
        (msr::FRONTEND, 0x7F_FF1F),
    ],
    width: 8,
    events: events::LION_COVE,
    energy: Some(energy::SKYLAKE),
    uncore: false,
};

/// No dump of a Panther Lake was at hand: its counters and leaves are Lion Cove's, whose successor it is, with the sub-leaves of
/// architectural PEBS; signature 06_CC from Linux' `asm/intel-family.h`, native model 4 from its event table's place. Sub-leaf 2,
/// auto-counter-reload, is not shown.
pub(super) const COUGAR_COVE: Spec = Spec {
    name: "cougarcove",
    identity: identity(0x000C_06C2, "Intel(R) Core(TM) Ultra X7 358H"),
    pmu: PmuKind::Intel(Intel {
        leaf_23: Some(&[
            [0x3B, 3, 0, 0],
            [0x3FF, 0xF, 0, 0],
            [0; 4],
            [0x1DFF, 0, 0, 0],
            [0, (pebs::arch::OFFERED >> 32) as u32, 0, 0],
            [0x3FF, 1, 0xF, 1],
        ]),
        capabilities: 0x3F | SMM_FREEZE | FW_WRITES | PERF_METRICS | pebs::ARCHITECTURAL,
        pebs: Some(pebs::COUGAR_COVE),
        core: Some(CoreKind { native: 0x4000_0004, hybrid: false }),
        ..LION_COVE
    }),
    selector_mask: SELECTOR_V6,
    events: events::COUGAR_COVE,
    ..ARROW_LAKE
};
