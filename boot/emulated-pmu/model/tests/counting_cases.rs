//! Counting, in cases worked out by hand.

mod common;

use common::{EDGE, EN, OS, USR, counter, pmu, read, width, write};
use pmu_model::{Delta, Model, Occurrence, Ring, Silence};

#[test]
fn a_huge_delta_wraps_as_arithmetic_does() {
    for model in common::with_counters() {
        let mut pmu = pmu(model);
        let registers = counter(model, 0);
        write(&mut pmu, registers.selector, common::INSTRUCTIONS | EN | USR);
        let outcome = pmu.advance(&common::user(u64::MAX));
        let expected = (1 << width(model)) - 1;
        assert_eq!(read(&mut pmu, registers.counter), expected, "{model:?}");
        assert_eq!(outcome.overflowed, 1, "{model:?}");
        assert_eq!(outcome.late_instructions, u64::MAX - (1 << width(model)));
    }
}

#[test]
fn an_occurrence_between_instructions_is_counted() {
    let mut pmu = pmu(Model::Skylake);
    // HW_INTERRUPTS.RECEIVED, once plain and once as cycles with at least one.
    write(&mut pmu, 0x186, 0xCB | 1 << 8 | EN | OS);
    write(&mut pmu, 0x187, 0xCB | 1 << 8 | EN | OS | 1 << 24);
    write(&mut pmu, 0x188, common::cycles(Model::Skylake) | EN | OS);
    pmu.advance(&Delta::bulk(Ring::Kernel, 0).with(Occurrence::Interrupt, 1));
    assert_eq!(read(&mut pmu, 0xC1), 1);
    assert_eq!(read(&mut pmu, 0xC2), 1);
    assert_eq!(read(&mut pmu, 0xC3), 0, "no cycle has passed");
}

#[test]
fn ring_transitions_are_edges_of_cycles_in_ring_0() {
    // CPU_CLK_UNHALTED.RING0_TRANS of Skylake and CPL_CYCLES.RING0_TRANS of Haswell.
    for (model, selector) in [
        (Model::Skylake, 0x3C | 1 << 24 | EDGE | OS | EN),
        (Model::Haswell, 0x5C | 1 << 8 | 1 << 24 | EDGE | OS | USR | EN),
    ] {
        let mut pmu = pmu(model);
        write(&mut pmu, 0x186, selector);
        for _ in 0..5 {
            pmu.advance(&common::user(100));
            pmu.advance(&common::kernel(10));
            pmu.advance(&common::kernel(10));
        }
        assert_eq!(read(&mut pmu, 0xC1), 5, "{model:?}");
        assert!(pmu.needs().ring_split, "{model:?}");
    }
}

#[test]
fn an_empty_report_is_no_stay_in_a_ring() {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x186, 0x3C | 1 << 24 | EDGE | OS | EN);
    for delta in [common::kernel(1), common::user(0), common::kernel(1)] {
        pmu.advance(&delta);
    }
    assert_eq!(read(&mut pmu, 0xC1), 1);
}

#[test]
fn fixed_counters_count_their_event_in_their_rings() {
    let mut pmu = pmu(Model::IceLake);
    // Instructions in user mode, cycles in kernel mode, reference cycles and slots in both.
    write(&mut pmu, 0x38D, 0x3312);
    write(&mut pmu, 0x38F, 0xF_0000_0000);
    pmu.advance(&common::user(300));
    pmu.advance(&common::kernel(30));
    let counts: Vec<u64> = (0..4).map(|n| read(&mut pmu, 0x309 + n)).collect();
    // The reference clock makes two ticks in three cycles; five slots in a cycle.
    assert_eq!(counts, [300, 30, 220, 1650]);
}

#[test]
fn perf_metrics_need_both_enables() {
    for (control, expected) in [(0u64, 0), (1 << 48, 0), (1 << 35, 0), (1 << 48 | 1 << 35, 51)] {
        let mut pmu = pmu(Model::IceLake);
        write(&mut pmu, 0x38D, 0x3000);
        write(&mut pmu, 0x38F, control);
        pmu.advance(&common::user(1000));
        assert_eq!(read(&mut pmu, 0x329) & 0xFF, expected, "{control:#x}");
    }
}

#[test]
fn a_stopped_counter_stands() {
    for model in common::with_counters() {
        let registers = counter(model, 0);
        for selector in [0, common::INSTRUCTIONS | EN, common::INSTRUCTIONS | USR | OS] {
            let mut pmu = pmu(model);
            write(&mut pmu, registers.selector, selector);
            pmu.advance(&common::user(1000));
            assert_eq!(read(&mut pmu, registers.counter), 0, "{model:?} {selector:#x}");
        }
    }
}

#[test]
fn the_global_control_gates_each_counter() {
    for (model, control) in [(Model::Skylake, 0x38F), (Model::Zen4, 0xC000_0301)] {
        let mut pmu = pmu(model);
        for n in 0..2 {
            let selector = common::INSTRUCTIONS | EN | USR;
            write(&mut pmu, counter(model, n).selector, selector);
        }
        write(&mut pmu, control, 2);
        pmu.advance(&common::user(10));
        assert_eq!(read(&mut pmu, counter(model, 0).counter), 0, "{model:?}");
        assert_eq!(read(&mut pmu, counter(model, 1).counter), 10, "{model:?}");
    }
}

#[test]
fn unknown_events_count_nothing_and_are_named() {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x186, 0x1234 | EN | USR);
    // MEM_INST_RETIRED.ALL_LOADS is for counters 0 to 3.
    write(&mut pmu, 0x18B, 0x81D0 | EN | USR);
    pmu.advance(&Delta::step(Ring::User).with(Occurrence::Load, 1));
    assert_eq!(read(&mut pmu, 0xC1), 0);
    assert_eq!(read(&mut pmu, 0xC6), 0);
    let named: Vec<_> = pmu
        .unknown_events()
        .map(|unknown| (unknown.counter, unknown.selector.intel_code(), unknown.why))
        .collect();
    assert_eq!(named, [(0, 0x34, Silence::Unknown), (5, 0xD0, Silence::WrongCounter)]);
    // What an erratum asks for is not, on the processors that have it.
    for (model, unknown) in [(Model::Nehalem, 0), (Model::Skylake, 1)] {
        let mut pmu = self::pmu(model);
        write(&mut pmu, 0x186, 0x43_00B5);
        assert_eq!(pmu.unknown_events().count(), unknown, "{model:?}");
    }
}
