//! What measuring a snippet costs, beyond the snippet.

use super::{Figure, boots};
use crate::build::Tree;
use crate::cli::Boot;
use crate::collect::Report;
use crate::job::{self, JobError, Purpose, file};
use crate::machine::{Given, MachineError};
use crate::{Failure, Result};
use protocol::authentication::Key;
use protocol::line;
use protocol::record::Record;
use std::fmt::Write;

/// Snippets in each of the jobs.
const COUNTS: [usize; 3] = [1000, 5000, 10_000];
/// Instructions of the NOPs in an item: 15 runs of 100 copies and 15 of 200.
const BODY: f64 = 15.0 * 300.0;
/// Those runs.
const RUNS: f64 = 30.0;

/// Any key: its code takes the same instructions for each.
const KEY: Key = Key::new(*b"key of the bench");

/// A job of many small snippets, run.
struct Many {
    count: usize,
    /// Wall time from the first record to the end.
    seconds: f64,
    report: Report,
}

/// Runs jobs of many small snippets, directly booted under icount.
pub(super) fn measure(tree: &Tree) -> Result<Vec<Figure>> {
    let jobs = COUNTS.iter().map(|&count| run(tree, count)).collect::<Result<Vec<_>>>()?;
    let mut figures = Vec::new();
    for job in &jobs {
        let count = job.count;
        let name = format!("{count} snippets in one job");
        let rate = count as f64 / job.seconds;
        figures.push(Figure::count(format!("{name}: snippets a second (host time)"), rate, "1/s"));
        let instructions = job.instructions()? / count as f64;
        figures.push(Figure::count(format!("{name}: each"), instructions, "instructions"));
        let growth = job.heap()?;
        figures.push(Figure::count(format!("{name}: heap, most at a time"), growth, "bytes"));
    }
    let ([least, .., most], [few, .., many]) = (&COUNTS, &jobs[..]) else {
        unreachable!("there are several jobs")
    };
    let ratio = (many.instructions()? / *most as f64) / (few.instructions()? / *least as f64);
    figures.push(Figure::count(
        format!("instructions a snippet, {most} snippets to {least}"),
        ratio,
        "ratio",
    ));
    figures.extend(few.each()?);
    Ok(figures)
}

fn unfinished(text: impl Into<String>) -> Failure {
    MachineError::Unfinished(text.into()).into()
}

fn run(tree: &Tree, count: usize) -> Result<Many> {
    let packed = job::pack(&file::parse(&job_text(count), "bench")?, Purpose::Qemu)?;
    // As `run` boots. The lines are read without the key: what they cost is the same for each.
    let name = packed.job.name.to_string();
    let packed = packed.rest(0, Some(KEY)).map_err(|error| JobError::Pack { file: name, error })?;
    let (finished, _) =
        boots::boot(tree, &tree.kernel(), Some(&packed.bytes), Boot::Direct, Given::None)?;
    let seconds = match (finished.to_first_record, finished.to_end_record) {
        (Some(first), Some(end)) => (end - first).as_secs_f64(),
        _ => return Err(unfinished("the bench job gave no report")),
    };
    let report = finished.collector.finish();
    let measured = report.results().count();
    if measured != count {
        return Err(unfinished(format!("{measured} of {count} snippets were measured")));
    }
    Ok(Many { count, seconds, report })
}

impl Many {
    /// From the first item's begin to the last one's end, in ticks, which are instructions.
    fn instructions(&self) -> Result<f64> {
        let results = || self.report.results();
        let ends = results().next().zip(results().last());
        let (first, last) = ends.ok_or_else(|| unfinished("no snippet was measured"))?;
        Ok(last.tsc[1].wrapping_sub(first.tsc[0]) as f64)
    }

    /// Bytes of heap that the items took beyond the job, at most.
    fn heap(&self) -> Result<f64> {
        let heap = self.report.end().and_then(|end| end.heap);
        let heap = heap.ok_or_else(|| unfinished("the report does not state the heap's use"))?;
        Ok((heap.most - heap.before) as f64)
    }

    /// What one snippet costs.
    fn each(&self) -> Result<Vec<Figure>> {
        let results: Vec<_> = self.report.results().collect();
        let bytes: usize = self.report.records.iter().filter_map(wire_bytes).sum();
        let ticks = |from: u64, to: u64| to.wrapping_sub(from) as f64;
        let between = results.windows(2).map(|pair| ticks(pair[0].tsc[1], pair[1].tsc[0]));
        let within =
            results.iter().map(|result| (ticks(result.tsc[0], result.tsc[1]) - BODY) / RUNS);
        // What the two readings of the TSC enclose in addition to the copies.
        let window = results[0].metrics[0].series[0].min as f64 - 100.0;
        let unit = "instructions";
        Ok(vec![
            Figure::count(
                "bytes on the wire per result",
                bytes as f64 / results.len() as f64,
                "bytes",
            ),
            Figure::spread("firmware instructions between two snippets", between.collect(), unit),
            Figure::spread(
                "firmware instructions a run, without the snippet",
                within.collect(),
                unit,
            ),
            Figure::count("of these within the measured window, where they cancel", window, unit),
        ])
    }
}

/// A job of `count` snippets of the tour's default form.
#[must_use]
pub fn job_text(count: usize) -> String {
    let mut text = String::from("name = \"many\"\n");
    for index in 0..count {
        // Writing to a String does not fail.
        let _ = write!(text, "[[snippet]]\nname = \"nop {index}\"\nasm = \"nop\"\n");
    }
    text
}

/// Bytes of a result's line, its line end included.
fn wire_bytes(numbered: &crate::collect::Numbered) -> Option<usize> {
    matches!(numbered.record, Record::Result(_))
        .then(|| line::encode_with(numbered.seq, &numbered.record, Some(&KEY)).len() + "\r\n".len())
}
