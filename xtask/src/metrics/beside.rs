//! Counts beside samples as metrics take them: what the counters saw that were sampled by, and what counters without interrupts
//! counted of the same events meanwhile.

use super::counted::{metric, of_energy, of_uncore, result};
use super::evaluate::{Clock, ItemMetrics, of_item};
use super::reach::{self, MOST};
use super::request::Ask;
use protocol::record::{Counting, ItemRecord, Metric, SampleResult, SampledCount, SnippetResult};

/// What stands with energy and the uncore.
const OF_SAMPLES: &str = "energy and the uncore are of everything that ran, and include what the interrupts and records of samples took";

/// The metrics of a sample. Each is of what the sampled counters saw; its spread reaches to what it is with the counts of those
/// that raised no interrupts.
#[must_use]
pub(super) fn of_sample(sample: &SampleResult, asks: &[Ask], clock: Clock) -> ItemMetrics {
    let mut item = of_item(&figures(sample, &|_| false), asks, clock);
    for (ask, row) in asks.iter().zip(&mut item.rows) {
        let own = |event: &str| ask.events().any(|text| text == event);
        let sampled = sample.events.iter().filter(|count| count.is_sampled());
        let counts: Vec<&SampledCount> = sampled.filter(|count| own(&count.event)).collect();
        if row.value.is_some() && ask.is_of_whole() {
            row.untrusted.push(OF_SAMPLES.to_string());
        }
        if counts.is_empty() {
            // There is one reading of energy and of the uncore.
            continue;
        }
        let (Some(value), true) = (row.value, counts.len() <= MOST) else { continue };
        let unknown = counts.iter().filter(|count| count.witness.is_none());
        row.untrusted.extend(unknown.map(|count| {
            format!(
                "{}: no counter was free to count it beside its {} samples, so what passed at their interrupts is not known",
                count.event, count.overflows
            )
        }));
        if counts.iter().any(|count| count.witness.is_none()) {
            row.spread = None;
            continue;
        }
        let value_of = |combination: u32| {
            let flipped = |event: &str| {
                let place = counts.iter().position(|count| count.event == event);
                place.is_some_and(|place| combination & 1 << place != 0)
            };
            let rows = of_item(&figures(sample, &flipped), std::slice::from_ref(ask), clock).rows;
            rows.first().and_then(|row| row.value)
        };
        row.spread = Some(reach::of(value, counts.len(), value_of));
    }
    item
}

/// The counts; of events that are `flipped`, of the counter beside.
fn figures(sample: &SampleResult, flipped: &dyn Fn(&str) -> bool) -> SnippetResult {
    let figure = |count: &SampledCount| -> Option<Metric> {
        let counter = count.counter.clone()?;
        let (name, remarks) = (count.event.clone(), count.remarks.clone());
        let counting = Counting { name, counter, remarks, ..Counting::default() };
        let flipped = count.witness.filter(|_| flipped(&count.event));
        let value = flipped.or_else(|| count.seen()).unwrap_or(0);
        Some(metric(&count.event, value as f64, Some(counting)))
    };
    let of_whole = of_energy(&sample.energy).into_iter().chain(of_uncore(&sample.uncore));
    let metrics = sample.events.iter().filter_map(figure).chain(of_whole).collect();
    let (name, uncounted) = (sample.name.clone(), sample.uncounted());
    result(sample.item, name, metrics, uncounted, (sample.emulated, sample.tsc))
}

#[cfg(test)]
mod tests;
