//! SVM: who executes, and which counters count then.

mod common;

use common::*;
use pmu_model::{CpuidResult, Fault, Model, MsrError, Occurrence, Pmu, Ring, World};

const GUEST_ONLY: u64 = 1 << 40;
const HOST_ONLY: u64 = 1 << 41;
const AMD: [Model; 3] = [Model::K10, Model::Zen2, Model::Zen4];

fn offering(model: Model) -> Pmu {
    let mut pmu = pmu(model);
    pmu.offer_svm();
    pmu
}

/// What counter 0 counts of 10 instructions in each world.
fn in_each_world(model: Model, bits: u64) -> [u64; 3] {
    [World::Alone, World::Host, World::Guest].map(|world| {
        let mut pmu = offering(model);
        let unit = counter(model, 0);
        write(&mut pmu, unit.selector, 0xC0 | USR | OS | EN | bits);
        let needs = pmu.enter_world(world);
        pmu.advance(&kernel(10));
        let counted = read(&mut pmu, unit.counter);
        assert_eq!(needs.bulk & 1 != 0, counted > 0, "{model:?} {world:?}");
        counted
    })
}

#[test]
fn host_only_and_guest_only_counters_count_in_their_world() {
    for model in AMD {
        assert_eq!(in_each_world(model, 0), [10, 10, 10], "{model:?}");
        assert_eq!(in_each_world(model, GUEST_ONLY), [0, 0, 10], "{model:?}");
        assert_eq!(in_each_world(model, HOST_ONLY), [0, 10, 0], "{model:?}");
        assert_eq!(in_each_world(model, HOST_ONLY | GUEST_ONLY), [0, 10, 10], "{model:?}");
    }
}

#[test]
fn without_svm_the_bits_are_dropped_and_with_it_they_are_kept() {
    for model in AMD {
        let select = counter(model, 0).selector;
        let value = 0xC0 | USR | HOST_ONLY | GUEST_ONLY;
        let mut without = pmu(model);
        write(&mut without, select, value);
        assert_eq!(read(&mut without, select), 0xC0 | USR, "{model:?}");
        let mut with = offering(model);
        write(&mut with, select, value | 1 << 42);
        assert_eq!(read(&mut with, select), value, "{model:?}");
    }
}

#[test]
fn an_intel_model_offers_no_svm_and_refuses_the_bits() {
    let mut pmu = offering(Model::Skylake);
    assert!(!pmu.offers_svm());
    let refused = pmu.write_msr(0x186, 0xC0 | USR | GUEST_ONLY);
    assert!(matches!(refused, Err(MsrError::GeneralProtection(Fault::Reserved { .. }))));
}

#[test]
fn cpuid_tells_of_svm_what_the_processor_has_and_a_hypervisor_offers() {
    for (model, asids, features) in [
        (Model::K10, 0x40, 0b1001),
        (Model::Zen2, 0x8000, 0x0001_0069),
        (Model::Zen4, 0x8000, 0x1001_0069),
    ] {
        let leaf = |pmu: &Pmu, number| pmu.cpuid(number, 0, CpuidResult::default());
        let with = offering(model);
        let expected = CpuidResult { eax: 1, ebx: asids, ecx: 0, edx: features };
        assert_eq!(leaf(&with, 0x8000_000A), expected, "{model:?}");
        assert_eq!(leaf(&with, 0x8000_0001).ecx & 4, 4, "{model:?}");
        assert!(leaf(&with, 0x8000_0000).eax >= 0x8000_000A, "{model:?}");
        let without = pmu(model);
        assert_eq!(leaf(&without, 0x8000_000A), CpuidResult::default(), "{model:?}");
        assert_eq!(leaf(&without, 0x8000_0001).ecx & 4, 0, "{model:?}");
    }
}

#[test]
fn an_overflow_is_as_far_away_as_the_world_is_left() {
    let mut pmu = offering(Model::Zen4);
    let unit = counter(Model::Zen4, 0);
    write(&mut pmu, unit.counter, (1 << 48) - 100);
    write(&mut pmu, unit.selector, 0xC0 | USR | OS | INT | EN | GUEST_ONLY);
    pmu.enter_world(World::Host);
    assert_eq!(pmu.until_overflow(pmu_model::RingMask::BOTH), None);
    assert!(!pmu.advance(&kernel(1_000)).pmi);
    pmu.enter_world(World::Guest);
    assert_eq!(pmu.until_overflow(pmu_model::RingMask::BOTH), Some(100));
    assert!(pmu.advance(&user(100)).pmi);
}

#[test]
fn vmrun_is_a_branch_of_the_guest_and_none_of_its_instructions() {
    let mut pmu = offering(Model::Zen4);
    let (branches, instructions) = (counter(Model::Zen4, 0), counter(Model::Zen4, 1));
    write(&mut pmu, branches.selector, 0xC2 | USR | OS | EN | GUEST_ONLY);
    write(&mut pmu, instructions.selector, 0xC0 | USR | OS | EN | GUEST_ONLY);
    let entry = Pmu::entry(Ring::User);
    assert_eq!((entry.instructions, entry.count(Occurrence::FarBranch)), (0, 1));
    pmu.enter_world(World::Guest);
    pmu.advance(&entry);
    assert_eq!(read(&mut pmu, branches.counter), 1);
    assert_eq!(read(&mut pmu, instructions.counter), 0);
}

#[test]
fn an_edge_is_seen_anew_in_each_stay_in_the_guest() {
    let mut pmu = offering(Model::Zen4);
    let unit = counter(Model::Zen4, 0);
    // Cycles, with EDGE: once for each guest run.
    write(&mut pmu, unit.selector, 0x76 | USR | OS | EDGE | EN | GUEST_ONLY);
    for _ in 0..3 {
        pmu.enter_world(World::Guest);
        pmu.advance(&kernel(50));
        pmu.enter_world(World::Host);
        pmu.advance(&kernel(50));
    }
    assert_eq!(read(&mut pmu, unit.counter), 3);
}
