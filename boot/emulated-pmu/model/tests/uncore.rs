//! The uncore's counters: what they count, and what they ask for.

mod common;

use common::{pmu, read, write};
use pmu_model::{Delta, Model, MsrError, Occurrence, Pmu, Ring, RingMask};

const ENABLE: u64 = 1 << 22;

/// Skylake with its uncore enabled, and these selects on the arbiter's counters.
fn counting(selects: [u64; 2]) -> Pmu {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0xE01, 1 << 29);
    write(&mut pmu, 0x3B2, selects[0]);
    write(&mut pmu, 0x3B3, selects[1]);
    pmu
}

/// Three lines not found in the last level, two of them for loads.
fn misses(ring: Ring) -> Delta {
    Delta::bulk(ring, 10)
        .with(Occurrence::LlcReference, 5)
        .with(Occurrence::LlcMiss, 3)
        .with(Occurrence::LoadLlcMiss, 2)
        .with(Occurrence::StoreLlcMiss, 1)
}

fn counts(selects: [u64; 2]) -> [u64; 2] {
    let mut pmu = counting(selects);
    pmu.advance(&misses(Ring::User));
    pmu.advance(&misses(Ring::Kernel));
    [0x3B0, 0x3B1].map(|msr| read(&mut pmu, msr))
}

#[test]
fn s3_the_arbiter_counts_lines_that_the_last_level_lacks_in_either_ring() {
    assert_eq!(counts([ENABLE | 0x181, ENABLE | 0x281]), [6, 4]);
    // Outstanding: for a clock each, and on the first counter only.
    assert_eq!(counts([ENABLE | 0x180, ENABLE | 0x280]), [6, 0]);
    assert_eq!(counts([ENABLE | 0x100_0280, ENABLE | 0x281]), [4, 4]);
    assert_eq!(counts([ENABLE | 0x200_0280, 0x181]), [0, 0]);
    // Nothing snoops.
    assert_eq!(counts([ENABLE | 0x184, ENABLE | 0x481]), [0, 0]);
}

#[test]
fn s3_nothing_counts_while_the_uncore_is_off_and_counters_start_over_at_44_bits() {
    let mut pmu = counting([ENABLE | 0x181, 0]);
    write(&mut pmu, 0xE01, 0x1F);
    pmu.advance(&misses(Ring::User));
    assert_eq!(read(&mut pmu, 0x3B0), 0);
    write(&mut pmu, 0xE01, 0x2000_001F);
    write(&mut pmu, 0x3B0, (1 << 44) - 2);
    pmu.advance(&misses(Ring::User));
    assert_eq!(read(&mut pmu, 0x3B0), 1);
    pmu.reset();
    assert_eq!([0xE01, 0x3B0, 0x3B2].map(|msr| read(&mut pmu, msr)), [0; 3]);
}

#[test]
fn s3_the_clock_goes_with_the_tsc_while_both_enables_are_set() {
    let mut pmu = pmu(Model::Skylake);
    let mut at = |time: u64, msr: u32, value: u64| {
        pmu.set_time(time);
        write(&mut pmu, msr, value);
        read(&mut pmu, 0x395)
    };
    assert_eq!(at(100, 0x394, ENABLE), 0);
    assert_eq!(at(200, 0xE01, 1 << 29), 0);
    assert_eq!(at(250, 0x3B0, 0), 50);
    assert_eq!(at(300, 0x395, (1 << 48) - 5), (1 << 48) - 5);
    assert_eq!(at(310, 0x394, 0), 5);
    assert_eq!(at(400, 0x394, ENABLE), 5);
    assert_eq!(at(401, 0xE01, 0x1F), 6);
    assert_eq!(at(500, 0x3B0, 0), 6);
}

#[test]
fn s3_what_the_arbiter_counts_is_asked_for_while_it_counts() {
    let needs = |selects| counting(selects).needs();
    let none = needs([0x181, ENABLE | 0x184]);
    assert!(!none.stepping() && !none.free_running && !none.memory());
    let some = needs([0, ENABLE | 0x281]);
    assert!(some.stepping() && some.free_running && some.memory());
    assert_eq!((some.rings, some.stepped_rings), (RingMask::BOTH, RingMask::BOTH));
    // The clock asks for nothing.
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0xE01, 1 << 29);
    write(&mut pmu, 0x394, ENABLE);
    assert!(!pmu.needs().free_running);
}

#[test]
fn s3_other_models_leave_these_registers_to_the_processor_beneath() {
    for model in Model::ALL.into_iter().filter(|model| *model != Model::Skylake) {
        for msr in [0x394, 0x395, 0x3B0, 0x3B3, 0xE01] {
            assert_eq!(pmu(model).read_msr(msr), Err(MsrError::NotMine { msr }), "{model:?}");
        }
    }
}
