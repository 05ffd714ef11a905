//! What metrics come to: values, spreads, and how far to trust them.

use super::formula::{Formula, NoValue};
use super::request::{Ask, Constant, Meaning};
use super::table::uncore;
use super::{beside, counted, histories, on_processors, shares, tree};
use crate::collect::Report;
use protocol::job::criteria::TSC;
use protocol::record::{
    CountResult, HistoryResult, KindOfCores, Metric, ProcessorsResult, RetiredRecords,
    SampleResult, SnippetResult, TasksResult,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What percents may be in addition to 0 and 100 before they are doubted: counts of one pass differ by little.
const SLACK: f64 = 1.0;

/// A metric of an item.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct MetricRow {
    /// Its name.
    pub name: String,
    /// What its value is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its depth in the tree, from 1.
    pub level: u8,
    /// The metric above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Metrics below it that can be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
    /// What it is, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub brief: String,
    /// Its value, of the medians of all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Its least and its greatest value in a run; absent if the runs are not listed or one of them has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<[f64; 2]>,
    /// In a history: its value in each row. Null: its formula has none there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Option<f64>>,
    /// The passes that its counts came from, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<u32>,
    /// The retire latencies that it is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<RetiredRow>,
    /// Why it has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Why its value is not to be trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// Whether it is over its threshold; absent if it has none, or one on metrics that were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded: Option<bool>,
}

/// A retire latency of a metric.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RetiredRow {
    /// As it was requested.
    pub event: String,
    /// Its mean, in core cycles.
    pub mean: f64,
    /// How many records of the body it is the mean of.
    pub records: u64,
    /// Events from one record to the next.
    pub period: u64,
}

impl RetiredRow {
    fn of(metric: &Metric) -> Self {
        let RetiredRecords { records: [small, large], period, .. } =
            metric.retired.unwrap_or_default();
        let (event, mean) = (metric.event.clone(), metric.value.median);
        Self { event, mean, records: large.saturating_sub(small), period }
    }
}

/// The metrics of an item.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ItemMetrics {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item.
    pub name: String,
    /// The metrics.
    pub rows: Vec<MetricRow>,
    /// To how many percent of the slots the shares of PERF_METRICS are known, if there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares_known_to: Option<f64>,
    /// Of a history: events of its clock from row to row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Of a history: rows up to the snippet's end, if they reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<usize>,
    /// Of a history: to how many slots those of PERF_METRICS are known in its last row, if that is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_slots: Option<f64>,
    /// Where the tree leads, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

/// How time is counted in a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// Ticks of the TSC in a second, if they are known.
    pub hz: Option<u64>,
    /// Whether ticks are instructions and no time.
    pub of_instructions: bool,
}

/// The metrics of all items that were requested some, by index.
#[must_use]
pub fn of(report: &Report, asked: &[(u32, Vec<Ask>)], of_instructions: bool) -> Vec<ItemMetrics> {
    let hz = report.machine().map(|machine| machine.tsc.hz).filter(|&hz| hz > 0);
    let clock = Clock { hz, of_instructions };
    let asks =
        |item: u32| asked.iter().find(|(index, _)| *index == item).map(|(_, asks)| asks.as_slice());
    let of = |result: &SnippetResult| Some(of_item(result, asks(result.item)?, clock));
    let of_count = |count: &CountResult| {
        let asks = asks(count.item).unwrap_or_default();
        let mut sets: Vec<Option<usize>> = asks.iter().map(|ask| ask.set).collect();
        sets.dedup();
        let of_set = |set: Option<usize>| {
            let own: Vec<Ask> = asks.iter().filter(|ask| ask.set == set).cloned().collect();
            let figures = counted::figures(count, set);
            let mut items: Vec<ItemMetrics> =
                figures.iter().map(|one| of_item(one, &own, clock)).collect();
            if let Some(whole) = items.first_mut().filter(|_| !counted::is_of_all(count, set)) {
                refuse_mixed(whole, &own);
            }
            items
        };
        sets.into_iter().flat_map(of_set).collect::<Vec<_>>()
    };
    let of_run = |ran: &TasksResult| Some(of_item(&counted::of_run(ran), asks(ran.item)?, clock));
    let of_sample =
        |sample: &SampleResult| Some(beside::of_sample(sample, asks(sample.item)?, clock));
    let kinds = report.machine().map_or(&[][..], |machine| &machine.kinds);
    let of_processors = |ran: &ProcessorsResult| {
        let asks = asks(ran.item).unwrap_or_default();
        let figures = if asks.is_empty() { Vec::new() } else { on_processors::figures(ran) };
        let other = other_kind(ran, kinds);
        let of = |one: &SnippetResult| match &other {
            None => of_item(one, asks, clock),
            Some(why) => without(one, asks, why),
        };
        figures.iter().map(of).collect::<Vec<_>>()
    };
    let counts = report.counts().flat_map(of_count);
    let (runs, processors) = (report.tasks(), report.processors());
    let tasks = counts.chain(runs.filter_map(of_run));
    let tasks = tasks.chain(report.sampled().filter_map(of_sample));
    let of_history =
        |history: &HistoryResult| Some(histories::of_history(history, asks(history.item)?, clock));
    let tasks = tasks.chain(report.histories().filter_map(of_history));
    report.results().filter_map(of).chain(tasks).chain(processors.flat_map(of_processors)).collect()
}

/// Counts that are bound to a task or a processor have no ratios with energy and the uncore, which are of everything that ran.
fn refuse_mixed(item: &mut ItemMetrics, asks: &[Ask]) {
    for (row, ask) in item.rows.iter_mut().zip(asks) {
        let what = match (ask.energy().next(), ask.uncore().next()) {
            (Some(_), _) => "energy",
            (None, Some(_)) => "the uncore",
            (None, None) => continue,
        };
        if ask.events().next().is_some() {
            let why = format!("{what} is of all that ran, and not of what the counts are bound to");
            *row = MetricRow { missing: Some(why), ..named(ask) };
        }
    }
}

/// Why there are no metrics of what ran on another kind of core than the boot processor's, whose events they are planned for.
fn other_kind(ran: &ProcessorsResult, kinds: &[KindOfCores]) -> Option<String> {
    let core = ran.core?;
    let boot = kinds.iter().find(|kind| kind.processors.contains(&0))?;
    (boot.core != core).then(|| {
        format!(
            "metrics are planned for the boot processor's events, and its core is of the kind {}, not {core}",
            boot.core
        )
    })
}

/// The metrics of an item that can have none.
fn without(result: &SnippetResult, asks: &[Ask], why: &str) -> ItemMetrics {
    let row = |ask: &Ask| MetricRow { missing: Some(why.to_string()), ..named(ask) };
    let rows = asks.iter().map(row).collect();
    ItemMetrics { item: result.item, name: result.name.clone(), rows, ..ItemMetrics::default() }
}

/// A row that has no value yet.
fn named(ask: &Ask) -> MetricRow {
    let metric = &ask.metric;
    MetricRow {
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        level: metric.level,
        parent: metric.parent.clone(),
        below: ask.below.clone(),
        brief: metric.brief.clone(),
        ..MetricRow::default()
    }
}

/// The metrics of an item.
#[must_use]
pub fn of_item(result: &SnippetResult, asks: &[Ask], clock: Clock) -> ItemMetrics {
    let mut rows: Vec<MetricRow> = asks.iter().map(|ask| row(result, ask, clock)).collect();
    let over: Vec<Option<bool>> = asks.iter().map(|ask| exceeded(ask, asks, &rows)).collect();
    rows.iter_mut().zip(over).for_each(|(row, over)| row.exceeded = over);
    let way = tree::way_down(&rows);
    let has_shares = asks.iter().any(shares::has);
    let shares_known_to =
        has_shares.then(|| shares::known_to(result)).flatten().filter(|known| known.is_finite());
    let name = result.name.clone();
    ItemMetrics { item: result.item, name, rows, shares_known_to, way, ..ItemMetrics::default() }
}

fn row(result: &SnippetResult, ask: &Ask, clock: Clock) -> MetricRow {
    let mut row = named(ask);
    let counts = match counts(result, ask) {
        Ok(counts) => counts,
        Err(why) => {
            row.missing = Some(why);
            return row;
        }
    };
    let latencies = counts.iter().flatten().filter(|one| one.retired.is_some());
    row.retired = latencies.clone().map(|one| RetiredRow::of(one)).collect();
    row.retired.dedup();
    let sampled_in = latencies.filter_map(|one| Some(one.counting.as_ref()?.pass));
    let passes = counts.iter().flatten().filter_map(counted_in).chain(sampled_in);
    let passes: BTreeSet<u32> = passes.map(|pass| pass + 1).collect();
    row.passes = passes.into_iter().collect();
    let tsc = result.metrics.iter().find(|one| one.event == TSC);
    let of_whole = whole_ticks(result, ask, &counts);
    let values = |figure: &dyn Fn(&Metric) -> Option<f64>| {
        let ticks = of_whole.or_else(|| tsc.and_then(figure));
        let of = |(meaning, count): (&Option<Meaning>, &Option<&Metric>)| match meaning.as_ref()? {
            Meaning::Event(_) | Meaning::Uncore(_) | Meaning::Energy(_) => figure((*count)?),
            // The mean of all runs together; of what did not occur there is none, and nothing to multiply it with.
            Meaning::Latency(_) => Some(count.map_or(0.0, |one| one.value.median)),
            Meaning::Tsc => ticks,
            Meaning::Constant(Constant::Units) => units(&counts),
            Meaning::Constant(constant) => constant_value(*constant, ticks, clock),
        };
        ask.meanings.iter().zip(&counts).map(of).collect::<Vec<Option<f64>>>()
    };
    match ask.formula.value(&values(&|one| Some(one.value.median))) {
        Ok(value) if value.is_finite() => row.value = Some(value),
        Ok(value) => row.missing = Some(format!("its formula gives {value}")),
        Err(why) => row.missing = Some(told(&why, ask)),
    }
    let runs = (0..result.runs as usize).map(|run| {
        let values = values(&|one| of_run(one, run, result.per));
        ask.formula.value(&values).ok().filter(|value| value.is_finite())
    });
    if let (Some(runs), Some(_)) = (runs.collect::<Option<Vec<f64>>>(), row.value) {
        let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.spread = (!runs.is_empty()).then_some([least, most]);
    }
    if row.value.is_some() {
        row.untrusted = doubts(result, ask, &counts, clock, row.value);
    }
    row
}

/// The counts of the metric's events: of one pass that has them all, if there is one.
fn counts<'a>(result: &'a SnippetResult, ask: &Ask) -> Result<Vec<Option<&'a Metric>>, String> {
    let all = |text: &str| -> Vec<&'a Metric> {
        let counted = result.metrics.iter().filter(|one| one.counting.is_some());
        counted.filter(|one| one.event == text).collect()
    };
    let pass = |one: &Metric| one.counting.as_ref().map(|counting| counting.pass);
    let mut common: Option<BTreeSet<u32>> = None;
    for text in ask.events().chain(ask.uncore().map(uncore::name)) {
        let found = all(text);
        if found.is_empty() {
            let uncounted = result.uncounted.iter().find(|one| one.event == text);
            let why = uncounted.map_or("the report has no count of it", |one| &one.reason);
            return Err(format!("event {text} was not counted: {why}"));
        }
        let passes: BTreeSet<u32> = found.iter().filter_map(|one| pass(one)).collect();
        common = Some(match common {
            None => passes,
            Some(common) => common.intersection(&passes).copied().collect(),
        });
    }
    for text in ask.latencies() {
        if all(text).is_empty() && !did_not_occur(result, text) {
            let uncounted = result.uncounted.iter().find(|one| one.event == text);
            let why = uncounted.map_or("the report does not have it", |one| &one.reason);
            return Err(format!("{text}: {why}"));
        }
    }
    for text in ask.energy() {
        if all(text).is_empty() {
            let uncounted = result.uncounted.iter().find(|one| one.event == text);
            let why = uncounted.map_or("the report does not have it", |one| &one.reason);
            return Err(format!("{text} was not read: {why}"));
        }
    }
    let together = common.and_then(|common| common.first().copied());
    let counted = |text: &str| {
        let found = all(text);
        let there = found.iter().find(|one| together.is_some() && pass(one) == together);
        there.or(found.first()).copied()
    };
    let of = |meaning: &Option<Meaning>| match meaning {
        Some(Meaning::Event(text)) => counted(text),
        Some(Meaning::Uncore(text)) => counted(uncore::name(text)),
        // Of all runs of the first pass together.
        Some(Meaning::Energy(text) | Meaning::Latency(text)) => all(text).first().copied(),
        _ => None,
    };
    Ok(ask.meanings.iter().map(of).collect())
}

/// Whether the event of a retire latency was counted, and its count is 0 in all runs.
fn did_not_occur(result: &SnippetResult, latency: &str) -> bool {
    let event: Vec<&str> =
        latency.split(':').filter(|part| !part.starts_with("retire_latency")).collect();
    let event = event.join(":");
    let mut counts = result.metrics.iter().filter(|one| one.event == event).peekable();
    let is_zero = |one: &Metric| one.value.median == 0.0 && one.value.max == 0.0;
    counts.peek().is_some() && counts.all(is_zero)
}

/// The time in which the energy of tasks was used, or the uncore counted, for metrics of nothing but that and time: events are counted
/// for a little less.
fn whole_ticks(result: &SnippetResult, ask: &Ask, counts: &[Option<&Metric>]) -> Option<f64> {
    if result.runs != 0 || result.per != 1 || ask.events().next().is_some() {
        return None;
    }
    let Some(energy) = counts.iter().flatten().find_map(|one| one.energy.as_ref()) else {
        let ticks = result.metrics.iter().find(|one| one.event == counted::UNCORE_TICKS)?;
        return ask.uncore().next().map(|_| ticks.value.median);
    };
    let [before, after] = energy.ticks;
    (before == 0).then_some(after as f64)
}

/// In how many units of the uncore those events were counted that were counted in all of them.
fn units(counts: &[Option<&Metric>]) -> Option<f64> {
    let units = counts.iter().flatten().filter_map(|one| Some(one.counting.as_ref()?.units));
    units.max().filter(|&units| units > 0).map(f64::from)
}

/// The pass in which an event was counted; energy is of no pass.
fn counted_in(metric: &&Metric) -> Option<u32> {
    let counts = metric.energy.is_none() && metric.retired.is_none();
    let event = metric.counting.as_ref().filter(|_| counts);
    event.map(|counting| counting.pass)
}

/// What a run counted for an execution of the body.
fn of_run(metric: &Metric, run: usize, per: u64) -> Option<f64> {
    let [small, large] =
        metric.series.each_ref().map(|series| series.values.as_ref()?.get(run).copied());
    Some((large? as f64 - small? as f64) / per.max(1) as f64)
}

fn constant_value(constant: Constant, ticks: Option<f64>, clock: Clock) -> Option<f64> {
    let seconds = || Some(ticks? / clock.hz? as f64);
    match constant {
        Constant::Number(number) => Some(number),
        Constant::Milliseconds => seconds().map(|seconds| 1e3 * seconds),
        Constant::Seconds => seconds(),
        Constant::TscHz => clock.hz.map(|hz| hz as f64),
        Constant::TscTicks => ticks,
        // Known from the counts.
        Constant::Units => None,
    }
}

/// The reason with the events' names in place of the formula's.
fn told(why: &NoValue, ask: &Ask) -> String {
    let event =
        |name: &String| uncore::name(ask.metric.events.get(name).unwrap_or(name)).to_string();
    match why {
        NoValue::Missing(name) => NoValue::Missing(event(name)).to_string(),
        NoValue::DivisionByZero(names) => {
            NoValue::DivisionByZero(names.iter().map(event).collect()).to_string()
        }
    }
}

fn doubts(
    result: &SnippetResult,
    ask: &Ask,
    counts: &[Option<&Metric>],
    clock: Clock,
    value: Option<f64>,
) -> Vec<String> {
    let mut doubts = Vec::new();
    let passes: BTreeSet<u32> = counts.iter().flatten().filter_map(counted_in).collect();
    if passes.len() > 1 {
        let text = "its events do not fit into the counters together, so they were counted at different times";
        doubts.push(format!("{text}, in {} passes", passes.len()));
    }
    if result.emulated {
        for event in &ask.silent {
            doubts.push(format!("{event}: the emulated PMU counts nothing for it"));
        }
    }
    for one in counts.iter().flatten() {
        for remark in one.counting.iter().flat_map(|counting| &counting.remarks) {
            doubts.push(format!("{}: {remark}", one.event));
        }
        if one.value.median < 0.0 {
            let count = one.value.median;
            doubts.push(format!(
                "{}: more in the smaller code than in the larger: {count}",
                one.event
            ));
        }
    }
    if shares::has(ask) {
        doubts.extend(shares::known_to(result).and_then(shares::doubt));
    }
    let of_time = ask.meanings.iter().flatten().any(|meaning| match meaning {
        Meaning::Tsc => true,
        Meaning::Constant(constant) => constant.is_time(),
        Meaning::Event(_) | Meaning::Uncore(_) | Meaning::Latency(_) | Meaning::Energy(_) => false,
    });
    if of_time && clock.of_instructions {
        doubts.push("it is of time, and ticks of the TSC are instructions here".to_string());
    }
    if result.smis > 0 {
        doubts.push(format!("{} system management interrupts occurred during it", result.smis));
    }
    let percent = ask.metric.unit.as_deref() == Some("percent");
    if percent && value.is_some_and(|value| !(-SLACK..=100.0 + SLACK).contains(&value)) {
        doubts.push("it is no share of a whole".to_string());
    }
    let mut seen = BTreeSet::new();
    doubts.retain(|doubt| seen.insert(doubt.clone()));
    doubts
}

/// Whether a metric is over its threshold, which may request others.
fn exceeded(ask: &Ask, asks: &[Ask], rows: &[MetricRow]) -> Option<bool> {
    let threshold = ask.metric.threshold.as_ref()?;
    let formula = Formula::parse(&threshold.formula).ok()?;
    let value = |name: &String| {
        let legacy = threshold.metrics.get(name).unwrap_or(name);
        let is = |ask: &Ask| ask.metric.legacy == *legacy || ask.metric.name == *legacy;
        let value = rows[asks.iter().position(is)?].value?;
        // Where a threshold has full names, as in the tables of the E-cores, it takes percents for shares of 1.
        let is_share = !threshold.metrics.contains_key(name) && name.ends_with("(%)");
        Some(if is_share { value / 100.0 } else { value })
    };
    let values: Vec<Option<f64>> = formula.names().iter().map(value).collect();
    formula.value(&values).ok().map(|value| value != 0.0)
}

#[cfg(test)]
mod tests;
