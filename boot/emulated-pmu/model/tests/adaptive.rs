//! Adaptive PEBS records: their groups, the counters that write them, and the registers that choose.

mod common;

use common::pebs::{AREA, Area, instruction};
use common::{EN, OS, USR, fault, pmu, read, write};
use pmu_model::{Branch, BranchKind, Delta, Fault, Model, Occurrence, Pmu, Ring};

/// The models, the number of their format's reset values for general-purpose counters, and the bits of PEBS_ENABLE.
const MODELS: [(Model, usize, u64); 3] = [
    (Model::IceLake, 8, 0xF_0000_00FF),
    (Model::SapphireRapids, 8, 0xF_0000_00FF),
    (Model::ArrowLake, 32, 0xF_0000_03FF),
];
const ADAPTIVE: u64 = 1 << 34;
const INSTRUCTIONS: u64 = 0xC0 | EN | USR | OS;

/// `event` on counter `n`, a record at each `period`th, with these groups.
fn arm(pmu: &mut Pmu, area: &mut Area, (event, n): (u64, u32), period: u64, config: u64) {
    write(pmu, 0x600, AREA);
    write(pmu, 0x3F1, 1 << n);
    write(pmu, 0x3F2, config);
    write(pmu, 0x186 + n, event);
    let reset = 1u64.wrapping_sub(period);
    write(pmu, 0xC1 + n, reset);
    area.set_reset(n as usize, reset);
}

fn run(pmu: &mut Pmu, area: &mut Area, instructions: u64) {
    for number in 1..=instructions {
        let outcome = instruction(pmu, area, number, Delta::step(Ring::User));
        assert_eq!((outcome.pmi, outcome.overflowed), (false, 0), "{number}");
    }
}

/// Of an instruction that nothing holds up: it retires in the cycle after the one before, which format 6 states.
fn head(model: Model, contents: u64, words: u64) -> u64 {
    let latency = u64::from(model == Model::ArrowLake);
    (8 * words) << 48 | latency << 32 | contents
}

/// SDM volume 3, basic group: the retire latency is in bits 47:32 of the first word, where PERF_CAPABILITIES\[17\] says so.
#[test]
fn s1_a_record_of_format_6_says_how_long_after_the_one_before_its_instruction_retired() {
    use Occurrence::*;
    let step = |list: &[Occurrence]| {
        let with = |delta: Delta, one: &Occurrence| delta.with(*one, 1);
        list.iter().fold(Delta::step(Ring::User), with)
    };
    for (delta, cycles) in [
        (step(&[]), 1),
        (step(&[Load, LoadL1Hit]), 1),
        (step(&[Load, LoadLlcHit, LoadStlbHit]), 1 + 14 + 7),
        (step(&[Load, LoadLlcMiss, LoadWalk]), 1 + 200 + 30),
        (step(&[Store, StoreLlcMiss]), 1),
        (step(&[MissedReturn]), 1 + 16),
        (step(&[MissedIndirectJump]).with(LoadLlcMiss, 400), 0xFFFF),
    ] {
        for (model, ..) in MODELS {
            let (mut pmu, mut area) = (pmu(model), Area::new(1000, 1000));
            arm(&mut pmu, &mut area, (INSTRUCTIONS, 0), 2, 0);
            let needs = pmu.needs();
            let sees = needs.memory() && needs.predictor();
            assert_eq!(sees, model == Model::ArrowLake, "{model:?}");
            run(&mut pmu, &mut area, 1);
            instruction(&mut pmu, &mut area, 2, delta.clone());
            let cycles = if model == Model::ArrowLake { cycles } else { 0 };
            assert_eq!(area.buffer()[0] >> 32 & 0xFFFF, cycles, "{model:?} {delta:?}");
        }
    }
}

#[test]
fn without_its_bit_a_counter_writes_the_basic_group_alone() {
    for (model, ..) in MODELS {
        let (mut pmu, mut area) = (pmu(model), Area::new(1000, 1000));
        arm(&mut pmu, &mut area, (INSTRUCTIONS, 7), 10, 0xF);
        run(&mut pmu, &mut area, 25);
        assert_eq!(area.records(4), 2, "{model:?}");
        assert_eq!(area.buffer()[..4], [head(model, 0, 4), 0x1000 + 10, 1 << 7, 5010], "{model:?}");
        assert_eq!(
            area.buffer()[4..8],
            [head(model, 0, 4), 0x1000 + 20, 1 << 7, 5020],
            "{model:?}"
        );
        // What has come since the last record.
        assert_eq!(read(&mut pmu, 0xC8) as u32, (-9i32 + 5) as u32, "{model:?}");
    }
}

#[test]
fn the_groups_asked_for_come_in_the_order_of_their_bits() {
    for (model, ..) in MODELS {
        for config in 0..8 {
            let (mut pmu, mut area) = (pmu(model), Area::new(1000, 1000));
            arm(&mut pmu, &mut area, (0x81D0 | ADAPTIVE | EN | USR, 3), 2, config);
            for number in 1..=2 {
                let load = Delta::step(Ring::User).with(Occurrence::Load, 1);
                instruction(&mut pmu, &mut area, number, load);
            }
            let mut expected = vec![0, 0x1002, 1 << 3, 5002];
            if config & 1 != 0 {
                expected.extend([0x10_0000, 0, 0, 0]);
            }
            if config & 2 != 0 {
                // Flags, the address after, RAX (the instruction's number), RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
                expected.extend([2, 0x1003, 2, 1, 2, 3, 0x8000, 5, 6, 7]);
                expected.extend(8..16);
            }
            if config & 4 != 0 {
                expected.extend(0x7000..0x7020);
            }
            expected[0] = head(model, config, expected.len() as u64);
            assert_eq!(area.records(1), expected.len(), "{model:?} {config:#x}");
            assert_eq!(area.buffer()[..expected.len()], expected, "{model:?} {config:#x}");
            assert_eq!(pmu.records_vectors(), config & 4 != 0);
        }
    }
}

#[test]
fn branches_are_the_newest_ones_and_no_more_than_there_are_registers() {
    for (model, ..) in MODELS {
        for (asked, written) in [(0u64, 1), (3, 4), (31, 32), (0xFF, 32)] {
            let (mut pmu, mut area) = (pmu(model), Area::new(1000, 1000));
            // Recorded in all rings.
            match model {
                Model::IceLake => write(&mut pmu, 0x1D9, 1),
                _ => write(&mut pmu, 0x14CE, 0x7F_0007),
            }
            arm(&mut pmu, &mut area, (INSTRUCTIONS | ADAPTIVE, 0), 2, 8 | asked << 24);
            for n in 0..40 {
                let (from, to, kind) = (0x100 + n, 0x200 + n, BranchKind::RelativeJump);
                let (ring, taken, mispredicted) = (Ring::User, true, false);
                let branch = Branch { from, to, kind, taken, mispredicted, ring, cycles: 1 };
                assert!(pmu.record_branch(&branch));
            }
            run(&mut pmu, &mut area, 2);
            let words = 4 + 3 * written;
            assert_eq!(area.records(1) as u64, words, "{model:?}");
            assert_eq!(area.buffer()[0], head(model, 8 | (written - 1) << 24, words), "{model:?}");
            for (older, record) in (0..).zip(area.buffer()[4..words as usize].chunks(3)) {
                assert_eq!(record[..2], [0x100 + 39 - older, 0x200 + 39 - older], "{model:?}");
            }
        }
    }
}

/// Fixed counter 0 is INST_RETIRED.PREC_DIST; the others' events are not precise, and a record is of the next instruction.
#[test]
fn fixed_counters_write_records_and_have_reset_values_of_their_own() {
    for (model, resets, _) in MODELS {
        // But for the reference clock, which does not tick once an instruction.
        for n in [0, 1, 3] {
            let (mut pmu, mut area) = (pmu(model), Area::new(1000, 1000));
            write(&mut pmu, 0x600, AREA);
            write(&mut pmu, 0x3F1, 1 << (32 + n));
            write(&mut pmu, 0x3F2, 1);
            write(&mut pmu, 0x38D, 2 << (4 * n) | 1 << (32 + 4 * n));
            write(&mut pmu, 0x38F, 1 << (32 + n));
            let slots: i64 = match (model, n) {
                (Model::IceLake, 3) => 5,
                (Model::SapphireRapids, 3) => 6,
                (_, 3) => 8,
                _ => 1,
            };
            let reset = (-9 * slots) as u64 & ((1 << 48) - 1);
            write(&mut pmu, 0x309 + n, reset);
            area.set_reset(resets + n as usize, reset);
            run(&mut pmu, &mut area, 25);
            assert_eq!(area.records(8), 2, "{model:?} {n}");
            let first = [head(model, 1, 8), 0x1000 + 10, 1 << (32 + n), 5010, 0];
            assert_eq!(area.buffer()[..5], first, "{model:?} {n}");
            assert_eq!(area.buffer()[9], 0x1000 + 20, "{model:?} {n}");
            assert_eq!(read(&mut pmu, 0x38E), 0, "{model:?} {n}: no status of its own");
        }
    }
}

#[test]
fn two_counters_of_one_instruction_share_a_record_and_one_asks_for_both() {
    let (mut pmu, mut area) = (pmu(Model::ArrowLake), Area::new(1000, 1000));
    arm(&mut pmu, &mut area, (INSTRUCTIONS, 9), 4, 1);
    write(&mut pmu, 0x3F1, 1 << 9 | 1);
    write(&mut pmu, 0x186, INSTRUCTIONS | ADAPTIVE);
    write(&mut pmu, 0xC1, 0u64.wrapping_sub(3));
    area.set_reset(0, 0u64.wrapping_sub(5));
    run(&mut pmu, &mut area, 8);
    // Both at 4; then counter 9 at 8.
    assert_eq!(area.records(4), 3);
    assert_eq!(area.buffer()[..3], [head(Model::ArrowLake, 1, 8), 0x1004, 1 << 9 | 1]);
    assert_eq!(area.buffer()[8..11], [head(Model::ArrowLake, 0, 4), 0x1008, 1 << 9]);
}

#[test]
fn an_event_that_is_not_precise_has_a_record_of_the_next_instruction() {
    let (mut pmu, mut area) = (pmu(Model::IceLake), Area::new(1000, 1000));
    // CPU_CLK_UNHALTED.THREAD_P: a cycle an instruction.
    arm(&mut pmu, &mut area, (0x3C | EN | USR, 0), 10, 0);
    assert!(pmu.needs().precise);
    assert_eq!(pmu.advance(&Delta::bulk(Ring::User, 9)).due, 0);
    assert_eq!(pmu.until_overflow(pmu_model::RingMask::BOTH), Some(1));
    assert_eq!(pmu.advance(&Delta::step(Ring::Kernel)).due, 0, "it does not run there");
    run(&mut pmu, &mut area, 1);
    assert_eq!((area.records(4), area.buffer()[1]), (1, 0x1001));
}

/// Format 6: values as they are before the reset value comes, general-purpose counters first, and slots with the metrics.
#[test]
fn values_of_counters_are_in_records_of_format_6() {
    let (mut pmu, mut area) = (pmu(Model::ArrowLake), Area::new(1000, 1000));
    let config = 1 << 4 | 1 << 5 | 0b11 << 32 | 0b1001 << 48;
    write(&mut pmu, 0x187, 0xC4 | EN | USR);
    write(&mut pmu, 0xC2, 77);
    write(&mut pmu, 0x38D, 0x2002);
    write(&mut pmu, 0x38F, 0x9_0000_0003);
    arm(&mut pmu, &mut area, (INSTRUCTIONS | ADAPTIVE, 0), 10, config);
    run(&mut pmu, &mut area, 10);
    let words = 4 + 2 + 4 + 2;
    let metrics = read(&mut pmu, 0x329);
    assert_eq!(area.records(1) as u64, words);
    let counters = [1, 77, 10, 80, 80, metrics];
    assert_eq!(area.buffer()[0], head(Model::ArrowLake, 0x30, words));
    assert_eq!(area.buffer()[4..6], [0b1001 << 32 | 0b11, 3]);
    assert_eq!(area.buffer()[6..12], counters);
    // Ice Lake has no such groups.
    let refused = fault(common::pmu(Model::IceLake).write_msr(0x3F2, 1 << 4));
    assert!(matches!(refused, Fault::Reserved { msr: 0x3F2, reserved: 0x10, .. }), "{refused:?}");
}

#[test]
fn its_registers_keep_what_is_theirs_and_refuse_the_rest() {
    for (model, _, enable) in MODELS {
        let groups = match model {
            Model::ArrowLake => 0xF_03FF_FF00_003F,
            _ => 0xFF00_000F,
        };
        let mut pmu = pmu(model);
        for (msr, valid) in [(0x3F1, enable), (0x3F2, groups)] {
            for bit in 0..64 {
                let taken = pmu.write_msr(msr, 1 << bit).is_ok();
                assert_eq!(taken, valid & 1u64 << bit != 0, "{model:?} {msr:#x} {bit}");
            }
            write(&mut pmu, msr, valid);
            assert_eq!(read(&mut pmu, msr), valid, "{model:?} {msr:#x}");
        }
        for n in 0..4 {
            write(&mut pmu, 0x38D, 1 << (32 + 4 * n));
            assert!(pmu.write_msr(0x38D, 1 << (33 + 4 * n)).is_err(), "{model:?} {n}");
        }
        assert!(pmu.write_msr(0x38D, 1 << 48).is_err(), "{model:?}");
        write(&mut pmu, 0x186, 0xC0 | ADAPTIVE);
        assert!(pmu.write_msr(0x186, 0xC0 | 1 << 35).is_err(), "{model:?}");
        pmu.reset();
        assert_eq!((read(&mut pmu, 0x3F1), read(&mut pmu, 0x3F2)), (0, 0), "{model:?}");
    }
    for model in [Model::Skylake, Model::Zen4] {
        let mut pmu = pmu(model);
        assert!(
            pmu.read_msr(0x3F2).is_err() && pmu.write_msr(0x186, ADAPTIVE).is_err()
                || model == Model::Zen4
        );
    }
}

#[test]
fn a_buffer_that_fills_keeps_what_it_has() {
    for (model, ..) in MODELS {
        // Records of 26 words; the end is one word short of the third.
        let (mut pmu, mut area) = (pmu(model), Area::new(2 * 26, 3 * 26 - 1));
        arm(&mut pmu, &mut area, (INSTRUCTIONS | ADAPTIVE, 0), 2, 3);
        let pmis = (1..=8).filter(|&n| {
            let outcome = instruction(&mut pmu, &mut area, n, Delta::step(Ring::User));
            assert!(!outcome.pmi || outcome.overflowed == 1 << 62, "{model:?}");
            outcome.pmi
        });
        assert_eq!(pmis.collect::<Vec<_>>(), [4, 6, 8], "{model:?}");
        assert_eq!((area.records(26), area.beyond()), (2, 0), "{model:?}");
        assert_eq!(read(&mut pmu, 0x38E), 1 << 62, "{model:?}");
    }
}
