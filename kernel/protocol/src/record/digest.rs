//! A figure in a digest of the run: see [`crate::digest`].

use super::Metric;
use alloc::format;
use alloc::string::{String, ToString};
use serde::{Deserialize, Serialize};

/// Most characters of a name, an event or a note.
const MAX_TEXT: usize = 160;

/// A figure. Values are in thousandths, which is as fine as the report's tables are.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Figure {
    /// What was counted: `tsc`, or an event in the job's words.
    pub event: String,
    /// The median, in thousandths; absent: it never had a counter.
    pub value: Option<i64>,
    /// From the least to the greatest of the runs, in thousandths; absent: there was one run.
    pub spread: Option<u64>,
}

/// A metric's median, and how far its runs lie apart.
pub(crate) fn metric(metric: &Metric) -> Figure {
    let value = &metric.value;
    let apart = if metric.deterministic { 0.0 } else { (value.max - value.min).abs() };
    // Joules of an execution are too small for thousandths.
    let (event, scale) = match &metric.energy {
        Some(_) => (format!("{} (nJ)", metric.event), 1e9),
        None => (metric.event.clone(), 1.0),
    };
    Figure {
        event: cut(&event),
        value: thousandths(scale * value.median),
        spread: thousandths(scale * apart).map(i64::unsigned_abs),
    }
}

/// A figure of one run.
pub(crate) fn single(event: &str, value: Option<f64>) -> Figure {
    Figure { event: cut(event), value: value.and_then(thousandths), spread: None }
}

/// `None` for what is no number, or beyond what fits.
pub(crate) fn thousandths(value: f64) -> Option<i64> {
    let scaled = value * 1000.0;
    // Behind the comma a half goes away from zero, as in the tables.
    let rounded = scaled + 0.5_f64.copysign(scaled);
    (scaled.abs() < 9e18).then_some(rounded as i64)
}

pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => text[..end].to_string(),
        None => text.to_string(),
    }
}
