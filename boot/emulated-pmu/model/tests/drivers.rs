//! Drivers as operating systems and test suites have them, run on the model as the machine.

mod common;

use common::{EN, INT, OS, USR, counter, pmu, read, width, write};
use pmu_model::{Delta, Model, Pmu, Ring, RingMask};

const PERIOD: u64 = 1_000;

/// What a driver does at a PMI, by class of processor.
type Handler = fn(&mut Pmu, Model) -> u32;

/// Arms counter n again; the legacy register takes minus the period, sign-extended.
fn rearm(pmu: &mut Pmu, model: Model, n: u32) {
    let value = PERIOD.wrapping_neg() & ((1 << width(model)) - 1);
    write(pmu, counter(model, n).counter, value);
}

/// Versions 2 to 6 without freezing: stop, loop over the status, restart.
fn intel(pmu: &mut Pmu, model: Model) -> u32 {
    let control = read(pmu, 0x38F);
    write(pmu, 0x38F, 0);
    let mut samples = 0;
    loop {
        let status = read(pmu, 0x38E);
        if status == 0 {
            break;
        }
        write(pmu, 0x390, status);
        for n in (0..32).filter(|n| status & 1 << n != 0) {
            samples += 1;
            rearm(pmu, model, n);
        }
    }
    write(pmu, 0x38F, control);
    samples
}

/// Version 4 with DEBUGCTL[12]: the counters stand already, and the acknowledgement starts them.
fn intel_frozen(pmu: &mut Pmu, model: Model) -> u32 {
    let status = read(pmu, 0x38E);
    assert_ne!(status & 1 << 59, 0, "frozen");
    let mut samples = 0;
    for n in (0..32).filter(|n| status & 1 << n != 0) {
        samples += 1;
        rearm(pmu, model, n);
    }
    write(pmu, 0x390, status);
    samples
}

/// AMD without a status register: a counter whose top bit has gone has overflowed.
fn amd_legacy(pmu: &mut Pmu, model: Model) -> u32 {
    let mut samples = 0;
    for n in 0..common::counters(model) {
        let selector = read(pmu, counter(model, n).selector);
        if selector & INT != 0 && read(pmu, counter(model, n).counter) & 1 << 47 == 0 {
            samples += 1;
            rearm(pmu, model, n);
        }
    }
    samples
}

/// AMD PerfMonV2.
fn amd_v2(pmu: &mut Pmu, model: Model) -> u32 {
    let control = read(pmu, 0xC000_0301);
    write(pmu, 0xC000_0301, 0);
    let status = read(pmu, 0xC000_0300) & 0x3F;
    let mut samples = 0;
    for n in (0..6).filter(|n| status & 1 << n != 0) {
        samples += 1;
        rearm(pmu, model, n);
    }
    write(pmu, 0xC000_0302, status);
    write(pmu, 0xC000_0301, control);
    samples
}

/// Runs the guest as a hypervisor does: to the next overflow, and the handler at each PMI.
fn run(pmu: &mut Pmu, model: Model, mut instructions: u64, handler: Handler) -> (u32, u32) {
    let (mut interrupts, mut samples) = (0, 0);
    while instructions > 0 {
        let next = pmu.until_overflow(RingMask::USER).unwrap_or(u64::MAX);
        let slice = next.min(instructions);
        let outcome = pmu.advance(&Delta::bulk(Ring::User, slice));
        assert_eq!(outcome.late_instructions, 0);
        instructions -= slice;
        if outcome.pmi {
            interrupts += 1;
            samples += handler(pmu, model);
        }
    }
    (interrupts, samples)
}

#[test]
fn sampling_loses_no_overflow() {
    let cases: [(Model, Handler, u64); 12] = [
        (Model::Core2, intel, 0),
        (Model::Nehalem, intel, 0),
        (Model::Haswell, intel, 0),
        (Model::Skylake, intel, 0),
        (Model::IceLake, intel, 0),
        (Model::SapphireRapids, intel, 0),
        (Model::ArrowLake, intel, 0),
        (Model::CougarCove, intel, 0),
        (Model::Skylake, intel_frozen, 1 << 12),
        (Model::K10, amd_legacy, 0),
        (Model::Zen2, amd_legacy, 0),
        (Model::Zen4, amd_v2, 0),
    ];
    for (model, handler, debugctl) in cases {
        let mut pmu = pmu(model);
        if debugctl != 0 {
            write(&mut pmu, 0x1D9, debugctl);
        }
        write(&mut pmu, counter(model, 0).selector, common::INSTRUCTIONS | EN | USR | INT);
        rearm(&mut pmu, model, 0);
        // A counter that never overflows checks that nothing is lost meanwhile.
        write(&mut pmu, counter(model, 1).selector, common::INSTRUCTIONS | EN | USR);
        let (interrupts, samples) = run(&mut pmu, model, 100 * PERIOD + 1, handler);
        assert_eq!((interrupts, samples), (100, 100), "{model:?}");
        assert_eq!(read(&mut pmu, counter(model, 1).counter), 100 * PERIOD + 1, "{model:?}");
    }
}

#[test]
fn two_counters_at_once_are_served_by_one_interrupt() {
    let model = Model::Skylake;
    let mut pmu = pmu(model);
    for n in 0..2 {
        write(&mut pmu, 0x186 + n, common::INSTRUCTIONS | EN | USR | INT);
        rearm(&mut pmu, model, n);
    }
    assert_eq!(run(&mut pmu, model, 10 * PERIOD, intel), (10, 20));
}

/// Linux' `check_hw_exists`: no control may be set, and a counter has to hold a pattern.
#[test]
fn linux_finds_counters_that_exist_and_are_free() {
    for model in common::with_counters() {
        let mut pmu = pmu(model);
        for n in 0..common::counters(model) {
            let selector = read(&mut pmu, counter(model, n).selector);
            assert_eq!(selector & EN, 0, "{model:?}: corrupted by firmware");
        }
        if common::fixed_counters(model) > 0 {
            assert_eq!(read(&mut pmu, 0x38D), 0, "{model:?}");
        }
        let msr = counter(model, 0).counter;
        let pattern = read(&mut pmu, msr) ^ 0xFFFF;
        write(&mut pmu, msr, pattern);
        assert_eq!(read(&mut pmu, msr), pattern, "{model:?}");
    }
}

/// Linux' `check_msr`: toggles bits and reads them back, and gives the feature up if they do not
/// stay.
#[test]
fn linux_keeps_the_branch_records_and_extra_registers() {
    let toggles = |pmu: &mut Pmu, msr: u32, mask: u64| {
        let old = read(pmu, msr);
        write(pmu, msr, old ^ mask);
        assert_eq!(read(pmu, msr), old ^ mask, "{msr:#x}");
        write(pmu, msr, old);
    };
    for (model, from, to, entries) in [
        (Model::Core2, 0x40, 0x60, 4),
        (Model::Nehalem, 0x680, 0x6C0, 16),
        (Model::Haswell, 0x680, 0x6C0, 16),
        (Model::Skylake, 0x680, 0x6C0, 32),
        (Model::IceLake, 0x680, 0x6C0, 32),
    ] {
        let mut pmu = pmu(model);
        toggles(&mut pmu, 0x1C9, 0x3);
        for n in 0..entries {
            toggles(&mut pmu, from + n, 0xFFFF);
            toggles(&mut pmu, to + n, 0xFFFF);
        }
        for (msr, _) in model.spec().extra {
            toggles(&mut pmu, *msr, 0x11);
        }
    }
}

/// The write-width checks of kvm-unit-tests.
#[test]
fn kvm_unit_tests_write_widths() {
    let value = 0xFFFF_FF01_2345_6789u64;
    let (low, full) = (value & 0xFFFF_FFFF, value & 0xFFFF_FFFF_FFFF);
    for model in [Model::Haswell, Model::Skylake, Model::ArrowLake] {
        let mut pmu = pmu(model);
        for n in 0..common::counters(model) {
            for written in [low, full, value] {
                write(&mut pmu, 0xC1 + n, written);
                assert_eq!(read(&mut pmu, 0xC1 + n), low, "{model:?}");
                assert_eq!(read(&mut pmu, 0x4C1 + n), low, "{model:?}");
            }
            write(&mut pmu, 0x4C1 + n, full);
            assert_eq!(read(&mut pmu, 0xC1 + n), full, "{model:?}");
            assert!(pmu.write_msr(0x4C1 + n, value).is_err(), "{model:?}");
            assert!(pmu.rdpmc(n | 1 << 31).is_err(), "no fast mode");
        }
        assert!(pmu.rdpmc(64).is_err());
    }
}

/// The loop of kvm-unit-tests, ten instructions a million times, within the bounds that it accepts.
#[test]
fn kvm_unit_tests_bounds_of_bulk_events() {
    const N: u64 = 1_000_000;
    for model in common::with_counters() {
        let mut pmu = pmu(model);
        let selectors = [common::cycles(model), common::INSTRUCTIONS];
        for (n, code) in selectors.into_iter().enumerate() {
            write(&mut pmu, counter(model, n as u32).selector, code | EN | USR | OS);
        }
        if model.spec().intel().is_some() {
            write(&mut pmu, 0x38D, 0x333);
            let control = read(&mut pmu, 0x38F);
            write(&mut pmu, 0x38F, control | 7 << 32);
        }
        pmu.advance(&Delta::bulk(Ring::Kernel, 10 * N));
        let cycles = read(&mut pmu, counter(model, 0).counter);
        let instructions = read(&mut pmu, counter(model, 1).counter);
        assert!((N..=50 * N).contains(&cycles), "{model:?}");
        assert!((10 * N..=10 * N + N / 5).contains(&instructions), "{model:?}");
        if model.spec().intel().is_some() {
            let reference = read(&mut pmu, 0x30B);
            assert!((N / 10..=30 * N).contains(&reference), "{model:?}");
            // The bus clock, event 3C/01, where the leaf offers it.
            write(&mut pmu, 0x186, 0x13C | EN | OS);
            write(&mut pmu, 0xC1, 0);
            pmu.advance(&Delta::bulk(Ring::Kernel, 10 * N));
            let bus = read(&mut pmu, 0xC1);
            assert!((N..=30 * N).contains(&bus), "{model:?}: {bus}");
        }
    }
}
