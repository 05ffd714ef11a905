//! Counts of a history as metrics take them: up to the snippet's end, and of each row.

use super::counted::{metric, result};
use super::evaluate::{Clock, ItemMetrics, of_item};
use super::reach::{self, MOST};
use super::request::Ask;
use super::shares;
use protocol::job::history::WITNESS;
use protocol::record::{
    Aggregates, Counting, HistoryResult, HistorySeries, Metric, Series, SnippetResult,
};

/// Which rows are meant.
#[derive(Clone, Copy)]
enum Rows {
    /// All up to this number of them.
    UpTo(usize),
    /// One, by its number from 0.
    Only(usize),
}

/// The metrics of a history: of its rows up to the snippet's end, and of each row. The spread reaches to the values with the least
/// and the greatest counts of the runs.
#[must_use]
pub(super) fn of_history(history: &HistoryResult, asks: &[Ask], clock: Clock) -> ItemMetrics {
    let count = rows(history);
    let step = history.step.max(1) as usize;
    let ends = history.passes.first().and_then(|pass| pass.end);
    let ends = ends.map(|end| end as usize / step).filter(|&end| end <= count);
    let whole = ends.unwrap_or(count);
    let medians = figures(history, Rows::UpTo(whole), &|one, row| one.median[row]);
    let mut item = of_item(&medians, asks, clock);
    (item.step, item.end) = (Some(history.step), ends);
    if count == 0 {
        return item;
    }
    for (ask, row) in asks.iter().zip(&mut item.rows) {
        let of = |figures: &SnippetResult| {
            of_item(figures, std::slice::from_ref(ask), clock)
                .rows
                .first()
                .and_then(|row| row.value)
        };
        row.each = (0..count)
            .map(|at| of(&figures(history, Rows::Only(at), &|one, row| one.median[row])))
            .collect();
        let counted = history.series.iter().map(|one| &*one.event);
        let own: Vec<&str> =
            counted.filter(|event| ask.events().any(|text| text == *event)).collect();
        let Some(value) = row.value.filter(|_| own.len() <= MOST && whole > 0) else { continue };
        let corner = |greatest: u32| {
            let picked = |one: &HistorySeries, row: usize| match own
                .iter()
                .position(|event| *event == one.event)
            {
                Some(place) if greatest & 1 << place != 0 => one.max[row],
                Some(_) => one.min[row],
                None => one.median[row],
            };
            of(&figures(history, Rows::UpTo(whole), &picked))
        };
        row.spread = Some(reach::of(value, own.len(), corner));
    }
    item.row_slots = slots(history, count).and_then(shares::coarse);
    item
}

/// Rows that every pass has.
fn rows(history: &HistoryResult) -> usize {
    let series = history.series.iter().map(|one| one.median.len());
    let others = history.passes.iter().map(|pass| pass.instructions.len()).filter(|&len| len > 0);
    series.chain(others).min().unwrap_or(0)
}

/// The slots since the counters started, at the last row: the most of a pass, of the fields of the first level.
fn slots(history: &HistoryResult, count: usize) -> Option<f64> {
    let first = history.series.iter();
    let first = first.filter(|one| shares::field(&one.event).is_some_and(|field| field < 4));
    let mut sums = vec![0.0; history.passes.len()];
    for one in first {
        *sums.get_mut(one.counting.pass as usize)? += one.front + one.median[count - 1];
    }
    sums.into_iter().filter(|&sum| sum > 0.0).reduce(f64::max)
}

/// The counts of these rows, by `value` of each series and row. Every pass has those of the clock and, if they were requested, of
/// instructions.
fn figures(
    history: &HistoryResult,
    rows: Rows,
    value: &dyn Fn(&HistorySeries, usize) -> f64,
) -> SnippetResult {
    let between = |up_to: &dyn Fn(usize) -> f64| match rows {
        Rows::UpTo(0) => 0.0,
        Rows::UpTo(count) => up_to(count - 1),
        Rows::Only(0) => up_to(0),
        Rows::Only(row) => up_to(row) - up_to(row - 1),
    };
    let of = |event: &str, pass: usize, up_to: &dyn Fn(usize) -> f64| {
        let (name, pass) = (event.to_string(), pass as u32);
        let counting = Counting { name, pass, ..Counting::default() };
        metric(event, between(up_to), Some(counting))
    };
    let step = f64::from(history.step);
    let mut metrics = Vec::new();
    for (pass, own) in history.passes.iter().enumerate() {
        metrics.push(of(&history.clock, pass, &|row| step * (row + 1) as f64));
        if !own.instructions.is_empty() {
            metrics.push(of(WITNESS, pass, &|row| own.instructions[row]));
        }
    }
    for one in &history.series {
        let own = between(&|row| value(one, row));
        metrics.push(of_series(one, own));
    }
    let uncounted = history.uncounted.clone();
    let name = history.name.clone();
    result(history.item, name, metrics, uncounted, (history.emulated, history.tsc))
}

/// A figure that begins where the code in front ends, with which PERF_METRICS has begun.
fn of_series(one: &HistorySeries, own: f64) -> Metric {
    let upto = |value: f64| Series { min: 0, max: value as i64, distinct: 1, values: None };
    Metric {
        series: [upto(one.front), upto(one.front + own)],
        value: Aggregates { min: own, median: own, mean: own, max: own },
        ..metric(&one.event, own, Some(one.counting.clone()))
    }
}

#[cfg(test)]
mod tests;
