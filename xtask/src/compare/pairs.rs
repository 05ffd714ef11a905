//! Which items and figures of two reports belong together.

mod figure;

use super::error::CompareError;
use super::limits::Limits;
use super::saved::{Failed, Saved};
use super::statistics::Test;
use super::{ItemCompared, ItemState};
use crate::kinds::figures::{Figure, Item};
use crate::limits::LimitTable;
use figure::FigurePair;
use std::collections::{HashMap, VecDeque};

/// An item of one or both reports.
#[derive(Default)]
pub(super) struct Pair<'a> {
    old: Option<&'a Item>,
    new: Option<&'a Item>,
    /// The error in which it ended in the one report or the other.
    failed: [Option<&'a Failed>; 2],
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

/// All items, in the new report's order; after them those that only the old one has.
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

    /// The figures of both, in the new one's order; after them those that only the old one has. `ticks`: why ticks of the
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
        let figures = self.figures(ticks).into_iter().map(|pair| {
            let known = pair.new.or(pair.old);
            let limit = known.and_then(|figure| limits.find(&name, own, &figure.name));
            let worse = limit.as_ref().and_then(|limit| limit.worse);
            let mut figure = pair.compare(limit, test);
            // What is new is not judged, but its limit already says what is worse.
            if state != ItemState::Both {
                figure.compared.worse = worse.unwrap_or(figure.compared.worse);
            }
            figure
        });
        let figures = figures.collect();
        let (figures, first) = match state {
            ItemState::Both => (figures, Vec::new()),
            ItemState::Added | ItemState::Recovered => (Vec::new(), figures),
            _ => (Vec::new(), Vec::new()),
        };
        let kind = item.map_or("error", |item| item.kind);
        let notes = self.notes(old, new);
        let line = about.and_then(|one| one.line);
        ItemCompared { name, kind, state, line, notes, figures, first }
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
            let text = format!(
                "figures are per {was} executions in the old report, per {is} in the new one"
            );
            notes.push(text);
        }
        notes
    }
}
