//! CPUID as the chosen processor would answer it, laid over what the host answers.
//!
//! Only what the PMU and the processor's identity need is changed; every other leaf is the host's,
//! so that no feature appears that the machine lacks. A leaf above the host's highest one that the
//! model does not fill reads as 0, where a real processor would echo another leaf and mislead its
//! reader.

mod extended;
mod perfmon;
mod recorded;

use crate::Pmu;
use crate::model::{CoreKind, LbrKind, Vendor};

/// The four registers of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuidResult {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

#[cfg(target_arch = "x86_64")]
impl From<core::arch::x86_64::CpuidResult> for CpuidResult {
    fn from(leaf: core::arch::x86_64::CpuidResult) -> Self {
        Self { eax: leaf.eax, ebx: leaf.ebx, ecx: leaf.ecx, edx: leaf.edx }
    }
}

impl CpuidResult {
    const ZERO: Self = Self::new([0; 4]);

    const fn new([eax, ebx, ecx, edx]: [u32; 4]) -> Self {
        Self { eax, ebx, ecx, edx }
    }
}

/// Sets or clears bits.
const fn put(register: u32, bits: u32, on: bool) -> u32 {
    if on { register | bits } else { register & !bits }
}

/// Leaf 1 ECX: DS-CPL and VMX, which are not offered.
const LEAF_1_ECX_HIDDEN: u32 = 1 << 4 | 1 << 5;
/// Leaf 1 ECX: the DS area has 64-bit fields.
const DTES64: u32 = 1 << 2;
/// Leaf 1 ECX: PERF_CAPABILITIES exists.
const PDCM: u32 = 1 << 15;
/// Leaf 1 EDX: the DS area.
const DS: u32 = 1 << 21;
/// Leaf 7 EBX: HLE, RTM and Processor Trace.
const LEAF_7_EBX_HIDDEN: u32 = 1 << 4 | 1 << 11 | 1 << 25;
/// Leaf 7 EDX: RTM_ALWAYS_ABORT and TSX_FORCE_ABORT.
const LEAF_7_EDX_HIDDEN: u32 = 1 << 11 | 1 << 13;
/// Leaf 7 EDX: the package has cores of several kinds.
pub(crate) const HYBRID: u32 = 1 << 15;
/// Leaf 7 EDX: architectural LBRs.
const ARCH_LBR: u32 = 1 << 19;
/// Leaf 7.1 EAX: leaf 0x23 exists.
const ARCH_PERFMON_EXT: u32 = 1 << 8;
/// Leaf 0xD.1 ECX: the XSAVE states of Processor Trace (8) and the LBRs (15).
const XSS_HIDDEN: u32 = 1 << 8 | 1 << 15;

const VENDOR_INTEL: [u32; 3] = [0x756E_6547, 0x6C65_746E, 0x4965_6E69];
const VENDOR_AMD: [u32; 3] = [0x6874_7541, 0x444D_4163, 0x6974_6E65];

impl Pmu {
    /// The answer to CPUID, given the host's answer to the same leaf and sub-leaf.
    ///
    /// The caller still sees to what depends on the guest's state: OSXSAVE and OSPKE, the APIC id.
    #[must_use]
    pub fn cpuid(&self, leaf: u32, subleaf: u32, host: CpuidResult) -> CpuidResult {
        if let Some(recording) = self.recording()
            && !(0x4000_0000..0x8000_0000).contains(&leaf)
        {
            return self.recorded_cpuid(recording.leaves(), leaf, subleaf, host);
        }
        match leaf {
            0..0x4000_0000 => self.basic(leaf, subleaf, host),
            0x8000_0000..0xC000_0000 => self.extended(leaf, host),
            _ => host,
        }
    }

    /// The highest basic leaf shown: the host's, or the highest one that the model needs.
    fn highest_basic(&self) -> u32 {
        let spec = self.spec();
        let needed = match (spec.intel(), &spec.lbr) {
            (None, _) => 0,
            (Some(intel), _) if intel.leaf_23.is_some() => 0x23,
            (Some(_), LbrKind::Arch(_)) => 0x1C,
            (Some(_), _) => 0xA,
        };
        self.host().highest_basic.max(needed)
    }

    fn basic(&self, leaf: u32, subleaf: u32, host: CpuidResult) -> CpuidResult {
        let host = if leaf <= self.host().highest_basic { host } else { CpuidResult::ZERO };
        if leaf > self.highest_basic() {
            return CpuidResult::ZERO;
        }
        match (leaf, subleaf) {
            (0, _) => self.leaf_0(host),
            (1, _) => self.leaf_1(host),
            (7, _) => self.leaf_7(subleaf, host),
            (0xA, _) => self.leaf_a(),
            (0xD, 1) => CpuidResult { ecx: host.ecx & !XSS_HIDDEN, ..host },
            (0xD, 8 | 15) | (0x14, _) => CpuidResult::ZERO,
            (0x1A, 0) => self.leaf_1a(),
            (0x1A, _) => CpuidResult::ZERO,
            (0x1C, _) => self.leaf_1c(subleaf),
            (0x23, _) => self.leaf_23(subleaf),
            _ => host,
        }
    }

    fn leaf_0(&self, host: CpuidResult) -> CpuidResult {
        let eax = self.highest_basic();
        let Some(identity) = &self.spec().identity else {
            return CpuidResult { eax, ..host };
        };
        let [ebx, ecx, edx] = match identity.vendor {
            Vendor::Intel => VENDOR_INTEL,
            Vendor::Amd => VENDOR_AMD,
        };
        CpuidResult { eax, ebx, ecx, edx }
    }

    fn leaf_1(&self, host: CpuidResult) -> CpuidResult {
        let spec = self.spec();
        let ecx = host.ecx & !LEAF_1_ECX_HIDDEN;
        let store =
            spec.intel().is_some_and(|intel| intel.pebs.is_some_and(|pebs| pebs.has_store()));
        CpuidResult {
            eax: spec.identity.as_ref().map_or(host.eax, |identity| identity.signature),
            ecx: put(put(ecx, PDCM, spec.intel().is_some()), DTES64, store),
            edx: put(host.edx, DS, store),
            ..host
        }
    }

    fn leaf_7(&self, subleaf: u32, host: CpuidResult) -> CpuidResult {
        let spec = self.spec();
        let version_6 = spec.intel().is_some_and(|intel| intel.leaf_23.is_some());
        let highest = self.host().highest_subleaf_7;
        let host = if subleaf <= highest { host } else { CpuidResult::ZERO };
        match subleaf {
            0 => CpuidResult {
                eax: highest.max(u32::from(version_6)),
                ebx: host.ebx & !LEAF_7_EBX_HIDDEN,
                ecx: host.ecx,
                edx: put(
                    put(host.edx, ARCH_LBR, matches!(spec.lbr, LbrKind::Arch(_))),
                    HYBRID,
                    self.core().is_some_and(|core| core.hybrid),
                ) & !LEAF_7_EDX_HIDDEN,
            },
            1 => CpuidResult { eax: put(host.eax, ARCH_PERFMON_EXT, version_6), ..host },
            _ => host,
        }
    }

    /// A core type is shown for the model that has one to show, and not the host's.
    fn leaf_1a(&self) -> CpuidResult {
        CpuidResult { eax: self.core().map_or(0, |core| core.native), ..CpuidResult::ZERO }
    }

    fn core(&self) -> Option<CoreKind> {
        self.spec().intel().and_then(|intel| intel.core)
    }
}
