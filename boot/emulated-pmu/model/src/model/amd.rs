//! AMD processors.
//!
//! Sources. Signatures: InstLatx64's dumps of a Phenom II X4 940 and of Matisse; Raphael's, and the
//! brand strings of both Zen parts, are recalled. Writable bits of PERF_CTL and DEBUGCTL: measured
//! on a family 15h part for VirtualBox's processor database (PERF_CTL ignores bit 21 and all above
//! 35 but 40 and 41; DEBUGCTL keeps bits 5:0, faults on bit 6 and ignores the rest).
//! PERF_CTL\[41:40\], host-only and guest-only, are dropped where SVM is not offered. PerfMonV2
//! and LBRv2: Linux, `arch/x86/events/amd/{core,lbr}.c`. SVM and IBS: libcpuid's dumps of a Phenom II X4 940, a Ryzen 9 3900X
//! and a Ryzen 9 7900X.

use super::{Amd, Identity, LbrKind, PmuKind, Spec, SvmFeatures, Vendor, energy};
use crate::events;

const SELECTOR: u64 = 0xF_FFDF_FFFF;

/// LBR, BTF, and the pin-control bits that are stored without effect.
const DEBUGCTL: u64 = 0x3F;

const fn identity(signature: u32, brand: &'static str) -> Option<Identity> {
    Some(Identity { vendor: Vendor::Amd, signature, brand })
}

pub(super) const K10: Spec = Spec {
    name: "k10",
    identity: identity(0x0010_0F42, "AMD Phenom(tm) II X4 940 Processor"),
    pmu: PmuKind::Amd(Amd {
        counters: 4,
        extended: false,
        v2: false,
        irperf: false,
        ibs: 0x1F,
        svm: Some(SvmFeatures { asids: 0x40, features: 0xF }),
    }),
    selector_mask: SELECTOR,
    debugctl_mask: DEBUGCTL,
    lbr: LbrKind::AmdSingle,
    extra: &[],
    width: 3,
    events: events::K10,
    energy: None,
    uncore: false,
};

pub(super) const ZEN2: Spec = Spec {
    name: "zen2",
    identity: identity(0x0087_0F10, "AMD Ryzen 9 3900X 12-Core Processor"),
    pmu: PmuKind::Amd(Amd {
        counters: 6,
        extended: true,
        v2: false,
        irperf: true,
        ibs: 0x3FF,
        svm: Some(SvmFeatures { asids: 0x8000, features: 0x0013_BCFF }),
    }),
    selector_mask: SELECTOR,
    debugctl_mask: DEBUGCTL,
    lbr: LbrKind::AmdSingle,
    extra: &[],
    width: 6,
    events: events::ZEN2,
    energy: Some(energy::ZEN),
    uncore: false,
};

pub(super) const ZEN4: Spec = Spec {
    name: "zen4",
    identity: identity(0x00A6_0F12, "AMD Ryzen 9 7950X 16-Core Processor"),
    pmu: PmuKind::Amd(Amd {
        counters: 6,
        extended: true,
        v2: true,
        irperf: true,
        ibs: 0xBFF,
        svm: Some(SvmFeatures { asids: 0x8000, features: 0x1EBF_BCFF }),
    }),
    selector_mask: SELECTOR,
    debugctl_mask: DEBUGCTL | 1 << 11 | 1 << 12,
    lbr: LbrKind::AmdV2 { entries: 16 },
    extra: &[],
    width: 6,
    events: events::ZEN4,
    energy: Some(energy::ZEN),
    uncore: false,
};
