//! Items: what each kind shows, and which items of several runs belong together.

mod code;
pub(crate) mod counted;
mod error;
pub(crate) mod exact;
pub(crate) mod facts;
pub(crate) mod history;
mod metrics;
mod moves;
mod over_time;
pub(crate) mod processors;
pub(crate) mod sampled;
pub(crate) mod snippet;
pub(crate) mod tasks;

use super::Document;
use crate::compare::figures::{self, Spread};
use crate::kinds::{self, Compared, Page};
use crate::render::number;
use crate::verdict::item_of;
use html_report::model::{Badge, Cell, Figure, Item, Note, Part, Table, Tone, Value};
use protocol::record::{Applied, Miss, Record, Verdict};
use protocol::verdict::{said, sentence, uncounted};
use std::collections::HashMap;

/// Name, unit and value of a figure.
pub(crate) type PageFigure = (String, String, Value);

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
    if all.iter().filter(|item| item.open).count() > MAX_OPEN {
        all.iter_mut().for_each(|item| item.open = false);
    }
    all
}

fn merge(item: &mut Item, entry: Entry, run: usize, runs: usize) {
    for (name, unit, value) in entry.figures {
        let known = item.figures.iter().position(|figure| figure.name == name);
        let known = known.unwrap_or_else(|| {
            item.figures.push(Figure { name, unit, values: vec![None; runs] });
            item.figures.len() - 1
        });
        item.figures[known].values[run] = Some(value);
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

/// The figures that are compared as well, those of them that are `shown`: others are in a place of their own.
pub(crate) fn general(
    document: &Document,
    compared: Compared,
    shown: impl Fn(&figures::Figure) -> bool,
) -> Vec<PageFigure> {
    let figures = compared.figures.iter().filter(|figure| shown(figure)).map(|figure| {
        let unit = if figure.name == "tsc" { document.tsc() } else { String::new() };
        (figure.name.clone(), unit, value(figure))
    });
    figures.collect()
}

fn value(figure: &figures::Figure) -> Value {
    let one = Value { value: Some(figure.value), ..Value::default() };
    match &figure.spread {
        Spread::Exact(1) => Value { runs: 1, ..one },
        Spread::Exact(runs) => {
            let range = Some([figure.value; 3]);
            Value {
                range,
                runs: (*runs).into(),
                spread: Badge::new(Tone::Plain, "all equal"),
                ..one
            }
        }
        Spread::Runs(all) => {
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
            let spread = Badge::new(Tone::Plain, "varies");
            Value { range: Some([least, mean, most]), runs: all.len() as u64, spread, ..one }
        }
        Spread::Range([least, most], runs) => {
            let range = Some([*least, f64::NAN, *most]);
            Value { range, runs: (*runs).into(), spread: Badge::new(Tone::Plain, "varies"), ..one }
        }
        Spread::Unknown(why) if why.contains("scaled") => {
            Value { runs: 1, scaled: true, spread: Badge::new(Tone::Warn, "scaled"), ..one }
        }
        Spread::Unknown(why) if why.contains("sum of medians") => {
            Value { spread: Badge::new(Tone::Plain, "sum of medians"), ..one }
        }
        Spread::Unknown(_) => Value { runs: 1, spread: Badge::new(Tone::Plain, "one run"), ..one },
    }
}

fn note(tone: Tone, label: &str, text: impl Into<String>) -> Part {
    Part::Note(Note { tone, label: label.to_string(), text: text.into() })
}

/// What became of options of the machine.
fn controls(all: &[Applied]) -> impl Iterator<Item = Part> + '_ {
    all.iter().map(|one| {
        let (tone, label) =
            if one.applied { (Tone::Plain, "applied") } else { (Tone::Warn, "not available") };
        note(tone, label, format!("{}: {}", one.option, one.note))
    })
}

/// A table of texts; `left`: so many columns from the left are none of numbers.
fn table(caption: &str, head: &[&str], left: usize, rows: Vec<Vec<Cell>>) -> Part {
    let column = |(index, name): (usize, &&str)| ((*name).to_string(), index >= left);
    let columns = head.iter().enumerate().map(column).collect();
    Part::Table(Table { caption: caption.to_string(), columns, rows, filter: false })
}

/// A part of the whole.
fn share(count: u64, all: u64) -> f64 {
    count as f64 / all.max(1) as f64
}

fn percent(count: u64, all: u64) -> String {
    format!("{} %", number((share(count, all) * 1000.0).round() / 10.0))
}
