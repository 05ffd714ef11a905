use super::*;
use crate::cpu::CoreType;

/// Version, counters, fixed counters, width, and how a PMI freezes.
#[test]
fn c6_capabilities_of_every_model() {
    use FreezeKind::{Legacy, None, Streamlined};
    let expected = [
        (Model::Core2, 2, 0x3, 0x7, 40, Legacy),
        (Model::Nehalem, 3, 0xf, 0x7, 48, Legacy),
        (Model::Haswell, 3, 0xf, 0x7, 48, Legacy),
        (Model::Skylake, 4, 0xff, 0x7, 48, Streamlined),
        (Model::IceLake, 5, 0xff, 0xf, 48, Streamlined),
        (Model::SapphireRapids, 5, 0xff, 0xf, 48, Streamlined),
        (Model::ArrowLake, 6, 0x3ff, 0xf, 48, Streamlined),
        (Model::K10, 0, 0xf, 0, 48, None),
        (Model::Zen2, 1, 0x3f, 0, 48, None),
        (Model::Zen4, 2, 0x3f, 0, 48, Streamlined),
        (Model::GoldenCove, 5, 0xff, 0xf, 48, Streamlined),
        (Model::Gracemont, 5, 0x3f, 0x7, 48, Streamlined),
        (Model::CougarCove, 6, 0x3ff, 0xf, 48, Streamlined),
    ];
    for ((model, _, driver), row) in machines().zip(expected) {
        let has = driver.capabilities();
        let seen = (model, has.version, has.general, has.fixed, has.general_bits, has.freeze);
        assert_eq!(seen, row);
        assert_eq!(has.full_width(), matches!(has.version, 3..) && model != Model::Nehalem);
        assert_eq!(has.metrics, has.fixed & 8 != 0, "{model:?}");
        assert_eq!(has.irperf, matches!(model, Model::Zen2 | Model::Zen4), "{model:?}");
    }
    assert_eq!(find(&mut machine(Model::None)), Err(Missing::NotAnnounced));
}

#[test]
fn branch_records_of_every_model() {
    let legacy =
        |entries, format, old_place, filter| LbrKind::Legacy { entries, format, old_place, filter };
    for (model, _, driver) in machines() {
        let expected = match model {
            Model::Core2 => legacy(4, 2, true, false),
            Model::Nehalem => legacy(16, 3, false, true),
            Model::Haswell => legacy(16, 4, false, true),
            Model::Skylake | Model::IceLake => legacy(32, 5, false, true),
            Model::SapphireRapids
            | Model::ArrowLake
            | Model::GoldenCove
            | Model::Gracemont
            | Model::CougarCove => {
                LbrKind::Architectural { depth: 32, mispredict: true, filter: true }
            }
            Model::Zen4 => LbrKind::AmdV2 { entries: 16 },
            _ => LbrKind::Single,
        };
        assert_eq!(driver.capabilities().lbr, expected, "{model:?}");
    }
}

#[test]
fn i11_a_hybrid_core_is_read_from_leaf_23() {
    let has = find(&mut machine(Model::ArrowLake)).unwrap();
    // Leaf 0xA announces 8 counters and 3 fixed ones there.
    assert_eq!((has.general.count_ones(), has.fixed.count_ones()), (10, 4));
    assert_eq!(has.core_type, Some(CoreType::Core));
    assert!(has.umask2 && has.equal && !has.any_thread);
    assert_eq!(has.events, 0x1dff);
}

/// Leaf 0xA announces 6 counters and 3 fixed ones on both.
#[test]
fn x13_a_performance_core_has_more_than_what_both_kinds_share() {
    let [p, e] = [Model::GoldenCove, Model::Gracemont].map(|model| find(&mut machine(model)));
    let (p, e) = (p.unwrap(), e.unwrap());
    assert_eq!((p.general, p.fixed, p.metrics), (0xff, 0xf, true));
    assert_eq!((e.general, e.fixed, e.metrics), (0x3f, 0x7, false));
    assert_eq!([p.core_type, e.core_type], [Some(CoreType::Core), Some(CoreType::Atom)]);
    assert_eq!(p.events, e.events);
}

/// What the report says of the PMU: all of it that is there, and nothing that is not.
#[test]
fn c6_features_of_some_models_in_words() {
    let features = |model| find(&mut machine(model)).unwrap().features().join(", ");
    let models = [Model::Core2, Model::Skylake, Model::ArrowLake, Model::K10, Model::Zen4];
    let expected = [
        "global control, freeze on PMI (legacy), freeze while in SMM, legacy LBR, PEBS",
        "global control, full-width writes, AnyThread, freeze on PMI (streamlined), freeze while in SMM, \
         legacy LBR, PEBS",
        "global control, full-width writes, UMASK2, EQ, freeze on PMI (streamlined), freeze while in SMM, \
         PERF_METRICS, architectural LBR, PEBS (adaptive)",
        "IBS",
        "global control, freeze on PMI (streamlined), LBRv2, instructions-retired counter, IBS",
    ];
    assert_eq!(models.map(features), expected);
}

#[test]
fn i11_errata_are_those_of_the_model() {
    let ids = |model| {
        let has = find(&mut machine(model)).unwrap();
        has.errata.iter().map(|row| row.id).collect::<Vec<_>>()
    };
    // The model has no MSR_TSX_FORCE_ABORT.
    assert_eq!(ids(Model::Skylake), Vec::<&str>::new());
    assert_eq!(ids(Model::Nehalem), ["AAJ80", "AAK100, AAP53, BD53", "nhm_limit_period"]);
    assert_eq!(ids(Model::Zen4), Vec::<&str>::new());
}

/// A machine whose registers read 0 and swallow writes, as KVM's compatibility list does.
struct Swallows(Pmu);

impl Registers for Swallows {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> raw_cpuid::CpuIdResult {
        Registers::cpuid(&self.0, leaf, subleaf)
    }
    fn rdmsr(&mut self, _: crate::msr::Msr) -> Result<u64, crate::msr::Absent> {
        Ok(0)
    }
    fn wrmsr(&mut self, _: crate::msr::Msr, _: u64) -> Result<(), crate::msr::Absent> {
        Ok(())
    }
    fn rdpmc(&mut self, _: u32) -> Result<u64, crate::msr::Absent> {
        Err(crate::msr::Absent)
    }
}

#[test]
fn a_counter_that_holds_nothing_is_no_pmu() {
    for model in [Model::Haswell, Model::Zen2] {
        let error = find(&mut Swallows(machine(model))).unwrap_err();
        assert!(matches!(error, Missing::DoesNotHold { found: 0, .. }), "{error}");
    }
}
