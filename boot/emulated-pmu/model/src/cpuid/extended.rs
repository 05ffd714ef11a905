//! The extended leaves: brand string, AMD's features, AMD's performance monitoring.

use super::{CpuidResult, VENDOR_AMD, put};
use crate::Pmu;
use crate::model::{Amd, Identity, LbrKind, PmuKind, Vendor};
use crate::mutation::Mutation;

/// The highest extended leaf of an Intel processor.
const INTEL_HIGHEST: u32 = 0x8000_0008;
/// The leaf of SVM.
const SVM_LEAF: u32 = 0x8000_000A;
/// The leaf of PerfMonV2 and LBRv2.
const PERFMON_V2: u32 = 0x8000_0022;
/// The leaf of instruction-based sampling.
pub(super) const IBS_LEAF: u32 = 0x8000_001B;

/// 0x8000_0001 ECX, hidden from every guest to which it is not offered: SVM, IBS, and the counters of the northbridge, the
/// TSC and the last-level cache. Of the extended space of the local APIC a guest sees what IBS needs.
pub(super) const HIDDEN: u32 = 1 << 2 | IBS | 1 << 24 | 1 << 27 | 1 << 28;
/// 0x8000_0001 ECX: ExtApicSpace and IBS, whose interrupt comes through that space.
pub(super) const IBS: u32 = 1 << 3 | 1 << 10;
/// 0x8000_0001 ECX: SVM.
pub(super) const SVM: u32 = 1 << 2;
/// 0x8000_0001 ECX: PerfCtrExtCore.
pub(super) const PERFCTR_CORE: u32 = 1 << 23;
/// 0x8000_0001 ECX: what announces registers or leaves that only AMD has (CmpLegacy, ExtApicSpace,
/// OSVW, SKINIT, WDT, LWP, NodeId, TopologyExtensions, data breakpoint extension, PerfCtrExtCore).
const AMD_ONLY: u32 = 1 << 1
    | 1 << 3
    | 1 << 9
    | 1 << 12
    | 1 << 13
    | 1 << 15
    | 1 << 19
    | 1 << 22
    | PERFCTR_CORE
    | 1 << 26;
/// 0x8000_0007 EDX: RAPL (APM volume 3, E.4.7).
pub(super) const RAPL: u32 = 1 << 14;
/// 0x8000_0008 EBX: the instructions-retired counter.
pub(super) const IRPERF: u32 = 1 << 1;

impl Pmu {
    fn is_intel(&self) -> bool {
        matches!(self.spec().pmu, PmuKind::Intel(_))
    }

    fn highest_extended(&self) -> u32 {
        let host = self.host().highest_extended;
        match self.spec().pmu {
            PmuKind::Intel(_) => INTEL_HIGHEST,
            PmuKind::Amd(Amd { v2: true, .. }) => host.max(PERFMON_V2),
            PmuKind::Amd(_) if self.ibs_features() != 0 => host.max(IBS_LEAF),
            PmuKind::Amd(_) if self.offers_svm() => host.max(SVM_LEAF),
            PmuKind::Amd(_) => host.max(INTEL_HIGHEST),
            PmuKind::Absent => host,
        }
    }

    pub(super) fn extended(&self, leaf: u32, host: CpuidResult) -> CpuidResult {
        let host = if leaf <= self.host().highest_extended { host } else { CpuidResult::ZERO };
        if leaf > self.highest_extended() {
            return CpuidResult::ZERO;
        }
        match leaf {
            0x8000_0000 => self.extended_0(host),
            0x8000_0001 => self.extended_1(host),
            0x8000_0002..=0x8000_0004 => match &self.spec().identity {
                Some(identity) => brand(identity, leaf - 0x8000_0002),
                None => host,
            },
            0x8000_0007 => CpuidResult { edx: self.with_rapl(host.edx), ..host },
            0x8000_0008 => {
                let irperf = self.spec().amd().is_some_and(|amd| amd.irperf);
                CpuidResult { ebx: put(host.ebx, IRPERF, irperf), ..host }
            }
            SVM_LEAF => self.svm_leaf(),
            IBS_LEAF => self.ibs_leaf(),
            PERFMON_V2 => self.perfmon_v2(),
            _ => host,
        }
    }

    fn extended_0(&self, host: CpuidResult) -> CpuidResult {
        let eax = self.highest_extended();
        let [ebx, ecx, edx] = match &self.spec().identity {
            None => [host.ebx, host.ecx, host.edx],
            Some(identity) => match identity.vendor {
                Vendor::Intel => [0; 3],
                Vendor::Amd => VENDOR_AMD,
            },
        };
        CpuidResult { eax, ebx, ecx, edx }
    }

    fn extended_1(&self, host: CpuidResult) -> CpuidResult {
        let spec = self.spec();
        let ecx = host.ecx & !HIDDEN;
        if self.is_intel() {
            return CpuidResult { eax: 0, ebx: 0, ecx: ecx & !AMD_ONLY, edx: host.edx };
        }
        let extended = spec.amd().is_some_and(|amd| amd.extended);
        CpuidResult {
            eax: spec.identity.as_ref().map_or(host.eax, |identity| identity.signature),
            ecx: put(self.with_ibs(put(ecx, PERFCTR_CORE, extended)), SVM, self.offers_svm()),
            ..host
        }
    }

    /// 0x8000_0001 ECX with the bits of instruction-based sampling.
    pub(super) fn with_ibs(&self, ecx: u32) -> u32 {
        put(ecx, IBS, self.ibs_features() != 0)
    }

    /// 0x8000_0007 EDX with the bit of energy, which is AMD's.
    pub(super) fn with_rapl(&self, edx: u32) -> u32 {
        put(edx, RAPL, self.is_amd() && self.spec().energy.is_some())
    }

    pub(super) fn ibs_leaf(&self) -> CpuidResult {
        CpuidResult { eax: self.ibs_features(), ..CpuidResult::ZERO }
    }

    /// EAX: PerfMonV2, LBRv2, and that both can be frozen. EBX: core counters, LBR entries; no
    /// counters of the data fabric or the memory controllers.
    fn perfmon_v2(&self) -> CpuidResult {
        match (self.spec().amd(), &self.spec().lbr) {
            (Some(amd), LbrKind::AmdV2 { entries }) if amd.v2 => {
                let extra = u32::from(self.is(Mutation::OneCounterTooManyEnumerated));
                let counters = u32::from(amd.counters) + extra;
                CpuidResult {
                    eax: 7,
                    ebx: counters | u32::from(*entries) << 4,
                    ..CpuidResult::ZERO
                }
            }
            _ => CpuidResult::ZERO,
        }
    }
}

/// 16 of the 48 bytes of the brand string, which ends in zeros.
fn brand(identity: &Identity, part: u32) -> CpuidResult {
    let bytes = identity.brand.as_bytes();
    let word = |index: usize| {
        let at = part as usize * 16 + index * 4;
        u32::from_le_bytes(core::array::from_fn(|byte| bytes.get(at + byte).copied().unwrap_or(0)))
    };
    CpuidResult::new([word(0), word(1), word(2), word(3)])
}
