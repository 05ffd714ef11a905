//! One figure of both reports: what it came to, and whether that is for the worse.

use super::statistics::{Interval, Test};
use crate::kinds::figures::{Figure, Spread};
use crate::limits::{Limit, Worse};
use serde::Serialize;

/// What became of a figure.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It got worse beyond its limit.
    Worse,
    /// It changed, which is neither better nor worse.
    Changed,
    /// It got better, by more than its limit is wide.
    Better,
    /// It changed within its limit.
    WithinLimit,
    /// It may have changed: what is known of the runs does not tell.
    Undecided,
    /// Nothing of it can be compared.
    NotCompared,
    /// Its runs differ, and the test does not show that they do by more than chance.
    NoChangeShown,
    /// It is the same.
    Equal,
}

/// A figure, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What became of it.
    pub outcome: Outcome,
    /// The new value less the old one.
    pub change: f64,
    /// From the least to the greatest change that the runs do not contradict; absent for exact figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// What is worse.
    pub worse: Worse,
    /// By how much it may get worse.
    pub limit: f64,
    /// Why the outcome is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Most values that stand for the runs of a figure that was the same in all of them.
const MAX_EQUAL_RUNS: u32 = 1_000;

/// Whether the test has to decide.
#[must_use]
pub fn is_noisy(old: &Figure, new: &Figure) -> bool {
    let noisy = |one: &Figure| matches!(one.spread, Spread::Runs(_) | Spread::Range(..));
    let unknown = |one: &Figure| matches!(one.spread, Spread::Unknown(_));
    (noisy(old) || noisy(new)) && !unknown(old) && !unknown(new)
}

/// Compares two figures of one name, unit and event.
pub fn compare(old: &Figure, new: &Figure, limit: Option<Limit>, test: &mut Test) -> Compared {
    let worse = limit.and_then(|limit| limit.worse).unwrap_or(new.worse);
    let allowed = limit.unwrap_or_default().allowed(old.value);
    let change = match (old.whole, new.whole) {
        // Different ones may have the same value.
        (Some(old), Some(new)) => (i128::from(new) - i128::from(old)) as f64,
        _ => new.value - old.value,
    };
    let compared = |outcome, interval: Option<Interval>, reason| {
        let interval = interval.map(|Interval { low, high }| [low, high]);
        Compared { outcome, change, interval, worse, limit: allowed, reason }
    };
    let exact = Interval { low: change, high: change };
    if is_noisy(old, new) {
        let interval = shift(old, new, test);
        if interval.is_unbounded() {
            let text = "there are too few runs for the requested confidence".to_string();
            return compared(Outcome::Undecided, None, Some(text));
        }
        let outcome = judge(interval, allowed, worse);
        let ranges = [old, new].iter().any(|one| matches!(one.spread, Spread::Range(..)));
        if outcome == Outcome::NoChangeShown && ranges {
            let text = "only the minimum and maximum of the runs are known, and they overlap; --values, or \
                        --save-baseline, keeps each run";
            return compared(Outcome::Undecided, Some(interval), Some(text.to_string()));
        }
        return compared(outcome, Some(interval), None);
    }
    let unknown = [old, new].into_iter().find_map(|one| match one.spread {
        Spread::Unknown(why) => Some(why),
        _ => None,
    });
    match unknown {
        // Who gives a limit says how much it may vary.
        Some(why) if change != 0.0 && !limit.is_some_and(|limit| limit.is_bound()) => {
            compared(Outcome::Undecided, None, Some(format!("{why}; a limit would judge it")))
        }
        _ => compared(judge(exact, allowed, worse), None, None),
    }
}

fn shift(old: &Figure, new: &Figure, test: &mut Test) -> Interval {
    if let (Some(old), Some(new)) = (runs(old), runs(new)) {
        return test.shift(&old, &new);
    }
    test.shift_of_ranges(range(old), range(new))
}

fn runs(figure: &Figure) -> Option<Vec<f64>> {
    match &figure.spread {
        Spread::Runs(all) => Some(all.clone()),
        Spread::Exact(runs) => Some(vec![figure.value; (*runs).min(MAX_EQUAL_RUNS) as usize]),
        Spread::Range(..) | Spread::Unknown(_) => None,
    }
}

fn range(figure: &Figure) -> ([f64; 2], usize) {
    match &figure.spread {
        Spread::Range(ends, runs) => (*ends, *runs as usize),
        Spread::Exact(runs) => ([figure.value; 2], *runs as usize),
        Spread::Runs(all) => {
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            ([least, greatest], all.len())
        }
        Spread::Unknown(_) => ([figure.value; 2], 0),
    }
}

/// What a change is that lies within an interval.
fn judge(Interval { low, high }: Interval, allowed: f64, worse: Worse) -> Outcome {
    let is_one = low > 0.0 || high < 0.0;
    // As a change for the worse.
    let [low, high] = if worse == Worse::Less { [-high, -low] } else { [low, high] };
    let beyond = low > allowed || worse == Worse::Either && high < -allowed;
    match worse {
        _ if low == 0.0 && high == 0.0 => Outcome::Equal,
        _ if !is_one => Outcome::NoChangeShown,
        Worse::Never => Outcome::Changed,
        _ if beyond => Outcome::Worse,
        Worse::More | Worse::Less if high < -allowed => Outcome::Better,
        _ => Outcome::WithinLimit,
    }
}

#[cfg(test)]
mod tests;
