//! The form of a processor's facts.

use super::energy::Energy;
use crate::events::Event;

/// Who made the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// "GenuineIntel".
    Intel,
    /// "AuthenticAMD".
    Amd,
}

impl Vendor {
    /// The twelve characters of CPUID leaf 0.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intel => "GenuineIntel",
            Self::Amd => "AuthenticAMD",
        }
    }
}

/// What a processor is, and what PMU it has.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Short name, lower case.
    pub name: &'static str,
    /// Signature (leaf 1 EAX) and brand string of the processor; `None` leaves the host's.
    pub identity: Option<Identity>,
    /// The counters and their control.
    pub pmu: PmuKind,
    /// Bits of an event select register that can be written.
    pub selector_mask: u64,
    /// Bits of DEBUGCTL that can be written.
    pub debugctl_mask: u64,
    /// The last-branch records.
    pub lbr: LbrKind,
    /// Registers in addition to the counters that events read: the MSR and its valid bits.
    pub extra: &'static [(u32, u64)],
    /// Issue slots in a cycle.
    pub width: u8,
    /// The model-specific events.
    pub events: &'static [Event],
    /// What it reports its energy, if it does.
    pub energy: Option<Energy>,
    /// Whether it has the counters of Skylake's uncore: its clock and its arbiter.
    pub uncore: bool,
}

/// Which processor it claims to be.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The vendor.
    pub vendor: Vendor,
    /// Leaf 1 EAX.
    pub signature: u32,
    /// Leaves 0x80000002 to 0x80000004, at most 48 bytes.
    pub brand: &'static str,
}

/// Which kind of PMU it is.
#[derive(Clone, Copy, Debug)]
pub enum PmuKind {
    /// The processor has no PMU.
    Absent,
    /// Intel's architectural performance monitoring.
    Intel(Intel),
    /// AMD's.
    Amd(Amd),
}

/// Facts of an Intel PMU.
#[derive(Clone, Copy, Debug)]
pub struct Intel {
    /// Architectural version.
    pub version: u8,
    /// Bitmap of the general-purpose counters.
    pub counters: u32,
    /// Their width in bits.
    pub width: u8,
    /// Bitmap of the fixed counters.
    pub fixed: u32,
    /// Their width in bits.
    pub fixed_width: u8,
    /// Leaf 0xA: EAX, EBX, ECX, EDX.
    pub leaf_a: [u32; 4],
    /// Leaf 0x23, sub-leaves 0 to 5.
    pub leaf_23: Option<&'static [[u32; 4]; 6]>,
    /// `IA32_PERF_CAPABILITIES`; 0 if there is no such register.
    pub capabilities: u64,
    /// FIXED_CTR_CTRL has AnyThread bits.
    pub any_thread: bool,
    /// Fields of PERF_METRICS; 0 if there is no such register.
    pub metrics: u8,
    /// Precise event-based sampling, where it is offered.
    pub pebs: Option<Pebs>,
    /// The kind of core, where the processor tells it.
    pub core: Option<CoreKind>,
}

/// What a core reports its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreKind {
    /// Leaf 0x1A EAX: 0x20, Atom, or 0x40, Core, in bits 31:24; the native model's number.
    pub native: u32,
    /// Leaf 7 EDX\[15\]: the package has cores of several kinds.
    pub hybrid: bool,
}

/// Facts of precise event-based sampling.
#[derive(Clone, Copy, Debug)]
pub struct Pebs {
    /// Format of the records, PERF_CAPABILITIES\[11:8\]: 0 to 6, or 15 for architectural ones.
    pub format: u8,
    /// Bits of PEBS_ENABLE that can be written; the counters that can have architectural records.
    pub enable: u64,
    /// Bits of MSR_PEBS_DATA_CFG that can be written; 0 if there is no such register.
    pub data_config: u64,
    /// The precise events, by code and unit mask.
    pub events: &'static [(u16, u16)],
    /// Codes of those whose records hold the data's address.
    pub data: &'static [u16],
    /// How records say where data came from.
    pub sources: Sources,
    /// Code and unit mask of the event of loads that takes longer than the threshold; `None`: there is none.
    pub loads: Option<(u16, u16)>,
    /// Those of the event whose records state the source and the latency of stores.
    pub stores: Option<(u16, u16)>,
    /// Those of the event of which PEBS_ENABLE\[63\] lets records state the store: Sandy Bridge, Ivy Bridge (SDM volume 3,
    /// 20.3.4.4.3).
    pub precise_stores: Option<(u16, u16)>,
    /// Those of an event that must be counted together with `loads`, so that it has records.
    pub auxiliary: Option<(u16, u16)>,
    /// A record's latency is of the data alone, in bits 47:32, and of the instruction, in bits 15:0.
    pub splits_latency: bool,
    /// Architectural PEBS, which takes the place of the debug store.
    pub architectural: Option<ArchPebs>,
}

/// Facts of architectural PEBS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchPebs {
    /// The groups that records may have, as they are in bits 63:32 of a counter's CFG_C: leaf 0x23, sub-leaf 4, EBX.
    pub groups: u32,
    /// The counters with precise distribution, by their bits of the global registers: sub-leaf 5, EBX and EDX.
    pub distribution: u64,
}

/// Encodings of a record's data source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Four bits, without flags.
    Nehalem,
    /// Four bits; bit 4 says that the second-level TLB missed, bit 5 that the access was locked.
    SandyBridge,
    /// Four bits; bit 4 says that the access was locked, bit 5 that the second-level TLB missed.
    Gracemont,
    /// Eight bits, with those flags in bits 10 and 11.
    LionCove,
}

impl Pebs {
    /// Records consist of groups that MSR_PEBS_DATA_CFG chooses: formats 4 to 6.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        self.format >= 4 && self.architectural.is_none()
    }

    /// Records state the retire latency: format 6, which is later than Meteor Lake, the first processor with it; architectural ones.
    #[must_use]
    pub const fn states_retirement(&self) -> bool {
        self.format >= 6
    }

    /// Every event on every counter can have records.
    #[must_use]
    pub const fn takes_every_event(&self) -> bool {
        self.format >= 4
    }

    /// Records go where the debug store says.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.architectural.is_none()
    }
}

impl Intel {
    /// Architectural PEBS, where it is offered.
    #[must_use]
    pub const fn arch_pebs(&self) -> Option<&ArchPebs> {
        match &self.pebs {
            Some(pebs) => pebs.architectural.as_ref(),
            None => None,
        }
    }

    /// The available architectural events, as a bitmap (leaf 0xA EBX has them inverted).
    #[must_use]
    pub const fn architectural_events(&self) -> u32 {
        match self.leaf_23 {
            Some(leaf) => leaf[3][0],
            None => !self.leaf_a[1] & ((1 << (self.leaf_a[0] >> 24)) - 1),
        }
    }

    /// PERF_CAPABILITIES\[13\]: full-width writes.
    #[must_use]
    pub const fn full_width(&self) -> bool {
        self.capabilities & 1 << 13 != 0
    }
}

/// Facts of an AMD PMU.
#[derive(Clone, Copy, Debug)]
pub struct Amd {
    /// Number of core counters.
    pub counters: u8,
    /// PerfCtrExtCore: the counters are at 0xC0010200 as well.
    pub extended: bool,
    /// PerfMonV2: global control and status, freeze.
    pub v2: bool,
    /// The instructions-retired counter of HWCR\[30\] exists.
    pub irperf: bool,
    /// Instruction-based sampling: CPUID leaf 0x8000_001B EAX, of which [`super::ibs::OFFERED`] is modelled; 0 if there is none.
    pub ibs: u32,
    /// SVM.
    pub svm: Option<SvmFeatures>,
}

/// CPUID leaf 0x8000_000A of a processor.
#[derive(Clone, Copy, Debug)]
pub struct SvmFeatures {
    /// EBX: address space identifiers.
    pub asids: u32,
    /// EDX: features, of which a hypervisor may offer some.
    pub features: u32,
}

impl SvmFeatures {
    /// Nested paging, the next instruction's address at exits, clean bits, flushes by ASID, the virtual GIF, and checks of
    /// addresses before intercepts.
    pub const OFFERED: u32 = 1 << 0 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 16 | 1 << 28;
}

/// Which last-branch records there are.
#[derive(Clone, Copy, Debug)]
pub enum LbrKind {
    /// The processor keeps no branch records.
    None,
    /// A stack with a top-of-stack register.
    Legacy(LegacyLbr),
    /// Intel's architectural LBR (leaf 0x1C).
    Arch(ArchLbr),
    /// AMD's LBRv2: so many entries, the newest first.
    AmdV2 {
        /// Entries.
        entries: u8,
    },
    /// AMD before: one record.
    AmdSingle,
}

/// Facts of a legacy LBR stack.
#[derive(Clone, Copy, Debug)]
pub struct LegacyLbr {
    /// Entries; a power of two, at most 32.
    pub entries: u8,
    /// First FROM register.
    pub from: u32,
    /// First TO register.
    pub to: u32,
    /// First INFO register, if there are such.
    pub info: Option<u32>,
    /// Valid bits of LBR_SELECT; `None` if there is no filter.
    pub select: Option<u64>,
    /// FROM\[63\] tells a misprediction (formats 3 and 4).
    pub flags_in_from: bool,
    /// Nehalem's and Westmere's erratum: calls are recorded only if jumps are, too.
    pub calls_need_jumps: bool,
    /// A reserved bit of LBR_TOS faults (Sandy Bridge and later) or is ignored (Core 2).
    pub tos_faults: bool,
}

/// Facts of an architectural LBR.
#[derive(Clone, Copy, Debug)]
pub struct ArchLbr {
    /// Leaf 0x1C: EAX, EBX, ECX.
    pub leaf: [u32; 3],
    /// The greatest depth.
    pub entries: u8,
    /// Bits of ARCH_LBR_CTL that can be written.
    pub control: u64,
}

impl Spec {
    /// The Intel facts, if it is one.
    #[must_use]
    pub const fn intel(&self) -> Option<&Intel> {
        match &self.pmu {
            PmuKind::Intel(intel) => Some(intel),
            PmuKind::Absent | PmuKind::Amd(_) => None,
        }
    }

    /// The AMD facts, if it is one.
    #[must_use]
    pub const fn amd(&self) -> Option<&Amd> {
        match &self.pmu {
            PmuKind::Amd(amd) => Some(amd),
            PmuKind::Absent | PmuKind::Intel(_) => None,
        }
    }

    /// Bitmap of the general-purpose counters.
    #[must_use]
    pub const fn counters(&self) -> u32 {
        match &self.pmu {
            PmuKind::Intel(intel) => intel.counters,
            PmuKind::Amd(amd) => (1 << amd.counters) - 1,
            PmuKind::Absent => 0,
        }
    }

    /// Bitmap of the fixed counters.
    #[must_use]
    pub const fn fixed(&self) -> u32 {
        match self.intel() {
            Some(intel) => intel.fixed,
            None => 0,
        }
    }

    /// Width of the general-purpose counters in bits. AMD enumerates none; it is 48.
    #[must_use]
    pub const fn width_bits(&self) -> u8 {
        match self.intel() {
            Some(intel) => intel.width,
            None => 48,
        }
    }

    /// Bits of the global control register: counters, fixed counters, PERF_METRICS.
    #[must_use]
    pub const fn global_mask(&self) -> u64 {
        let metrics = match self.intel() {
            Some(intel) if intel.metrics > 0 => 1 << 48,
            _ => 0,
        };
        self.counters() as u64 | (self.fixed() as u64) << 32 | metrics
    }
}
