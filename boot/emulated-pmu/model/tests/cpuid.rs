//! CPUID: what is laid over the host's answers, and that it agrees with what raises #GP.

mod common;

use common::{counters, fixed_counters, pmu};
use pmu_model::{CpuidResult, Host, Model, Pmu, Timing};
use proptest::prelude::*;

const INTEL: [Model; 10] = [
    Model::Core2,
    Model::Nehalem,
    Model::Haswell,
    Model::Skylake,
    Model::IceLake,
    Model::SapphireRapids,
    Model::ArrowLake,
    Model::CougarCove,
    Model::GoldenCove,
    Model::Gracemont,
];

/// Leaves that are none of the PMU's.
const OTHERS: [u32; 16] =
    [2, 3, 4, 5, 6, 8, 9, 0xB, 0xC, 0xF, 0x10, 0x15, 0x16, 0x18, 0x1F, 0x4000_0000];

/// A host that has every feature bit set in every leaf.
const FULL: CpuidResult =
    CpuidResult { eax: u32::MAX, ebx: u32::MAX, ecx: u32::MAX, edx: u32::MAX };
const EMPTY: CpuidResult = CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };

fn leaf(model: Model, leaf: u32, subleaf: u32, host: CpuidResult) -> CpuidResult {
    pmu(model).cpuid(leaf, subleaf, host)
}

fn quad(leaf: CpuidResult) -> [u32; 4] {
    [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn leaf_a_is_the_parts_own() {
    for (model, expected) in [
        (Model::None, [0; 4]),
        (Model::Core2, [0x0728_0202, 0, 0, 0x503]),
        (Model::Nehalem, [0x0730_0403, 0x44, 0, 0x603]),
        (Model::Haswell, [0x0730_0403, 0, 0, 0x603]),
        (Model::Skylake, [0x0730_0804, 0, 0, 0x603]),
        (Model::IceLake, [0x0830_0805, 0, 0xF, 0x8604]),
        (Model::SapphireRapids, [0x0830_0805, 0, 0xF, 0x8604]),
        (Model::ArrowLake, [0x0D30_0806, 0x280, 0x7, 0x8603]),
        (Model::CougarCove, [0x0D30_0806, 0x280, 0x7, 0x8603]),
        // What both kinds of core share.
        (Model::GoldenCove, [0x0730_0605, 0, 0x7, 0x8603]),
        (Model::Gracemont, [0x0730_0605, 0, 0x7, 0x8603]),
        (Model::K10, [0; 4]),
        (Model::Zen2, [0; 4]),
        (Model::Zen4, [0; 4]),
    ] {
        assert_eq!(quad(leaf(model, 0xA, 0, FULL)), expected, "{model:?}");
    }
}

#[test]
fn leaf_23_exists_on_version_6_and_says_more_than_leaf_a() {
    let sub = |subleaf| quad(leaf(Model::ArrowLake, 0x23, subleaf, FULL));
    assert_eq!(sub(0), [0xB, 3, 0, 0]);
    assert_eq!(sub(1), [0x3FF, 0xF, 0, 0]);
    assert_eq!(sub(2), [0; 4]);
    assert_eq!(sub(3), [0x1DFF, 0, 0, 0]);
    assert_eq!(sub(4), [0; 4]);
    assert_eq!(leaf(Model::ArrowLake, 7, 1, EMPTY).eax, 1 << 8);
    assert_eq!(leaf(Model::ArrowLake, 0, 0, EMPTY).eax, 0x23);
    for model in Model::ALL {
        if !matches!(model, Model::ArrowLake | Model::CougarCove) {
            assert_eq!(quad(leaf(model, 0x23, 1, FULL)), [0; 4], "{model:?}");
            assert_eq!(leaf(model, 7, 1, FULL).eax & 1 << 8, 0, "{model:?}");
        }
    }
}

#[test]
fn s1_architectural_pebs_is_announced_by_its_two_sub_leaves() {
    let sub = |subleaf| quad(leaf(Model::CougarCove, 0x23, subleaf, FULL));
    assert_eq!(sub(0), [0b11_1011, 3, 0, 0], "not sub-leaf 2, auto-counter-reload");
    assert_eq!(sub(1), [0x3FF, 0xF, 0, 0]);
    assert_eq!(sub(2), [0; 4]);
    assert_eq!(sub(3), [0x1DFF, 0, 0, 0]);
    // AUX, GPR, the upper halves of YMM, XMM, LBR, metrics, fixed, general-purpose counters, and that their values may be in records of others.
    assert_eq!(sub(4), [0, 0x6006_0378, 0, 0]);
    // General-purpose counters and those with precise distribution; then the fixed ones.
    assert_eq!(sub(5), [0x3FF, 1, 0xF, 1]);
    assert_eq!(sub(6), [0; 4]);
    assert_eq!(leaf(Model::CougarCove, 7, 1, EMPTY).eax, 1 << 8);
    // Not the debug store.
    let one = leaf(Model::CougarCove, 1, 0, FULL);
    assert_eq!((one.eax, one.ecx & 1 << 2, one.edx & 1 << 21), (0xC_06C2, 0, 0));
    assert_ne!(one.ecx & 1 << 15, 0, "PDCM");
}

#[test]
fn architectural_lbrs_have_leaf_and_feature_bit_together() {
    for model in Model::ALL {
        let eax = match model {
            Model::SapphireRapids | Model::ArrowLake | Model::GoldenCove | Model::CougarCove => {
                0x4000_000B
            }
            Model::Gracemont => 0xC000_000B,
            _ => 0,
        };
        let arch = eax != 0;
        for host in [FULL, EMPTY] {
            assert_eq!(leaf(model, 7, 0, host).edx & 1 << 19 != 0, arch, "{model:?}");
            let expected = if arch { [eax, 7, 7, 0] } else { [0; 4] };
            assert_eq!(quad(leaf(model, 0x1C, 0, host)), expected, "{model:?}");
            assert_eq!(quad(leaf(model, 0x1C, 1, host)), [0; 4], "{model:?}");
        }
    }
}

#[test]
fn identity() {
    for (model, signature, brand) in [
        (Model::Core2, 0x10676, "Intel(R) Core(TM)2 Duo CPU     E8400  @ 3.00GHz"),
        (Model::Skylake, 0x506E3, "Intel(R) Core(TM) i5-6400T CPU @ 2.20GHz"),
        (Model::Zen4, 0xA60F12, "AMD Ryzen 9 7950X 16-Core Processor"),
    ] {
        assert_eq!(leaf(model, 1, 0, FULL).eax, signature);
        let words: Vec<u32> =
            (0..3).flat_map(|part| quad(leaf(model, 0x8000_0002 + part, 0, FULL))).collect();
        assert_eq!(text(&words).trim_end_matches('\0'), brand);
    }
    for model in INTEL {
        let [_, ebx, ecx, edx] = quad(leaf(model, 0, 0, EMPTY));
        assert_eq!(text(&[ebx, edx, ecx]), "GenuineIntel", "{model:?}");
    }
    for model in [Model::K10, Model::Zen2, Model::Zen4] {
        for number in [0, 0x8000_0000] {
            let [_, ebx, ecx, edx] = quad(leaf(model, number, 0, EMPTY));
            assert_eq!(text(&[ebx, edx, ecx]), "AuthenticAMD", "{model:?}");
        }
        let signature = leaf(model, 1, 0, EMPTY).eax;
        assert_eq!(leaf(model, 0x8000_0001, 0, EMPTY).eax, signature);
    }
    let host = CpuidResult { eax: 0x663, ..EMPTY };
    assert_eq!(leaf(Model::None, 1, 0, host), host);
}

#[test]
fn what_is_not_offered_is_hidden_on_a_host_that_has_it() {
    for model in Model::ALL {
        // DS-CPL, VMX; DTES64 and DS where there is no PEBS.
        assert_eq!(leaf(model, 1, 0, FULL).ecx & 0x30, 0, "{model:?}");
        let store = pmu(model).read_msr(0x600).is_ok();
        for host in [FULL, EMPTY] {
            let one = leaf(model, 1, 0, host);
            assert_eq!(one.ecx & 1 << 2 != 0, store, "{model:?}");
            assert_eq!(one.edx & 1 << 21 != 0, store, "{model:?}");
        }
        // HLE, RTM, Processor Trace; TSX_FORCE_ABORT; HYBRID but where it is the model's own.
        let seven = leaf(model, 7, 0, FULL);
        assert_eq!(seven.ebx & (1 << 4 | 1 << 11 | 1 << 25), 0, "{model:?}");
        assert_eq!(seven.edx & (1 << 11 | 1 << 13), 0, "{model:?}");
        let hybrid = matches!(model, Model::GoldenCove | Model::Gracemont);
        assert_eq!(seven.edx & 1 << 15 != 0, hybrid, "{model:?}");
        // SVM, northbridge, TSC and last-level counters.
        let hidden = 1 << 2 | 1 << 24 | 1 << 27 | 1 << 28;
        assert_eq!(leaf(model, 0x8000_0001, 0, FULL).ecx & hidden, 0, "{model:?}");
        assert_eq!(quad(leaf(model, 0x8000_000A, 0, FULL)), [0; 4], "{model:?}");
    }
}

#[test]
fn x13_the_kinds_of_core_of_a_package_differ_in_leaf_1a_alone() {
    for (model, native) in [
        (Model::GoldenCove, 0x4000_0001),
        (Model::Gracemont, 0x2000_0001),
        (Model::ArrowLake, 0x4000_0003),
        (Model::CougarCove, 0x4000_0004),
        (Model::SapphireRapids, 0),
    ] {
        for host in [FULL, EMPTY] {
            assert_eq!(quad(leaf(model, 0x1A, 0, host)), [native, 0, 0, 0], "{model:?}");
        }
    }
    for number in [1, 7, 0xA] {
        let of = |model| quad(leaf(model, number, 0, FULL));
        assert_eq!(of(Model::GoldenCove), of(Model::Gracemont), "leaf {number:#x}");
    }
}

#[test]
fn pdcm_is_there_exactly_where_perf_capabilities_are() {
    for model in Model::ALL {
        for host in [FULL, EMPTY] {
            let pdcm = leaf(model, 1, 0, host).ecx & 1 << 15 != 0;
            assert_eq!(pdcm, pmu(model).read_msr(0x345).is_ok(), "{model:?}");
        }
    }
}

#[test]
fn amd_features_agree_with_its_registers() {
    for model in Model::ALL {
        for host in [FULL, EMPTY] {
            let core = leaf(model, 0x8000_0001, 0, host).ecx & 1 << 23 != 0;
            assert_eq!(core, pmu(model).read_msr(0xC001_0200).is_ok(), "{model:?}");
            let irperf = leaf(model, 0x8000_0008, 0, host).ebx & 2 != 0;
            assert_eq!(irperf, pmu(model).read_msr(0xC000_00E9).is_ok(), "{model:?}");
            let v2 = leaf(model, 0x8000_0022, 0, host).eax;
            assert_eq!(v2 & 1 != 0, pmu(model).read_msr(0xC000_0300).is_ok(), "{model:?}");
            let rapl = leaf(model, 0x8000_0007, 0, host).edx & 1 << 14 != 0;
            let has = pmu(model).read_msr(0xC001_0299).is_ok();
            assert_eq!(rapl, has, "{model:?}");
        }
    }
    // PerfMonV2, LBRv2, freeze; 6 counters, 16 LBRs.
    let v2 = quad(leaf(Model::Zen4, 0x8000_0022, 0, FULL));
    assert_eq!(v2, [7, 6 | 16 << 4, 0, 0]);
}

#[test]
fn enumeration_agrees_with_what_faults() {
    for model in INTEL {
        let leaf_a = leaf(model, 0xA, 0, EMPTY);
        let (mut general, mut fixed) = (leaf_a.eax >> 8 & 0xFF, leaf_a.edx & 0x1F);
        if leaf_a.eax & 0xFF >= 6 {
            let wider = leaf(model, 0x23, 1, EMPTY);
            general = wider.eax.count_ones();
            fixed = wider.ebx.count_ones();
        }
        if model == Model::GoldenCove {
            // Leaf 0xA and PERF_CAPABILITIES state what it shares with the efficient cores.
            assert_eq!((general, fixed), (6, 3));
            (general, fixed) = (8, 4);
        }
        assert_eq!(general, counters(model), "{model:?}");
        assert_eq!(fixed, fixed_counters(model), "{model:?}");
        let mut pmu = pmu(model);
        for n in 0..12 {
            assert_eq!(pmu.read_msr(0xC1 + n).is_ok(), n < general, "{model:?} {n}");
            assert_eq!(pmu.read_msr(0x186 + n).is_ok(), n < general, "{model:?} {n}");
            assert_eq!(pmu.rdpmc(n).is_ok(), n < general, "{model:?} {n}");
        }
        for n in 0..7 {
            assert_eq!(pmu.read_msr(0x309 + n).is_ok(), n < fixed, "{model:?} {n}");
            assert_eq!(pmu.rdpmc(0x4000_0000 | n).is_ok(), n < fixed, "{model:?} {n}");
        }
        // Full-width writes where PERF_CAPABILITIES[13] says so, metrics where [15] does.
        let capabilities = pmu.read_msr(0x345).unwrap();
        assert_eq!(pmu.read_msr(0x4C1).is_ok(), capabilities >> 13 & 1 != 0, "{model:?}");
        let metrics = capabilities >> 15 & 1 != 0 || model == Model::GoldenCove;
        assert_eq!(pmu.read_msr(0x329).is_ok(), metrics, "{model:?}");
        assert_eq!(pmu.rdpmc(0x2000_0000).is_ok(), metrics);
        // The counters are as wide as the leaf says.
        let width = leaf_a.eax >> 16 & 0xFF;
        pmu.write_msr(0xC1, u64::MAX).unwrap();
        assert_eq!(pmu.read_msr(0xC1), Ok((1 << width) - 1), "{model:?}");
        // AnyThread is accepted exactly where version 3 has it and it is not deprecated.
        let any = (leaf_a.eax & 0xFF) >= 3 && leaf_a.edx & 1 << 15 == 0;
        assert_eq!(pmu.write_msr(0x186, 1 << 21).is_ok(), any, "{model:?}");
        assert_eq!(pmu.write_msr(0x38D, 4).is_ok(), any, "{model:?}");
    }
}

#[test]
fn leaves_above_the_hosts_highest_do_not_echo() {
    let host = Host {
        highest_basic: 0x4,
        highest_extended: 0x8000_0004,
        highest_subleaf_7: 0,
        ..Host::EXAMPLE
    };
    for model in Model::ALL {
        let pmu = Pmu::new(model, host, Timing::DEFAULT);
        let highest = pmu.cpuid(0, 0, FULL).eax;
        for number in 5..0x40 {
            let ours = [0xA, 0x1A, 0x1C, 0x23].contains(&number) || number == 7;
            let shown = pmu.cpuid(number, 0, FULL);
            if number > highest || !ours {
                assert_eq!(quad(shown), [0; 4], "{model:?} {number:#x}");
            }
        }
        if model != Model::None {
            let extended = pmu.cpuid(0x8000_0000, 0, FULL).eax;
            assert!(extended >= 0x8000_0008, "{model:?}");
            assert_eq!(quad(pmu.cpuid(extended + 1, 0, FULL)), [0; 4], "{model:?}");
            let rapl = if pmu.spec().amd().is_some_and(|amd| amd.irperf) { 1 << 14 } else { 0 };
            assert_eq!(quad(pmu.cpuid(0x8000_0007, 0, FULL)), [0, 0, 0, rapl], "{model:?}");
        }
    }
}

#[test]
fn highest_leaves() {
    let highest = |model, number| leaf(model, number, 0, EMPTY).eax;
    assert_eq!(highest(Model::Skylake, 0), 0x1F, "the host's");
    assert_eq!(highest(Model::Skylake, 0x8000_0000), 0x8000_0008);
    assert_eq!(highest(Model::Zen2, 0x8000_0000), 0x8000_0021, "the host's");
    assert_eq!(highest(Model::Zen4, 0x8000_0000), 0x8000_0022);
    let small = Host { highest_basic: 1, ..Host::EXAMPLE };
    for (model, needed) in [
        (Model::Skylake, 0xA),
        (Model::SapphireRapids, 0x1C),
        (Model::ArrowLake, 0x23),
        (Model::CougarCove, 0x23),
        (Model::Zen4, 1),
    ] {
        let pmu = Pmu::new(model, small, Timing::DEFAULT);
        assert_eq!(pmu.cpuid(0, 0, EMPTY).eax, needed, "{model:?}");
    }
}

proptest! {
    /// Leaves that are none of the PMU's pass unchanged.
    #[test]
    fn other_leaves_are_the_hosts(
        model in prop::sample::select(Model::ALL.to_vec()),
        number in prop::sample::select(OTHERS.to_vec()),
        subleaf in 0u32..4,
        words in any::<[u32; 4]>(),
    ) {
        let [eax, ebx, ecx, edx] = words;
        let host = CpuidResult { eax, ebx, ecx, edx };
        prop_assert_eq!(leaf(model, number, subleaf, host), host);
    }

    /// No feature bit appears that neither the host nor the model's PMU has.
    #[test]
    fn no_feature_is_invented(
        model in prop::sample::select(Model::ALL.to_vec()),
        words in any::<[u32; 4]>(),
    ) {
        let [eax, ebx, ecx, edx] = words;
        let host = CpuidResult { eax, ebx, ecx, edx };
        let one = leaf(model, 1, 0, host);
        // PDCM, DTES64; the DS area.
        prop_assert_eq!(one.ecx & !(host.ecx | 1 << 15 | 1 << 2), 0);
        prop_assert_eq!(one.edx & !(host.edx | 1 << 21), 0);
        prop_assert_eq!(one.ebx, host.ebx);
        let seven = leaf(model, 7, 0, host);
        prop_assert_eq!(seven.ebx & !host.ebx, 0);
        prop_assert_eq!(seven.ecx, host.ecx);
        prop_assert_eq!(seven.edx & !(host.edx | 1 << 19 | 1 << 15), 0);
        let extended = leaf(model, 0x8000_0001, 0, host);
        // PerfCtrExtCore; ExtApicSpace and IBS.
        prop_assert_eq!(extended.ecx & !(host.ecx | 1 << 23 | 1 << 3 | 1 << 10), 0);
        prop_assert_eq!(extended.edx, host.edx);
    }
}
