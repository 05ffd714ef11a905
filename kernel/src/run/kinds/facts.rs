//! What the processor's caches and TLBs are.

use super::{Failure, Machine, Run};
use alloc::string::ToString;
use protocol::job::Facts;
use protocol::record::{FactsResult, Record};

pub(super) fn run(item: &Facts, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (measured, tsc) = run.timed(|run| run.machine.facts(item));
    let result = measured.map_err(Failure::refused)?;
    let name = item.name.to_string();
    Ok(Record::Facts(FactsResult { item: run.index, name, tsc, ..result }))
}
