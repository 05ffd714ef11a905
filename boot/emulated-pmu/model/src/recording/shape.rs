//! The facts of a recorded processor: what its leaves tell, over those of the nearest model.
//!
//! Leaf 0xA, 0x23, 0x1C: SDM volume 2, CPUID, and volume 3, 20.2; 0x80000001, 0x80000008, 0x80000022: APM volume 3, appendix E.

use super::nearest::{INTEL, Nearest};
use super::{Leaves, Unfit};
use crate::cpuid::HYBRID;
use crate::events;
use crate::model::energy::{self, Energy};
use crate::model::{
    ADAPTIVE_SELECT, Amd, ArchLbr, ArchPebs, CoreKind, Identity, Intel, LbrKind, Model, Pebs,
    PmuKind, SANDY_BRIDGE, Spec, SvmFeatures, Vendor, arch, debugctl_of, ibs, pebs,
    pebs_capabilities, selector_of,
};
use crate::pmu::{MAX_COUNTERS, MAX_FIXED};

/// Widths that the state and the manual allow (SDM volume 2, leaf 0xA: at least 32 in all parts).
const LEAST_BITS: u8 = 32;
const MOST_BITS: u8 = 63;
/// Leaf 0x80000001 EDX: long mode.
const LONG_MODE: u32 = 1 << 29;
/// Leaf 1 ECX: PERF_CAPABILITIES exists; the DS area has 64-bit fields. EDX: there is one.
const PDCM: u32 = 1 << 15;
const DTES64: u32 = 1 << 2;
const DS: u32 = 1 << 21;
/// PERF_CAPABILITIES: PEBS, its register, its format, its retire latency; PERF_METRICS; the format of branch records.
const PEBS_BITS: u64 = 1 << 6 | 1 << 7 | 0xF << 8 | 1 << 14 | 1 << 17;
const METRICS_BIT: u64 = 1 << 15;
/// The fixed counter of slots.
const SLOTS: u32 = 1 << 3;
/// Leaf 0xA EDX: AnyThread is deprecated.
const NO_ANY_THREAD: u32 = 1 << 15;
/// Numbers of core counters that AMD's registers have room for.
const AMD_COUNTERS: u8 = 6;
/// Branch records that the registers of each kind have room for.
const ARCH_ENTRIES: u8 = 32;
const AMD_ENTRIES: u8 = 16;

pub(super) fn of(leaves: &Leaves, nearest: Nearest) -> Result<Spec, Unfit> {
    if leaves.of(0x8000_0001, 0)[3] & LONG_MODE == 0 {
        return Err(Unfit::ThirtyTwoBit);
    }
    let model = nearest.model.spec();
    let signature = leaves.answer(1, 0)[0];
    // The brand is among the recorded leaves.
    let identity = |vendor| Some(Identity { vendor, signature, brand: "" });
    match model.pmu {
        PmuKind::Amd(_) => {
            let amd = amd(leaves)?;
            Ok(Spec {
                identity: identity(Vendor::Amd),
                lbr: amd_lbr(leaves, amd.v2),
                events: if nearest.own { model.events } else { events::EVERY_AMD },
                pmu: PmuKind::Amd(amd),
                energy: rapl(leaves),
                ..*model
            })
        }
        PmuKind::Intel(_) | PmuKind::Absent => {
            let (intel, umask2, equal) = intel(leaves, nearest)?;
            let own = nearest.own;
            let arch = arch_lbr(leaves);
            let lbr = match (own, model.lbr) {
                (_, LbrKind::Arch(_)) | (false, _) => arch,
                (true, kind) => kind,
            };
            Ok(Spec {
                identity: identity(Vendor::Intel),
                selector_mask: selector_of(nearest.model, own, intel.any_thread, umask2, equal)
                    | if intel.pebs.is_some_and(|pebs| pebs.is_adaptive()) {
                        ADAPTIVE_SELECT
                    } else {
                        0
                    },
                debugctl_mask: if own { model.debugctl_mask } else { debugctl_of(intel.version) },
                lbr,
                extra: if own { model.extra } else { &[] },
                events: match (own, is_sandy_bridge(leaves)) {
                    (true, _) => model.events,
                    (false, true) => events::SANDY_BRIDGE,
                    (false, false) => &[],
                },
                pmu: PmuKind::Intel(intel),
                energy: if is_server(signature) { Some(energy::SERVER) } else { model.energy },
                // How many units it has is not recorded.
                uncore: false,
                ..*model
            })
        }
    }
}

/// The facts, and whether the selectors have UMASK2 and EQ.
fn intel(leaves: &Leaves, nearest: Nearest) -> Result<(Intel, bool, bool), Unfit> {
    let [eax, ebx, ecx, edx] = leaves.of(0xA, 0);
    let (version, width) = (eax as u8, (eax >> 16) as u8);
    let mut counters = low(eax >> 8 & 0xFF);
    let mut available = !ebx & low(eax >> 24);
    let (mut fixed, fixed_width) = match version {
        0 | 1 => (0, 0),
        _ => (low(edx & 0x1F), (edx >> 5) as u8),
    };
    if version >= 5 {
        fixed |= ecx & 0xFFFF;
    }
    let main = leaf_23(leaves);
    if main[0] & 1 << 1 != 0 {
        let [general, of_fixed, ..] = leaves.answer(0x23, 1);
        (counters, fixed) = (general, of_fixed & 0xFFFF);
    }
    if main[0] & 1 << 3 != 0 {
        available = leaves.answer(0x23, 3)[0];
    }
    let core = core(leaves);
    if let Some(CoreKind { hybrid: true, .. }) = core
        && nearest == (Nearest { model: Model::GoldenCove, own: true })
    {
        // Leaf 0xA states what both kinds of core share.
        (counters, fixed) = (nearest.model.spec().counters(), nearest.model.spec().fixed());
    }
    fits(counters, fixed, width, fixed_width)?;
    let of_model = nearest.model.spec().intel();
    let [_, _, leaf_1_ecx, leaf_1_edx] = leaves.answer(1, 0);
    let stores = leaf_1_ecx & DTES64 != 0 && leaf_1_edx & DS != 0;
    let sandy = stores && is_sandy_bridge(leaves);
    let of_model_pebs = of_model.and_then(|intel| intel.pebs).filter(|_| nearest.own);
    let pebs = match architectural(leaves, counters, fixed) {
        Some((facts, enable)) => Some(Pebs {
            enable,
            architectural: Some(facts),
            ..of_model_pebs.unwrap_or(pebs::ARCHITECTURAL_ALONE)
        }),
        None if sandy => Some(within(SANDY_BRIDGE, counters, fixed)),
        None => of_model_pebs
            .filter(|pebs| stores && pebs.has_store())
            .map(|pebs| within(pebs, counters, fixed)),
    };
    let metrics = of_model.map_or(0, |intel| intel.metrics);
    let metrics = if nearest.own && fixed & SLOTS != 0 { metrics } else { 0 };
    let mut capabilities = of_model.map_or(0, |intel| intel.capabilities);
    if pebs.is_none_or(|pebs| !pebs.has_store()) {
        capabilities &= !PEBS_BITS;
    }
    if sandy {
        capabilities = capabilities & !PEBS_BITS | pebs_capabilities(1);
    }
    if pebs.is_some_and(|pebs| !pebs.has_store()) {
        capabilities |= pebs::ARCHITECTURAL;
    }
    if metrics == 0 {
        capabilities &= !METRICS_BIT;
    }
    if leaf_1_ecx & PDCM == 0 {
        capabilities = 0;
    }
    let facts = Intel {
        version,
        counters,
        width,
        fixed,
        fixed_width,
        // Only for what `Intel::architectural_events` reads of it: the recorded leaf is what is shown.
        leaf_a: [31 << 24, !available, 0, 0],
        leaf_23: None,
        capabilities,
        any_thread: version >= 3 && edx & NO_ANY_THREAD == 0,
        metrics,
        pebs,
        core,
    };
    Ok((facts, main[1] & 1 != 0, main[1] & 2 != 0))
}

/// Whether architectural PEBS is announced: by both of its sub-leaves.
pub(super) fn announces_records(leaves: &Leaves) -> bool {
    const BOTH: u32 = 0b11 << 4;
    leaf_23(leaves)[0] & BOTH == BOTH
}

/// Architectural PEBS as sub-leaves 4 and 5 of leaf 0x23 have it, and the counters that write records. Groups that the model does not do are not offered.
fn architectural(leaves: &Leaves, counters: u32, fixed: u32) -> Option<(ArchPebs, u64)> {
    if !announces_records(leaves) {
        return None;
    }
    let there = u64::from(counters) | u64::from(fixed) << 32;
    let [general, precise, of_fixed, precise_fixed] = leaves.answer(0x23, 5);
    let groups = leaves.answer(0x23, 4)[1] & (arch::OFFERED >> 32) as u32;
    let distribution = (u64::from(precise) | u64::from(precise_fixed) << 32) & there;
    let enable = (u64::from(general) | u64::from(of_fixed) << 32) & there;
    Some((ArchPebs { groups, distribution }, enable))
}

/// What leaves 0x1A and 7 tell of its kind.
fn core(leaves: &Leaves) -> Option<CoreKind> {
    let native = leaves.of(0x1A, 0)[0];
    let hybrid = leaves.of(7, 0)[3] & HYBRID != 0;
    (native != 0).then_some(CoreKind { native, hybrid })
}

/// Sandy Bridge, Ivy Bridge and their servers, whose PEBS has precise stores.
pub(super) fn is_sandy_bridge(leaves: &Leaves) -> bool {
    let intel = leaves.answer(0, 0)[1] == INTEL;
    let (family, model) = leaves.family_and_model();
    intel && family == 6 && matches!(model, 0x2A | 0x2D | 0x3A | 0x3E)
}

/// The same on a processor with these counters alone: hyper-threading halves the general-purpose ones.
fn within(pebs: Pebs, counters: u32, fixed: u32) -> Pebs {
    if !pebs.is_adaptive() {
        return pebs;
    }
    let (counters, fixed) = (u64::from(counters), u64::from(fixed));
    let snapshot = counters << 32 & 0xFFFF << 32 | fixed << 48 & 0xFF << 48;
    Pebs {
        enable: pebs.enable & (counters | fixed << 32),
        data_config: pebs.data_config & (0xFFFF_FFFF | snapshot),
        ..pebs
    }
}

fn fits(counters: u32, fixed: u32, width: u8, fixed_width: u8) -> Result<(), Unfit> {
    if counters == 0 {
        return Err(Unfit::NoPmu);
    }
    if counters >> MAX_COUNTERS != 0 {
        return Err(Unfit::Counters { bitmap: counters, room: MAX_COUNTERS });
    }
    if fixed >> MAX_FIXED != 0 {
        return Err(Unfit::FixedCounters { bitmap: fixed, room: MAX_FIXED });
    }
    let widths = [Some(width), (fixed != 0).then_some(fixed_width)];
    let bad = |bits: &u8| !(LEAST_BITS..=MOST_BITS).contains(bits);
    match widths.into_iter().flatten().find(bad) {
        Some(bits) => Err(Unfit::Width { bits, least: LEAST_BITS, most: MOST_BITS }),
        None => Ok(()),
    }
}

/// Sub-leaf 0, if the processor says that it has the leaf.
pub(crate) fn leaf_23(leaves: &Leaves) -> [u32; 4] {
    let said = leaves.of(7, 0)[0] >= 1 && leaves.answer(7, 1)[0] & 1 << 8 != 0;
    if said { leaves.of(0x23, 0) } else { [0; 4] }
}

/// The sub-leaves that are shown, as bits of sub-leaf 0 EAX.
pub(crate) const fn main_23(intel: &Intel) -> u32 {
    if intel.arch_pebs().is_some() { 0b11_1011 } else { 0b1011 }
}

/// The records that leaf 0x1C describes; without the leaf nobody knows how many there are.
fn arch_lbr(leaves: &Leaves) -> LbrKind {
    let [eax, ebx, ecx, _] = leaves.of(0x1C, 0);
    let said = leaves.of(7, 0)[3] & 1 << 19 != 0;
    // Bit n of EAX[7:0]: 8 * (n + 1) entries.
    let deepest = 8 * (8 - (eax as u8).leading_zeros() as u8);
    if !said || deepest == 0 || deepest > ARCH_ENTRIES {
        return LbrKind::None;
    }
    let LbrKind::Arch(model) = crate::Model::SapphireRapids.spec().lbr else {
        return LbrKind::None;
    };
    // Events counted between branches (ECX[19:16]) are not offered.
    LbrKind::Arch(ArchLbr { leaf: [eax, ebx, ecx & 0xFFFF], entries: deepest, ..model })
}

fn amd(leaves: &Leaves) -> Result<Amd, Unfit> {
    let extended = leaves.of(0x8000_0001, 0)[2] & 1 << 23 != 0;
    let [v2, numbers, ..] = leaves.of(0x8000_0022, 0);
    let counters = match (v2 & 1 != 0, extended) {
        (true, _) => (numbers & 0xF) as u8,
        (false, true) => 6,
        (false, false) => 4,
    };
    let room = usize::from(AMD_COUNTERS);
    match counters {
        0 => Err(Unfit::NoPmu),
        1..=AMD_COUNTERS => Ok(Amd {
            counters,
            extended,
            v2: v2 & 1 != 0,
            irperf: leaves.of(0x8000_0008, 0)[1] & 1 << 1 != 0,
            ibs: ibs(leaves),
            svm: svm(leaves),
        }),
        _ => Err(Unfit::Counters { bitmap: low(u32::from(counters)), room }),
    }
}

fn amd_lbr(leaves: &Leaves, v2: bool) -> LbrKind {
    let [eax, ebx, ..] = leaves.of(0x8000_0022, 0);
    match (ebx >> 4 & 0x3F) as u8 {
        entries @ 1..=AMD_ENTRIES if v2 && eax & 2 != 0 => LbrKind::AmdV2 { entries },
        _ => LbrKind::AmdSingle,
    }
}

/// The low `count` bits.
fn low(count: u32) -> u32 {
    1u32.checked_shl(count).map_or(u32::MAX, |bit| bit - 1)
}

/// Whether it is one of the servers whose memory has a unit of energy of its own: Haswell to Ice Lake, but Knights Landing and
/// Mill (Linux, `arch/x86/events/rapl.c`, those of `RAPL_UNIT_QUIRK_INTEL_HSW`).
fn is_server(signature: u32) -> bool {
    let model = signature >> 4 & 0xF | signature >> 12 & 0xF0;
    let sixth = signature >> 8 & 0xF == 6;
    sixth && matches!(model, 0x3F | 0x4F | 0x55 | 0x56 | 0x6A | 0x6C)
}

/// RAPL as it was recorded (leaf 0x80000007 EDX); all processors that say so have the same registers.
fn rapl(leaves: &Leaves) -> Option<Energy> {
    let said = leaves.of(0x8000_0007, 0)[3] & 1 << 14 != 0;
    if said { Model::Zen4.spec().energy } else { None }
}

/// IBS as it was recorded, as far as the model does it (leaf 0x8000001B).
fn ibs(leaves: &Leaves) -> u32 {
    let said = leaves.of(0x8000_0001, 0)[2] & 1 << 10 != 0;
    if said { ibs::offered(leaves.of(0x8000_001B, 0)[0]) } else { 0 }
}

/// SVM as it was recorded, of which the guest is offered what the emulator has (leaf 0x8000000A).
fn svm(leaves: &Leaves) -> Option<SvmFeatures> {
    let [_, asids, _, features] = leaves.of(0x8000_000A, 0);
    let offered = leaves.of(0x8000_0001, 0)[2] & 1 << 2 != 0 && asids != 0;
    offered.then_some(SvmFeatures { asids, features })
}
