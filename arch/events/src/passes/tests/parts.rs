//! Parts of the planner, each by itself.

use super::*;

/// A request on these units of no MSR; `beside`: whether its neighbour is taken with it.
fn on(units: u64, merge: bool) -> Demand {
    Demand::of(vec![crate::assign::demand::Way { units, msr: None }], merge, false)
}

/// A request on four counters whose MSRs of these addresses hold `value`.
fn valued(addresses: &[u32], value: u64) -> Demand {
    let way = |address: &u32| crate::assign::demand::Way {
        units: 0xf,
        msr: Some(crate::msr::MsrValue { address: *address, value }),
    };
    Demand::of(addresses.iter().map(way).collect(), false, false)
}

fn singles(demands: Vec<Demand>) -> Problem {
    Problem { items: (0..demands.len()).map(|n| vec![n]).collect(), demands, correlates: vec![] }
}

/// Groups that exclude each other need a pass each, though their requests alone would need fewer.
#[test]
fn n2_items_that_exclude_each_other_bound_the_passes() {
    let items: Vec<Vec<usize>> = (0..4).map(|n| (3 * n..3 * n + 3).collect()).collect();
    let problem = Problem { demands: vec![on(0xf, false); 12], items, correlates: vec![] };
    assert_eq!(bound::lower_bound(&problem), 4);
    assert_eq!(optimum(&problem), Some(4));
}

/// Each value of an MSR has a pass of its own, whatever the counters have room for.
#[test]
fn n2_values_of_one_msr_are_spread_over_as_many_passes() {
    let problem = singles((1..=5).map(|value| valued(&[1], value)).collect());
    let passes = spread::spread(&problem).expect("single requests");
    check_passes(&problem, &passes);
    assert_eq!((passes.len(), bound::lower_bound(&problem)), (5, 5));
}

#[test]
fn the_hardest_items_come_first() {
    // A pair takes as much as two; three are more.
    let demands =
        vec![on(0xf, false), on(0x5, true), on(0xf, false), on(0xf, false), on(0xf, false)];
    let items = vec![vec![0], vec![1], vec![2, 3, 4]];
    let problem = Problem { demands, items, correlates: vec![] };
    assert_eq!(problem.hardest_first(), [2, 1, 0]);
}

#[test]
fn an_msr_has_one_bit_wherever_it_is_wanted() {
    let way = |address, value| crate::assign::demand::Way {
        units: 1,
        msr: Some(crate::msr::MsrValue { address, value }),
    };
    let two_values = Demand::of(vec![way(9, 1), way(8, 2)], false, false);
    let demands =
        vec![valued(&[7], 5), on(1, false), valued(&[8, 7], 6), valued(&[8], 7), two_values];
    let found = singles(demands).msr_values();
    assert_eq!(found, [Some((0b01, 5)), None, Some((0b11, 6)), Some((0b10, 7)), None]);
}

/// Equal requests are tried in one order alone: else this would take millions of sets.
#[test]
fn n2_that_equal_requests_do_not_fit_is_known_after_few_sets() {
    let problem = singles(vec![on(0xf, false); 13]);
    let mut budget = 1_000;
    assert!(matches!(exact::search(&problem, 3, &mut budget), exact::Outcome::Impossible));
    assert!(budget > 800, "{budget}");
    // Groups likewise, and groups that differ in one request are not equal.
    let items: Vec<Vec<usize>> = (0..9).map(|n| vec![2 * n, 2 * n + 1]).collect();
    let demands = vec![on(0x7, false); 18];
    let groups = Problem { demands, items, correlates: vec![] };
    let mut budget = 1_000;
    assert!(matches!(exact::search(&groups, 8, &mut budget), exact::Outcome::Impossible));
    assert!(budget > 900, "{budget}");
    assert!(groups.same(0, 1));
    let mut other = groups.clone();
    other.demands[3] = on(0x3, false);
    other.items[2].pop();
    assert!(!other.same(0, 1) && !other.same(0, 2) && !other.same(2, 0) && other.same(3, 4));
}

#[test]
fn lists_that_are_too_long_are_not_searched() {
    let searched = |count: usize| {
        let mut budget = 5_000;
        let problem = singles(vec![on(u64::MAX, false); count]);
        match exact::search(&problem, count, &mut budget) {
            exact::Outcome::Unknown => None,
            _ => Some(budget < 5_000),
        }
    };
    assert_eq!((searched(128), searched(129)), (Some(true), None));
}

/// What first fit leaves out for speed changes nothing.
pub(super) fn plain_first_fit(problem: &Problem) -> Vec<Vec<usize>> {
    let mut passes: Vec<Vec<usize>> = Vec::new();
    for item in problem.hardest_first() {
        let with = |pass: &Vec<usize>| [&pass[..], &[item]].concat();
        match passes.iter().position(|pass| problem.fits(&with(pass))) {
            Some(at) => passes[at].push(item),
            None => passes.push(vec![item]),
        }
    }
    passes
}

/// Passes that cannot take an item are passed over without a search: these have no room, or no MSR.
#[test]
fn a_full_pass_is_passed_over_at_once() {
    use greedy::Filling;
    let demands = vec![
        on(0x3, false),
        on(0x3, false),
        on(0x1, false),
        on(0x4, false),
        on(0x5, true),
        valued(&[1], 1),
        valued(&[1], 2),
        valued(&[1, 2], 3),
        valued(&[2], 1),
        Demand::of(vec![crate::assign::demand::Way { units: 0xf, msr: None }], false, true),
        on(1 << 48 | 0xf, false),
        valued(&[1], 1),
    ];
    let problem = singles(demands);
    let msrs = problem.msr_values();
    let filled = |items: &[usize]| {
        let mut pass = Filling::new(&problem, &msrs);
        items.iter().for_each(|item| pass.add(&problem, &msrs, *item));
        pass
    };
    let hopeless = |items: &[usize], item| filled(items).is_hopeless(&problem, item);
    // Two on two units leave none for a third; two pairs take all four, but no fixed counter.
    assert!(hopeless(&[0, 1], 1) && !hopeless(&[0, 1], 3) && !hopeless(&[0], 1));
    assert!(hopeless(&[4, 4], 5) && !hopeless(&[4], 5) && !hopeless(&[4, 4], 10));
    // In addition to a request that is alone there are the fixed counters.
    assert!(hopeless(&[9], 0) && hopeless(&[9], 9) && !hopeless(&[9], 10) && !hopeless(&[0], 9));
    let lacks = |items: &[usize], item| filled(items).lacks_msrs(&problem, &msrs, item);
    // Another value is in its only MSR; one of two is enough; the same value again takes no other.
    assert!(lacks(&[5], 6) && !lacks(&[5], 11) && !lacks(&[5], 7) && !lacks(&[5], 0));
    assert!(lacks(&[5, 6], 7), "both values compete for what it wants: nothing holds three in two");
    assert!(!lacks(&[5, 8], 7), "the same value in both is counted once");
    assert!(!lacks(&[7], 5), "what may be in the other MSR does not stand in the way");
}

#[test]
fn a_plan_is_optimal_if_it_has_no_more_passes_than_it_must() {
    let plan = |lower_bound| Plan { passes: vec![], lower_bound, refused: vec![] };
    assert!(plan(0).is_optimal() && !plan(1).is_optimal());
}
