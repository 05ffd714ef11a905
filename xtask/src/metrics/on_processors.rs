//! Counts of several processors as metrics take them: of all of them together, and of each.

use super::counted::{metric, result};
use protocol::job::criteria::TSC;
use protocol::record::{Metric, ProcessorResult, ProcessorsResult, SnippetResult, Uncounted};

/// The figures of all processors together, then those of each. Of one alone there are its own.
#[must_use]
pub(super) fn figures(ran: &ProcessorsResult) -> Vec<SnippetResult> {
    let each = ran.processors.iter().map(|one| of_one(ran, one));
    let whole = (ran.processors.len() > 1).then(|| together(ran));
    whole.into_iter().chain(each).collect()
}

fn of_one(ran: &ProcessorsResult, one: &ProcessorResult) -> SnippetResult {
    let alone = ran.processors.len() == 1;
    let (mut metrics, mut uncounted) = (Vec::new(), ran.uncounted.clone());
    for metric in &one.metrics {
        if metric.reader().is_none() || alone {
            metrics.push(metric.clone());
        }
    }
    let all = ran.processors.iter().flat_map(|one| &one.metrics);
    for other in all.filter(|other| metrics.iter().all(|own| own.event != other.event)) {
        let reason = match (&other.energy, &one.pmu_absent) {
            (Some(_), _) => "energy is of all processors together",
            _ if other.reader().is_some() => "the uncore is of all processors together",
            (None, Some(reason)) => reason,
            (None, None) => "it was not counted on this processor",
        };
        if uncounted.iter().all(|known| known.event != other.event) {
            let (event, reason) = (other.event.clone(), reason.to_string());
            uncounted.push(Uncounted { event, reason });
        }
    }
    let name = format!("{}, cpu {}", ran.name, one.processor);
    let whole = result(ran.item, name, metrics, uncounted, (ran.emulated, ran.tsc));
    SnippetResult { per: ran.per, runs: ran.runs, ..whole }
}

/// Sums: a ratio of them is that of all processors. Time is the longest of theirs, or the sum if one ran after the other.
fn together(ran: &ProcessorsResult) -> SnippetResult {
    let mut sums: Vec<(Metric, usize)> = Vec::new();
    for one in ran.processors.iter().flat_map(|one| once(&one.metrics)) {
        match sums.iter_mut().find(|(sum, _)| sum.event == one.event && pass(sum) == pass(one)) {
            Some((sum, processors)) => {
                add(sum, one, one.event == TSC && !ran.in_turn);
                *processors += 1;
            }
            None => {
                // Of a sum there are no runs.
                let mut sum = one.clone();
                sum.series.iter_mut().for_each(|series| series.values = None);
                sums.push((sum, 1));
            }
        }
    }
    let all = ran.processors.len();
    for (sum, processors) in &mut sums {
        if let Some(counting) =
            sum.counting.as_mut().filter(|counting| sum.energy.is_none() && counting.units == 0)
            && *processors < all
        {
            counting.remarks.push(format!("counted on {processors} of {all} processors"));
        }
    }
    let metrics = sums.into_iter().map(|(sum, _)| sum).collect();
    let (name, uncounted) = (ran.name.clone(), ran.uncounted.clone());
    let whole = result(ran.item, name, metrics, uncounted, (ran.emulated, ran.tsc));
    SnippetResult { per: ran.per, ..whole }
}

/// Each figure of a processor once: an event may have been asked for by itself and by a metric. Registers of several packages differ.
fn once(metrics: &[Metric]) -> impl Iterator<Item = &Metric> {
    let is_same = |one: &Metric, other: &Metric| one.is_of_same(other) && pass(one) == pass(other);
    let is_first =
        move |(at, one): &(usize, &Metric)| !metrics[..*at].iter().any(|other| is_same(other, one));
    metrics.iter().enumerate().filter(is_first).map(|(_, one)| one)
}

fn pass(metric: &Metric) -> Option<u32> {
    metric.counting.as_ref().map(|counting| counting.pass)
}

fn add(sum: &mut Metric, one: &Metric, longest: bool) {
    let [a, b] = [sum.value.median, one.value.median];
    sum.value = metric(&sum.event, if longest { a.max(b) } else { a + b }, None).value;
    for (sum, one) in sum.series.iter_mut().zip(&one.series) {
        sum.min += one.min;
        sum.max += one.max;
    }
    // What is divided by the number of units has been counted in those of all packages.
    if let (Some(sum), Some(one)) = (&mut sum.counting, &one.counting) {
        sum.units += one.units;
    }
    if let (Some(sum), Some(one)) = (&mut sum.energy, &one.energy) {
        sum.resolution += one.resolution;
    }
}

#[cfg(test)]
mod tests;
