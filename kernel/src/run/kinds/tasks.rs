//! Tasks: a workload that runs to its end, and one that is counted meanwhile.

use super::whole::{Asked, Begun, Used};
use super::{Failure, Machine, Run};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::job::{Count, Tasks};
use protocol::record::{CountResult, Record, TasksResult, Verdict};

/// What ran, and what it used meanwhile.
struct Metered<T> {
    ran: T,
    tsc: [u64; 2],
    used: Used,
}

/// Has `work` done, and reads the energy that the packages of these processors use meanwhile, and what their uncores count.
fn metered<T, M: Machine>(
    asked: &Asked,
    run: &mut Run<M>,
    work: impl FnOnce(&mut M) -> Result<T, String>,
) -> Result<Metered<T>, Failure> {
    let begun = Begun::begin(asked, run.machine);
    let (ran, tsc) = run.timed(|run| work(run.machine));
    let used = begun.end(run.machine, tsc[1].wrapping_sub(tsc[0]));
    Ok(Metered { ran: ran.map_err(Failure::refused)?, tsc, used })
}

pub(super) fn run(item: &Tasks, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let processors = item.workload.cpus().into_iter().map(u32::from).collect();
    let asked = Asked { energy: &item.energy, uncore: &item.uncore, processors };
    let Metered { ran: summary, tsc, used: Used { energy, uncore, uncounted } } =
        metered(&asked, run, |machine| machine.tasks(item))?;
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
        energy,
        uncore,
        uncounted,
    }))
}

pub(super) fn count(item: &Count, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let processors = run.machine.processors_of(item);
    let asked = Asked { energy: &item.energy, uncore: &item.uncore, processors };
    let Metered { ran: mut result, tsc, used: Used { energy, uncore, uncounted } } =
        metered(&asked, run, |machine| machine.count(item))?;
    result.uncounted.extend(uncounted);
    let (name, emulated) = (item.name.to_string(), run.machine.is_emulated());
    let result = CountResult { item: run.index, name, emulated, tsc, energy, uncore, ..result };
    Ok(Record::Count(result))
}
