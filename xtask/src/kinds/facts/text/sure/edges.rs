//! Where evidence begins to be doubtful.

use super::*;
use protocol::record::CurvePoint;

#[test]
fn d1_one_of_eight_tries_varies_and_more_are_unsteady() {
    assert_eq!(tries(1, 8), "varies: 1 of 8 tries");
    assert_eq!(tries(2, 15), "unsteady: 2 of 15 tries");
}

#[test]
fn d1_what_fits_may_take_a_quarter_of_a_step_and_a_16th_of_itself_more() {
    // Places of 3 cycles, and a step of 10 or 40.
    let is_steady = |places, cycles, fits, next| {
        super::fits(&[Fit { stride: 4096, places, cycles, fits }], 30, next) == "steady"
    };
    // 24 cycles may be 2.5 + 1.5 more, 96 cycles 2.5 + 6.
    assert_eq!([28, 29].map(|cycles| is_steady(8, cycles, true, 130)), [true, false]);
    assert_eq!([104, 105].map(|cycles| is_steady(32, cycles, true, 130)), [true, false]);
    // What does not fit takes three quarters of a step more at least.
    assert_eq!([53, 54].map(|cycles| is_steady(8, cycles, false, 430)), [false, true]);
}

#[test]
fn d1_loads_of_a_line_take_a_quarter_of_a_miss_at_most_and_others_three_at_least() {
    let told = |near, far| {
        let line_evidence = vec![[8, near], [64, far], [128, 100]];
        line(&MemoryFacts { line: Some(64), line_evidence, ..MemoryFacts::default() })
    };
    assert_eq!(told(25, 75), "steady");
    assert_eq!(told(26, 75), "unsteady: 1 of 3 tries");
    assert_eq!(told(25, 74), "unsteady: 1 of 3 tries");
}

#[test]
fn d1_the_next_tlb_is_that_of_the_next_level_for_the_same_pages() {
    let of = |level, page, tenths| TlbFact {
        level,
        page,
        tenths: Some(tenths),
        ways: Some(4),
        sets: Some(16),
        walk_tenths: 3000,
        evidence: vec![Fit { stride: 4096, places: 5, cycles: 10, fits: false }],
        ..TlbFact::default()
    };
    let tlbs = vec![of(1, 4096, 0), of(2, 2 << 20, 1000), of(2, 4096, 100)];
    assert_eq!(tlb(&MemoryFacts { tlbs, ..MemoryFacts::default() }, 0), "steady");
}

#[test]
fn d1_a_walk_agrees_within_a_tenth_in_a_cache_and_a_quarter_in_memory() {
    let cache = CacheFact {
        level: 1,
        tenths: Some(40),
        ways: Some(8),
        set_stride: Some(4096),
        ..CacheFact::default()
    };
    let sheet = |tenths| MemoryFacts {
        memory_tenths: 1000,
        curve: vec![CurvePoint { bytes: 4096, tenths }],
        ..MemoryFacts::default()
    };
    let agrees = "agrees with the walk";
    let of_cache = [35, 36, 44, 45].map(|tenths| latency(&sheet(tenths), &cache, None));
    assert_eq!(of_cache, ["the walk has 3.5", agrees, agrees, "the walk has 4.5"]);
    let of_memory = [749, 750, 1250, 1251].map(|tenths| memory(&sheet(tenths)));
    assert_eq!(of_memory, ["the walk has 74.9", agrees, agrees, "the walk has 125.1"]);
}
