//! Bounds of counting over tasks.

use super::{
    LimitError, MAX_CPU, MAX_EVENT_BYTES, MAX_EVENTS, gate, length, moving, name, range, schedule,
};
use crate::job::count::{Bind, Count, CountRequest, MAX_SETS};
use crate::job::workload::{self, Workload};
use alloc::borrow::Cow;

pub(crate) fn check_count(count: &Count) -> Result<(), LimitError> {
    name(&count.name)?;
    range("the number of sets", count.sets.len() as u64, 0, MAX_SETS as u64)?;
    let is_set = !count.requests.is_empty()
        || count.together
        || count.alone
        || !matches!(count.bind, Bind::System);
    if !count.sets.is_empty() && is_set {
        return Err(LimitError::EventsAndSets);
    }
    count.sets.iter().try_for_each(|set| name(&set.name))?;
    for set in count.all_sets() {
        // Energy alone is enough, and so is the uncore.
        let without = count.energy.is_empty() && count.uncore.is_empty();
        let least = if without || !count.sets.is_empty() { 1 } else { 0 };
        check_requests(set.requests, least)?;
        check_bind(set.bind, &count.workload)?;
    }
    check_whole(&count.energy, &count.uncore)?;
    moving::check_count(count)?;
    if count.interval_ns > 0 {
        check_series(count)?;
    }
    range("limit-us", count.limit_us, 1, workload::MAX_LIMIT_US)?;
    workload::check(&count.workload)?;
    schedule::check(count)?;
    if count.console {
        check_console(count)?;
    }
    gate::check(count)
}

/// Energy and events of the uncore of a whole item.
pub(crate) fn check_whole(energy: &[Cow<str>], uncore: &[Cow<str>]) -> Result<(), LimitError> {
    range("the number of energies", energy.len() as u64, 0, MAX_EVENTS as u64)?;
    range("the number of events of the uncore", uncore.len() as u64, 0, MAX_EVENTS as u64)?;
    energy
        .iter()
        .chain(uncore)
        .try_for_each(|one| length("the text of an event", one.len(), MAX_EVENT_BYTES))
}

/// The console is on the processor of the tasks, and says itself when sets count.
fn check_console(count: &Count) -> Result<(), LimitError> {
    if !count.gate.is_empty() {
        return Err(LimitError::ConsoleWithGate);
    }
    if count.sets.iter().any(|set| set.schedule.is_given()) {
        return Err(LimitError::ConsoleOfScheduled);
    }
    let tasks = &count.workload.tasks;
    let place = |index: usize| (count.workload.cpu_of(index), tasks[index].core);
    let first = place(0);
    let here = |bind: &Bind| match bind {
        Bind::System | Bind::Tasks(_) => true,
        Bind::Processor(cpu) => (*cpu, None) == first,
        Bind::AllProcessors | Bind::Core(..) => false,
    };
    let one = (1..tasks.len()).all(|index| place(index) == first);
    match one && count.all_sets().iter().all(|set| here(set.bind)) {
        true => Ok(()),
        false => Err(LimitError::ConsoleOfSeveral),
    }
}

/// Rows of a series end at ticks.
fn check_series(count: &Count) -> Result<(), LimitError> {
    match count.workload.tick_ns {
        0 => Err(LimitError::IntervalWithoutTick),
        _ => Ok(()),
    }
}

fn check_requests(requests: &[CountRequest], least: u64) -> Result<(), LimitError> {
    range("the number of events", requests.len() as u64, least, MAX_EVENTS as u64)?;
    for request in requests {
        length("the text of an event", request.event.len(), MAX_EVENT_BYTES)?;
        if let Some(every) = request.every {
            range("every", every, 1, u64::MAX)?;
        }
        for &other in &request.starts {
            range("starts", u64::from(other), 0, requests.len() as u64 - 1)?;
        }
    }
    Ok(())
}

fn check_bind(bind: &Bind, workload: &Workload) -> Result<(), LimitError> {
    match bind {
        Bind::System | Bind::AllProcessors => Ok(()),
        Bind::Processor(cpu) | Bind::Core(_, cpu) => {
            range("cpu", u64::from(*cpu), 0, u64::from(MAX_CPU))
        }
        Bind::Tasks(tasks) => {
            let most = workload.tasks.len() as u64;
            range("the number of tasks that are bound", tasks.len() as u64, 1, most)?;
            for (index, &task) in tasks.iter().enumerate() {
                range("the index of a task", u64::from(task), 0, most.saturating_sub(1))?;
                if tasks[..index].contains(&task) {
                    return Err(LimitError::BoundTwice(task));
                }
            }
            Ok(())
        }
    }
}
