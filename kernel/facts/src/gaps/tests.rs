use super::*;
use proptest::prelude::*;

/// Watches a processor whose clock has these gaps, each in front of a reading of that number; a reading takes `step`.
fn watched(threshold: u64, step: u64, readings: usize, planted: &[(usize, u64)]) -> NoiseWindow {
    let (mut number, mut clock) = (0, 5_000);
    let stolen: u64 = planted.iter().map(|(_, ticks)| ticks).sum();
    let mut gaps = Gaps::new(threshold);
    watch(&mut gaps, step * readings as u64 + stolen, || {
        let here = planted.iter().filter(|(at, _)| *at == number).map(|(_, ticks)| *ticks);
        clock += step + here.sum::<u64>();
        number += 1;
        clock
    });
    gaps.finish()
}

#[test]
fn d4_exactly_the_gaps_that_were_planted_are_found() {
    let window = watched(1000, 20, 10_000, &[(10, 1500), (700, 979), (701, 980), (9_999, 1 << 40)]);
    // A reading and a gap are one time between two readings: 979 more than 20 is just below the threshold.
    let found: Vec<(u64, u64)> = window.gaps.iter().map(|gap| (gap.at, gap.ticks)).collect();
    let first = (9 * 20, 1520);
    let second = (700 * 20 + 1500 + 979, 1000);
    let third = (9_998 * 20 + 1500 + 979 + 980, (1 << 40) + 20);
    assert_eq!(found, [first, second, third]);
    assert_eq!((window.count, window.stolen), (3, 1520 + 1000 + (1 << 40) + 20));
    assert_eq!((window.longest, window.reads), ((1 << 40) + 20, 10_000));
    assert_eq!(window.ticks, 10_000 * 20 + 1500 + 979 + 980 + (1 << 40));
    assert_eq!(window.buckets.iter().sum::<u64>(), window.reads);
    assert_eq!((window.buckets[4], window.buckets[9], window.buckets[10]), (9_996, 2, 1));
    assert_eq!((window.buckets.len(), window.buckets[40]), (41, 1));
}

#[test]
fn d4_a_quiet_processor_has_no_gap_and_its_longest_time_is_told() {
    let window = watched(1000, 20, 500, &[(3, 70)]);
    assert_eq!((window.count, window.stolen, window.longest), (0, 0, 90));
    assert_eq!((window.gaps.len(), window.reads), (0, 500));
}

#[test]
fn d4_noting_a_gap_makes_no_gap() {
    // Each reading after a gap takes 30 more, which are above the threshold with the reading itself.
    let (mut number, mut clock, mut behind) = (0, 0_u64, false);
    let mut gaps = Gaps::new(45);
    watch(&mut gaps, 20_000, || {
        number += 1;
        let planted = if number == 100 { 40 } else { 0 };
        clock += 20 + planted + if behind { 30 } else { 0 };
        behind = planted > 0;
        clock
    });
    let window = gaps.finish();
    assert_eq!((window.count, window.gaps[0].ticks, window.longest), (1, 60, 60));
}

#[test]
fn d4_more_gaps_than_are_kept_are_counted() {
    let planted: Vec<(usize, u64)> = (1..=1500).map(|at| (at, 5000)).collect();
    let window = watched(1000, 20, 2000, &planted);
    assert_eq!((window.gaps.len(), window.count, window.stolen), (KEPT, 1500, 1500 * 5020));
}

fn window(begin: u64, gaps: &[(u64, u64)]) -> NoiseWindow {
    let gaps = gaps.iter().map(|&(at, ticks)| Gap { at, ticks }).collect();
    NoiseWindow { begin, gaps, ..NoiseWindow::default() }
}

#[test]
fn d4_gaps_that_all_processors_have_at_once_are_told_from_those_of_one() {
    let first = window(1000, &[(100, 50), (500, 50), (900, 50)]);
    let second = window(1100, &[(20, 30), (390, 40), (1500, 10)]);
    let third = window(1000, &[(90, 100), (560, 50)]);
    // Of the first: 1100 to 1150 has 30 in common with the second and all of it with the third; 1500 has 30 with the second alone.
    assert_eq!(shared(&[first.clone(), second.clone()]), 2);
    assert_eq!(shared(&[first.clone(), second, third]), 1);
    assert_eq!((shared(std::slice::from_ref(&first)), shared(&[])), (0, 0));
    assert_eq!(shared(&[first, window(0, &[])]), 0);
    // One of three runs at any time, each for 10: two of them wait at once, and all of them no longer than a change of turns.
    let turns = [&[(10, 20)][..], &[(0, 11), (20, 20)], &[(0, 21), (30, 10)]];
    assert_eq!(shared(&turns.map(|gaps| window(0, gaps))), 0);
}

#[test]
fn d4_times_are_sorted_by_powers_of_two() {
    assert_eq!(buckets(&[0, 1, 2, 3, 4, 1023]), [2, 2, 1, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(buckets(&[]), [0_u64; 0]);
    assert_eq!(buckets(&[u64::MAX]).len(), 64);
}

proptest! {
    /// Whatever is planted is found, and nothing else.
    #[test]
    fn d4_what_is_planted_is_found_and_nothing_else(
        step in 1u64..60, threshold in 100u64..5_000,
        planted in prop::collection::btree_map(1usize..3_000, 1u64..20_000, 0..200),
    ) {
        let planted: Vec<(usize, u64)> = planted.into_iter().collect();
        let window = watched(threshold, step, 3_000, &planted);
        // Directly after a gap twice the threshold counts.
        let (mut expected, mut last) = (Vec::new(), None);
        for (at, ticks) in &planted {
            let behind = last.is_some_and(|last| last + 1 == *at);
            if ticks + step >= if behind { 2 * threshold } else { threshold } {
                expected.push(ticks + step);
                last = Some(*at);
            }
        }
        let found: Vec<u64> = window.gaps.iter().map(|gap| gap.ticks).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(window.count, expected.len() as u64);
        prop_assert_eq!(window.stolen, expected.iter().sum::<u64>());
        prop_assert!(window.gaps.is_sorted_by(|one, next| one.at + one.ticks <= next.at));
    }
}
