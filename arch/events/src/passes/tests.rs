mod parts;

use super::*;
use crate::assign::brute::{any_demand, check, fits};
use crate::assign::solve::solve;
use proptest::prelude::*;

const THOROUGH: Effort = Effort { sets: 2_000_000 };

/// The optimum by trying every set of items, or `None` if an item fits into no pass.
fn optimum(problem: &Problem) -> Option<usize> {
    let count = problem.items.len();
    let items = |set: usize| (0..count).filter(move |i| set >> i & 1 == 1).collect::<Vec<_>>();
    let possible: Vec<bool> = (0..1 << count).map(|set| fits(&problem.pass(&items(set)))).collect();
    if (0..count).any(|item| !possible[1 << item]) {
        return None;
    }
    // fewest[set]: passes for these items; the first of them is in some possible subset.
    let mut fewest = vec![usize::MAX; 1 << count];
    fewest[0] = 0;
    for set in 1_usize..1 << count {
        let first = 1 << set.trailing_zeros();
        let mut part = set;
        while part != 0 {
            if part & first != 0 && possible[part] && fewest[set & !part] < usize::MAX {
                fewest[set] = fewest[set].min(fewest[set & !part] + 1);
            }
            part = (part - 1) & set;
        }
    }
    Some(fewest[(1 << count) - 1])
}

/// Every item exactly once, every pass possible.
fn check_passes(problem: &Problem, passes: &[Vec<usize>]) {
    let mut items: Vec<usize> = passes.iter().flatten().copied().collect();
    items.sort_unstable();
    assert_eq!(items, (0..problem.items.len()).collect::<Vec<_>>());
    for pass in passes {
        assert!(!pass.is_empty());
        let demands = problem.pass(pass);
        check(&demands, &solve(&demands).expect("a pass fits"));
    }
}

fn compare(problem: &Problem) -> Result<(), TestCaseError> {
    let Some(optimum) = optimum(problem) else {
        return Ok(());
    };
    let (passes, lower_bound) = fewest(problem, THOROUGH);
    check_passes(problem, &passes);
    prop_assert!(bound::lower_bound(problem) <= optimum, "{problem:?}");
    prop_assert_eq!(passes.len(), optimum, "{:?}", problem);
    prop_assert_eq!(lower_bound, optimum, "{:?}", problem);
    let greedy = greedy::first_fit(problem);
    check_passes(problem, &greedy);
    prop_assert_eq!(greedy, parts::plain_first_fit(problem));
    if let Some(passes) = spread::spread(problem) {
        check_passes(problem, &passes);
    }
    Ok(())
}

/// Up to seven items, some of them groups, and up to one correlate.
fn any_problem(counters: u32, groups: bool) -> impl Strategy<Value = Problem> {
    let most = if groups { 3_usize } else { 1 };
    let sizes = prop::collection::vec(1..=most, 1..=7);
    let correlate = prop::option::weighted(0.3, any_demand(counters));
    (sizes, correlate)
        .prop_flat_map(move |(sizes, correlate)| {
            let count = sizes.iter().sum::<usize>();
            let demands = prop::collection::vec(any_demand(counters), count);
            (demands, Just(sizes), Just(correlate))
        })
        .prop_map(|(mut demands, sizes, correlate)| {
            let mut next = 0;
            let items = sizes
                .iter()
                .map(|size| {
                    next += size;
                    (next - size..next).collect()
                })
                .collect();
            let correlates = correlate.iter().map(|_| demands.len()).collect();
            demands.extend(correlate);
            Problem { demands, items, correlates }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn n2_passes_equal_the_optimum_for_single_requests(problem in any_problem(4, false)) {
        compare(&problem)?;
    }

    #[test]
    fn n2_passes_equal_the_optimum_with_groups(problem in any_problem(4, true)) {
        compare(&problem)?;
    }

}

proptest! {
    // Lists of a hundred requests take their time.
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn m4_long_lists_are_spread_evenly_and_the_correlate_is_in_every_pass(
        demands in prop::collection::vec(any_demand(6), 1..120),
        correlate in 1_u64..63
    ) {
        // Without pairs and without MSRs the quick way is exact, and proves it.
        let plain = |d: Demand| d.is_plain() || d.alone && d.ways[0].msr.is_none();
        let way = |units| crate::assign::demand::Way { units, msr: None };
        let fixed = 1 << 50;
        let mut demands: Vec<Demand> = demands.into_iter().filter(|d| plain(d.clone())).collect();
        let items = (0..demands.len()).map(|number| vec![number]).collect();
        demands.push(Demand::of(vec![way(correlate | fixed)], false, false));
        let correlates = vec![demands.len() - 1];
        let problem = Problem { demands, items, correlates };
        let passes = spread::spread(&problem).expect("single requests");
        check_passes(&problem, &passes);
        prop_assert_eq!(passes.len(), bound::lower_bound(&problem));
    }
}

/// Two correlates leave four of six counters: 18 plain requests and two that want an MSR each in a pass of its own.
#[test]
fn m4_two_correlates_are_in_every_pass_of_a_list_with_msrs() {
    let way = |msr: Option<u64>| crate::assign::demand::Way {
        units: 0x3f,
        msr: msr.map(|value| crate::msr::MsrValue { address: 1, value }),
    };
    let of = |msr| Demand::of(vec![way(msr)], false, false);
    for values in [vec![], vec![1, 2]] {
        let mut demands = vec![of(None); 20 - values.len()];
        demands.extend(values.into_iter().map(|value| of(Some(value))));
        let items = (0..20).map(|number| vec![number]).collect();
        demands.extend([of(None), of(None)]);
        let problem = Problem { demands, items, correlates: vec![20, 21] };
        let passes = spread::spread(&problem).expect("single requests");
        check_passes(&problem, &passes);
        assert_eq!((passes.len(), bound::lower_bound(&problem)), (5, 5));
    }
}

#[test]
fn the_kinds_that_real_events_have_all_sets_of_up_to_five() {
    let way = |units, msr: Option<(u32, u64)>| crate::assign::demand::Way {
        units,
        msr: msr.map(|(address, value)| crate::msr::MsrValue { address, value }),
    };
    let of = |ways: Vec<_>| Demand::of(ways, false, false);
    let kinds = [
        of(vec![way(0x3, None)]),
        of(vec![way(0x2, None)]),
        of(vec![way(1 << 48, None), way(0x3, None)]),
        of(vec![way(0x3, Some((1, 1))), way(0x3, Some((2, 1)))]),
        of(vec![way(0x3, Some((1, 2))), way(0x3, Some((2, 2)))]),
        Demand::of(vec![way(0x3, None)], false, true),
        Demand::of(vec![way(0x1, None)], true, false),
    ];
    for case in 0..7_usize.pow(5) {
        let chosen: Vec<usize> = (0..5).map(|i| case / 7_usize.pow(i) % 7).collect();
        if !chosen.is_sorted() {
            continue;
        }
        let problem = Problem {
            demands: chosen.iter().map(|kind| kinds[*kind].clone()).collect(),
            items: (0..5).map(|number| vec![number]).collect(),
            correlates: vec![],
        };
        compare(&problem).unwrap();
    }
}

#[cfg(feature = "pack")]
mod with_tables {
    use super::*;
    use crate::parse::{parse_event, parse_list};
    use crate::processor::Processor;
    use crate::test_support::{core, skylakex};

    fn set(text: &str) -> EventSet {
        let list = parse_list(text).unwrap();
        let (set, refused) =
            EventSet::from_list(&list, &skylakex(), Some(&core("skylakex"))).unwrap();
        assert_eq!(refused, []);
        set
    }

    fn names(set: &EventSet, pass: &Pass) -> Vec<String> {
        pass.requests.iter().map(|request| set.requests[*request].text.clone()).collect()
    }

    #[test]
    fn m1_what_does_not_fit_at_once_is_spread_and_told_where_it_is() {
        let set = set("cycles,instructions,uops_issued.any,r20c4,r02c4,r08c4,r40c4,r01c0");
        let plan = plan(&set, Effort::default()).unwrap();
        assert_eq!((plan.passes.len(), plan.lower_bound), (2, 2));
        assert!(plan.is_optimal());
        for request in 0..set.requests.len() {
            assert!(plan.pass_of(request).is_some());
        }
        assert_eq!(plan.pass_of(99), None);
    }

    #[test]
    fn groups_are_kept_whole_and_impossible_ones_refused_by_name() {
        let set = set("{r20c4,r02c4,r08c4},{r40c4,uops_issued.any,r01c0},{r01c0:u,cycles,r01c0:k}");
        let plan = plan(&set, Effort::default()).unwrap();
        assert_eq!(plan.passes.len(), 2);
        let first = names(&set, &plan.passes[0]);
        assert_eq!(first.len(), 3);
        assert_eq!(plan.refused.len(), 1);
        let refused = &plan.refused[0];
        assert_eq!(refused.item, 2);
        let numbers: Vec<usize> = refused.conflict.requests.iter().map(|r| r.0).collect();
        assert_eq!(numbers, [6, 8]);
        assert!(refused.to_string().starts_with("r01c0:u, r01c0:k cannot"), "{refused}");
    }

    #[test]
    fn m4_correlates_are_in_every_pass() {
        let mut set = set("r20c4,r02c4,r08c4,r40c4,r04c4,r10c4,uops_issued.any");
        let correlate = parse_event("cycles:c=1").unwrap();
        set.add_correlate(&correlate, &skylakex(), Some(&core("skylakex"))).unwrap();
        let planned = plan(&set, Effort::default()).unwrap();
        // Three of four counters are left.
        assert_eq!((planned.passes.len(), planned.is_optimal()), (3, true));
        for pass in &planned.passes {
            assert_eq!(names(&set, pass).last().unwrap(), "cycles:c=1");
        }
        // Correlates that exclude each other leave nothing to plan.
        for text in ["r01c0:u", "r01c0:k"] {
            let request = parse_event(text).unwrap();
            set.add_correlate(&request, &skylakex(), Some(&core("skylakex"))).unwrap();
        }
        let error = plan(&set, Effort::default()).unwrap_err().to_string();
        assert!(error.contains("in every pass, but r01c0:u, r01c0:k cannot"), "{error}");
    }

    #[test]
    fn m1_the_rest_of_a_list_goes_on_without_what_cannot_be_had() {
        let list = parse_list("cycles,no_such_event,{instructions,r20c4:c=300,r20c4}").unwrap();
        let (set, refused) =
            EventSet::from_list(&list, &skylakex(), Some(&core("skylakex"))).unwrap();
        assert_eq!(set.items, [vec![0], vec![1, 2]]);
        assert_eq!(refused.iter().map(|e| e.at).collect::<Vec<_>>(), [7, 35]);
        let mixed = parse_list("cpu_core/event=1/,cpu_atom/event=1/").unwrap();
        assert!(EventSet::from_list(&mixed, &skylakex(), None).is_err());
    }

    #[test]
    fn n2_every_event_of_every_table_is_planned_in_the_fewest_passes() {
        let mut tables = 0;
        for core in crate::test_support::tables().cores() {
            let processor = Processor::described_by(&core);
            let names = core.events().map(|event| event.name.to_string());
            let requests = names
                .filter_map(|name| crate::test_support::on(&processor, Some(&core), &name).ok());
            let mut set = EventSet::default();
            requests.for_each(|request| {
                set.add(request);
            });
            let plan = plan(&set, Effort { sets: 0 }).unwrap();
            assert_eq!(plan.refused, [], "{}", core.name());
            let planned: usize = plan.passes.iter().map(|pass| pass.requests.len()).sum();
            assert_eq!(planned, set.requests.len());
            println!(
                "{}: {} events in {} passes, at least {}",
                core.name(),
                set.requests.len(),
                plan.passes.len(),
                plan.lower_bound
            );
            tables += usize::from(plan.is_optimal());
        }
        assert_eq!(tables, 62, "each with the proof that fewer would not do");
    }
}
