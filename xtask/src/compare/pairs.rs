//! Which items and figures of two reports belong together.

use super::error::CompareError;
use super::figures::{Figure, Item, Spread, TICKS};
use super::judge::{self, Compared, Outcome};
use super::limits::{LimitTable, Limits, Worse};
use super::saved::{Failed, Saved};
use super::statistics::Test;
use super::{FigureCompared, ItemCompared, ItemState};
use std::collections::{HashMap, VecDeque};

/// An item of one or both reports.
#[derive(Default)]
pub(super) struct Pair<'a> {
    old: Option<&'a Item>,
    new: Option<&'a Item>,
    /// The error in which it ended in the one report or the other.
    failed: [Option<&'a Failed>; 2],
}

/// A figure of one or both of an item, and why the two cannot be compared.
pub(super) struct FigurePair<'a> {
    old: Option<&'a Figure>,
    new: Option<&'a Figure>,
    reason: Option<String>,
}

/// Items by kind and name; those of one name by their order.
type Key<'a> = (&'a str, &'a str, usize);

fn keyed(all: &[Item]) -> Vec<(Key<'_>, &Item)> {
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    let numbered = all.iter().map(|item| {
        let (kind, name) = (item.kind, &*item.name);
        let number = seen.entry((kind, name)).or_default();
        *number += 1;
        ((kind, name, *number), item)
    });
    numbered.collect()
}

/// A report's errors by the names of their items: an error does not say its item's kind.
struct ByName<'a>(HashMap<&'a str, VecDeque<&'a Failed>>);

impl<'a> ByName<'a> {
    fn of(report: &'a Saved) -> Self {
        let mut all: HashMap<&str, VecDeque<&Failed>> = HashMap::new();
        report.failed.iter().for_each(|one| all.entry(&one.name).or_default().push_back(one));
        Self(all)
    }

    /// The first one of that name that nobody took.
    fn take(&mut self, name: &str) -> Option<&'a Failed> {
        self.0.get_mut(name)?.pop_front()
    }
}

/// All items, in the new report's order; behind them those that only the old one has.
///
/// # Errors
/// No item is in both.
pub(super) fn pairs<'a>(old: &'a Saved, new: &'a Saved) -> Result<Vec<Pair<'a>>, CompareError> {
    let (old_items, new_items) = (keyed(&old.items), keyed(&new.items));
    let mut left: HashMap<Key, &Item> = old_items.iter().copied().collect();
    let [mut old_failed, mut new_failed] = [old, new].map(ByName::of);
    let mut all: Vec<Pair> = Vec::new();
    for (key, item) in &new_items {
        let old = left.remove(key);
        let failed = if old.is_none() { old_failed.take(&item.name) } else { None };
        all.push(Pair { old, new: Some(item), failed: [failed, None] });
    }
    for (_, item) in old_items.iter().filter(|(key, _)| left.contains_key(key)) {
        let failed = new_failed.take(&item.name);
        all.push(Pair { old: Some(item), failed: [None, failed], ..Pair::default() });
    }
    // Each of a name's errors that is left comes up once.
    for failed in new.failed.iter().filter_map(|one| new_failed.take(&one.name)) {
        let before = old_failed.take(&failed.name);
        all.push(Pair { failed: [before, Some(failed)], ..Pair::default() });
    }
    for failed in old.failed.iter().filter_map(|one| old_failed.take(&one.name)) {
        all.push(Pair { failed: [Some(failed), None], ..Pair::default() });
    }
    if all.iter().any(Pair::is_in_both) {
        return Ok(all);
    }
    let names = |report: &Saved| {
        let failed = report.failed.iter().map(|one| &one.name);
        report.items.iter().map(|item| &item.name).chain(failed).cloned().collect()
    };
    let (old_items, new_items) = (names(old), names(new));
    let (old, new) = (old.source.clone(), new.source.clone());
    Err(CompareError::NothingInCommon { old, new, old_items, new_items })
}

impl<'a> Pair<'a> {
    fn is_in_both(&self) -> bool {
        let [was, is] = self.failed.map(|failed| failed.is_some());
        (self.old.is_some() || was) && (self.new.is_some() || is)
    }

    fn state(&self) -> ItemState {
        let skipped = |failed: Option<&Failed>| failed.is_some_and(|failed| failed.skipped);
        match (self.old, self.new, self.failed) {
            (Some(_), Some(_), _) => ItemState::Both,
            (Some(_), None, [_, failed]) if skipped(failed) => ItemState::NoFigures,
            (Some(_), None, [_, Some(_)]) => ItemState::Failed,
            (Some(_), None, _) => ItemState::Removed,
            (None, Some(_), [Some(_), _]) => ItemState::Recovered,
            (None, Some(_), _) => ItemState::Added,
            (None, None, [None, _]) => ItemState::Added,
            (None, None, [_, None]) => ItemState::Removed,
            (None, None, _) => ItemState::NoFigures,
        }
    }

    /// The figures of both, in the new one's order; behind them those that only the old one has. `ticks`: why ticks of the
    /// TSC are not the same in both.
    pub(super) fn figures(&self, ticks: Option<&str>) -> Vec<FigurePair<'a>> {
        let of = |item: Option<&'a Item>| item.map_or(&[][..], |item| &item.figures);
        let mut left: HashMap<&str, &Figure> =
            of(self.old).iter().map(|figure| (&*figure.name, figure)).collect();
        let mut all: Vec<FigurePair> = Vec::new();
        for figure in of(self.new) {
            let old = left.remove(&*figure.name);
            all.push(FigurePair { old, new: Some(figure), reason: None });
        }
        let only_old = of(self.old).iter().filter(|figure| left.contains_key(&*figure.name));
        all.extend(only_old.map(|old| FigurePair { old: Some(old), new: None, reason: None }));
        if let (Some(old), Some(new)) = (self.old, self.new) {
            all.iter_mut().for_each(|pair| pair.reason = pair.refused(old, new, ticks));
        }
        all
    }

    pub(super) fn compare(
        &self,
        old: &Saved,
        new: &Saved,
        limits: &Limits,
        ticks: Option<&str>,
        test: &mut Test,
    ) -> ItemCompared {
        let state = self.state();
        let name = || self.failed.into_iter().flatten().next().map(|one| one.name.clone());
        let item = self.new.or(self.old);
        let name = item.map(|item| item.name.clone()).or_else(name).unwrap_or_default();
        let index = self.new.map(|item| item.index).or(self.failed[1].map(|one| one.index));
        let about = index.and_then(|index| new.about(index));
        let none = LimitTable::default();
        let own = about.map_or(&none, |about| &about.limits);
        let both = state == ItemState::Both;
        let figures = self.figures(ticks).into_iter().filter(|_| both);
        let figures = figures.map(|pair| {
            let known = pair.new.or(pair.old);
            let limit = known.and_then(|figure| limits.find(&name, own, &figure.name));
            pair.compare(limit, test)
        });
        let figures = figures.collect();
        let kind = item.map_or("error", |item| item.kind);
        let notes = self.notes(old, new);
        ItemCompared { name, kind, state, line: about.and_then(|one| one.line), notes, figures }
    }

    fn notes(&self, old: &Saved, new: &Saved) -> Vec<String> {
        let mut notes = Vec::new();
        for (which, failed) in ["old", "new"].into_iter().zip(self.failed) {
            notes.extend(failed.map(|one| format!("in the {which} report: {}", one.why)));
        }
        let (Some(was), Some(is)) = (self.old, self.new) else { return notes };
        let digests =
            [old.about(was.index), new.about(is.index)].map(|one| one.map(|it| it.digest));
        if let [Some(was), Some(is)] = digests
            && was != is
        {
            notes.push("its code or its options are not the same".to_string());
        }
        if let (Some(was), Some(is)) = (was.per, is.per)
            && was != is
        {
            let text =
                format!("figures are of {was} executions there, of {is} here, divided by them");
            notes.push(text);
        }
        notes
    }
}

impl<'a> FigurePair<'a> {
    /// Both figures, if they can be compared.
    pub(super) fn both(&self) -> Option<(&'a Figure, &'a Figure)> {
        self.old.zip(self.new).filter(|_| self.reason.is_none())
    }

    /// Why the figures of these items cannot be compared.
    fn refused(&self, was: &Item, is: &Item, ticks: Option<&str>) -> Option<String> {
        let missing = |item: &Item, which: &str, name: &str| {
            let why = item.uncounted.iter().find(|(event, _)| *event == name);
            let why = why.map_or(String::new(), |(_, why)| format!(": {why}"));
            Some(format!("the {which} report has no such figure{why}"))
        };
        let (old, new) = match (self.old, self.new) {
            (None, Some(new)) => return missing(was, "old", &new.name),
            (Some(old), None) => return missing(is, "new", &old.name),
            (None, None) => return None,
            (Some(old), Some(new)) => (old, new),
        };
        if old.unit != new.unit {
            return Some(format!("other unit: {} there, {} here", old.unit, new.unit));
        }
        if new.unit == TICKS {
            return ticks.map(String::from);
        }
        let counted = old.event.is_some() || new.event.is_some();
        if counted && was.emulated != is.emulated {
            let by = |emulated| if emulated { "the emulated PMU" } else { "a processor" };
            let (was, is) = (by(was.emulated), by(is.emulated));
            return Some(format!("other events: counted by {was} there, by {is} here"));
        }
        if let (Some(was), Some(is)) = (&old.event, &new.event)
            && was != is
        {
            return Some(format!("other event: {was} there, {is} here"));
        }
        if let (Some(was), Some(is)) = (old.period, new.period)
            && was != is
        {
            return Some(format!("other period: {was} events there, {is} here"));
        }
        None
    }

    fn compare(&self, limit: Option<super::limits::Limit>, test: &mut Test) -> FigureCompared {
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
