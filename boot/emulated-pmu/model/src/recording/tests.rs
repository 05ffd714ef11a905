use super::*;
use crate::{Host, Pmu, Timing};
use std::string::{String, ToString as _};
use std::vec::Vec;

const INTEL: [u32; 3] = [0x756E_6547, 0x6C65_746E, 0x4965_6E69];
const AMD: [u32; 3] = [0x6874_7541, 0x444D_4163, 0x6974_6E65];

fn answer(leaf: u32, registers: [u32; 4]) -> Answer {
    Answer { leaf, subleaf: 0, registers }
}

/// A processor of that signature with leaf 0xA; the 64-bit mode by bit 29.
fn intel(signature: u32, leaf_a: [u32; 4], extended_edx: u32) -> Vec<Answer> {
    let [b, d, c] = INTEL;
    std::vec![
        answer(0, [0x16, b, c, d]),
        answer(1, [signature, 0, 0, 0]),
        answer(0xA, leaf_a),
        answer(0x8000_0000, [0x8000_0008, 0, 0, 0]),
        answer(0x8000_0001, [0, 0, 0, extended_edx]),
    ]
}

fn amd(signature: u32, extended_ecx: u32, leaf_22: [u32; 4]) -> Vec<Answer> {
    let [b, d, c] = AMD;
    std::vec![
        answer(0, [0xD, b, c, d]),
        answer(1, [signature, 0, 0, 0]),
        answer(0x8000_0000, [0x8000_0022, 0, 0, 0]),
        answer(0x8000_0001, [0, 0, extended_ecx, 1 << 29]),
        answer(0x8000_0022, leaf_22),
    ]
}

fn of(answers: Vec<Answer>) -> Result<Recording, String> {
    Recording::of(Vec::leak(answers)).map_err(|unfit| unfit.to_string())
}

/// Version 4, four counters of 48 bits, seven events, three fixed counters of 48 bits.
const SKYLAKE: [u32; 4] = [0x0730_0404, 0, 0, 0x603];

#[test]
fn the_model_is_that_of_the_microarchitecture_or_of_the_version() {
    let nearest = |answers| {
        let recording = of(answers).unwrap();
        (recording.nearest(), recording.is_of_nearest())
    };
    assert_eq!(nearest(intel(0x506E3, SKYLAKE, 1 << 29)), (Model::Skylake, true));
    // Broadwell has no model, and Goldmont and Family 19 have none either.
    assert_eq!(
        nearest(intel(0x306D4, [0x0730_0403, 0, 0, 0x603], 1 << 29)),
        (Model::Haswell, false)
    );
    assert_eq!(nearest(intel(0x506C9, SKYLAKE, 1 << 29)), (Model::Skylake, false));
    assert_eq!(
        nearest(intel(0xD06F0, [0x0730_0806, 0, 0, 0x603], 1 << 29)),
        (Model::ArrowLake, false)
    );
    assert_eq!(nearest(amd(0x100F42, 0, [0; 4])), (Model::K10, true));
    assert_eq!(nearest(amd(0x600F12, 1 << 23, [0; 4])), (Model::Zen2, false));
    assert_eq!(nearest(amd(0x870F10, 1 << 23, [0; 4])), (Model::Zen2, true));
    assert_eq!(nearest(amd(0xA60F12, 1 << 23, [1, 6, 0, 0])), (Model::Zen4, true));
}

#[test]
fn what_no_emulated_processor_could_have_is_refused_by_name() {
    let refused = |answers| of(answers).unwrap_err();
    assert_eq!(refused(Vec::new()), "it has no leaf 0x1");
    let none = "its CPUID announces no performance counters";
    assert_eq!(refused(intel(0x506E3, [0; 4], 1 << 29)), none);
    assert_eq!(refused(intel(0x506E3, [0x0730_0004, 0, 0, 0], 1 << 29)), none);
    assert_eq!(refused(amd(0x660, 0, [0; 4])), none);
    assert_eq!(refused(amd(0xA60F12, 1 << 23, [1, 0, 0, 0])), none);
    assert!(refused(intel(0x506E3, SKYLAKE, 0)).starts_with("it is a 32-bit processor"));
    let many = refused(intel(0x506E3, [0x0730_2004, 0, 0, 0x603], 1 << 29));
    assert!(many.contains("0xffffffff; the emulated PMU has room for"), "{many}");
    let many = refused(amd(0xA60F12, 1 << 23, [1, 7, 0, 0]));
    assert!(many.contains("0x7f; the emulated PMU has room for 6"), "{many}");
    let fixed = refused(intel(0x506E3, [0x0730_0405, 0, 0xFF, 0x603], 1 << 29));
    assert!(fixed.contains("fixed counters are the bits of 0xff"), "{fixed}");
    for wide in [0x0710_0404, 0x0740_0404] {
        let width = refused(intel(0x506E3, [wide, 0, 0, 0x603], 1 << 29));
        assert!(width.contains("counters have"), "{width}");
    }
}

#[test]
fn leaves_answer_as_recorded_and_beyond_the_highest_as_their_maker_does() {
    let mut answers = intel(0x506E3, SKYLAKE, 1 << 29);
    answers.push(Answer { leaf: 0xB, subleaf: 0, registers: [1, 2, 0x100, 7] });
    answers.push(Answer { leaf: 0xB, subleaf: 1, registers: [4, 8, 0x201, 7] });
    let leaves = Leaves(Vec::leak(answers));
    assert_eq!(leaves.answer(0xA, 5), SKYLAKE, "one answer for every sub-leaf");
    assert_eq!(leaves.answer(0xB, 1), [4, 8, 0x201, 7]);
    assert_eq!(leaves.answer(0xB, 2), [0; 4]);
    assert!(leaves.has(0x16) && !leaves.has(0x17) && leaves.has(0x8000_0008));
    assert_eq!(leaves.of(0x8000_0009, 0), [0; 4]);
    assert_eq!(leaves.family_and_model(), (6, 0x5E));
    assert!(leaves.echoes());
    assert!(!Leaves(Vec::leak(amd(0x870F10, 0, [0; 4]))).echoes());
}

#[test]
fn registers_start_with_what_was_left_in_them() {
    let recording: &'static Recording =
        std::boxed::Box::leak(std::boxed::Box::new(of(intel(0x506E3, SKYLAKE, 1 << 29)).unwrap()));
    let mut pmu = Pmu::recorded(recording, Host::EXAMPLE, Timing::DEFAULT);
    // PERFEVTSEL0, a counter beyond 32 bits, FIXED_CTR_CTRL, GLOBAL_STATUS, GLOBAL_CTRL.
    let left =
        [(0x186, 0x41_00C0), (0xC1, 0x8123_4567_89AB), (0x38D, 0x3), (0x38E, 0x1), (0x38F, 0x1)];
    for (msr, value) in left {
        pmu.leave(msr, value).unwrap();
        assert_eq!(pmu.read_msr(msr).unwrap(), value, "{msr:#x}");
    }
    // What does not exist, and what the register does not hold.
    assert!(pmu.leave(0x18A, 1).is_err());
    pmu.leave(0xC2, u64::MAX).unwrap();
    assert_eq!(pmu.read_msr(0xC2).unwrap(), (1 << 48) - 1);
}

/// Family 1Ah with IBS of these features.
fn zen_5(features: u32) -> Pmu {
    let mut answers = amd(0x00B4_0F40, 1 << 10 | 1 << 23, [7, 6 | 16 << 4, 0, 0]);
    answers.push(answer(0x8000_001B, [features, 0, 0, 0]));
    let recording = std::boxed::Box::leak(std::boxed::Box::new(of(answers).unwrap()));
    Pmu::recorded(recording, Host::EXAMPLE, Timing::DEFAULT)
}

/// Loads that missed for 200 cycles beyond the first level: with a threshold of 128 cycles they are sampled, with one of 256 they are
/// not, and nothing else is.
#[test]
fn s1_the_latency_filter_of_zen_5_samples_slow_loads_alone() {
    use crate::uarch::{Access, AccessKind};
    use crate::{Delta, GuestMemory, Occurrence, PageSize, Retirement, Ring, Sampled};
    struct Nothing;
    impl GuestMemory for Nothing {
        fn read(&mut self, _: u64) -> Option<u64> {
            None
        }
        fn write(&mut self, _: u64, _: u64) -> Option<()> {
            None
        }
        fn write_physical(&mut self, _: u64, _: u64) -> Option<()> {
            None
        }
    }
    const OP_CTL: u32 = 0xC001_1033;
    const ON: u64 = 1 << 17 | 1 << 19 | 1;
    const FILTER: u64 = 1 << 63;
    let samples = |control: u64, occurrence, kind| {
        let mut pmu = zen_5(0x1FFF);
        pmu.write_msr(OP_CTL, control).unwrap();
        assert_eq!(
            pmu.read_msr(OP_CTL).unwrap() & !(0x7FF_FFFF << 32),
            control,
            "all of it is there"
        );
        let access = Access::identity(0x1000, 8, kind);
        let sampled = Sampled { access: Some((access, PageSize::Small)), ..Sampled::default() };
        let retired = Retirement { sampled, ..Retirement::default() };
        let one = |pmu: &mut Pmu| {
            let outcome = pmu.advance(&Delta::step(Ring::User).with(occurrence, 1));
            outcome.due != 0 && pmu.write_record(outcome.due, &retired, &mut Nothing).ibs
        };
        (0..400).any(|_| one(&mut pmu))
    };
    let (far, near) = (Occurrence::LoadLlcMiss, Occurrence::LoadL1Hit);
    assert!(samples(ON, near, AccessKind::Load));
    assert!(samples(ON | FILTER, far, AccessKind::Load));
    assert!(!samples(ON | FILTER | 1 << 59, far, AccessKind::Load), "256 cycles");
    assert!(!samples(ON | FILTER, near, AccessKind::Load));
    assert!(!samples(ON | FILTER, Occurrence::LoadLlcHit, AccessKind::Load), "14 cycles");
    assert!(!samples(ON | FILTER, Occurrence::StoreLlcMiss, AccessKind::Store));
    // Where CPUID does not say so the bits are not there.
    let mut without = zen_5(0xBFF);
    without.write_msr(OP_CTL, ON | FILTER | 1 << 59).unwrap();
    assert_eq!(without.read_msr(OP_CTL).unwrap() >> 59, 0);
}

#[test]
fn s1_op_data_4_is_there_where_the_leaf_says_so() {
    const OP_DATA_4: u32 = 0xC001_103D;
    let mut with = zen_5(0x1FFF);
    assert_eq!(with.read_msr(OP_DATA_4).unwrap(), 0);
    with.write_msr(OP_DATA_4, 1).unwrap();
    assert_eq!(with.read_msr(OP_DATA_4).unwrap(), 1, "it holds what is written until a sample");
    assert!(zen_5(0xBFF).read_msr(OP_DATA_4).is_err());
}

/// A processor of that signature whose leaf 0x23 announces architectural PEBS: all groups but masks and ZMM16 to ZMM31, on
/// general-purpose counters 0, 1 and 12, and on fixed counters 0 and 2; precise distribution on 1 and on fixed counter 0.
fn with_records(signature: u32, main: u32) -> Vec<Answer> {
    let mut answers = intel(signature, [0x0730_0806, 0, 0, 0x603], 1 << 29);
    answers[0] = answer(0, [0x23, INTEL[0], INTEL[2], INTEL[1]]);
    answers.push(answer(7, [1, 0, 0, 1 << 19]));
    answers.push(Answer { leaf: 7, subleaf: 1, registers: [1 << 8, 0, 0, 0] });
    answers.push(answer(0x1C, [0x4000_000B, 7, 7, 0]));
    let leaf_23 = [
        [main, 3, 0, 0],
        [0xFF, 0x7, 0, 0],
        [1, 1, 1, 1],
        [0x7F, 0, 0, 0],
        [0, 0x6046_0378, 0, 0],
        [0x1003, 2, 0b101, 1],
    ];
    for (subleaf, registers) in (0..).zip(leaf_23) {
        answers.push(Answer { leaf: 0x23, subleaf, registers });
    }
    for one in answers.iter_mut().filter(|one| one.leaf == 1) {
        one.registers[2] = 1 << 15;
    }
    answers
}

#[test]
fn s1_a_recorded_processor_has_architectural_pebs_as_its_leaves_announce_it() {
    // Panther Lake, and one that nobody knows.
    for (signature, own) in [(0xC_06C2, true), (0xD_06F0, false)] {
        let recording = of(with_records(signature, 0b11_1111)).unwrap();
        assert_eq!((recording.nearest(), recording.is_of_nearest()), (Model::CougarCove, own));
        let mut said = Vec::new();
        recording.inferred(|line| said.push(line.to_string()));
        let said = said.join("\n");
        assert!(said.contains("groups of architectural PEBS: 0x400000 not offered"), "{said}");
        assert!(said.contains("sub-leaves of leaf 0x23 beyond 1, 3, 4 and 5: not shown"), "{said}");
        let recording: &'static Recording = std::boxed::Box::leak(std::boxed::Box::new(recording));
        let mut pmu = Pmu::recorded(recording, Host::EXAMPLE, Timing::DEFAULT);
        let zero = crate::CpuidResult::default();
        let sub = |pmu: &Pmu, subleaf| {
            let leaf = pmu.cpuid(0x23, subleaf, zero);
            [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]
        };
        assert_eq!(sub(&pmu, 0), [0b11_1011, 3, 0, 0]);
        assert_eq!(sub(&pmu, 2), [0; 4]);
        assert_eq!(sub(&pmu, 4), [0, 0x6006_0378, 0, 0]);
        // Of the counters that there are.
        assert_eq!(sub(&pmu, 5), [0b11, 2, 0b101, 1]);
        let debug_store = pmu.cpuid(1, 0, zero);
        assert_eq!((debug_store.ecx & 1 << 2, debug_store.edx & 1 << 21), (0, 0));
        assert_eq!(pmu.read_msr(0x345).unwrap() >> 6 & 0x13F, 0xF << 2, "format 15 alone");
        assert!(pmu.read_msr(0x600).is_err() && pmu.read_msr(0x3F1).is_err());
        // A counter that cannot have records has the rest of its configuration.
        let can = [(0x1903, true), (0x1907, true), (0x190B, false), (0x191F, false)];
        let fixed = [(0x1983, true), (0x1987, false), (0x198B, true)];
        for (msr, enable) in can.into_iter().chain(fixed) {
            assert_eq!(pmu.write_msr(msr, 1 << 63).is_ok(), enable, "{msr:#x}");
            assert!(pmu.write_msr(msr, 0x6006_0378_FFFF_FFFF).is_ok(), "{msr:#x}");
            assert!(pmu.write_msr(msr, 1 << 54).is_err(), "{msr:#x}");
        }
        assert!(pmu.read_msr(0x1923).is_err() && pmu.write_msr(0x186, 1 << 34).is_err());
        assert_eq!(pmu.write_msr(0x3F5, 1 << 32).map(|_| ()), Ok(()));
    }
}

#[test]
fn one_sub_leaf_of_architectural_pebs_alone_announces_nothing() {
    for main in [0b00_1011, 0b01_1011, 0b10_1011] {
        let recording = of(with_records(0xC_06C2, main)).unwrap();
        let recording: &'static Recording = std::boxed::Box::leak(std::boxed::Box::new(recording));
        let mut pmu = Pmu::recorded(recording, Host::EXAMPLE, Timing::DEFAULT);
        assert_eq!(pmu.cpuid(0x23, 0, crate::CpuidResult::default()).eax, 0b1011);
        assert!(pmu.read_msr(0x3F4).is_err() && pmu.read_msr(0x1903).is_err(), "{main:#b}");
        assert_eq!(pmu.read_msr(0x345).unwrap() & 0xF00, 0);
        assert_ne!(pmu.read_msr(0x1A0).unwrap() & 1 << 12, 0, "PEBS is unavailable");
    }
}
