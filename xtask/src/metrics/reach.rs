//! How far a metric reaches if its counts were others.

/// Counts that are combined at most: as many as there are counters on any processor.
pub(super) const MOST: usize = 12;

/// From the least to the greatest of `value` and what `with` gives for each combination of `counts` counts, of which bit N says that
/// count N is the other one. A combination without a value has no part in it.
#[must_use]
pub(super) fn of(value: f64, counts: usize, mut with: impl FnMut(u32) -> Option<f64>) -> [f64; 2] {
    let others = (0..1_u32 << counts.min(MOST)).filter_map(&mut with);
    others.fold([value; 2], |[least, most], other| [least.min(other), most.max(other)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_a_spread_has_every_combination_and_the_value_itself() {
        let of_two = |combination: u32| (combination != 3).then_some(f64::from(combination) - 1.0);
        assert_eq!(of(5.0, 2, of_two), [-1.0, 5.0]);
        assert_eq!(of(2.0, 0, |_| None), [2.0, 2.0]);
    }
}
