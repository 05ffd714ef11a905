//! Overflow: at which event, what it sets, what it requests.

mod common;

use common::{EN, INT, OS, USR, arm, counter, counters, fixed_counters, global_status};
use common::{pmu, read, width, write};
use pmu_model::Model;

const FIXED: u32 = 0x309;

#[test]
fn a_counter_wraps_to_0_and_goes_on() {
    for model in common::with_counters() {
        for n in 0..counters(model) {
            let mut pmu = pmu(model);
            let registers = counter(model, n);
            let selector = common::INSTRUCTIONS | EN | USR | OS;
            write(&mut pmu, registers.selector, selector);
            arm(&mut pmu, model, n, 3);
            assert_eq!(pmu.advance(&common::user(2)).overflowed, 0, "{model:?} {n}");
            assert_eq!(read(&mut pmu, registers.counter), (1 << width(model)) - 1);
            assert_eq!(pmu.advance(&common::user(1)).overflowed, 1 << n, "{model:?} {n}");
            assert_eq!(read(&mut pmu, registers.counter), 0);
            assert_eq!(pmu.advance(&common::user(5)).overflowed, 0);
            assert_eq!(read(&mut pmu, registers.counter), 5);
        }
    }
}

#[test]
fn status_latches_with_int_clear_and_pmi_needs_int() {
    for model in common::with_counters() {
        for n in 0..counters(model) {
            for interrupt in [false, true] {
                let mut pmu = pmu(model);
                let selector = common::INSTRUCTIONS | EN | USR | if interrupt { INT } else { 0 };
                write(&mut pmu, counter(model, n).selector, selector);
                arm(&mut pmu, model, n, 1);
                let outcome = pmu.advance(&common::user(1));
                assert_eq!(outcome.pmi, interrupt, "{model:?} {n}");
                let Some((status, clear)) = global_status(model) else {
                    continue;
                };
                assert_eq!(read(&mut pmu, status), 1 << n, "{model:?} {n}");
                write(&mut pmu, clear, 1 << n);
                assert_eq!(read(&mut pmu, status), 0, "{model:?} {n}");
            }
        }
    }
}

#[test]
fn fixed_counters_overflow_likewise() {
    for model in common::with_counters() {
        for n in 0..fixed_counters(model) {
            for interrupt in [false, true] {
                let mut pmu = pmu(model);
                let field = 3 | if interrupt { 8 } else { 0 };
                write(&mut pmu, 0x38D, field << (4 * n));
                write(&mut pmu, 0x38F, 1 << (32 + n));
                write(&mut pmu, FIXED + n, (1 << width(model)) - 1);
                // Two instructions: enough for the reference clock, too.
                let outcome = pmu.advance(&common::user(2));
                assert_eq!(outcome.overflowed, 1 << (32 + n), "{model:?} {n}");
                assert_eq!(outcome.pmi, interrupt, "{model:?} {n}");
                assert_eq!(read(&mut pmu, 0x38E), 1 << (32 + n), "{model:?} {n}");
            }
        }
    }
}

#[test]
fn an_overflow_of_several_counters_is_one_interrupt() {
    let mut pmu = pmu(Model::Skylake);
    for n in 0..4 {
        write(&mut pmu, 0x186 + n, common::INSTRUCTIONS | EN | USR | INT);
        arm(&mut pmu, Model::Skylake, n, 10);
    }
    let outcome = pmu.advance(&common::user(10));
    assert!(outcome.pmi);
    assert_eq!(outcome.overflowed, 0xF);
    assert_eq!(read(&mut pmu, 0x38E), 0xF);
}

#[test]
fn running_past_an_overflow_is_told() {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x186, common::INSTRUCTIONS | EN | USR | INT);
    arm(&mut pmu, Model::Skylake, 0, 10);
    let outcome = pmu.advance(&common::user(17));
    assert!(outcome.pmi);
    assert_eq!(outcome.late_instructions, 7);
    assert_eq!(read(&mut pmu, 0xC1), 7, "counting goes on");
    assert_eq!(pmu.advance(&common::user(1)).late_instructions, 0);
}

#[test]
fn a_preset_through_the_legacy_register_has_31_bits() {
    // The driver's way: write minus the period, which the register sign-extends.
    for model in [Model::Core2, Model::Nehalem, Model::Skylake] {
        let mut pmu = pmu(model);
        write(&mut pmu, 0x186, common::INSTRUCTIONS | EN | USR);
        let period = 0x7FFF_FFFFu64;
        write(&mut pmu, 0xC1, period.wrapping_neg());
        assert_eq!(pmu.advance(&common::user(period - 1)).overflowed, 0, "{model:?}");
        assert_eq!(pmu.advance(&common::user(1)).overflowed, 1, "{model:?}");
    }
}

#[test]
fn kvm_unit_tests_preset_reads_1_after_its_loop() {
    // It presets 1 - n for a loop of n instructions and expects 1.
    for model in common::with_counters() {
        let mut pmu = pmu(model);
        let registers = counter(model, 0);
        write(&mut pmu, registers.selector, common::INSTRUCTIONS | EN | USR | OS);
        arm(&mut pmu, model, 0, 10_000_000 - 1);
        pmu.advance(&common::user(10_000_000));
        assert_eq!(read(&mut pmu, registers.counter), 1, "{model:?}");
    }
}

#[test]
fn clear_and_set_take_the_bits_of_their_version() {
    // Writable bits of the clearing register and of the setting one; the first as on silicon
    // where it was measured (Sandy Bridge: 0xE000_0007_0000_000F).
    for (model, clear, set) in [
        (Model::Core2, 0xC000_0007_0000_0003, None),
        (Model::Nehalem, 0xE000_0007_0000_000F, None),
        (Model::Haswell, 0xE000_0007_0000_000F, None),
        (Model::Skylake, 0xFC00_0007_0000_00FFu64, Some(0x7C00_0007_0000_00FF)),
        (Model::IceLake, 0xFC01_000F_0000_00FF, Some(0x7C01_000F_0000_00FF)),
        (Model::ArrowLake, 0xFC01_000F_0000_03FF, Some(0x7C01_000F_0000_03FF)),
        (Model::CougarCove, 0xFC41_000F_0000_03FF, Some(0x7C41_000F_0000_03FF)),
    ] {
        for bit in 0..64 {
            let mut pmu = pmu(model);
            let value = 1u64 << bit;
            let allowed = pmu.write_msr(0x390, value).is_ok();
            assert_eq!(allowed, clear & value != 0, "{model:?} 0x390 bit {bit}");
            let Some(set) = set else { continue };
            let allowed = pmu.write_msr(0x391, value).is_ok();
            assert_eq!(allowed, set & value != 0, "{model:?} 0x391 bit {bit}");
            if allowed {
                assert_eq!(read(&mut pmu, 0x38E), value, "{model:?} bit {bit}");
                write(&mut pmu, 0x390, value);
                assert_eq!(read(&mut pmu, 0x38E), 0, "{model:?} bit {bit}");
            }
            assert_eq!(read(&mut pmu, 0x390), 0, "reads as 0");
            assert_eq!(read(&mut pmu, 0x391), 0, "reads as 0");
        }
    }
}

#[test]
fn amd_ignores_status_bits_that_it_lacks() {
    let mut pmu = pmu(Model::Zen4);
    write(&mut pmu, 0xC000_0303, u64::MAX);
    assert_eq!(read(&mut pmu, 0xC000_0300), 0x3F | 3 << 58);
    write(&mut pmu, 0xC000_0302, u64::MAX);
    assert_eq!(read(&mut pmu, 0xC000_0300), 0);
}

#[test]
fn clearing_one_bit_leaves_the_others() {
    let mut pmu = pmu(Model::Haswell);
    for n in 0..3 {
        write(&mut pmu, 0x186 + n, common::INSTRUCTIONS | EN | USR);
        arm(&mut pmu, Model::Haswell, n, 1);
    }
    pmu.advance(&common::user(1));
    write(&mut pmu, 0x390, 2);
    assert_eq!(read(&mut pmu, 0x38E), 0b101);
    assert_eq!(read(&mut pmu, 0x38E), 0b101, "reading clears nothing");
}
