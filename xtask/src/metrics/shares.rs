//! How finely PERF_METRICS tells shares of the slots.

use super::request::Ask;
use ::events::perf_metrics;
use protocol::record::{Metric, SnippetResult};

/// Beyond this, in percent of the slots, shares are doubted.
const COARSE: f64 = 10.0;

/// Whether a metric is made of shares.
pub(super) fn has(ask: &Ask) -> bool {
    ask.events().any(|event| field(event).is_some())
}

/// Whether an event is a field of PERF_METRICS, or the slots that a metric divides fields by.
pub(crate) fn is_beside(event: &str) -> bool {
    field(event).is_some() || event == SLOTS
}

/// The slots in formulas that have fields.
const SLOTS: &str = "TOPDOWN.SLOTS";

/// The number of the field that an event is.
pub(crate) fn field(event: &str) -> Option<u8> {
    let name = event.split(':').next().unwrap_or(event);
    perf_metrics::by_name(name).map(|field| field.index)
}

/// To how many percent of the body's slots its shares are known. Each field is a number of 255ths of all slots of a run, rounded
/// down. Of a difference between two code sizes it is so many slots of the larger one by those that the body has.
#[must_use]
pub(super) fn known_to(result: &SnippetResult) -> Option<f64> {
    // The four of the first level are all slots.
    let first = result.metrics.iter().filter(|one| field(&one.event).is_some_and(|n| n < 4));
    let mut passes: Vec<(u32, [i64; 2])> = Vec::new();
    for one in first {
        let pass = one.counting.as_ref()?.pass;
        let slots = greatest(one);
        match passes.iter_mut().find(|(number, _)| *number == pass) {
            Some((_, sum)) => *sum = [sum[0] + slots[0], sum[1] + slots[1]],
            None => passes.push((pass, slots)),
        }
    }
    let known = passes.into_iter().map(|(_, [small, large])| {
        let own = large.saturating_sub(small);
        if own <= 0 { f64::INFINITY } else { 100.0 * large as f64 / (255.0 * own as f64) }
    });
    known.reduce(f64::max)
}

fn greatest(metric: &Metric) -> [i64; 2] {
    metric.series.each_ref().map(|series| series.max)
}

/// To how many slots a field of so many slots is known, if that is more than one.
#[must_use]
pub(super) fn coarse(slots: f64) -> Option<f64> {
    // Up to 127 slots the nearest one is the true count (`Slots::nearest`).
    (slots > 127.0).then(|| (slots / 255.0).ceil())
}

/// The doubt, if shares are known too coarsely.
pub(super) fn doubt(known_to: f64) -> Option<String> {
    (known_to > COARSE).then(|| {
        format!(
            "PERF_METRICS states its slots only to {known_to:.0} percent, because the body is short: raise unroll or loop"
        )
    })
}
