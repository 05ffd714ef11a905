//! A history of a snippet's counts.

use super::{Failure, Machine, Run};
use crate::history;
use protocol::job::History;
use protocol::record::{HistoryResult, Record};

pub(super) fn run(item: &History, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (measured, tsc) = run.timed(|run| history::measure(run.machine, run.index, item));
    let result = measured.map_err(|why| Failure::of(&item.snippet, why))?;
    let emulated = run.machine.is_emulated();
    Ok(Record::History(HistoryResult { emulated, tsc, ..result }))
}
