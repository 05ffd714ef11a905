use super::brute::{any_demand, check, fits};
use super::demand::{Demand, Way};
use super::solve::solve;
use super::*;
use proptest::prelude::*;

fn way(units: u64, msr: Option<(u32, u64)>) -> Way {
    let msr = msr.map(|(address, value)| MsrValue { address, value });
    Way { units, msr }
}

/// One of each kind that real events have, on four counters and one fixed counter.
fn kinds() -> Vec<Demand> {
    let fixed = 1 << FIXED_AT;
    let of = |ways: &[Way]| Demand::of(ways.to_vec(), false, false);
    let rsp = |value| of(&[way(0xf, Some((0x1a6, value))), way(0xf, Some((0x1a7, value)))]);
    vec![
        of(&[way(0xf, None)]),
        of(&[way(0x3, None)]),
        of(&[way(0x4, None)]),
        of(&[way(fixed, None), way(0xf, None)]),
        of(&[way(fixed, None)]),
        rsp(1),
        rsp(2),
        of(&[way(0xf, Some((0x1a6, 3)))]),
        of(&[way(0x8, Some((0x3f6, 3)))]),
        of(&[way(0xf, Some((0x3f6, 4)))]),
        Demand::of(vec![way(0x5, None)], true, false),
        Demand::of(vec![way(0xf, None)], false, true),
        Demand::of(vec![way(0xe, Some((0x3f6, 4)))], false, true),
    ]
}

fn compare(demands: &[&Demand]) {
    let solution = solve(demands);
    assert_eq!(solution.is_some(), fits(demands), "{demands:?}");
    if let Some(solution) = solution {
        check(demands, &solution);
    }
}

#[test]
fn c2_assignment_is_perfect_for_all_sets_of_up_to_five_of_every_kind() {
    let kinds = kinds();
    let mut sets = 0;
    for length in 1..=5 {
        // Sets with repetition: rising sequences.
        let mut set = vec![0; length];
        loop {
            compare(&set.iter().map(|kind| &kinds[*kind]).collect::<Vec<_>>());
            sets += 1;
            let Some(at) = (0..length).rev().find(|at| set[*at] + 1 < kinds.len()) else {
                break;
            };
            let next = set[at] + 1;
            set[at..].fill(next);
        }
    }
    // Binomials of (12 + length) over length.
    assert_eq!(sets, 13 + 91 + 455 + 1_820 + 6_188);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn c2_assignment_is_found_whenever_brute_force_finds_one(
        demands in (3_u32..=8)
            .prop_flat_map(|counters| prop::collection::vec(any_demand(counters), 1..=8))
    ) {
        compare(&demands.iter().collect::<Vec<_>>());
    }

    #[test]
    fn c2_a_conflict_is_minimal_and_the_smallest(
        demands in prop::collection::vec(any_demand(3), 2..=8)
    ) {
        let all: Vec<&Demand> = demands.iter().collect();
        if fits(&all) {
            return Ok(());
        }
        let conflict = conflict::find(&all, |index| index.to_string());
        let set: Vec<usize> = conflict.requests.iter().map(|(index, _)| *index).collect();
        let pick = |set: &[usize]| set.iter().map(|i| &demands[*i]).collect::<Vec<_>>();
        prop_assert!(!fits(&pick(&set)));
        for without in 0..set.len() {
            let mut rest = set.clone();
            rest.remove(without);
            prop_assert!(fits(&pick(&rest)), "{set:?} is not minimal");
        }
        prop_assert!(conflict.smallest);
        // Where counters alone are to blame, they are fewer than the requests.
        if let Reason::Counters { counters } = &conflict.reason {
            prop_assert!(counters.len() < set.len(), "{conflict:?}");
        }
        for bits in 0_u32..1 << demands.len() {
            if (bits.count_ones() as usize) < set.len() {
                let other: Vec<usize> = (0..demands.len()).filter(|i| bits >> i & 1 == 1).collect();
                prop_assert!(fits(&pick(&other)), "{other:?} is smaller than {set:?}");
            }
        }
    }
}

#[test]
fn a_large_set_is_refused_at_once() {
    let kinds = kinds();
    let many: Vec<&Demand> = (0..1_000).map(|index| &kinds[index % 2]).collect();
    assert!(solve(&many).is_none());
    let conflict = conflict::find(&many, |index| index.to_string());
    assert_eq!(conflict.requests.len(), 3, "three need one of two counters");
    assert!(conflict.smallest);
}

/// As many requests as there are units, each on its own one.
#[test]
fn all_units_can_be_taken_at_once() {
    let own = |unit: u32| Demand::of(vec![way(1 << unit, None)], false, false);
    let mut demands: Vec<Demand> = (0..64).map(own).collect();
    let solution = solve(&demands.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(solution.units, (0..64).collect::<Vec<u8>>());
    demands.push(own(0));
    assert_eq!(solve(&demands.iter().collect::<Vec<_>>()), None);
}

/// Too many sets to try: the conflict is minimal all the same, and it is said that a smaller one was not ruled out.
#[test]
fn c7_a_conflict_among_many_kinds_is_minimal_and_says_that_not_all_was_tried() {
    // Eight units; each request leaves one or two of them out, and no eight of these lack a unit together.
    let out = |units: u64| Demand::of(vec![way(0xff & !units, None)], false, false);
    let mut demands = vec![Demand::of(vec![way(1 << 20, None)], false, false), out(0)];
    demands.extend((0..8).map(|unit| out(1 << unit)));
    demands.extend((0..8).map(|unit| out(1 << unit | 1 << ((unit + 1) % 8))));
    let all: Vec<&Demand> = demands.iter().collect();
    let conflict = conflict::find(&all, |index| index.to_string());
    let set: Vec<usize> = conflict.requests.iter().map(|(index, _)| *index).collect();
    assert_eq!(set, (1..10).collect::<Vec<_>>(), "the first request is on a unit of its own");
    // 106,761 sets of up to eight of eighteen kinds.
    assert!(!conflict.smallest);
    assert_eq!(conflict.reason, Reason::Counters { counters: (0..8).map(counter).collect() });
}

#[cfg(feature = "pack")]
mod with_tables {
    use super::*;
    use crate::cpu::Vendor;
    use crate::processor::Processor;
    use crate::test_support::{core, on, skx};

    fn all(texts: &[&str]) -> Vec<Encoded> {
        texts.iter().map(|text| skx(text).unwrap_or_else(|error| panic!("{error}"))).collect()
    }

    fn counters(assignment: &Assignment) -> Vec<Counter> {
        assignment.places.iter().map(|place| place.counter).collect()
    }

    #[test]
    fn c2_fixed_and_general_counters_stand_in_for_each_other() {
        use Counter::{Fixed, General};
        let requests =
            all(&["instructions:u", "instructions:k", "cycles", "cycles:u", "r20c4", "r02c4"]);
        let assignment = assign(&requests).unwrap();
        let fixed = counters(&assignment).iter().filter(|c| matches!(c, Fixed(_))).count();
        assert_eq!(fixed, 2, "{assignment:?}");
        let one = assign(&all(&["instructions"])).unwrap();
        assert_eq!(counters(&one), [Fixed(0)]);
        let named = assign(&all(&["instructions", "fixed0:k"])).unwrap();
        assert_eq!(counters(&named), [General(0), Fixed(0)]);
    }

    #[test]
    fn c2_offcore_requests_share_a_value_or_take_both_msrs() {
        let value = |msr: &MsrValue| (msr.address, msr.value);
        let requests =
            all(&["offcore_response:offcore_rsp=1:u", "offcore_response:offcore_rsp=1:k"]);
        let assignment = assign(&requests).unwrap();
        assert_eq!(assignment.msrs.iter().map(value).collect::<Vec<_>>(), [(0x1a6, 1)]);
        let requests = all(&["offcore_response:offcore_rsp=1", "offcore_response:offcore_rsp=2"]);
        let assignment = assign(&requests).unwrap();
        assert_eq!(assignment.msrs.iter().map(value).collect::<Vec<_>>(), [(0x1a6, 1), (0x1a7, 2)]);
        let selects =
            registers(&assignment, &requests.iter().collect::<Vec<_>>(), Vendor::Intel).selects;
        assert_eq!(selects, [(0, 0x4301b7), (1, 0x4301bb)]);
        let requests = all(&[
            "instructions",
            "r01b7:offcore_rsp=1",
            "r01b7:offcore_rsp=2",
            "r01b7:offcore_rsp=3",
        ]);
        let conflict = assign(&requests).unwrap_err();
        assert_eq!(conflict.requests.iter().map(|r| r.0).collect::<Vec<_>>(), [1, 2, 3]);
        let text = conflict.to_string();
        assert!(text.contains("3 different values for 2 extra MSR (0x1a6, 0x1a7)"), "{text}");
    }

    #[test]
    fn c7_a_conflict_names_its_requests_and_its_reason() {
        let requests = all(&["cycles", "r01c0:u", "uops_issued.any", "r01c0:k"]);
        let conflict = assign(&requests).unwrap_err();
        let text = conflict.to_string();
        assert_eq!(
            text,
            "r01c0:u, r01c0:k cannot be counted at the same time: \
             all of them need one of 1: counter 1"
        );
        assert!(conflict.smallest);
        let requests = all(&["uops_issued.any", "mem_trans_retired.load_latency_gt_8:p"]);
        let text = assign(&requests).unwrap_err().to_string();
        assert!(text.contains("must be alone"), "{text}");
        // Fixed counters may count together with it.
        assert!(
            assign(&all(&["cycles", "instructions", "mem_trans_retired.load_latency_gt_8:p"]))
                .is_ok()
        );
    }

    #[test]
    fn c2_amd_large_increments_take_pairs() {
        let zen = core("zen2");
        let amd = Processor::amd(true, false);
        let encode = |texts: &[&str]| -> Vec<Encoded> {
            texts.iter().map(|text| on(&amd, Some(&zen), text).unwrap()).collect()
        };
        let flops = "fp_ret_sse_avx_ops.all";
        let requests = encode(&["ex_ret_instr", flops, "ls_not_halted_cyc", flops]);
        let assignment = assign(&requests).unwrap();
        let registers = registers(&assignment, &requests.iter().collect::<Vec<_>>(), Vendor::Amd);
        assert_eq!(registers.selects.len(), 6);
        assert_eq!(registers.global_control, 0x3f);
        // The merge event is on the counter after its event's.
        let at = |select: u64| {
            let on = registers.selects.iter().filter(|(_, value)| *value == select);
            on.map(|(counter, _)| *counter).collect::<Vec<_>>()
        };
        let pairs = at(0x43_ff03);
        assert_eq!(at(0xf_0040_00ff), pairs.iter().map(|even| even + 1).collect::<Vec<_>>());
        assert_eq!(pairs.len(), 2, "{registers:?}");
        assert_eq!(
            registers.selects.iter().filter(|(_, value)| *value == 0xf_0040_00ff).count(),
            2
        );
        let conflict = assign(&encode(&[flops, "ex_ret_instr", flops, flops])).unwrap_err();
        assert!(conflict.to_string().contains("takes an even counter and the next"), "{conflict}");
        assert_eq!(conflict.requests.len(), 4);
        let conflict = assign(&encode(&[flops, flops, flops, flops])).unwrap_err();
        assert!(
            conflict.to_string().contains("need one of 3: counter 0, counter 2, counter 4"),
            "{conflict}"
        );
    }

    /// Which choice a place is of, whatever their order, and the MSRs that a request has.
    #[test]
    fn a_place_names_its_choice() {
        let mut requests = all(&["instructions", "mem_trans_retired.load_latency_gt_8:p"]);
        for (fixed, general) in [(0, 1), (1, 0)] {
            let assignment = assign(&requests).unwrap();
            assert_eq!(assignment.places[0], Place { counter: Counter::Fixed(0), choice: fixed });
            let without = assign(&[requests[0].clone(), all(&["fixed0"]).remove(0)]).unwrap();
            let place = Place { counter: Counter::General(0), choice: general };
            assert_eq!(without.places[0], place);
            assert_eq!(assignment.msrs, [MsrValue { address: 0x3f6, value: 8 }]);
            requests[0].choices.reverse();
        }
        let alone = assign(&requests[1..]).unwrap();
        assert_eq!(alone.msrs, [MsrValue { address: 0x3f6, value: 8 }]);
    }

    #[test]
    fn registers_of_an_assignment() {
        let requests = all(&["instructions:u", "cycles", "br_inst_retired.near_taken:p"]);
        let assignment = assign(&requests).unwrap();
        let registers = registers(&assignment, &requests.iter().collect::<Vec<_>>(), Vendor::Intel);
        assert_eq!(registers.fixed_control, 0x32);
        assert_eq!(registers.selects, [(0, 0x4320c4)]);
        assert_eq!(registers.global_control, 0x3_0000_0001);
        assert_eq!(registers.pebs_enable, 1);
    }
}

/// SDM volume 3, 20.3.9.3: bit 48 of the global control lets PERF_METRICS count, and its slots are fixed counter 3's, with the bits
/// of that one's control.
#[test]
fn s3_fields_of_perf_metrics_have_places_of_their_own_and_the_bits_of_their_slots() {
    use crate::processor::Processor;
    use crate::test_support::{core, on};
    let icelake = core("icelake");
    let processor = Processor { metric_fields: 4, ..Processor::described_by(&icelake) };
    let encode = |text| on(&processor, Some(&icelake), text).unwrap();
    let texts = ["topdown-be-bound:u", "topdown-retiring:u", "instructions:u"];
    let set: Vec<_> = texts.into_iter().map(encode).collect();
    let assignment = assign(&set).unwrap();
    let counters: Vec<Counter> = assignment.places.iter().map(|place| place.counter).collect();
    assert_eq!(counters[..2], [Counter::Metric(3), Counter::Metric(0)]);
    assert!(assignment.places[..2].iter().all(|place| place.choice == 0));
    let two = assign(&set[..2]).unwrap();
    let found = registers(&two, &[&set[0], &set[1]], crate::cpu::Vendor::Intel);
    assert_eq!((found.global_control, found.fixed_control), (1 << 48 | 1 << 35, 0x2000));
    assert!(found.selects.is_empty());
    // One field of each number.
    assert!(assign(&[set[1].clone(), set[1].clone()]).is_err());
}
