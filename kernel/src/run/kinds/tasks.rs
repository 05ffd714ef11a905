//! Tasks: a workload that runs to its end, and one that is counted meanwhile.

use super::{Failure, Machine, Run};
use crate::energy::{self, Wanted};
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
    let wanted: Vec<Wanted> = item.energy.iter().filter_map(|one| Wanted::of_text(one)).collect();
    let mut uncounted = Vec::new();
    let had = energy::had(&wanted, run.machine.meters(), &mut uncounted);
    let mut used = energy::begin(&had, run.machine.meters());
    let (counted, tsc) = run.timed(|run| run.machine.count(item));
    if let Some(Ok(used)) = &mut used
        && let Ok(source) = run.machine.meters()
    {
        used.end(source);
    }
    let mut result = counted.map_err(Failure::refused)?;
    result.energy = energy::totals(&had, run.machine.meters(), used, &mut uncounted);
    result.uncounted.extend(uncounted);
    let (name, emulated) = (item.name.to_string(), run.machine.is_emulated());
    Ok(Record::Count(CountResult { item: run.index, name, emulated, tsc, ..result }))
}
