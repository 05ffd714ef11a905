//! Items: what each kind shows, and which items of several runs belong together.

mod code;
mod error;
mod metrics;

use crate::document::Document;
use crate::kinds::figures::JOULES;
use crate::kinds::page::{PageFigure, note};
use crate::kinds::{self, Page};
use crate::primitives::unit_of_joules;
use crate::verdict::item_of;
use html_report::model::{Badge, Figure, Item, Part, Tone, Value};
use protocol::record::{Miss, Record, Verdict};
use protocol::verdict::{said, sentence, uncounted};
use std::collections::HashMap;

/// An item of one run.
struct Entry {
    number: u32,
    name: String,
    kind: &'static str,
    verdict: Badge,
    figures: Vec<PageFigure>,
    parts: Vec<Part>,
    open: bool,
}

/// Items with parts that are worth a look are shown at once as long as there are few.
const MAX_OPEN: usize = 16;

/// The items of all runs; those of one name belong together in their order.
pub(super) fn of(documents: &[Document]) -> Vec<Item> {
    let runs = documents.len();
    let mut all: Vec<Item> = Vec::new();
    let mut places: HashMap<(String, usize), usize> = HashMap::new();
    for (run, document) in documents.iter().enumerate() {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for entry in
            document.report.records.iter().filter_map(|one| self::entry(document, &one.record))
        {
            let number = seen.entry(entry.name.clone()).or_default();
            let key = (entry.name.clone(), *number);
            *number += 1;
            let place = *places.entry(key).or_insert_with(|| {
                let (number, name, kind) =
                    (entry.number, entry.name.clone(), entry.kind.to_string());
                all.push(Item { number, name, kind, ..Item::default() });
                all.len() - 1
            });
            merge(&mut all[place], entry, run, runs);
        }
    }
    all.iter_mut().flat_map(|item| &mut item.figures).for_each(with_prefix);
    if all.iter().filter(|item| item.open).count() > MAX_OPEN {
        all.iter_mut().for_each(|item| item.open = false);
    }
    all
}

/// Gives energy the prefix that suits it in all runs.
fn with_prefix(figure: &mut Figure) {
    if figure.unit != JOULES {
        return;
    }
    let is_energy = |value: &&Value| value.other_unit.is_none();
    let values = figure.values.iter().flatten().filter(is_energy).filter_map(|value| value.value);
    let (unit, scale) = unit_of_joules(values);
    figure.unit = unit.to_string();
    for value in figure.values.iter_mut().flatten().filter(|value| value.other_unit.is_none()) {
        value.value = value.value.map(|value| scale * value);
        value.range = value.range.map(|ends| ends.map(|end| scale * end));
    }
}

fn merge(item: &mut Item, entry: Entry, run: usize, runs: usize) {
    for (name, unit, mut value) in entry.figures {
        let known = item.figures.iter().position(|figure| figure.name == name);
        let known = known.unwrap_or_else(|| {
            let unit = unit.clone();
            item.figures.push(Figure { name, unit, values: vec![None; runs] });
            item.figures.len() - 1
        });
        let figure = &mut item.figures[known];
        // What was not counted has no unit.
        if value.value.is_some() && figure.unit != unit {
            match figure.values.iter().flatten().any(|known| known.value.is_some()) {
                true => value.other_unit = Some(unit),
                false => figure.unit = unit,
            }
        }
        figure.values[run] = Some(value);
    }
    let worse = |tone| matches!(tone, Tone::Bad) || item.verdict.text.is_empty();
    if worse(entry.verdict.tone) && !entry.verdict.text.is_empty() {
        item.verdict = entry.verdict;
    }
    item.open |= entry.open;
    item.bodies.push((run, entry.parts));
}

/// What a record that ends an item shows.
fn entry(document: &Document, record: &Record) -> Option<Entry> {
    if let Record::Error(error) = record {
        return error::of(document, error);
    }
    let (number, name) = item_of(record)?;
    let result = kinds::shown(record)?;
    let Page { kind, mut parts, open, lists_code } = result.page(document);
    parts.extend(metrics::parts(document, number));
    let restored = record.restored().map_or(&[][..], |(_, _, restored)| restored);
    if !restored.is_empty() {
        parts.push(note(Tone::Plain, "put back", format!("it changed {}", restored.join(", "))));
    }
    // A sample's listing is among its parts.
    if !lists_code && !parts.iter().any(|part| matches!(part, Part::Code(_))) {
        parts.extend(code::parts(document, number));
    }
    let (verdict, misses) = said(record).unwrap_or((Verdict::None, &[]));
    let verdict = match verdict {
        Verdict::Pass => Badge::new(Tone::Good, "pass"),
        Verdict::Fail => Badge::new(Tone::Bad, "fail"),
        Verdict::None => Badge::default(),
    };
    let mut figures = judged(result.page_figures(document), misses);
    figures.extend(uncounted(record).into_iter().map(|one| {
        let verdict = Badge::new(Tone::Warn, format!("not counted: {}", one.reason));
        (one.event, String::new(), Value { verdict, ..Value::default() })
    }));
    Some(Entry { number, name, kind, verdict, figures, parts, open })
}

/// Figures with what they missed.
fn judged(mut figures: Vec<PageFigure>, misses: &[Miss]) -> Vec<PageFigure> {
    for (name, _, value) in &mut figures {
        if let Some(miss) = misses.iter().find(|miss| miss.figure == *name) {
            value.verdict = Badge::new(Tone::Bad, sentence(miss));
        }
    }
    figures
}
