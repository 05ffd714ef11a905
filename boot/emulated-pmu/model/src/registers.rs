//! Which register an MSR number is on a given model.

use crate::model::{LbrKind, PmuKind, Spec, ibs};
use crate::msr;

/// A register of the model. Aliases name the same register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// General-purpose counter n, in its legacy form (Intel: 32 bits, sign-extended).
    Counter(usize),
    /// General-purpose counter n, all bits.
    FullCounter(usize),
    /// Event selector of counter n.
    Selector(usize),
    /// Fixed counter n.
    Fixed(usize),
    FixedControl,
    GlobalStatus,
    GlobalControl,
    GlobalClear,
    GlobalSet,
    GlobalInUse,
    Capabilities,
    Metrics,
    DebugControl,
    MiscEnable,
    /// Entry of the model's list of extra registers.
    Extra(usize),
    DsArea,
    PebsEnable,
    PebsDataConfig,
    PebsBase,
    PebsIndex,
    /// CFG_C of general-purpose counter n.
    Config(usize),
    /// CFG_C of fixed counter n.
    FixedConfig(usize),
    LbrSelect,
    LbrTos,
    LbrFrom(usize),
    LbrTo(usize),
    LbrInfo(usize),
    ArchLbrControl,
    ArchLbrDepth,
    LastBranchFrom,
    LastBranchTo,
    LerFrom,
    LerTo,
    LerInfo,
    DebugExtension,
    HardwareConfiguration,
    InstructionsRetired,
    /// The register with this number among those of instruction-based sampling.
    Ibs(usize),
    /// The register with this number among those of energy.
    Energy(usize),
    /// The register of the uncore with this number.
    Uncore(u32),
    /// The register with this number among those of the qualifiers.
    Qualifier(usize),
}

/// Who answers for an MSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The model has it.
    InModel(Register),
    /// A register of some PMU, but not of this model: #GP.
    Absent,
    /// No register of a PMU.
    Elsewhere,
}

/// The index of `msr` in a run of `count` registers from `first`.
fn index(msr: u32, first: u32, count: u32) -> Option<usize> {
    let index = msr.wrapping_sub(first);
    (index < count).then_some(index as usize)
}

/// The same, if the bitmap has that bit.
fn present(msr: u32, first: u32, bitmap: u32) -> Option<usize> {
    index(msr, first, 32).filter(|index| bitmap & 1 << index != 0)
}

pub(crate) fn place(spec: &Spec, msr: u32) -> Place {
    if let Some(number) = index(msr, msr::QUALIFIERS, crate::qualify::WORDS as u32) {
        return match spec.pmu {
            PmuKind::Absent => Place::Absent,
            PmuKind::Intel(_) | PmuKind::Amd(_) => Place::InModel(Register::Qualifier(number)),
        };
    }
    let listed = msr::RANGES.iter().any(|(first, last)| (*first..=*last).contains(&msr));
    if !listed {
        return Place::Elsewhere;
    }
    let found = match &spec.pmu {
        PmuKind::Intel(_) => intel(spec, msr),
        PmuKind::Amd(_) => amd(spec, msr),
        PmuKind::Absent => None,
    };
    let energy = || spec.energy.as_ref()?.place(msr).map(Register::Energy);
    let of_uncore = || (spec.uncore && msr::is_uncore(msr)).then_some(Register::Uncore(msr));
    match found.or_else(|| lbr(spec, msr)).or_else(energy).or_else(of_uncore) {
        Some(register) => Place::InModel(register),
        None if passes(spec, msr) => Place::Elsewhere,
        None => Place::Absent,
    }
}

/// Registers that are more than the PMU's, and those of an uncore that is not modelled. Without a PMU they stay the hardware's, and so does HWCR
/// where it has no bit of ours.
fn passes(spec: &Spec, msr: u32) -> bool {
    match spec.pmu {
        _ if msr::is_uncore(msr) => true,
        PmuKind::Absent => matches!(
            msr,
            msr::DEBUGCTL | msr::MISC_ENABLE | msr::AMD_HWCR | msr::LAST_BRANCH_FROM..=msr::LER_TO
        ),
        PmuKind::Intel(_) | PmuKind::Amd(_) => msr == msr::AMD_HWCR,
    }
}

fn intel(spec: &Spec, msr: u32) -> Option<Register> {
    use Register::*;
    let intel = spec.intel()?;
    let v4 = intel.version >= 4;
    let single = match msr {
        msr::FIXED_CTR_CTRL if intel.fixed != 0 => Some(FixedControl),
        msr::GLOBAL_STATUS if intel.version >= 2 => Some(GlobalStatus),
        msr::GLOBAL_CTRL if intel.version >= 2 => Some(GlobalControl),
        msr::GLOBAL_OVF_CTRL if intel.version >= 2 => Some(GlobalClear),
        msr::GLOBAL_STATUS_SET if v4 => Some(GlobalSet),
        msr::GLOBAL_INUSE if v4 => Some(GlobalInUse),
        msr::PERF_CAPABILITIES if intel.capabilities != 0 => Some(Capabilities),
        msr::PERF_METRICS if intel.metrics > 0 => Some(Metrics),
        msr::DEBUGCTL => Some(DebugControl),
        msr::MISC_ENABLE => Some(MiscEnable),
        msr::DS_AREA if intel.pebs.is_some_and(|pebs| pebs.has_store()) => Some(DsArea),
        msr::PEBS_ENABLE if intel.pebs.is_some_and(|pebs| pebs.has_store()) => Some(PebsEnable),
        msr::PEBS_BASE if intel.arch_pebs().is_some() => Some(PebsBase),
        msr::PEBS_INDEX if intel.arch_pebs().is_some() => Some(PebsIndex),
        msr::PEBS_DATA_CFG if intel.pebs.is_some_and(|pebs| pebs.is_adaptive()) => {
            Some(PebsDataConfig)
        }
        _ => None,
    };
    single
        .or_else(|| present(msr, msr::PMC, intel.counters).map(Counter))
        .or_else(|| present(msr, msr::PERFEVTSEL, intel.counters).map(Selector))
        .or_else(|| present(msr, msr::FIXED_CTR, intel.fixed).map(Fixed))
        .or_else(|| {
            present(msr, msr::A_PMC, intel.counters).filter(|_| intel.full_width()).map(FullCounter)
        })
        .or_else(|| spec.extra.iter().position(|(extra, _)| *extra == msr).map(Extra))
        .or_else(|| version_6(spec, msr).filter(|_| intel.version >= 6))
}

/// The aliases of version 6. The third register of each counter serves auto-counter-reload, which no model offers, the fourth one,
/// CFG_C, architectural PEBS.
fn version_6(spec: &Spec, msr: u32) -> Option<Register> {
    let records = spec.intel()?.arch_pebs().is_some();
    if let Some(offset) = index(msr, msr::V6_FIXED, 4 * 32) {
        (spec.fixed() & 1 << (offset / 4) != 0).then_some(())?;
        return match offset % 4 {
            0 => Some(Register::Fixed(offset / 4)),
            3 if records => Some(Register::FixedConfig(offset / 4)),
            _ => None,
        };
    }
    let offset = index(msr, msr::V6_GP, 4 * 32)?;
    (spec.counters() & 1 << (offset / 4) != 0).then_some(())?;
    match offset % 4 {
        0 => Some(Register::FullCounter(offset / 4)),
        1 => Some(Register::Selector(offset / 4)),
        3 if records => Some(Register::Config(offset / 4)),
        _ => None,
    }
}

fn amd(spec: &Spec, msr: u32) -> Option<Register> {
    use Register::*;
    let amd = spec.amd()?;
    let single = match msr {
        msr::AMD_GLOBAL_STATUS if amd.v2 => Some(GlobalStatus),
        msr::AMD_GLOBAL_CTL if amd.v2 => Some(GlobalControl),
        msr::AMD_GLOBAL_STATUS_CLR if amd.v2 => Some(GlobalClear),
        msr::AMD_GLOBAL_STATUS_SET if amd.v2 => Some(GlobalSet),
        msr::AMD_IRPERF if amd.irperf => Some(InstructionsRetired),
        msr::AMD_HWCR if amd.irperf => Some(HardwareConfiguration),
        msr::DEBUGCTL => Some(DebugControl),
        _ => None,
    };
    let extended = || {
        let offset = index(msr, msr::AMD_PERF_CTL, 2 * u32::from(amd.counters))?;
        Some(match offset % 2 {
            0 => Selector(offset / 2),
            _ => FullCounter(offset / 2),
        })
    };
    single
        .or_else(|| index(msr, msr::AMD_LEGACY_CTL, 4).map(Selector))
        .or_else(|| index(msr, msr::AMD_LEGACY_CTR, 4).map(FullCounter))
        .or_else(|| if amd.extended { extended() } else { None })
        .or_else(|| {
            index(msr, msr::AMD_IBS, 14).filter(|at| ibs::has_register(amd.ibs, *at)).map(Ibs)
        })
}

fn lbr(spec: &Spec, msr: u32) -> Option<Register> {
    use Register::*;
    let last = match msr {
        msr::LAST_BRANCH_FROM => Some(LastBranchFrom),
        msr::LAST_BRANCH_TO => Some(LastBranchTo),
        msr::LER_FROM => Some(LerFrom),
        msr::LER_TO => Some(LerTo),
        _ => None,
    };
    match &spec.lbr {
        LbrKind::None => None,
        LbrKind::Legacy(legacy) => {
            let entries = u32::from(legacy.entries);
            match msr {
                msr::LBR_TOS => Some(LbrTos),
                msr::LBR_SELECT => legacy.select.map(|_| LbrSelect),
                _ => last,
            }
            .or_else(|| index(msr, legacy.from, entries).map(LbrFrom))
            .or_else(|| index(msr, legacy.to, entries).map(LbrTo))
            .or_else(|| index(msr, legacy.info?, entries).map(LbrInfo))
        }
        LbrKind::Arch(arch) => {
            let entries = u32::from(arch.entries);
            match msr {
                msr::ARCH_LBR_CTL => Some(ArchLbrControl),
                msr::ARCH_LBR_DEPTH => Some(ArchLbrDepth),
                msr::LER_INFO => Some(LerInfo),
                // The copy of the newest record belongs to the legacy stack.
                msr::LAST_BRANCH_FROM | msr::LAST_BRANCH_TO => None,
                _ => last,
            }
            .or_else(|| index(msr, msr::ARCH_LBR_FROM, entries).map(LbrFrom))
            .or_else(|| index(msr, msr::ARCH_LBR_TO, entries).map(LbrTo))
            .or_else(|| index(msr, msr::ARCH_LBR_INFO, entries).map(LbrInfo))
        }
        LbrKind::AmdV2 { entries } => {
            let pair = index(msr, msr::AMD_LBR, 2 * u32::from(*entries));
            match (msr, pair) {
                (msr::AMD_LBR_SELECT, _) => Some(LbrSelect),
                (msr::AMD_DEBUG_EXTN, _) => Some(DebugExtension),
                (_, Some(offset)) if offset % 2 == 0 => Some(LbrFrom(offset / 2)),
                (_, Some(offset)) => Some(LbrTo(offset / 2)),
                _ => last,
            }
        }
        LbrKind::AmdSingle => last,
    }
}
