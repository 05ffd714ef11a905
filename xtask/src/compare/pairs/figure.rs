//! Two figures of one name: whether they can be compared, and what they come to.

use crate::compare::FigureCompared;
use crate::compare::judge::{self, Compared, Outcome};
use crate::compare::statistics::Test;
use crate::kinds::figures::{Figure, Item, Spread, TICKS};
use crate::limits::{Limit, Worse};

/// A figure of one or both of an item, and why the two cannot be compared.
pub(in crate::compare) struct FigurePair<'a> {
    pub(super) old: Option<&'a Figure>,
    pub(super) new: Option<&'a Figure>,
    pub(super) reason: Option<String>,
}

impl<'a> FigurePair<'a> {
    /// Both figures, if they can be compared.
    pub(in crate::compare) fn both(&self) -> Option<(&'a Figure, &'a Figure)> {
        self.old.zip(self.new).filter(|_| self.reason.is_none())
    }

    /// Why the figures of these items cannot be compared.
    pub(super) fn refused(&self, was: &Item, is: &Item, ticks: Option<&str>) -> Option<String> {
        let missing = |item: &Item, which: &str, name: &str| {
            let why = item.uncounted.iter().find(|(event, _)| *event == name);
            let why = why.map_or(String::new(), |(_, why)| format!(": {why}"));
            Some(format!("the {which} report does not have this figure{why}"))
        };
        let (old, new) = match (self.old, self.new) {
            (None, Some(new)) => return missing(was, "old", &new.name),
            (Some(old), None) => return missing(is, "new", &old.name),
            (None, None) => return None,
            (Some(old), Some(new)) => (old, new),
        };
        if old.unit != new.unit {
            return Some(format!(
                "different units: {} in the old report, {} in the new one",
                old.unit, new.unit
            ));
        }
        if new.unit == TICKS {
            return ticks.map(String::from);
        }
        let counted = old.event.is_some() || new.event.is_some();
        if counted && was.emulated != is.emulated {
            let by = |emulated| if emulated { "the emulated PMU" } else { "a processor" };
            let (was, is) = (by(was.emulated), by(is.emulated));
            return Some(format!(
                "different events: counted by {was} in the old report, by {is} in the new one"
            ));
        }
        if let (Some(was), Some(is)) = (&old.event, &new.event)
            && was != is
        {
            return Some(format!("different events: {was} in the old report, {is} in the new one"));
        }
        if let (Some(was), Some(is)) = (old.period, new.period)
            && was != is
        {
            return Some(format!(
                "different periods: {was} events in the old report, {is} in the new one"
            ));
        }
        None
    }

    pub(super) fn compare(&self, limit: Option<Limit>, test: &mut Test) -> FigureCompared {
        let known = self.new.or(self.old);
        let compared = match self.both() {
            Some((old, new)) => judge::compare(old, new, limit, test),
            None => Compared {
                outcome: Outcome::NotCompared,
                change: 0.0,
                interval: None,
                worse: known.map_or(Worse::default(), |figure| figure.worse),
                limit: 0.0,
                reason: self.reason.clone(),
            },
        };
        FigureCompared {
            name: known.map(|figure| figure.name.clone()).unwrap_or_default(),
            unit: known.map_or("", |figure| figure.unit),
            old: self.old.map(|figure| figure.value),
            new: self.new.map(|figure| figure.value),
            new_range: self.new.and_then(range),
            compared,
        }
    }
}

/// Least and greatest of a figure's runs, if they vary.
fn range(figure: &Figure) -> Option<[f64; 2]> {
    match &figure.spread {
        Spread::Range(ends, _) => Some(*ends),
        Spread::Runs(all) => {
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (least < greatest).then_some([least, greatest])
        }
        Spread::Exact(_) | Spread::Unknown(_) => None,
    }
}
