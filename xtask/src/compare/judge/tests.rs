use super::*;
use proptest::prelude::*;

fn figure(value: f64, spread: Spread, worse: Worse) -> Figure {
    let (name, unit, event, period) = ("x".to_string(), "events", None, None);
    Figure { name, unit, value, whole: None, spread, event, period, worse }
}

fn exact(value: f64, worse: Worse) -> Figure {
    figure(value, Spread::Exact(10), worse)
}

fn runs(middle: f64, worse: Worse) -> Figure {
    figure(middle, Spread::Runs((0..10).map(|run| middle + f64::from(run) - 4.5).collect()), worse)
}

fn by(by: f64) -> Option<Limit> {
    Some(Limit { by: Some(by), ..Limit::default() })
}

fn of(old: &Figure, new: &Figure, limit: Option<Limit>) -> Outcome {
    compare(old, new, limit, &mut Test::new(0.99, 1)).outcome
}

#[test]
fn x4_exact_figures_may_not_change_at_all_unless_a_limit_lets_them() {
    for (worse, change, limit, outcome) in [
        (Worse::More, 0.0, None, Outcome::Equal),
        (Worse::More, 1e-9, None, Outcome::Worse),
        (Worse::More, -1.0, None, Outcome::Better),
        (Worse::Less, -1.0, None, Outcome::Worse),
        (Worse::Less, 1.0, None, Outcome::Better),
        (Worse::Either, 1.0, None, Outcome::Worse),
        (Worse::Either, -1.0, None, Outcome::Worse),
        (Worse::Never, 9.0, None, Outcome::Changed),
        (Worse::More, 3.0, by(3.0), Outcome::WithinLimit),
        (Worse::More, 3.01, by(3.0), Outcome::Worse),
        (Worse::More, -3.0, by(3.0), Outcome::WithinLimit),
        (Worse::More, -3.01, by(3.0), Outcome::Better),
        (Worse::Either, -3.0, by(3.0), Outcome::WithinLimit),
    ] {
        let seen = of(&exact(100.0, worse), &exact(100.0 + change, worse), limit);
        assert_eq!(seen, outcome, "{worse} {change} {limit:?}");
    }
    let percent = Some(Limit { percent: Some(5.0), worse: Some(Worse::Less), by: None });
    let (old, new) = (exact(200.0, Worse::More), exact(190.0, Worse::More));
    assert_eq!(of(&old, &new, percent), Outcome::WithinLimit);
    assert_eq!(of(&old, &exact(189.9, Worse::More), percent), Outcome::Worse);
}

/// A hash that a task computed, say: 64-bit floating point has the same number for both.
#[test]
fn x4_whole_numbers_of_64_bits_are_compared_as_such() {
    let of_whole = |whole: u64| Figure {
        whole: Some(whole),
        ..figure(whole as f64, Spread::Unknown("it is from one run"), Worse::Either)
    };
    let old = of_whole((1 << 53) + 1);
    for (new, change) in [((1 << 53) + 1, 0.0), (1 << 53, -1.0), ((1 << 53) + 2, 1.0)] {
        let compared = compare(&old, &of_whole(new), None, &mut Test::new(0.99, 1));
        let outcome = if change == 0.0 { Outcome::Equal } else { Outcome::Undecided };
        assert_eq!((compared.outcome, compared.change), (outcome, change), "{new}");
    }
}

#[test]
fn x4_figures_that_vary_change_only_by_more_than_their_runs_do() {
    let old = runs(100.0, Worse::More);
    let told = |by| compare(&old, &runs(100.0 + by, Worse::More), None, &mut Test::new(0.99, 1));
    assert_eq!(told(1.0).outcome, Outcome::NoChangeShown);
    let worse = told(8.0);
    assert_eq!(worse.outcome, Outcome::Worse);
    let [low, high] = worse.interval.unwrap();
    assert!(low > 0.0 && low < 8.0 && high > 8.0, "{worse:?}");
    assert_eq!(told(-8.0).outcome, Outcome::Better);
    // The whole interval must be beyond a limit.
    assert_eq!(of(&old, &runs(108.0, Worse::More), by(low - 0.01)), Outcome::Worse);
    assert_eq!(of(&old, &runs(108.0, Worse::More), by(low)), Outcome::WithinLimit);
    assert_eq!(of(&old, &runs(108.0, Worse::Never), None), Outcome::Changed);
    // One side of it may be exact.
    assert_eq!(
        of(&exact(100.0, Worse::More), &runs(100.0, Worse::More), None),
        Outcome::NoChangeShown
    );
    assert_eq!(of(&runs(100.0, Worse::More), &exact(120.0, Worse::More), None), Outcome::Worse);
}

#[test]
fn what_the_runs_cannot_tell_is_undecided_with_the_reason() {
    let told = |old: &Figure, new: &Figure, limit| {
        let compared = compare(old, new, limit, &mut Test::new(0.99, 1));
        (compared.outcome, compared.reason.unwrap_or_default())
    };
    let range = |low: f64, high: f64| {
        figure((low + high) / 2.0, Spread::Range([low, high], 10), Worse::More)
    };
    let (outcome, reason) = told(&range(1.0, 5.0), &range(4.0, 8.0), None);
    assert!(outcome == Outcome::Undecided && reason.contains("--save-baseline"), "{reason}");
    // Ranges that do not overlap are as far apart as runs can be.
    assert_eq!(told(&range(1.0, 3.0), &range(4.0, 8.0), None).0, Outcome::Worse);
    let few = |middle: f64| figure(middle, Spread::Runs(vec![middle, middle + 1.0]), Worse::More);
    let (outcome, reason) = told(&few(1.0), &few(90.0), None);
    assert!(outcome == Outcome::Undecided && reason.contains("too few runs"), "{reason}");
    let once = |value| figure(value, Spread::Unknown("it is from one run"), Worse::More);
    let (outcome, reason) = told(&once(1.0), &once(2.0), None);
    assert!(
        outcome == Outcome::Undecided && reason.contains("one run; a limit would judge it"),
        "{reason}"
    );
    assert_eq!(told(&once(1.0), &once(1.0), None).0, Outcome::Equal);
    assert_eq!(told(&once(1.0), &once(2.0), by(0.5)).0, Outcome::Worse);
    assert_eq!(told(&once(1.0), &once(2.0), by(1.0)).0, Outcome::WithinLimit);
    let only_worse = Some(Limit { worse: Some(Worse::Less), ..Limit::default() });
    assert_eq!(told(&once(1.0), &once(2.0), only_worse).0, Outcome::Undecided);
}

fn any_figure() -> impl Strategy<Value = Figure> {
    let value = (-40i32..40).prop_map(f64::from);
    let values = proptest::collection::vec(-40i32..40, 2..25);
    let spread = prop_oneof![
        (1u32..20).prop_map(Spread::Exact),
        values.prop_map(|all| Spread::Runs(all.into_iter().map(f64::from).collect())),
        (-40i32..0, 1i32..40, 1u32..20)
            .prop_map(|(low, high, runs)| Spread::Range([low.into(), high.into()], runs)),
        Just(Spread::Unknown("why")),
    ];
    let worse =
        prop_oneof![Just(Worse::More), Just(Worse::Less), Just(Worse::Either), Just(Worse::Never)];
    (value, spread, worse).prop_map(|(value, spread, worse)| figure(value, spread, worse))
}

fn mirrored(outcome: Outcome, worse: Worse) -> Outcome {
    match outcome {
        Outcome::Worse if worse != Worse::Either => Outcome::Better,
        Outcome::Better => Outcome::Worse,
        other => other,
    }
}

proptest! {
    /// With an absolute limit, the other way round everything has the other sign.
    #[test]
    fn comparing_is_antisymmetric(old in any_figure(), new in any_figure(), limit in 0u32..20) {
        let new = Figure { worse: old.worse, ..new };
        let limit = (limit > 0).then_some(Limit { by: Some(limit.into()), ..Limit::default() });
        let mut test = Test::new(0.95, 2);
        let (there, back) = (compare(&old, &new, limit, &mut test), compare(&new, &old, limit, &mut test));
        prop_assert_eq!(there.change, -back.change);
        prop_assert_eq!(there.interval, back.interval.map(|[low, high]| [-high, -low]));
        prop_assert_eq!(there.outcome, mirrored(back.outcome, old.worse));
    }

    #[test]
    fn a_figure_does_not_differ_from_itself(one in any_figure(), limit in 0u32..3) {
        let limit = (limit > 0).then_some(Limit { by: Some(limit.into()), ..Limit::default() });
        let compared = compare(&one, &one, limit, &mut Test::new(0.95, 2));
        prop_assert!(matches!(
            compared.outcome, Outcome::Equal | Outcome::NoChangeShown | Outcome::Undecided
        ), "{:?}", compared);
        prop_assert!(compared.outcome != Outcome::Undecided || !matches!(one.spread, Spread::Exact(_) | Spread::Unknown(_)));
    }

    /// A wider limit never makes something worse that a narrow one lets pass.
    #[test]
    fn wider_limits_let_more_pass(old in any_figure(), new in any_figure(), narrow in 0u32..20, more in 0u32..20) {
        let mut test = Test::new(0.95, 2);
        let limit = |by: u32| Some(Limit { by: Some(by.into()), ..Limit::default() });
        let wide = compare(&old, &new, limit(narrow + more), &mut test);
        let narrow = compare(&old, &new, limit(narrow), &mut test);
        prop_assert!(wide.outcome != Outcome::Worse || narrow.outcome == Outcome::Worse);
    }
}
