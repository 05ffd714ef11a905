//! Intel: leaves 0xA and 0x23, IA32_PERF_CAPABILITIES.

use super::{Architecture, Capabilities, FreezeKind, LbrKind};
use crate::cpu::has_leaf;
use crate::msr::Msr;
use crate::pmu::access::{Registers, leaves};
use crate::pmu::numbers;
use crate::pmu::pebs::{Format, Offer};
use crate::pmu::registers::PerfCapabilities;
use alloc::vec::Vec;
use raw_cpuid::CpuIdResult;

/// Leaf 1 ECX: PDCM.
const PDCM: u32 = 1 << 15;
/// Leaf 1 ECX: the DS area has 64-bit fields.
const DTES64: u32 = 1 << 2;
/// Leaf 1 EDX: the DS area.
const DS: u32 = 1 << 21;
/// Leaf 7.1 EAX: leaf 0x23 is there.
const PERFMON_EXTENSION: u32 = 1 << 8;
/// Leaf 7 EDX: the package has cores of several types.
const HYBRID: u32 = 1 << 15;
/// Leaf 0xA EDX: the AnyThread bits are deprecated.
const ANY_THREAD_DEPRECATED: u32 = 1 << 15;
/// MISC_ENABLE: no PEBS.
const PEBS_UNAVAILABLE: u64 = 1 << 12;
/// Leaf 0x23 EAX: sub-leaves 4, the groups of architectural PEBS, and 5, its counters.
const PEBS_GROUPS: u32 = 1 << 4;
const PEBS_COUNTERS: u32 = 1 << 5;
/// PERF_CAPABILITIES\[11:8\] of architectural PEBS.
const ARCHITECTURAL: u8 = 0xf;
/// Bit 1 of the architectural events: instructions retired.
pub(super) const INSTRUCTIONS: u32 = 1 << 1;
/// Bit 3 of the fixed counters: slots.
const SLOTS: u32 = 1 << 3;

pub(super) fn read(registers: &mut dyn Registers) -> Option<Capabilities> {
    if !has_leaf(&leaves(registers), 0xa) {
        return None;
    }
    let leaf = registers.cpuid(0xa, 0);
    let version = leaf.eax & 0xff;
    if version == 0 {
        return None;
    }
    let mut seen = Capabilities::nothing(Architecture::Intel, version);
    seen.general = bitmap(leaf.eax >> 8 & 0xff);
    seen.general_bits = leaf.eax >> 16 & 0xff;
    // A bit of EBX that is set takes the event away; bits beyond the vector say nothing (SDM vol. 3, 20.2.1).
    seen.events = !leaf.ebx & bitmap(leaf.eax >> 24);
    // EDX means something from version 2 on, ECX from version 5 on (20.2.2, 20.2.5).
    if version >= 2 {
        seen.fixed = bitmap(leaf.edx & 0x1f);
        seen.fixed_bits = leaf.edx >> 5 & 0xff;
    }
    if version >= 5 {
        seen.fixed |= leaf.ecx & 0xffff;
    }
    seen.any_thread = version >= 3 && leaf.edx & ANY_THREAD_DEPRECATED == 0;
    extended(registers, &mut seen);
    performance_core(registers, &mut seen);
    seen.lose_global(registers, [numbers::GLOBAL_CTRL, numbers::GLOBAL_STATUS]);
    let lost = "fixed counters are not used";
    if seen.fixed != 0 && !seen.there(registers, numbers::FIXED_CTR_CTRL, lost) {
        seen.fixed = 0;
    }
    other_codes(registers, &mut seen);
    let leaf_1 = registers.cpuid(1, 0);
    seen.pdcm = leaf_1.ecx & PDCM != 0;
    if seen.pdcm {
        let value = registers.rdmsr(numbers::PERF_CAPABILITIES).unwrap_or(0);
        seen.perf = PerfCapabilities::from_bits_retain(value);
    }
    full_width(registers, &mut seen);
    // SDM vol. 3, 18.4.7 and 20.2.4: the freeze bits need PDCM and a version above 1.
    seen.freeze = match (seen.pdcm, version) {
        (false, _) | (_, ..=1) => FreezeKind::None,
        (_, 2 | 3) => FreezeKind::Legacy,
        _ => FreezeKind::Streamlined,
    };
    let lost = "nothing is frozen on a PMI";
    if !seen.global || !seen.there(registers, numbers::DEBUGCTL, lost) {
        seen.freeze = FreezeKind::None;
    }
    seen.metrics = metrics(registers, &seen);
    seen.architectural_pebs = architectural_pebs(registers, &mut seen);
    seen.pebs = seen.architectural_pebs.is_some()
        || leaf_1.edx & DS != 0 && leaf_1.ecx & DTES64 != 0 && pebs(registers, &mut seen);
    seen.extra = extra(registers);
    seen.lbr = LbrKind::None;
    Some(seen)
}

/// The main sub-leaf of leaf 0x23, where there is one.
fn perfmon_extension(registers: &dyn Registers) -> Option<CpuIdResult> {
    let cpuid = leaves(registers);
    let offered = has_leaf(&cpuid, 7)
        && registers.cpuid(7, 0).eax >= 1
        && registers.cpuid(7, 1).eax & PERFMON_EXTENSION != 0
        && has_leaf(&cpuid, 0x23);
    offered.then(|| registers.cpuid(0x23, 0))
}

/// Leaf 0x23 wins over 0xA: on a hybrid package 0xA says only what the core types share.
fn extended(registers: &dyn Registers, seen: &mut Capabilities) {
    let Some(main) = perfmon_extension(registers) else { return };
    seen.umask2 = main.ebx & 1 != 0;
    seen.equal = main.ebx & 2 != 0;
    if main.eax & 1 << 1 != 0 {
        let counters = registers.cpuid(0x23, 1);
        seen.general = counters.eax;
        seen.fixed = counters.ebx & 0xffff;
    }
    if main.eax & 1 << 3 != 0 {
        // Unlike leaf 0xA: a set bit is an event that is there.
        seen.events = registers.cpuid(0x23, 3).eax;
    }
}

/// Family 6: Alder Lake and Raptor Lake.
const WITHOUT_LEAF_23: [u32; 5] = [0x97, 0x9a, 0xb7, 0xba, 0xbf];
/// Leaf 0x1A EAX\[31:24\]: a performance core.
const CORE: u32 = 0x40;

/// On a hybrid package without leaf 0x23, leaf 0xA says what the kinds of core share, and a performance core has two counters and
/// the fixed one of slots too (Linux, `arch/x86/events/intel/core.c`, `intel_pmu_init`). They are used if they answer.
fn performance_core(registers: &mut dyn Registers, seen: &mut Capabilities) {
    let signature = registers.cpuid(1, 0).eax;
    let (family, model) = (signature >> 8 & 0xf, signature >> 4 & 0xf | signature >> 12 & 0xf0);
    let is_one = family == 6
        && WITHOUT_LEAF_23.contains(&model)
        && has_leaf(&leaves(registers), 0x1a)
        && registers.cpuid(7, 0).edx & HYBRID != 0
        && registers.cpuid(0x1a, 0).eax >> 24 == CORE;
    if !is_one || seen.general != 0x3f {
        return;
    }
    if [6, 7].iter().all(|n| registers.rdmsr(Msr(numbers::PMC + n)).is_ok()) {
        seen.general = 0xff;
    }
    if registers.rdmsr(Msr(numbers::FIXED_CTR + 3)).is_ok() {
        seen.fixed |= SLOTS;
    }
}

/// Zhaoxin's and VIA's processors have leaf 0xA, and count by other codes: cycles by 82H, and branches and cache accesses by codes
/// that differ from one to the next. Instructions are C0H, and the fixed counters are the same (Linux,
/// `arch/x86/events/zhaoxin/core.c`).
fn other_codes(registers: &dyn Registers, seen: &mut Capabilities) {
    // CentaurHauls and "  Shanghai  ".
    let makers = [*b"Cent", *b"  Sh"].map(u32::from_le_bytes);
    if !makers.contains(&registers.cpuid(0, 0).ebx) {
        return;
    }
    // Events 0 to 2 and the fixed counters that count them.
    let fixed = [(1, 0), (0, 1), (2, 2)]
        .iter()
        .fold(0, |bits, (counter, event)| bits | (seen.fixed >> counter & 1) << event);
    seen.events &= fixed | INSTRUCTIONS;
    seen.cycles = 0;
}

/// PERF_METRICS is announced by PERF_CAPABILITIES\[15\], which on Alder Lake is 0 for both kinds of core; there its
/// P-cores are known by the slots counter.
fn metrics(registers: &mut dyn Registers, seen: &Capabilities) -> bool {
    let announced = seen.perf.contains(PerfCapabilities::PERF_METRICS);
    let hybrid = has_leaf(&leaves(registers), 7) && registers.cpuid(7, 0).edx & HYBRID != 0;
    (announced || hybrid)
        && seen.fixed & SLOTS != 0
        && registers.rdmsr(numbers::PERF_METRICS).is_ok()
}

/// Its registers must be there: a hypervisor may announce the DS area and have no PEBS.
fn pebs(registers: &mut dyn Registers, seen: &mut Capabilities) -> bool {
    let misc = registers.rdmsr(crate::msr::IA32_MISC_ENABLE).unwrap_or(PEBS_UNAVAILABLE);
    let adaptive = Format::of(seen.perf).is_some_and(Format::is_adaptive);
    let groups = adaptive.then_some(numbers::PEBS_DATA_CFG);
    misc & PEBS_UNAVAILABLE == 0
        && [numbers::PEBS_ENABLE, numbers::DS_AREA]
            .into_iter()
            .chain(groups)
            .all(|msr| seen.there(registers, msr, "PEBS is not used"))
}

/// Architectural PEBS: format 15, and sub-leaves 4 and 5, of which both are there or neither (Linux, `intel_pebs_init` and
/// `update_pmu_cap`). Neither the debug store's bits of leaf 1 nor MISC_ENABLE are asked there, so they are not here.
fn architectural_pebs(registers: &mut dyn Registers, seen: &mut Capabilities) -> Option<Offer> {
    let both = PEBS_GROUPS | PEBS_COUNTERS;
    let offered = seen.perf.pebs_format() == ARCHITECTURAL
        && perfmon_extension(registers).is_some_and(|main| main.eax & both == both);
    if !offered {
        return None;
    }
    let offer = Offer::of(registers.cpuid(0x23, 4), registers.cpuid(0x23, 5));
    [numbers::PEBS_BASE, numbers::PEBS_INDEX]
        .into_iter()
        .all(|msr| seen.there(registers, msr, "PEBS is not used"))
        .then_some(offer)
}

/// Full-width writes are to other registers than 32-bit ones, whose being there says nothing of these.
fn full_width(registers: &mut dyn Registers, seen: &mut Capabilities) {
    let lost = "32 bits of a counter can be written";
    let first = Msr(numbers::A_PMC + seen.general.trailing_zeros().min(31));
    if seen.full_width() && seen.version < 6 && !seen.there(registers, first, lost) {
        seen.perf.remove(PerfCapabilities::FULL_WIDTH_WRITES);
    }
}

/// The registers in addition to the counters have no announcement: a register that responds exists.
fn extra(registers: &mut dyn Registers) -> Vec<Msr> {
    [numbers::OFFCORE_RSP_0, numbers::OFFCORE_RSP_1, numbers::LOAD_LATENCY, numbers::FRONTEND]
        .into_iter()
        .filter(|&msr| registers.rdmsr(msr).is_ok())
        .collect()
}

/// The low `count` bits.
fn bitmap(count: u32) -> u32 {
    1u32.checked_shl(count).map_or(u32::MAX, |bit| bit - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 2, CPUID, leaves 1, 7 and 0xA; vol. 4 for IA32_MISC_ENABLE.
    #[test]
    fn the_bits_are_where_the_manual_has_them() {
        assert_eq!((PDCM, DTES64, DS), (0x8000, 4, 0x20_0000));
        assert_eq!((PERFMON_EXTENSION, HYBRID), (0x100, 0x8000));
        assert_eq!((ANY_THREAD_DEPRECATED, PEBS_UNAVAILABLE), (0x8000, 0x1000));
        assert_eq!(SLOTS, 8);
        // Linux, `union cpuid35_eax`.
        assert_eq!((PEBS_GROUPS, PEBS_COUNTERS), (0x10, 0x20));
    }
}
