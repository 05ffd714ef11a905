//! What kinds write their parts of a page with: figures, tables, notes.

use super::Compared;
use super::figures::{self, Spread};
use crate::document::Document;
use crate::primitives::number;
use html_report::model::{Badge, Cell, Note, Part, Table, Tone, Value};
use protocol::record::Applied;

/// Name, unit and value of a figure.
pub(crate) type PageFigure = (String, String, Value);

/// The figures that are compared as well, those of them that are `shown`: others are in a place of their own. Energy is in joules.
pub(crate) fn general(
    document: &Document,
    compared: Compared,
    shown: impl Fn(&figures::Figure) -> bool,
) -> Vec<PageFigure> {
    let figures = compared.figures.iter().filter(|figure| shown(figure)).map(|figure| {
        let unit = match figure.unit {
            figures::JOULES => figures::JOULES.to_string(),
            _ if figure.name == "tsc" => document.tsc(),
            _ => String::new(),
        };
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

pub(crate) fn note(tone: Tone, label: &str, text: impl Into<String>) -> Part {
    Part::Note(Note { tone, label: label.to_string(), text: text.into() })
}

/// What became of options of the machine.
pub(crate) fn controls(all: &[Applied]) -> impl Iterator<Item = Part> + '_ {
    all.iter().map(|one| {
        let (tone, label) =
            if one.applied { (Tone::Plain, "applied") } else { (Tone::Warn, "not available") };
        note(tone, label, format!("{}: {}", one.option, one.note))
    })
}

/// A table of texts; `left`: so many columns from the left are none of numbers.
pub(crate) fn table(caption: &str, head: &[&str], left: usize, rows: Vec<Vec<Cell>>) -> Part {
    let column = |(index, name): (usize, &&str)| ((*name).to_string(), index >= left);
    let columns = head.iter().enumerate().map(column).collect();
    Part::Table(Table { caption: caption.to_string(), columns, rows, filter: false })
}

/// A part of the whole.
pub(crate) fn share(count: u64, all: u64) -> f64 {
    count as f64 / all.max(1) as f64
}

pub(crate) fn percent(count: u64, all: u64) -> String {
    format!("{} %", number((share(count, all) * 1000.0).round() / 10.0))
}
