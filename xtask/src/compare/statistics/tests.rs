use super::*;
use proptest::prelude::*;

/// Two-sided p of the test, from its definition: over every way to deal the values out to two lots of these sizes, how
/// often the number of pairs in which the new one is greater is as far from its mean.
fn p_by_counting(old: &[f64], new: &[f64]) -> f64 {
    let greater = |old: &[f64], new: &[f64]| {
        new.iter().map(|new| old.iter().filter(|old| new > *old).count()).sum::<usize>()
    };
    let all = [old, new].concat();
    let pairs = old.len() * new.len();
    let far = |count: usize| count.min(pairs - count);
    let seen = far(greater(old, new));
    let (mut ways, mut as_far) = (0, 0);
    for dealt in 0u32..1 << all.len() {
        if dealt.count_ones() as usize != old.len() {
            continue;
        }
        let (to_old, to_new): (Vec<_>, Vec<_>) =
            all.iter().enumerate().partition(|(index, _)| dealt & (1 << index) != 0);
        let values =
            |lot: Vec<(usize, &f64)>| lot.into_iter().map(|(_, value)| *value).collect::<Vec<_>>();
        ways += 1;
        as_far += usize::from(far(greater(&values(to_old), &values(to_new))) <= seen);
    }
    as_far as f64 / f64::from(ways)
}

/// Greatest U that is significant, two-sided, as printed tables of the test have it.
#[test]
fn ranks_are_those_of_printed_tables() {
    for (alpha, runs, greatest) in [
        (0.05, [4, 4], Some(0)),
        (0.05, [5, 5], Some(2)),
        (0.05, [8, 8], Some(13)),
        (0.05, [10, 10], Some(23)),
        (0.05, [20, 20], Some(127)),
        (0.05, [3, 3], None),
        (0.01, [5, 5], Some(0)),
        (0.01, [10, 10], Some(16)),
        (0.01, [20, 20], Some(105)),
        (0.01, [4, 4], None),
    ] {
        let rank = Test::new(1.0 - alpha, 1).rank(runs[0], runs[1]);
        assert_eq!(rank, greatest.map_or(0, |greatest| greatest + 1), "{alpha} {runs:?}");
    }
}

#[test]
fn the_distribution_is_one_and_symmetric() {
    for (few, many) in [(1, 1), (3, 7), (10, 10), (40, 60)] {
        let all = distribution(few, many);
        assert_eq!(all.len(), few * many + 1);
        assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(all.iter().zip(all.iter().rev()).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    // 2 of 4 places: 6 ways, of which one is the least.
    assert!((distribution(2, 2)[0] - 1.0 / 6.0).abs() < 1e-15);
}

#[test]
fn the_normal_distribution_takes_over_where_it_is_close() {
    for half in [0.025, 0.005, 0.000_05] {
        let (exact, normal) = (exact_rank((100, 100), half), normal_rank((100, 100), half));
        assert!(exact.abs_diff(normal) <= exact / 50, "{half}: {exact} {normal}");
    }
    // The tenth of a percent with which five and five runs can show something at all.
    assert_eq!(normal_rank((3, 3), 0.000_1), 0);
}

#[test]
fn an_interval_lies_around_the_shift_and_widens_with_the_confidence() {
    let old: Vec<f64> = (0..10).map(f64::from).collect();
    let new: Vec<f64> = old.iter().map(|value| value + 100.0).collect();
    let at = |confidence, figures| Test::new(confidence, figures).shift(&old, &new);
    let (narrow, wide) = (at(0.95, 1), at(0.95, 100));
    assert!(narrow.low > 90.0 && narrow.low < 100.0, "{narrow:?}");
    assert!((narrow.low + narrow.high - 200.0).abs() < 1e-9, "{narrow:?}");
    assert!(wide.low < narrow.low && wide.high > narrow.high, "{wide:?}");
    let few = Test::new(0.95, 1).shift(&old[..3], &new[..3]);
    assert!(few.is_unbounded());
}

#[test]
fn ranges_contain_what_the_runs_would_show() {
    let (old, new) = ([1.0, 4.0, 2.0, 3.0, 2.5], [9.0, 8.0, 11.0, 10.0, 9.5]);
    let mut test = Test::new(0.95, 1);
    let of_runs = test.shift(&old, &new);
    let of_ranges = test.shift_of_ranges(([1.0, 4.0], 5), ([8.0, 11.0], 5));
    assert_eq!(of_ranges, Interval { low: 4.0, high: 10.0 });
    assert!(of_ranges.low <= of_runs.low && of_runs.high <= of_ranges.high);
    assert!(test.shift_of_ranges(([1.0, 4.0], 2), ([8.0, 11.0], 2)).is_unbounded());
}

proptest! {
    /// The interval leaves 0 out exactly if the test, made by counting, rejects that nothing has shifted.
    #[test]
    fn it_decides_as_the_test_does(
        lots in proptest::collection::btree_set(0i32..100_000, 9..12), cut in 4usize..6, stride in 2usize..5
    ) {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (index, value) in lots.into_iter().map(f64::from).enumerate() {
            // Interleaved, or more and more apart.
            let to_old = index % stride == 0 || stride == 4;
            if to_old && old.len() < cut { old.push(value) } else { new.push(value) }
        }
        let p = p_by_counting(&old, &new);
        for confidence in [0.801, 0.951, 0.991] {
            let interval = Test::new(confidence, 1).shift(&old, &new);
            let rejects = interval.low > 0.0 || interval.high < 0.0;
            prop_assert_eq!(rejects, p <= 1.0 - confidence, "{} {} {:?}", p, confidence, interval);
        }
    }

    #[test]
    fn the_other_way_round_it_is_the_same_with_the_other_sign(
        old in proptest::collection::vec(-50i32..50, 1..30), new in proptest::collection::vec(-50i32..50, 1..30)
    ) {
        let floats = |all: Vec<i32>| all.into_iter().map(f64::from).collect::<Vec<_>>();
        let (old, new) = (floats(old), floats(new));
        let mut test = Test::new(0.95, 3);
        let (there, back) = (test.shift(&old, &new), test.shift(&new, &old));
        prop_assert_eq!((there.low, there.high), (-back.high, -back.low));
        prop_assert!(there.low <= there.high);
    }

    /// Lots of the same values show nothing.
    #[test]
    fn equal_lots_show_no_shift(values in proptest::collection::vec(-50i32..50, 1..30)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let interval = Test::new(0.9, 1).shift(&values, &values);
        prop_assert!(interval.low <= 0.0 && interval.high >= 0.0);
    }
}
