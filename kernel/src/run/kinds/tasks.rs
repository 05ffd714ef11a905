//! Tasks: a workload that runs to its end, and one that is counted meanwhile.

use super::{Failure, Machine, Run};
use crate::energy::{self, Wanted};
use crate::uncore;
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::job::{Count, Tasks};
use protocol::record::{
    CountResult, CountedEnergy, CountedUncore, Record, TasksResult, Uncounted, Verdict,
};

/// What ran, and what it used meanwhile.
struct Metered<T> {
    ran: T,
    tsc: [u64; 2],
    energy: Vec<CountedEnergy>,
    uncore: Vec<CountedUncore>,
    uncounted: Vec<Uncounted>,
}

/// Has `work` done, and reads the energy that the packages of these processors use meanwhile, and what their uncores count.
fn metered<T, M: Machine>(
    (texts, of_uncore, processors): (&[Cow<str>], &[Cow<str>], &[u32]),
    run: &mut Run<M>,
    work: impl FnOnce(&mut M) -> Result<T, String>,
) -> Result<Metered<T>, Failure> {
    let wanted: Vec<Wanted> = texts.iter().filter_map(|one| Wanted::of_text(one)).collect();
    // The boot processor alone is what is read without being named.
    let nothing = wanted.is_empty() && of_uncore.is_empty();
    let named = if nothing || processors == [0] { &[] } else { processors };
    run.machine.measure_packages_of(named);
    let mut uncounted = Vec::new();
    let had = energy::had(&wanted, run.machine.meters(), &mut uncounted);
    let mut used = energy::begin(&had, run.machine.meters());
    let counted = uncore::begin(of_uncore, run.machine, &mut uncounted);
    let (ran, tsc) = run.timed(|run| work(run.machine));
    let ticks = tsc[1].wrapping_sub(tsc[0]);
    let uncore = counted.map(|counted| counted.end(run.machine, ticks)).unwrap_or_default();
    if let Some(Ok(used)) = &mut used
        && let Ok(source) = run.machine.meters()
    {
        used.end(source);
    }
    let energy = energy::totals(&had, run.machine.meters(), used, &mut uncounted);
    run.machine.measure_packages_of(&[]);
    Ok(Metered { ran: ran.map_err(Failure::refused)?, tsc, energy, uncore, uncounted })
}

pub(super) fn run(item: &Tasks, run: &mut Run<impl Machine>) -> Result<Record, Failure> {
    let processors: Vec<u32> = item.workload.cpus().into_iter().map(u32::from).collect();
    let asked = (&item.energy[..], &item.uncore[..], &processors[..]);
    let Metered { ran: summary, tsc, energy, uncore, uncounted } =
        metered(asked, run, |machine| machine.tasks(item))?;
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
    let asked = (&item.energy[..], &item.uncore[..], &processors[..]);
    let Metered { ran: mut result, tsc, energy, uncore, uncounted } =
        metered(asked, run, |machine| machine.count(item))?;
    result.uncounted.extend(uncounted);
    let (name, emulated) = (item.name.to_string(), run.machine.is_emulated());
    let result = CountResult { item: run.index, name, emulated, tsc, energy, uncore, ..result };
    Ok(Record::Count(result))
}
