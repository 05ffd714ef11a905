//! Metrics of a job's snippets and counts: which are asked for, and the events that are counted for them.

use super::count::CountFile;
use super::errors::JobError;
use super::file::{FileItem, JobFile, SnippetFile};
use super::run::RunFile;
use super::sample::SampleFile;
use super::{Purpose, whole};
use crate::events::{Block, EventText};
use crate::metrics::names::{DEEPEST, find};
use crate::metrics::request::{Ask, Target, ask, planned, planned_beside};
use crate::metrics::{Asked, MetricError, shares};
use clap::Args;
use protocol::job::history::WITNESS;
use std::collections::BTreeSet;

/// What the command line asks for.
#[derive(Clone, Debug, Default, Args)]
pub struct MetricOptions {
    /// Show this metric of every snippet and count: one of our own like `ipc`, or one of perfmon's for the processor
    /// (`cargo xtask events --metrics` lists them). Can be given several times.
    #[arg(long = "metric", value_name = "NAME")]
    pub metrics: Vec<Asked>,
    /// Show where the time goes: the first level of the top-down tree.
    #[arg(long)]
    pub topdown: bool,
    /// The same down to this level.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(DEEPEST)))]
    pub topdown_level: Option<u8>,
}

impl MetricOptions {
    /// All that they ask for.
    fn asked(&self) -> Vec<Asked> {
        let level = self.topdown_level.or(self.topdown.then_some(1));
        level.map(Asked::Tree).into_iter().chain(self.metrics.iter().cloned()).collect()
    }

    /// Adds them to every snippet and count.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn apply(&self, file: &mut JobFile) -> Result<(), JobError> {
        let asked = self.asked();
        let others = file.snippets.is_empty() && file.counts.is_empty();
        if let (Some(first), true) = (asked.first(), others && file.runs.is_empty()) {
            let message = format!(
                "metric {first}: the job has no snippet, no count and no run to measure it of"
            );
            return Err(JobError::Metrics { file: file.source.clone(), message });
        }
        if others {
            // Beside others, a run of tasks may have none of them.
            file.runs.iter_mut().for_each(|run| run.metrics.extend(asked.iter().cloned()));
        }
        file.snippets.iter_mut().for_each(|snippet| snippet.metrics.extend(asked.iter().cloned()));
        file.counts.iter_mut().for_each(|count| count.metrics.extend(asked.iter().cloned()));
        Ok(())
    }
}

/// Looks the metrics of all snippets up and adds the events that they need.
///
/// # Errors
/// A metric that cannot be had, or an item that has none.
pub(super) fn plan(
    file: &mut JobFile,
    target: Option<&Target>,
    purpose: Purpose,
    tables: &Block,
) -> Result<(), JobError> {
    let source = file.source.clone();
    for snippet in file.snippets.iter_mut().filter(|snippet| !snippet.metrics.is_empty()) {
        let first = snippet.metrics[0].to_string();
        if let Some(why) = without(snippet) {
            return Err(snippet.refused(&source, format!("metric {first}: {why}")));
        }
        let known = target.ok_or_else(|| MetricError::NoProcessor(unknown(purpose).to_string()));
        let planned = known.and_then(|target| of(snippet, target, tables));
        planned.map_err(|error| snippet.refused(&source, error.to_string()))?;
    }
    for run in file.runs.iter_mut().filter(|run| !run.metrics.is_empty()) {
        let known = target.ok_or_else(|| MetricError::NoProcessor(unknown(purpose).to_string()));
        let done = known.and_then(|target| of_run(run, target, tables));
        let done = done.map_err(|error| error.to_string()).and_then(|done| done);
        done.map_err(|message| run.refused(&source, message))?;
    }
    for sample in file.samples.iter_mut().filter(|sample| !sample.code.metrics.is_empty()) {
        let known = target.ok_or_else(|| MetricError::NoProcessor(unknown(purpose).to_string()));
        let done = known.and_then(|target| of_sample(sample, target, tables));
        let done = done.map_err(|error| error.to_string()).and_then(|done| done);
        done.map_err(|message| sample.refused(&source, message))?;
    }
    for count in file.counts.iter_mut().filter(|count| !count.asked().is_empty()) {
        let known = target.ok_or_else(|| MetricError::NoProcessor(unknown(purpose).to_string()));
        let done = known.and_then(|target| of_count(count, target, tables));
        let done = done.map_err(|error| error.to_string()).and_then(|done| done);
        done.map_err(|message| count.refused(&source, message))?;
    }
    Ok(())
}

/// Samples have no counters to spare, so their metrics are of the events that are sampled, of energy, of the uncore, and of
/// PERF_METRICS.
fn of_sample(
    sample: &mut SampleFile,
    target: &Target,
    block: &Block,
) -> Result<Result<(), String>, MetricError> {
    let tables = block.tables();
    let (core, table) = target.tables(&tables)?;
    let metrics = find(&table, &sample.code.metrics)?;
    let asks = metrics.iter().map(|metric| ask(target, &core, &table, metric)?.without_latencies());
    let asks: Vec<Ask> = asks.collect::<Result<_, _>>()?;
    let sampled: Vec<String> = sample.texts.iter().map(ToString::to_string).collect();
    let asks = asks.into_iter().map(|one| among(one, &sampled));
    let asks: Result<Vec<(Ask, Vec<String>)>, String> = asks.collect();
    Ok(asks.map(|asks| {
        let (asks, shares): (Vec<Ask>, Vec<Vec<String>>) = asks.into_iter().unzip();
        whole::add(&mut sample.whole, of_whole(&asks));
        sample.code.asks = asks;
        sample.count_beside(shares.into_iter().flatten());
    }))
}

/// A metric of what is sampled, with the events of PERF_METRICS that it takes, in the rings of what is sampled: those need no counter
/// that could sample.
fn among(ask: Ask, sampled: &[String]) -> Result<(Ask, Vec<String>), String> {
    let mut shares: Vec<String> = Vec::new();
    if ask.events().any(|event| shares::field(event).is_some()) {
        let rings =
            [":u", ":k"].into_iter().find(|ring| sampled.iter().all(|text| text.ends_with(ring)));
        let beside = ask.events().filter(|event| shares::is_beside(event));
        let beside = beside.map(|event| format!("{event}{}", rings.unwrap_or_default()));
        shares.extend(beside.filter(|text| !sampled.contains(text)));
    }
    let all = [sampled, &shares[..]].concat();
    ask.among(&all).map(|ask| (ask, shares))
}

/// A run of tasks has no counters of its processors, so it has metrics of energy, of the uncore and of time.
fn of_run(
    run: &mut RunFile,
    target: &Target,
    block: &Block,
) -> Result<Result<(), String>, MetricError> {
    let tables = block.tables();
    let (core, table) = target.tables(&tables)?;
    let metrics = find(&table, &run.metrics)?;
    let asks = metrics.iter().map(|metric| ask(target, &core, &table, metric)?.without_latencies());
    let asks: Vec<Ask> = asks.collect::<Result<_, _>>()?;
    for one in &asks {
        if let Some(event) = one.events().next() {
            return Ok(Err(format!(
                "metric {}: it needs {event}, and [[run]] counts nothing; measure the same tasks in [[count]]",
                one.metric.name
            )));
        }
    }
    whole::add(&mut run.whole, of_whole(&asks));
    run.asks = asks;
    Ok(Ok(()))
}

/// What of metrics is read before and after an item that runs once: energy, and the uncore's events of each metric together.
fn of_whole(asks: &[Ask]) -> Vec<EventText> {
    let energy: BTreeSet<&str> = asks.iter().flat_map(Ask::energy).collect();
    let energy = energy.into_iter().map(str::to_string);
    let texts = energy.chain(asks.iter().filter_map(Ask::uncore_together));
    texts.map(|text| text.parse().expect("energy or an event of a metric")).collect()
}

/// A set of a count has one list of events: what does not fit takes turns, and the report says which metrics that spoils.
fn of_count(
    count: &mut CountFile,
    target: &Target,
    block: &Block,
) -> Result<Result<(), String>, MetricError> {
    let tables = block.tables();
    let (core, table) = target.tables(&tables)?;
    for (set, asked) in count.asked() {
        let metrics = find(&table, &asked)?;
        let asks =
            metrics.iter().map(|metric| ask(target, &core, &table, metric)?.without_latencies());
        let asks: Vec<Ask> = asks.collect::<Result<_, _>>()?;
        let texts: BTreeSet<&str> = asks.iter().flat_map(Ask::events).collect();
        let texts = texts.into_iter().map(|text| text.parse().expect("an event of a metric"));
        let texts: Vec<EventText> = texts.chain(of_whole(&asks)).collect();
        if let Err(why) = count.count_for(set, asks, texts) {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

/// Why there are no metrics of a snippet of its kind.
fn without(snippet: &SnippetFile) -> Option<&'static str> {
    if snippet.exact.is_some() {
        Some("metrics are of counts, and stepping counts by names of its own")
    } else if snippet.wanted.is_some() {
        Some(
            "metrics are of code, and an instruction form stands for several; measure its code in [[snippet]]",
        )
    } else {
        None
    }
}

fn unknown(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Stick => {
            "an image does not know on which it will run; name the events in `events`, or measure with `run`"
        }
        Purpose::Qemu => {
            "the guest's is not known or has no PMU; name an emulated one with --pmu (cargo xtask run --help)"
        }
    }
}

fn of(snippet: &mut SnippetFile, target: &Target, block: &Block) -> Result<(), MetricError> {
    let tables = block.tables();
    let (core, table) = target.tables(&tables)?;
    let metrics = find(&table, &snippet.metrics)?;
    if let Some(history) = &snippet.history {
        let clock = history.clock.to_string();
        let beside = [&*clock, WITNESS];
        let asks = metrics
            .iter()
            .map(|metric| ask(target, &core, &table, metric)?.in_rows(target, &core, &beside));
        let mut asks: Vec<Ask> = asks.collect::<Result<_, _>>()?;
        let planned = planned_beside(target, &core, &mut asks, &beside);
        let planned = planned.map_err(MetricError::Clock)?;
        let events = &mut snippet.options.events;
        let is_there = events.iter().any(|event| event.to_string() == WITNESS);
        let is_needed = asks.iter().any(|ask| ask.events().any(|text| text == WITNESS));
        if is_needed && !is_there {
            events.push(WITNESS.parse().expect("a generic event"));
        }
        events.extend(planned);
        snippet.asks = asks;
        return Ok(());
    }
    let several = snippet.processors.is_some();
    let asks = metrics.iter().map(|metric| match ask(target, &core, &table, metric)? {
        ask if several => ask.without_latencies(),
        ask => Ok(ask),
    });
    let mut asks: Vec<Ask> = asks.collect::<Result<_, _>>()?;
    snippet.options.events.extend(planned(target, &core, &mut asks));
    snippet.asks = asks;
    Ok(())
}
