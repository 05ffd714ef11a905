//! A snippet on several processors.

use super::{Failure, Machine, Run};
use protocol::job::Processors;
use protocol::record::{ProcessorsResult, Record};

pub(super) fn run(item: &Processors, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (measured, tsc) = run.timed(|run| run.machine.processors(item, run.index));
    let result = measured.map_err(|failure| {
        let why = Failure::of(&item.snippet, failure.why);
        match failure.processor {
            Some(number) => why.on_processor(number),
            None => why,
        }
    })?;
    let emulated = run.machine.is_emulated() && !result.sums.is_empty();
    Ok(Record::Processors(ProcessorsResult { emulated, tsc, ..result }))
}
