//! The processors that can be presented, each a table of facts. No other module names a processor.

mod amd;
pub mod energy;
mod hybrid;
pub mod ibs;
mod intel;
pub(crate) mod pebs;
mod spec;

pub(crate) use intel::{debugctl_of, selector_of};
pub(crate) use pebs::{
    ADAPTIVE_SELECT, PRECISE_STORE, SANDY_BRIDGE, arch, capabilities as pebs_capabilities,
};
pub use spec::{
    Amd, ArchLbr, ArchPebs, CoreKind, Identity, Intel, LbrKind, LegacyLbr, Pebs, PmuKind, Sources,
    Spec, SvmFeatures, Vendor,
};
use strum::{EnumCount, VariantArray};

/// A processor whose PMU is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
pub enum Model {
    /// No PMU at all: the leaves are empty and every register of the PMU raises #GP.
    None,
    /// Core 2, 45 nm (06_17): version 2, 2 counters of 40 bits and 3 fixed ones, no full-width
    /// writes.
    Core2,
    /// Nehalem (06_1A): version 3, 4 counters of 48 bits and 3 fixed ones, no full-width writes.
    Nehalem,
    /// Haswell (06_3C), without TSX: version 3, 4 counters and 3 fixed ones, full-width writes.
    Haswell,
    /// Skylake (06_5E), without hyper-threading: version 4, 8 counters and 3 fixed ones.
    Skylake,
    /// Ice Lake (06_7E): version 5, 8 counters, 4 fixed ones and PERF_METRICS, 32 legacy LBRs.
    IceLake,
    /// Sapphire Rapids (06_8F): as Ice Lake, with architectural LBRs.
    SapphireRapids,
    /// The performance core of Arrow Lake-S (06_C6), alone: version 6, where leaf 0x23 says more
    /// than leaf 0xA does (10 counters, 4 fixed ones).
    ArrowLake,
    /// AMD family 10h: 4 legacy counters.
    K10,
    /// AMD Zen 2: 6 counters, 4 of them under the legacy numbers as well.
    Zen2,
    /// AMD Zen 4: 6 counters, PerfMonV2, LBRv2.
    Zen4,
    /// The performance core of Alder Lake-S (06_97): version 5, where leaf 0xA states only what both kinds of its cores have (8
    /// counters, 4 fixed ones), PERF_METRICS, architectural LBRs.
    GoldenCove,
    /// The efficient core of Alder Lake-S: 6 counters, 3 fixed ones, architectural LBRs.
    Gracemont,
    /// The performance core of Panther Lake (06_CC), alone: as Arrow Lake, with architectural PEBS instead of a debug store.
    CougarCove,
}

impl Model {
    /// Every model.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The model's facts.
    #[must_use]
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::None => &NONE,
            Self::Core2 => &intel::CORE2,
            Self::Nehalem => &intel::NEHALEM,
            Self::Haswell => &intel::HASWELL,
            Self::Skylake => &intel::SKYLAKE,
            Self::IceLake => &intel::ICE_LAKE,
            Self::SapphireRapids => &intel::SAPPHIRE_RAPIDS,
            Self::ArrowLake => &intel::ARROW_LAKE,
            Self::K10 => &amd::K10,
            Self::Zen2 => &amd::ZEN2,
            Self::Zen4 => &amd::ZEN4,
            Self::GoldenCove => &hybrid::GOLDEN_COVE,
            Self::Gracemont => &hybrid::GRACEMONT,
            Self::CougarCove => &intel::COUGAR_COVE,
        }
    }

    /// The model of a short name (`skylake`, `zen4`, `none` ...), as a command line has it.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|model| name == model.spec().name || !name.is_empty() && name == model.alias())
    }

    /// A second name that a command line may have, of the processor instead of its core; empty if there is none.
    #[must_use]
    pub const fn alias(self) -> &'static str {
        match self {
            Self::CougarCove => "pantherlake",
            _ => "",
        }
    }
}

/// A machine without a PMU.
const NONE: Spec = Spec {
    name: "none",
    identity: None,
    pmu: PmuKind::Absent,
    selector_mask: 0,
    debugctl_mask: 0,
    lbr: LbrKind::None,
    extra: &[],
    width: 1,
    events: &[],
    energy: None,
    uncore: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for model in Model::ALL {
            assert_eq!(Model::by_name(model.spec().name), Some(model));
        }
        assert_eq!(Model::by_name("pantherlake"), Some(Model::CougarCove));
        for none in ["k11", ""] {
            assert_eq!(Model::by_name(none), None);
        }
    }

    #[test]
    fn counters_fit_the_state() {
        for model in Model::ALL {
            let spec = model.spec();
            assert!(spec.counters() < 1 << crate::pmu::MAX_COUNTERS);
            assert!(spec.fixed() < 1 << crate::pmu::MAX_FIXED);
            assert!(spec.extra.len() <= crate::pmu::MAX_EXTRA);
            if let Some(identity) = &spec.identity {
                assert!(identity.brand.len() <= 48);
            }
        }
    }

    #[test]
    fn leaf_a_agrees_with_the_counters_unless_it_tells_what_two_kinds_share() {
        for model in Model::ALL {
            let Some(intel) = model.spec().intel() else {
                continue;
            };
            let [eax, _, ecx, edx] = intel.leaf_a;
            assert_eq!(eax as u8, intel.version, "{model:?}");
            assert_eq!((eax >> 16) as u8, intel.width);
            assert_eq!((edx >> 5) as u8, intel.fixed_width);
            let counters = (1 << (eax >> 8 & 0xFF)) - 1;
            let fixed = ((1 << (edx & 0x1F)) - 1) | ecx;
            match intel.leaf_23 {
                // Alder Lake's states what its two kinds of core share.
                None if model == Model::GoldenCove => {
                    let other = Model::Gracemont.spec();
                    assert_eq!((counters, fixed), (other.counters(), other.fixed()));
                }
                None => assert_eq!((counters, fixed), (intel.counters, intel.fixed), "{model:?}"),
                Some(leaf) => assert_eq!(leaf[1][..2], [intel.counters, intel.fixed]),
            }
        }
    }
}
