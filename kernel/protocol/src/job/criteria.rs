//! What an item has to come to, so that it passes.
//!
//! A job says it, the host and the firmware judge by it ([`mod@crate::verdict`]).

use crate::job::limits::{LimitError, MAX_EVENT_BYTES, length, range};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Expectations of one item.
pub const MAX_EXPECTATIONS: usize = 100;
/// Longest name of a figure, in bytes: an event, and a task or a set beside it.
const MAX_FIGURE_BYTES: usize = MAX_EVENT_BYTES + 500;

/// What an item has to come to. The default expects nothing, and that all events that it asks for are counted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Criteria<'a> {
    /// Bounds of its figures.
    #[serde(borrow)]
    pub expect: Vec<Expect<'a>>,
    /// Whether it passes although events that it asks for were not counted. What is expected of these is not judged then.
    pub allow_uncounted: bool,
}

/// Bounds of one figure.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Expect<'a> {
    /// Its name, as [`crate::record::figures`] gives it: [`TSC`], or an event in the job's words.
    #[serde(borrow)]
    pub figure: Cow<'a, str>,
    /// What it has to lie within.
    pub bounds: Bounds,
}

/// The figure that every snippet has: ticks of the time stamp counter per execution of the body.
pub const TSC: &str = "tsc";

/// Inclusive bounds, of which one may be absent.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Bounds {
    /// Least value that passes.
    pub min: Option<f64>,
    /// Greatest value that passes.
    pub max: Option<f64>,
}

impl Bounds {
    /// One value and no other.
    #[must_use]
    pub fn exactly(value: f64) -> Self {
        Self::between(value, value)
    }

    /// Both bounds.
    #[must_use]
    pub fn between(min: f64, max: f64) -> Self {
        Self { min: Some(min), max: Some(max) }
    }

    /// Whether `value` lies within the bounds. What is not a number does not.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
            && !value.is_nan()
    }

    /// The same of a whole number. From 2^53 on, several have the same `value`, and not all of them lie within the bounds.
    #[must_use]
    pub fn holds_whole(&self, whole: u64) -> bool {
        let value = whole as f64;
        // 2^64 becomes the greatest number that there is; no other value does.
        let rounded = value as u64;
        let is_less = whole < rounded || rounded == u64::MAX;
        self.holds(value)
            && (whole <= rounded || self.max != Some(value))
            && (!is_less || self.min != Some(value))
    }
}

/// `3`, `3 to 5`, `at least 3`, `at most 5`.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "{min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("anything"),
        }
    }
}

/// Checks the bounds of all expectations.
///
/// # Errors
/// The first one that no value can meet, or that is too long.
pub fn check(criteria: &Criteria) -> Result<(), LimitError> {
    let count = criteria.expect.len() as u64;
    range("the number of expectations", count, 0, MAX_EXPECTATIONS as u64)?;
    for Expect { figure, bounds } in &criteria.expect {
        length("the name of an expected figure", figure.len(), MAX_FIGURE_BYTES)?;
        for (field, value) in [("min", bounds.min), ("max", bounds.max)] {
            if value.is_some_and(|value| !value.is_finite()) {
                return Err(LimitError::NotFinite(figure.as_ref().into(), field));
            }
        }
        match (bounds.min, bounds.max) {
            (None, None) => return Err(LimitError::NothingExpected(figure.as_ref().into())),
            (Some(min), Some(max)) if min > max => {
                return Err(LimitError::EmptyExpectation {
                    figure: figure.as_ref().into(),
                    min,
                    max,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn bounds_hold_at_their_ends_and_say_what_they_are() {
        let open = Bounds { min: Some(2.0), max: None };
        let seen = [1.9, 2.0, 1e300].map(|value| open.holds(value));
        assert_eq!(seen, [false, true, true]);
        let least = Bounds { min: None, max: Some(-1.0) };
        assert_eq!([-1.0, -0.9].map(|value| least.holds(value)), [true, false]);
        assert!(!Bounds::default().holds(f64::NAN) && !Bounds::exactly(1.0).holds(f64::NAN));
        let texts = [Bounds::exactly(3.0), Bounds::between(2.9, 3.1), open, least];
        let texts = texts.map(|bounds| bounds.to_string());
        assert_eq!(texts, ["3", "2.9 to 3.1", "at least 2", "at most -1"]);
    }

    /// Also where the next bound is 2^64, which no 64 bits are.
    #[test]
    fn c7_whole_numbers_that_round_to_a_bound_are_told_from_it() {
        let largest = 1_u64 << 53;
        let exactly = |bound: u64| Bounds::exactly(bound as f64);
        let seen = [largest - 1, largest, largest + 1].map(|one| exactly(largest).holds_whole(one));
        assert_eq!(seen, [false, true, false]);
        let seen = [largest + 3, largest + 4, largest + 5]
            .map(|one| exactly(largest + 4).holds_whole(one));
        assert_eq!(seen, [false, true, false]);
        let most = Bounds { min: None, max: Some(largest as f64) };
        let least = Bounds { min: Some(u64::MAX as f64), max: None };
        assert!(most.holds_whole(0) && !most.holds_whole(largest + 1));
        assert!(!least.holds_whole(u64::MAX) && Bounds::default().holds_whole(u64::MAX));
    }

    #[test]
    fn c7_an_expectation_that_nothing_can_meet_is_refused_by_name() {
        let refused = |bounds| {
            let expect = Vec::from([Expect { figure: "loads".into(), bounds }]);
            check(&Criteria { expect, allow_uncounted: false }).map_err(|error| error.to_string())
        };
        assert_eq!(refused(Bounds::exactly(0.0)), Ok(()));
        for (bounds, part) in [
            (Bounds::between(2.0, 1.0), "expects `loads` to be at least 2 and at most 1"),
            (Bounds::default(), "expects nothing of `loads`"),
            (Bounds::exactly(f64::INFINITY), "min of `loads` is not a finite number"),
            (Bounds { min: None, max: Some(f64::NAN) }, "max of `loads`"),
        ] {
            let error = refused(bounds).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let one = Expect { figure: "x".into(), bounds: Bounds::exactly(1.0) };
        let many =
            Criteria { expect: alloc::vec![one; MAX_EXPECTATIONS + 1], ..Criteria::default() };
        assert!(check(&many).unwrap_err().to_string().contains("is 101"));
    }

    prop_compose! {
        fn any_expect()(figure in ".{0,20}", min: Option<f64>, max: Option<f64>) -> Expect<'static> {
            Expect { figure: Cow::Owned(figure), bounds: Bounds { min, max } }
        }
    }

    prop_compose! {
        pub fn any_criteria()(
            expect in prop::collection::vec(any_expect(), 0..4), allow_uncounted: bool,
        ) -> Criteria<'static> {
            Criteria { expect, allow_uncounted }
        }
    }

    /// An event of 1000 bytes, and the name of a task or a set beside it.
    #[test]
    fn the_longest_name_of_a_figure_is_an_event_and_500_bytes() {
        assert_eq!(MAX_FIGURE_BYTES, 1500);
    }
}
