//! A snippet, measured.

use super::{Failure, Machine, Run};
use crate::snippet::measure::{Measured, executions, measure};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::job::Snippet;
use protocol::record::{Record, SnippetResult, Verdict};

pub(super) fn run(item: &Snippet, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (measured, tsc) = run.timed(|run| measure(run.machine, item));
    let measured = measured.map_err(|why| Failure::of(item, why))?;
    let Measured { metrics, uncounted, planning, controls, unwatched, smis } = measured;
    // The first one is the TSC.
    let emulated = run.machine.is_emulated() && metrics.len() > 1;
    Ok(Record::Result(SnippetResult {
        item: run.index,
        name: item.name.to_string(),
        verdict: Verdict::None,
        misses: Vec::new(),
        per: executions(item),
        runs: item.runs,
        metrics,
        uncounted,
        planning,
        controls,
        restored: Vec::new(),
        unwatched,
        smis,
        emulated,
        tsc,
    }))
}
