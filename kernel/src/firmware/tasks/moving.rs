//! Tasks that move, on the processors that hand them to each other.

use super::local::LocalTasks;
use super::together::{Phase, Places, together};
use crate::firmware::per_cpu::AllProcessors;
use crate::firmware::probe;
use alloc::vec::Vec;
use arch::smp::{self, Handover};
use arch::task::MovingContexts;
use core::hint::spin_loop;
use kernel::tasks::AssignedProcessor;
use protocol::record::Together;
use spin::Mutex;

/// All tasks, in the order of their numbers, and which processor has each.
#[derive(Clone, Copy)]
pub struct Moving<'a> {
    pub contexts: &'a MovingContexts,
    pub handovers: &'a [Handover],
}

/// A processor with its scheduler, and with what it keeps of tasks that were there. It alone touches it.
type Visited<'w, 'a> = Mutex<(LocalTasks, &'w mut AssignedProcessor<'a>)>;

/// Runs tasks that move, and returns what each processor keeps of them. `in_turn`: one processor works at a time.
pub fn run(
    moving: Moving,
    assigned: &mut [AssignedProcessor],
    machine: &probe::Machine,
    processors: Option<&AllProcessors>,
    in_turn: bool,
) -> (Together, Vec<LocalTasks>) {
    let tasks = moving.handovers.len() as u16;
    let cpus: Vec<u16> = assigned.iter().map(|one| one.cpu).collect();
    let visited = |one| Mutex::new((LocalTasks::visited(tasks), one));
    let all: Vec<Visited> = assigned.iter_mut().map(visited).collect();
    let together = match in_turn || all.len() == 1 {
        true => take_turns(&all, &cpus, moving, machine),
        false => at_once(&all, &cpus, moving, machine, processors),
    };
    (together, all.into_iter().map(|one| one.into_inner().0).collect())
}

/// Runs tasks here until the scheduler says that the kernel goes on.
fn visit(
    (here, assigned): &mut (LocalTasks, &mut AssignedProcessor),
    moving: Moving,
    machine: &probe::Machine,
) {
    // SAFETY: on the processor of this scheduler, which takes each task before it names it; `load` made the tasks with memory and
    // address spaces of their own.
    unsafe { here.run_moving(machine, moving, &mut *assigned.scheduler) };
}

/// One after the other, each until its tick, or until its task gives way or ends.
fn take_turns(all: &[Visited], cpus: &[u16], moving: Moving, machine: &probe::Machine) -> Together {
    let on_each = |work: &(dyn Fn(&mut (LocalTasks, &mut AssignedProcessor)) + Sync), due: bool| {
        for (one, &cpu) in all.iter().zip(cpus) {
            if due || one.lock().1.scheduler.has_next() {
                smp::run_on(cpu.into(), || work(&mut one.lock()))
                    .expect("the boot processor, and those in use");
            }
        }
    };
    on_each(&|one| one.1.scheduler.open(), true);
    on_each(&|one| one.1.scheduler.begin(), true);
    while !all[0].lock().1.scheduler.is_over() {
        on_each(&|one| visit(one, moving, machine), false);
    }
    on_each(&|one| one.1.scheduler.end(), true);
    on_each(&|one| one.1.scheduler.close(), true);
    Together { in_turn: all.len() > 1, ..Together::default() }
}

/// All at the same time. One that has no task looks for one until all have ended.
fn at_once(
    all: &[Visited],
    cpus: &[u16],
    moving: Moving,
    machine: &probe::Machine,
    processors: Option<&AllProcessors>,
) -> Together {
    let places = Places::new(all, cpus);
    together(processors, |tsc| places.skew(tsc), &|place, phase| {
        let Some(mut one) = places.of(place) else { return };
        match phase {
            Phase::Open => one.1.scheduler.open(),
            Phase::Run => {
                one.1.scheduler.begin();
                while !one.1.scheduler.is_over() {
                    match one.1.scheduler.has_next() {
                        true => visit(&mut one, moving, machine),
                        false => spin_loop(),
                    }
                }
            }
            Phase::End => one.1.scheduler.end(),
            Phase::Close => one.1.scheduler.close(),
        }
    })
}
