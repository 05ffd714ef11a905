//! The two kinds of core of a hybrid package, Alder Lake-S.
//!
//! Sources. Leaves 1, 0xA, 0x1A and 0x1C: libcpuid's dump of a Core i9-12900K, one core of each kind. That leaf 0xA and
//! PERF_CAPABILITIES state what both share, and that performance cores have 8 counters, 4 fixed ones and PERF_METRICS all the same:
//! Linux, `arch/x86/events/intel/core.c`, `intel_pmu_init`. Extra registers: there, `intel_glc_extra_regs` and
//! `intel_grt_extra_regs`. Slots in a cycle of a Gracemont: the metrics of its public table (5). Format 4 of PEBS records
//! with the baseline: a report of such a core alone (06_BE).
//!
//! Inferred: PERF_CAPABILITIES but for these bits, writable bits of selectors, DEBUGCTL, LBRs and PEBS of both, after Sapphire
//! Rapids, whose cores are Golden Cove.

use super::intel::{ARCH_LBR, DEBUGCTL, FW_WRITES, SELECTOR_V5, SMM_FREEZE, identity};
use super::{ArchLbr, CoreKind, Intel, LbrKind, PmuKind, Spec, energy, pebs};
use crate::{events, msr};

/// Of both kinds: leaf 1 EAX, leaf 0xA, PERF_CAPABILITIES.
const SIGNATURE: u32 = 0x0009_0672;
const BRAND: &str = "12th Gen Intel(R) Core(TM) i9-12900K";
const LEAF_A: [u32; 4] = [0x0730_0605, 0, 0x7, 0x8603];
const CAPABILITIES: u64 = 0x3F | SMM_FREEZE | FW_WRITES | pebs::adaptive(4);

pub(super) const GOLDEN_COVE: Spec = Spec {
    name: "goldencove",
    identity: identity(SIGNATURE, BRAND),
    pmu: PmuKind::Intel(Intel {
        version: 5,
        counters: 0xFF,
        width: 48,
        fixed: 0xF,
        fixed_width: 48,
        leaf_a: LEAF_A,
        leaf_23: None,
        capabilities: CAPABILITIES,
        any_thread: false,
        metrics: 8,
        pebs: Some(pebs::SAPPHIRE_RAPIDS),
        core: Some(CoreKind { native: 0x4000_0001, hybrid: true }),
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
    events: events::GOLDEN_COVE,
    energy: Some(energy::SKYLAKE),
    uncore: false,
};

pub(super) const GRACEMONT: Spec = Spec {
    name: "gracemont",
    identity: identity(SIGNATURE, BRAND),
    pmu: PmuKind::Intel(Intel {
        version: 5,
        counters: 0x3F,
        width: 48,
        fixed: 0x7,
        fixed_width: 48,
        leaf_a: LEAF_A,
        leaf_23: None,
        capabilities: CAPABILITIES,
        any_thread: false,
        metrics: 0,
        pebs: Some(pebs::GRACEMONT),
        core: Some(CoreKind { native: 0x2000_0001, hybrid: true }),
    }),
    selector_mask: SELECTOR_V5 | pebs::ADAPTIVE_SELECT,
    debugctl_mask: DEBUGCTL,
    // The same records; leaf 0x1C states too that they hold linear addresses.
    lbr: match ARCH_LBR {
        LbrKind::Arch(records) => LbrKind::Arch(ArchLbr { leaf: [0xC000_000B, 7, 7], ..records }),
        other => other,
    },
    extra: &[
        (msr::OFFCORE_RSP_0, 0x3F_FFFF_FFFF),
        (msr::OFFCORE_RSP_1, 0x3F_FFFF_FFFF),
        (msr::LOAD_LATENCY, 0xFFFF),
    ],
    width: 5,
    events: events::GRACEMONT,
    energy: Some(energy::SKYLAKE),
    uncore: false,
};
