//! What measuring a snippet costs, beyond the snippet.

use super::{Figure, boots};
use crate::Result;
use crate::build::Tree;
use crate::cli::Boot;
use crate::job::{self, Purpose, file};
use crate::machine::{Given, MachineError};
use protocol::line;
use protocol::record::Record;
use std::fmt::Write;

/// Snippets in the job.
const COUNT: usize = 1000;

/// Runs a job of many small snippets, directly booted under icount.
pub(super) fn measure(tree: &Tree) -> Result<Vec<Figure>> {
    let packed = job::pack(&file::parse(&job_text(COUNT), "bench")?, Purpose::Qemu)?;
    let (finished, _) =
        boots::boot(tree, &tree.kernel(), Some(&packed.bytes), Boot::Direct, Given::None)?;
    let seconds = match (finished.to_first_record, finished.to_end_record) {
        (Some(first), Some(end)) => (end - first).as_secs_f64(),
        _ => return Err(MachineError::Unfinished("the bench job gave no report".into()).into()),
    };
    let report = finished.collector.finish();
    let results: Vec<_> = report.results().collect();
    if results.len() != COUNT {
        let text = format!("{} of {COUNT} snippets were measured", results.len());
        return Err(MachineError::Unfinished(text).into());
    }
    let bytes: usize = report.records.iter().filter_map(wire_bytes).sum();
    let between: Vec<f64> =
        results.windows(2).map(|pair| pair[1].tsc[0].wrapping_sub(pair[0].tsc[1]) as f64).collect();
    let within: Vec<f64> = results.iter().map(|r| r.tsc[1].wrapping_sub(r.tsc[0]) as f64).collect();
    Ok(vec![
        Figure::count(
            "snippets a second (host time, 1000 in one job)",
            COUNT as f64 / seconds,
            "1/s",
        ),
        Figure::count("bytes on the wire per result", bytes as f64 / COUNT as f64, "bytes"),
        Figure::spread("firmware instructions between two snippets", between, "instructions"),
        Figure::spread(
            "instructions to measure a nop (30 runs of 300 or 600)",
            within,
            "instructions",
        ),
    ])
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
        .then(|| line::encode(numbered.seq, &numbered.record).len() + "\r\n".len())
}
