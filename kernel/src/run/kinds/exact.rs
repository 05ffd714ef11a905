//! Exact mode. Where it verifies the PMU, agreement is what is expected.

use super::{Failure, Machine, Run};
use crate::exact;
use protocol::job::Exact;
use protocol::record::{ExactResult, Record};

pub(super) fn run(item: &Exact, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (measured, tsc) = run.timed(|run| exact::measure(run.machine, run.index, item));
    let result = measured.map_err(|why| Failure::of(&item.snippet, why))?;
    let emulated = item.verify && run.machine.is_emulated();
    Ok(Record::Exact(ExactResult { emulated, tsc, ..result }))
}
