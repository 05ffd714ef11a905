//! Events against code whose counts are known.

use super::experiments::{self, EXITS};
use super::{Base, Cause, Class, Finding, Lie, Shown};
use crate::collect::Report;
use crate::primitives::number;
use protocol::record::{Metric, SnippetResult};

/// One event in one experiment.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The item.
    pub item: u32,
    /// Its name.
    pub name: &'a str,
    /// Per execution of the body; `None`: not known.
    pub truth: Option<u64>,
    /// Executions of the body in a run.
    pub per: u64,
    /// What was counted per execution: least, median, greatest. From the extremes of both code sizes.
    pub value: [f64; 3],
    /// Whether every run was the same.
    pub same: bool,
    /// System management interrupts during the runs.
    pub smis: u32,
}

/// Greatest relative distance of two shares that are taken for the same.
const ALIKE: f64 = 0.01;

impl<'a> Seen<'a> {
    fn of(result: &'a SnippetResult, metric: &Metric) -> Self {
        let per = result.per.max(1) as f64;
        let [small, large] = &metric.series;
        let least = (large.min as f64 - small.max as f64) / per;
        let most = (large.max as f64 - small.min as f64) / per;
        let truth = experiments::of(&result.name);
        Self {
            item: result.item,
            name: &result.name,
            truth: truth.and_then(|truth| experiments::expected(&metric.event, truth)),
            per: result.per.max(1),
            value: [least, metric.value.median, most],
            same: metric.deterministic,
            smis: result.smis,
        }
    }

    fn is_right(&self) -> bool {
        self.same && self.truth.is_some_and(|truth| self.value[1] == truth as f64)
    }

    /// Least, median and greatest as shares of the truth.
    fn shares(&self) -> Option<[f64; 3]> {
        let truth = self.truth.filter(|truth| *truth > 0)? as f64;
        Some(self.value.map(|value| value / truth))
    }

    fn shown(&self) -> Shown {
        let [least, median, most] = self.value.map(number);
        let came = match self.same {
            true => format!("{median} in every run"),
            false => format!("{median}, {least} to {most}"),
        };
        let expected = self.truth.map_or_else(|| "more than 0".to_string(), |t| t.to_string());
        Shown { item: Some(self.item), ran: self.name.to_string(), expected, came }
    }
}

/// Each event of the experiments.
#[must_use]
pub fn findings(report: &Report) -> Vec<Finding> {
    let mut all: Vec<(&str, Vec<Seen>)> = Vec::new();
    let known = report.results().filter(|result| experiments::of(&result.name).is_some());
    for result in known {
        for metric in result.metrics.iter().filter(|metric| metric.event != "tsc") {
            let seen = Seen::of(result, metric);
            match all.iter_mut().find(|(event, _)| *event == metric.event) {
                Some((_, list)) => list.push(seen),
                None => all.push((&metric.event, vec![seen])),
            }
        }
    }
    all.iter().filter_map(|(event, seen)| judge(event, seen)).collect()
}

/// What an event is, by all that was seen of it.
#[must_use]
pub fn judge(event: &str, seen: &[Seen]) -> Option<Finding> {
    let finding =
        |class, by: &Seen| Some(Finding { what: event.to_string(), class, shown: by.shown() });
    let lying = |how, by| finding(Class::Lying { how }, by);
    let first = seen.first()?;
    if seen.iter().all(|one| one.truth.is_none()) {
        let stuck = seen.iter().find(|one| one.value[1] <= 0.0);
        if let Some(stuck) = stuck {
            return lying(Lie::Stuck, stuck);
        }
        let widest = seen.iter().max_by(|a, b| spread(a).total_cmp(&spread(b)))?;
        let [least, median, most] = widest.value;
        return finding(
            Class::Noisy { least: least / median, most: most / median, of: Base::Median },
            widest,
        );
    }
    let Some(worst) = seen
        .iter()
        .filter(|one| !one.is_right())
        .max_by(|a, b| distance(a).total_cmp(&distance(b)))
    else {
        return finding(Class::Exact, seen.iter().max_by_key(|one| one.truth).unwrap_or(first));
    };
    let shares: Vec<[f64; 3]> = seen.iter().filter_map(Seen::shares).collect();
    if !shares.is_empty() && shares.iter().all(|[_, median, _]| *median <= 0.0) {
        return lying(
            if shares.iter().all(|one| one[1] == 0.0) { Lie::Stuck } else { Lie::Backwards },
            worst,
        );
    }
    let [low, high] = [f64::min as fn(f64, f64) -> f64, f64::max]
        .map(|of| shares.iter().map(|one| one[1]).reduce(of).unwrap_or(1.0));
    let scaled =
        high - low <= 2.0 * ALIKE * high && (low - 1.0).abs().max((high - 1.0).abs()) > 2.0 * ALIKE;
    let right = seen.iter().filter(|one| one.is_right()).count();
    if scaled && seen.iter().all(|one| one.same) {
        return lying(Lie::Scaled, worst);
    }
    // All but the code that exits are right: what is added there is added by the exit.
    if worst.name == EXITS
        && right + 1 == seen.len()
        && let (Some(truth), true) = (worst.truth, worst.same)
    {
        let added = worst.value[1] - truth as f64;
        return finding(Class::ExactUpTo { added, per: Cause::VmExit }, worst);
    }
    let varying: Vec<&Seen> = seen.iter().filter(|one| !one.same).collect();
    if varying.is_empty() {
        return lying(Lie::Incomplete, worst);
    }
    if varying.iter().all(|one| one.smis > 0 && one.truth.is_some_and(|t| one.value[1] == t as f64))
    {
        // Of a run, in which there may have been several, so it is a bound. An SMI may also keep a counter from counting.
        let [lost, added] = [worst.value[0], worst.value[2]].map(|end| end - worst.value[1]);
        let most = if added >= -lost { added } else { lost };
        let added = most * worst.per as f64;
        return finding(Class::ExactUpTo { added, per: Cause::Smi }, worst);
    }
    // Somebody else only takes. What the processor itself does at random, it adds as well.
    let takes = varying
        .iter()
        .filter_map(|one| one.shares())
        .all(|[least, median, _]| least < 1.0 - ALIKE && median <= 1.0);
    if takes {
        return lying(Lie::Shared, worst);
    }
    let [least, _, most] = worst.shares().unwrap_or([0.0, 0.0, 1.0]);
    finding(Class::Noisy { least, most, of: Base::Truth }, worst)
}

fn spread(one: &Seen) -> f64 {
    (one.value[2] - one.value[0]) / one.value[1].max(1e-9)
}

/// From the truth, in parts of it.
fn distance(one: &Seen) -> f64 {
    let Some(truth) = one.truth else { return 0.0 };
    let off = one.value.map(|value| (value - truth as f64).abs());
    off.into_iter().fold(0.0, f64::max) / (truth as f64).max(1.0)
}
