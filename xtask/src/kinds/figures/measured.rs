//! Figures of code that runs again and again: snippets, histories, and what is stepped through.

use super::{EVENTS, Figure, JOULES, ONE_RUN, SUM, Spread, TICKS};
use crate::limits::Worse;
use protocol::job::criteria::TSC;
use protocol::record::{
    ExactResult, FactsResult, HistoryResult, ItemRecord as _, Metric, ProcessorsResult, Series,
};

/// The metrics of a snippet; `behind` stands after each name.
pub(crate) fn of_metrics(
    metrics: &[Metric],
    runs: u32,
    per: u64,
    steady: bool,
    behind: &str,
) -> Vec<Figure> {
    let of = |metric: &Metric| {
        let name = format!("{}{behind}", metric.event);
        let spread = spread(metric, runs, per, steady);
        let event = counted_as(metric);
        Figure { event, ..Figure::new(name, unit(metric), metric.value.median, spread) }
    };
    metrics.iter().map(of).collect()
}

fn unit(metric: &Metric) -> &'static str {
    match &metric.energy {
        Some(_) => JOULES,
        None if metric.event == TSC => TICKS,
        None if metric.retired.is_some() => CYCLES,
        None => EVENTS,
    }
}

fn counted_as(metric: &Metric) -> Option<String> {
    metric.counting.as_ref().map(|counting| counting.name.clone())
}

/// Each figure is a difference of two codes' counts, divided. The runs of the one and of the other are independent, so
/// those of the same number make a pair as good as any.
fn spread(metric: &Metric, runs: u32, per: u64, steady: bool) -> Spread {
    if metric.retired.is_some() {
        return Spread::Unknown(MEAN);
    }
    if metric.energy.is_some() {
        return Spread::Range([metric.value.min, metric.value.max], runs);
    }
    if metric.deterministic {
        let enough = runs > 1 || steady;
        return if enough { Spread::Exact(runs) } else { Spread::Unknown(ONE_RUN) };
    }
    let [fewer, more] = &metric.series;
    let divided =
        |more: i64, fewer: i64| (i128::from(more) - i128::from(fewer)) as f64 / per.max(1) as f64;
    match (values(fewer, runs), values(more, runs)) {
        (Some(fewer), Some(more)) if fewer.len() == more.len() => Spread::Runs(
            more.iter().zip(&fewer).map(|(more, fewer)| divided(*more, *fewer)).collect(),
        ),
        _ => Spread::Range([divided(more.min, fewer.max), divided(more.max, fewer.min)], runs),
    }
}

/// What each run of one code counted: as it was listed, or the one value that all had.
fn values(series: &Series, runs: u32) -> Option<Vec<i64>> {
    let all_equal = (series.distinct == 1).then(|| vec![series.min; runs as usize]);
    series.values.clone().or(all_equal)
}

/// What stepping counts it counts exactly. The mnemonics say what ran, not how well.
pub(crate) fn stepped(exact: &ExactResult) -> Vec<Figure> {
    let of = |count: &protocol::record::ExactCount, worse| {
        let figure = Figure::new(&*count.event, EVENTS, count.value, Spread::Exact(1));
        Figure { worse, ..figure }
    };
    let counts = exact.counts.iter().map(|count| of(count, Worse::More));
    counts.chain(exact.opcodes.iter().map(|count| of(count, Worse::Never))).collect()
}

/// Each processor's metrics, and the sums.
pub(crate) fn of_processors(result: &ProcessorsResult, steady: bool) -> Vec<Figure> {
    let mut all = Vec::new();
    for one in &result.processors {
        let behind = format!(" on cpu {}", one.processor);
        all.extend(of_metrics(&one.metrics, result.runs, result.per, steady, &behind));
    }
    for sum in &result.sums {
        let exact = parts(result, &sum.event).all(|metric| metric.deterministic);
        let exact = exact && (result.runs > 1 || steady);
        let spread = if exact { Spread::Exact(result.runs) } else { Spread::Unknown(SUM) };
        // What was added up is of one event.
        let first = parts(result, &sum.event).next();
        let unit = first.map_or(EVENTS, unit);
        let figure = Figure::new(format!("{}, sum", sum.event), unit, sum.value, spread);
        all.push(Figure { event: first.and_then(counted_as), ..figure });
    }
    all
}

/// Each processor's metric of an event.
pub(crate) fn parts<'a>(
    result: &'a ProcessorsResult,
    event: &str,
) -> impl Iterator<Item = &'a Metric> {
    let all = result.processors.iter().flat_map(|one| &one.metrics);
    all.filter(move |metric| metric.event == event)
}

/// What a fact sheet told. No change of it is one for the worse.
pub(crate) fn of_facts(facts: &FactsResult, steady: bool) -> Vec<Figure> {
    let told = facts.figures().into_iter().filter_map(|figure| {
        let unit = match figure.name.rsplit(' ').next() {
            Some("cycles") => CYCLES,
            Some("ticks") => TICKS,
            Some("cycle") => PER_CYCLE,
            Some("tick") => PER_TICK,
            _ => FACTS,
        };
        let figure = Figure::new(figure.name, unit, figure.value?, super::once(steady));
        Some(Figure { worse: Worse::Never, ..figure })
    });
    told.collect()
}

/// Of a retire latency.
const MEAN: &str = "it is the mean of sampled records, so its variation is unknown";
/// What times of a fact sheet are in, and what its other figures are numbers of.
const CYCLES: &str = "cycles";
const PER_CYCLE: &str = "bytes/cycle";
const PER_TICK: &str = "bytes/tick";
const FACTS: &str = "facts";

/// Each event up to the last row, and up to each row. When something happens is no better or worse by itself.
pub(crate) fn of_history(history: &HistoryResult, steady: bool) -> Vec<Figure> {
    let mut all = Vec::new();
    for one in &history.series {
        let event = Some(one.counting.name.clone());
        let of = |row: usize| {
            let ends = [one.min.get(row), one.max.get(row)].map(Option::<&f64>::copied);
            let value = *one.median.get(row)?;
            let spread = match ends {
                [Some(least), Some(most)] if least < most => {
                    Spread::Range([least, most], history.runs)
                }
                _ if history.runs > 1 || steady => Spread::Exact(history.runs),
                _ => Spread::Unknown(ONE_RUN),
            };
            Some((value, spread))
        };
        let last = one.median.len().checked_sub(1).and_then(of);
        all.extend(last.map(|(value, spread)| Figure {
            event: event.clone(),
            ..Figure::new(&*one.event, EVENTS, value, spread)
        }));
        for row in 0..one.median.len() {
            let Some((value, spread)) = of(row) else { continue };
            let name = format!("{}, row {}", one.event, (row as u64 + 1) * u64::from(history.step));
            let figure = Figure::new(name, EVENTS, value, spread);
            all.push(Figure { event: event.clone(), worse: Worse::Never, ..figure });
        }
    }
    all
}
