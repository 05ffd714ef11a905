//! A snippet on several processors.

use super::{Failure, Machine, Run};
use alloc::format;
use protocol::job::Processors;
use protocol::record::{ProcessorsResult, Record};

pub(super) fn run(item: &Processors, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let core = run.core.or(item.core);
    let (measured, tsc) = run.timed(|run| run.machine.processors(item, core, run.index));
    let result = measured.map_err(|failure| {
        let why = Failure::of(&item.snippet, failure.why);
        match (failure.processor, run.core) {
            (Some(number), _) => why.on_processor(number),
            (None, Some(core)) => why.on_cores(core),
            (None, None) => why,
        }
    })?;
    let emulated = run.machine.is_emulated() && !result.sums.is_empty();
    let name = match run.core {
        Some(core) => format!("{}, {core} cores", result.name),
        None => result.name,
    };
    Ok(Record::Processors(ProcessorsResult { name, more: run.more, emulated, tsc, ..result }))
}
