//! Tasks that move between processors.
//!
//! All processors share the queues (`queues`), behind a lock that each holds for a few hundred instructions. A task that a processor
//! leaves is in a queue before its registers are kept, so who takes it from there asks its [`Handover`] as well: that is free when
//! nothing of the task is in the other processor any more. Each processor has its own observer, which counts what a task does there
//! (`local`): the counts of a task are the sum over the processors.
//!
//! Where processors work in turn, a turn is what one does until its next tick, or until its task yields or ends: the tasks move as they
//! would if all worked at once, and the same way each time.

mod local;
mod queues;
#[cfg(test)]
mod tests;

use super::assigned::Heart;
use super::scheduler::Account;
use super::ticks::Intervals;
use super::{AssignedProcessor, Machine, Observer, ticks};
use alloc::boxed::Box;
use alloc::vec::Vec;
use arch::smp::Handover;
use local::Local;
use protocol::job::workload::Workload;
use protocol::record::{ProcessorShare, TaskShare, Ticks, Together};
use queues::State;
use spin::Mutex;

/// What all processors share.
struct Shared {
    state: Mutex<State>,
    /// Of each task: which processor has it.
    handovers: Box<[Handover]>,
    in_turn: bool,
}

/// How the tasks went.
pub(super) struct Outcome {
    pub together: Option<Together>,
    pub tasks: Vec<Went>,
    pub switches: u64,
    pub ticks: Ticks,
}

/// How one task went.
#[derive(Clone, Debug, Default)]
pub(super) struct Went {
    pub account: Account,
    /// The number of the processor where it was last.
    pub cpu: u16,
    /// `None`: it may not move.
    pub moves: Option<u64>,
    pub shares: Vec<TaskShare>,
}

/// Runs loaded tasks, as [`super::assigned::run`] does those that do not move.
pub(super) fn run(
    workload: &Workload,
    [limit_us, hz]: [u64; 2],
    mut observers: Vec<(u16, &mut (dyn Observer + '_))>,
    machine: &mut impl Machine,
    heart: Option<Heart>,
) -> Outcome {
    let mut cpus = workload.cpus();
    cpus.extend(observers.iter().map(|(cpu, _)| *cpu));
    cpus.sort_unstable();
    cpus.dedup();
    let shared = Shared {
        state: Mutex::new(State::new(workload, &cpus)),
        handovers: workload.tasks.iter().map(|_| Handover::new()).collect(),
        in_turn: machine.works_in_turn() && cpus.len() > 1,
    };
    let limit = (u128::from(limit_us) * u128::from(hz) / 1_000_000) as u64;
    let local = |(place, &cpu): (usize, &u16)| {
        let own = observers.iter().position(|(own, _)| *own == cpu);
        let observer = own.map(|own| &mut *observers.swap_remove(own).1);
        Local::new(&shared, (place, cpu), workload, [limit, hz], (observer, heart))
    };
    let mut locals: Vec<Local> = cpus.iter().enumerate().map(local).collect();
    let assigned = locals.iter_mut().zip(&cpus);
    let mut assigned: Vec<AssignedProcessor> =
        assigned.map(|(local, &cpu)| AssignedProcessor { cpu, scheduler: local }).collect();
    let together = machine.run_moving(&mut assigned, &shared.handovers);
    let share = |local: &Local| ProcessorShare {
        taken: local.taken,
        switches: local.switches,
        ticks: local.ticks,
        user_instructions: None,
    };
    let shares = locals.iter().map(share).collect();
    let intervals: Vec<&Intervals> = locals.iter().map(|local| &local.intervals).collect();
    let state = shared.state.lock();
    Outcome {
        together: together.map(|together| Together { shares, ..together }),
        tasks: (0..workload.tasks.len()).map(|task| went(&state, workload, task, &cpus)).collect(),
        switches: locals.iter().map(|local| local.switches).sum(),
        ticks: Ticks {
            lengthened: locals.iter().filter_map(Local::lengthened).max(),
            ..ticks::together(intervals.into_iter())
        },
    }
}

fn went(state: &State, workload: &Workload, index: usize, cpus: &[u16]) -> Went {
    let task = &state.tasks[index];
    let cpu = task.last.map_or(0, |place| cpus[place]);
    if workload.cpus_of(index).len() < 2 {
        return Went { account: task.account, cpu, ..Went::default() };
    }
    let stays = cpus.iter().zip(&task.stays).filter(|(_, stay)| stay.switches > 0);
    let share = |(&cpu, stay): (&u16, &queues::Stay)| TaskShare {
        processor: cpu.into(),
        switches: stay.switches,
        time: stay.time,
        user_instructions: None,
    };
    let shares = stays.map(share).collect();
    Went { account: task.account, cpu, moves: Some(task.moves), shares }
}
