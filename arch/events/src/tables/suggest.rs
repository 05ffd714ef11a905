//! What a misspelled name may have meant.

use super::fold::folded;
use alloc::vec::Vec;

/// Longer names are not compared: no event's name comes near it.
const MOST_BYTES: usize = 128;

/// Up to `most` of `names`, the likeliest first. Names that begin with what was typed, or contain
/// it, come before names that are a few letters away.
#[must_use]
pub fn nearest<'n>(names: impl Iterator<Item = &'n str>, typed: &str, most: usize) -> Vec<&'n str> {
    let typed: Vec<u8> = folded(typed).take(MOST_BYTES + 1).collect();
    if typed.is_empty() || typed.len() > MOST_BYTES {
        return Vec::new();
    }
    // A third of the letters wrong is as far as a guess goes.
    let limit = typed.len() / 3 + 1;
    let mut best: Vec<((u8, usize), &str)> = Vec::new();
    let mut name_bytes = Vec::new();
    for name in names {
        name_bytes.clear();
        name_bytes.extend(folded(name));
        let far = best
            .get(most.saturating_sub(1))
            .map_or(usize::MAX, |(rank, _)| if rank.0 == 2 { rank.1 } else { 0 });
        let longer = name_bytes.len().saturating_sub(typed.len());
        let rank = if name_bytes.starts_with(&typed) {
            (0, longer)
        } else if name_bytes.windows(typed.len()).any(|part| part == typed) {
            (1, longer)
        } else {
            match distance(&typed, &name_bytes, limit.min(far)) {
                Some(distance) => (2, distance),
                None => continue,
            }
        };
        let place = best.partition_point(|(other, _)| *other <= rank);
        best.insert(place, (rank, name));
        best.truncate(most);
    }
    best.into_iter().map(|(_, name)| name).collect()
}

/// Letters to insert, delete, replace or swap with their neighbour to make `b` out of `a`, or
/// `None` if that is more than `limit` (optimal string alignment).
fn distance(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || b.len() > MOST_BYTES {
        return None;
    }
    let mut rows = [[0_usize; MOST_BYTES + 1]; 3];
    for (column, cell) in rows[0].iter_mut().enumerate() {
        *cell = column;
    }
    for (i, &x) in a.iter().enumerate() {
        let (new, last, before) = ((i + 1) % 3, i % 3, (i + 2) % 3);
        rows[new][0] = i + 1;
        let mut smallest = rows[new][0];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (rows[last][j] + usize::from(x != y))
                .min(rows[last][j + 1] + 1)
                .min(rows[new][j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(rows[before][j - 1] + 1);
            }
            rows[new][j + 1] = cost;
            smallest = smallest.min(cost);
        }
        // A swap reaches back two rows, but the smallest cost grows by at most one a row, so it
        // cannot come back under the limit either.
        if smallest > limit {
            return None;
        }
    }
    let total = rows[a.len() % 3][b.len()];
    (total <= limit).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The textbook recursion, for comparison.
    fn slow(a: &[u8], b: &[u8]) -> usize {
        let (Some((x, a_rest)), Some((y, b_rest))) = (a.split_last(), b.split_last()) else {
            return a.len().max(b.len());
        };
        let mut cost = (slow(a_rest, b_rest) + usize::from(x != y))
            .min(slow(a_rest, b) + 1)
            .min(slow(a, b_rest) + 1);
        if let (Some((x2, a2)), Some((y2, b2))) = (a_rest.split_last(), b_rest.split_last())
            && x == y2
            && x2 == y
        {
            cost = cost.min(slow(a2, b2) + 1);
        }
        cost
    }

    #[test]
    fn beginnings_come_before_near_misses() {
        let names = ["INST_RETIRED.ANY_P", "INST_RETIRED.ANY", "INST_DECODED.ALL", "CYCLES"];
        assert_eq!(
            nearest(names.into_iter(), "inst_retired", 3),
            ["INST_RETIRED.ANY", "INST_RETIRED.ANY_P"]
        );
        assert_eq!(nearest(names.into_iter(), "inst_rteired.any", 1), ["INST_RETIRED.ANY"]);
        assert_eq!(nearest(names.into_iter(), "retired", 1), ["INST_RETIRED.ANY"]);
        assert!(nearest(names.into_iter(), "", 3).is_empty());
        assert!(nearest(names.into_iter(), "zzzzzz", 3).is_empty());
    }

    /// The longest name that is compared at all, and one longer.
    #[test]
    fn very_long_names_are_not_compared() {
        let (a, b) = ([b'a'; MOST_BYTES], [b'a'; MOST_BYTES + 1]);
        assert_eq!((distance(&a, &a, 9), distance(&a, &b, 9)), (Some(0), None));
        assert_eq!(distance(&a[..MOST_BYTES - 2], &a, 2), Some(2));
        let name = "x".repeat(MOST_BYTES);
        assert_eq!(nearest(core::iter::once(&*name), &name, 1), [&*name]);
        assert!(nearest(core::iter::once(&*name), &(name.clone() + "x"), 1).is_empty());
    }

    proptest! {
        /// Whatever is left out for speed: the first ones of all names in the order of their ranks.
        #[test]
        fn the_nearest_are_the_first_of_all(
            names in prop::collection::vec("[ab]{1,6}", 0..9),
            typed in "[ab]{1,7}",
            most in 0_usize..4,
        ) {
            let rank = |name: &str| {
                let longer = name.len().saturating_sub(typed.len());
                let away = slow(typed.as_bytes(), name.as_bytes());
                match () {
                    () if name.starts_with(&typed) => Some((0, longer)),
                    () if name.contains(&typed) => Some((1, longer)),
                    () => (away <= typed.len() / 3 + 1).then_some((2, away)),
                }
            };
            let mut all: Vec<(_, &str)> =
                names.iter().filter_map(|name| Some((rank(name)?, name.as_str()))).collect();
            all.sort_by_key(|(rank, _)| *rank);
            let first: Vec<&str> = all.iter().map(|(_, name)| *name).take(most).collect();
            prop_assert_eq!(nearest(names.iter().map(String::as_str), &typed, most), first);
        }

        #[test]
        fn distance_equals_the_textbook(a in "[abc]{0,6}", b in "[abc]{0,6}", limit in 0_usize..7) {
            let expected = slow(a.as_bytes(), b.as_bytes());
            let found = distance(a.as_bytes(), b.as_bytes(), limit);
            prop_assert_eq!(found, (expected <= limit).then_some(expected));
        }
    }
}
