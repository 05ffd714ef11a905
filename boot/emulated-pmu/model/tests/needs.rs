//! What the registers ask of whoever runs the guest.

mod common;

use common::{EDGE, EN, INT, INV, OS, USR, pmu, write};
use pmu_model::uarch::Parameters;
use pmu_model::{Delta, Host, Model, Needs, Occurrence, Pmu, Ring, RingMask, Silence, Timing};

/// Skylake with one selector in counter 0.
fn with(selector: u64) -> Pmu {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x186, selector);
    pmu
}

#[test]
fn nothing_is_needed_while_nothing_runs() {
    for model in Model::ALL {
        assert_eq!(pmu(model).needs(), Needs::default(), "{model:?}");
    }
    // Without EN, without a ring, with the global control off, with an unknown event.
    assert_eq!(with(0xC4 | USR).needs(), Needs::default());
    assert_eq!(with(0xC4 | EN).needs(), Needs::default());
    assert_eq!(with(0x99 | EN | USR).needs(), Needs::default());
    let mut stopped = with(0xC4 | EN | USR);
    write(&mut stopped, 0x38F, 0);
    assert_eq!(stopped.needs(), Needs::default());
}

#[test]
fn instructions_and_cycles_are_bulk() {
    for code in [0xC0, 0x3C, 0x13C, 0x10E] {
        let needs = with(code | EN | USR | OS).needs();
        assert_eq!((needs.bulk, needs.stepped), (1, 0), "{code:#x}");
        assert!(!needs.stepping() && !needs.ring_split, "{code:#x}");
    }
    let mut fixed = pmu(Model::Skylake);
    write(&mut fixed, 0x38D, 0x333);
    write(&mut fixed, 0x38F, 7 << 32);
    assert_eq!(fixed.needs().bulk, 7 << 32);
}

#[test]
fn one_ring_asks_for_a_split() {
    assert!(with(0xC0 | EN | USR).needs().ring_split);
    assert!(with(0xC0 | EN | OS).needs().ring_split);
    let mut fixed = pmu(Model::Skylake);
    write(&mut fixed, 0x38D, 0x2);
    write(&mut fixed, 0x38F, 1 << 32);
    assert!(fixed.needs().ring_split);
}

/// Zen 2's ls_refills_from_sys of what this machine has not: with CMASK 1 and INV it counts cycles.
#[test]
fn what_never_happens_counts_cycles_where_it_is_inverted() {
    const CMASK_1: u64 = 1 << 24;
    let needs = |more: u64| {
        let mut pmu = pmu(Model::Zen2);
        write(&mut pmu, 0xC001_0200, 0x1060 | EN | OS | more);
        pmu.needs()
    };
    assert_eq!(needs(0), Needs::default());
    assert_eq!(needs(CMASK_1), Needs::default());
    let inverted = needs(CMASK_1 | INV);
    assert_eq!((inverted.bulk, inverted.ring_split, inverted.stepping()), (1, true, false));
}

#[test]
fn stepping_is_asked_for_in_the_rings_that_are_counted() {
    let stepped = |pmu: &Pmu| {
        let needs = pmu.needs();
        (needs.stepping_in(Ring::User), needs.stepping_in(Ring::Kernel))
    };
    assert_eq!(stepped(&with(0xC4 | EN | USR)), (true, false));
    assert_eq!(stepped(&with(0xC4 | EN | OS)), (false, true));
    assert_eq!(stepped(&with(0xC4 | EN | USR | OS)), (true, true));
    assert_eq!(stepped(&with(0xC0 | EN | USR | OS)), (false, false));
    // Instructions everywhere in addition to branches in ring 3 alone: ring 0 needs no stepping.
    let mut both = with(0xC4 | EN | USR);
    write(&mut both, 0x187, 0xC0 | EN | USR | OS);
    assert_eq!(stepped(&both), (true, false));
    assert!(both.needs().ring_split && both.needs().stepping());
    // A branch into the other ring is a record as well.
    let mut records = with(0xC4 | EN | USR);
    write(&mut records, 0x1D9, 1);
    assert_eq!(stepped(&records), (true, true));
    // What is intercepted anyway.
    assert_eq!(stepped(&with(0x1CB | EN | USR)), (false, false), "HW_INTERRUPTS.RECEIVED");
}

#[test]
fn single_occurrences_ask_for_stepping_and_say_which() {
    // (selector, predictor, memory). All branches, and all conditional ones, are the same however they were predicted.
    for (code, predictor, memory) in [
        (0xC4, false, false),
        (0x1C4, false, false),
        (0x40C4, false, false),
        (0xC5, true, false),
        (0x81D0, false, false),
        (0x08D1, false, true),
        (0x412E, false, true),
        (0x0E08, false, true),
    ] {
        let needs = with(code | EN | USR | OS).needs();
        assert_eq!((needs.bulk, needs.stepped), (0, 1), "{code:#x}");
        assert!(needs.stepping(), "{code:#x}");
        assert_eq!(needs.predictor(), predictor, "{code:#x}");
        assert_eq!(needs.memory(), memory, "{code:#x}");
    }
    let needs = with(0x412E | EN | USR).needs();
    let wanted: Vec<Occurrence> = needs.occurrences.occurrences().collect();
    assert_eq!(wanted, [Occurrence::LlcMiss]);
}

#[test]
fn interrupts_need_no_stepping() {
    let needs = with(0x1CB | EN | USR | OS).needs();
    assert_eq!(needs.stepped, 1);
    assert!(needs.occurrences.has(Occurrence::Interrupt));
    assert!(!needs.stepping(), "a hypervisor intercepts them");
}

#[test]
fn an_event_that_never_happens_needs_nothing() {
    // IDQ_UOPS_NOT_DELIVERED.CORE: known, and always 0 here.
    let pmu = with(0x19C | EN | USR | OS);
    assert_eq!(pmu.needs(), Needs::default());
    let silent: Vec<_> = pmu.unknown_events().map(|unknown| unknown.why).collect();
    assert_eq!(silent, [Silence::Never]);
    // Inverted it counts cycles.
    assert_eq!(with(0x19C | 1 << 24 | INV | EN | USR | OS).unknown_events().count(), 0);
}

#[test]
fn branch_records_and_branch_traps_are_told() {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x1D9, 1);
    assert!(pmu.needs().branch_records && pmu.needs().stepping() && pmu.needs().predictor());
    write(&mut pmu, 0x1D9, 2);
    assert!(!pmu.needs().branch_records && pmu.needs().branch_trap);
}

#[test]
fn free_running_counters_are_told() {
    let mut zen = pmu(Model::Zen4);
    write(&mut zen, 0xC001_0015, 1 << 30);
    assert!(zen.needs().free_running && !zen.needs().stepping());
    let mut icelake = pmu(Model::IceLake);
    write(&mut icelake, 0x38F, 1 << 48);
    assert!(icelake.needs().free_running);
}

#[test]
fn effects_carry_the_needs_and_ask_to_plan_again() {
    let mut pmu = pmu(Model::Skylake);
    let effects = pmu.write_msr(0x186, 0xC4 | EN | USR).unwrap();
    assert!(effects.replan);
    assert_eq!(effects.needs, pmu.needs());
    assert_eq!(effects.forward, None);
    assert!(effects.needs.stepping());
    let effects = pmu.write_msr(0x38F, 0).unwrap();
    assert!(effects.replan && !effects.needs.stepping());
    // A new value moves the horizon; storage that nothing reads does not.
    assert!(pmu.write_msr(0x4C1, 7).unwrap().replan);
    assert!(!pmu.write_msr(0x1A6, 7).unwrap().replan);
    assert!(!pmu.write_msr(0x680, 7).unwrap().replan);
}

#[test]
fn what_has_to_be_told_apart_is_exact() {
    // (selector, hits from misses, taken from not taken, branches, accesses, splits)
    for (code, misses, taken, branches, accesses, splits) in [
        (0xC4, false, false, true, false, false),
        (0x1C4, false, false, true, false, false), // BR_INST_RETIRED.CONDITIONAL
        (0x2C4, false, false, true, false, false), // NEAR_CALL
        (0x10C4, false, true, true, false, false), // NOT_TAKEN
        (0x20C4, false, true, true, false, false), // NEAR_TAKEN
        (0xC5, true, false, true, false, false),   // BR_MISP_RETIRED.ALL_BRANCHES
        (0x20C5, true, true, true, false, false),  // NEAR_TAKEN
        (0x81D0, false, false, false, true, false), // ALL_LOADS
        (0x41D0, false, false, false, true, true), // SPLIT_LOADS
        (0x412E, false, false, false, true, false), // LONGEST_LAT_CACHE.MISS
    ] {
        let needs = with(code | EN | USR).needs();
        let seen = (
            needs.tells_misses,
            needs.tells_taken,
            needs.branches(),
            needs.accesses(),
            needs.splits(),
        );
        assert_eq!(seen, (misses, taken, branches, accesses, splits), "{code:#x}");
        assert_eq!(needs.predictor(), misses, "{code:#x}");
        assert_eq!(needs.taken(), misses || taken, "{code:#x}");
    }
    // A counter alone decides: two that tell nothing apart do not together.
    let mut both = with(0xC4 | EN | USR);
    write(&mut both, 0x187, 0x1C4 | EN | USR);
    assert!(!both.needs().taken());
    write(&mut both, 0x187, 0xC5 | EN | USR);
    assert!(both.needs().predictor());
}

#[test]
fn thresholds_that_have_to_be_stepped_are_named() {
    let one = 1 << 24;
    for (selector, unspread) in [
        (0xC4, 0),
        (0xC4 | one, 0),
        (0xC4 | one | INV, 0),
        (0xC4 | EDGE, 1),
        (0x81D0, 0),
        (0x81D0 | one, 1),
        (0xC0 | one | INV | EDGE, 0),
    ] {
        assert_eq!(with(selector | EN | USR).needs().unspread, unspread, "{selector:#x}");
    }
}

/// Cycles that waits are a part of, and micro-operations: no block says how many of them it has, so a bound is for one
/// instruction.
#[test]
fn what_no_block_tells_is_far_from_its_overflow_by_instructions() {
    for (ports, event, most) in [("", 0x3C, 100_000), ("ports=alu:01", 0xA1 | 1 << 8, 100)] {
        let parameters =
            if ports.is_empty() { Parameters::DEFAULT } else { Parameters::parse(ports).unwrap() };
        let timing = Timing::of_tsc(0).with(&parameters);
        let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, timing);
        write(&mut pmu, 0x38F, 1);
        write(&mut pmu, 0x186, event | EN | USR | INT);
        write(&mut pmu, 0x4C1, (1 << 48) - 4_000_000);
        assert_eq!(pmu.needs().unspread, 0, "{ports}: it need not be stepped");
        let [limit] = pmu.limits(RingMask::BOTH).collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(limit.left, 4_000_000);
        let bound = limit.most.unwrap().get();
        assert!((most..10 * most).contains(&bound), "{ports}: {bound}");
        // With a threshold each instruction must be seen.
        write(&mut pmu, 0x186, event | EN | USR | INT | 1 << 24);
        assert_eq!(pmu.needs().unspread, 1, "{ports}");
    }
    // Without parameters cycles are instructions.
    let pmu = with(0x3C | EN | USR | INT);
    assert_eq!(pmu.limits(RingMask::BOTH).count(), 0);
}

#[test]
fn limits_are_those_of_overflows_that_matter() {
    let all = RingMask::BOTH;
    let left = |pmu: &Pmu, rings| pmu.limits(rings).map(|limit| limit.left).collect::<Vec<_>>();
    let mut pmu = with(0xC4 | EN | USR | INT);
    write(&mut pmu, 0x4C1, (1 << 48) - 100);
    assert_eq!(left(&pmu, all), [100]);
    assert_eq!(left(&pmu, RingMask::KERNEL), [], "it counts in the other ring");
    let selection = pmu.limits(all).next().unwrap().selection;
    assert!(selection.is_branches() && selection.has(Occurrence::Return));
    // Without an interrupt nobody notices, and instructions have an alarm.
    write(&mut pmu, 0x186, 0xC4 | EN | USR);
    assert_eq!(left(&pmu, all), []);
    write(&mut pmu, 0x186, 0xC0 | EN | USR | INT);
    assert_eq!(left(&pmu, all), []);
    // A PEBS record: of the event after the overflow, whose instruction must be seen.
    write(&mut pmu, 0x186, 0xC4 | EN | USR);
    write(&mut pmu, 0x3F1, 1);
    write(&mut pmu, 0x4C1, (1 << 48) - 2);
    assert_eq!(left(&pmu, all), [2]);
    let branches = [0, 2].map(|_| Delta::step(Ring::User).with(Occurrence::Return, 1));
    for branch in &branches {
        pmu.advance(branch);
    }
    assert_eq!(left(&pmu, all), [0]);
}
