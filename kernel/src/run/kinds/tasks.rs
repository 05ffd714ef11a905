//! Tasks: a workload that runs to its end, and one that is counted meanwhile.

use super::{Failure, Machine, Run};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::job::{Count, Tasks};
use protocol::record::{CountResult, Record, TasksResult, Verdict};

pub(super) fn run(item: &Tasks, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (ran, tsc) = run.timed(|run| run.machine.tasks(item));
    let summary = ran.map_err(Failure::refused)?;
    Ok(Record::Tasks(TasksResult {
        item: run.index,
        name: item.name.to_string(),
        verdict: Verdict::None,
        misses: Vec::new(),
        restored: Vec::new(),
        tasks: summary.tasks,
        switches: summary.switches,
        ticks: summary.ticks,
        interrupts: summary.interrupts,
        user_instructions: summary.user_instructions,
        emulated: summary.user_instructions.is_some() && run.machine.is_emulated(),
        tsc,
        together: summary.together,
    }))
}

pub(super) fn count(item: &Count, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let (counted, tsc) = run.timed(|run| run.machine.count(item));
    let result = counted.map_err(Failure::refused)?;
    let (name, emulated) = (item.name.to_string(), run.machine.is_emulated());
    Ok(Record::Count(CountResult { item: run.index, name, emulated, tsc, ..result }))
}
