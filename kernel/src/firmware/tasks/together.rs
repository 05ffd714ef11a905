//! Several processors run their tasks at once.

use super::local::{LocalTasks, Sampled};
use crate::firmware::per_cpu::{AllProcessors, BOOT};
use crate::firmware::probe;
use alloc::vec::Vec;
use arch::smp;
use kernel::tasks;
use protocol::record::Together;
use spin::{Mutex, MutexGuard};

/// One processor's part. It alone touches it.
pub(super) struct Work<'a, 'g> {
    pub(super) here: LocalTasks,
    pub(super) scheduler: &'a mut (dyn tasks::ProcessorScheduler + 'g),
}

impl Work<'_, '_> {
    /// From the beginning to the end, on its processor.
    pub(super) fn whole(&mut self, machine: &probe::Machine, sampled: Option<Sampled>) {
        self.scheduler.open();
        self.scheduler.begin();
        self.tasks(machine, sampled);
        self.scheduler.end();
        self.scheduler.close();
    }

    fn tasks(&mut self, machine: &probe::Machine, sampled: Option<Sampled>) {
        // SAFETY: on the processor of the tasks, which `load` made with memory and address spaces of their own.
        unsafe { self.here.run(machine, sampled, &mut *self.scheduler) };
    }
}

/// From the moment when all are ready to the instant at which they begin, in ticks: longer than it takes to hear of it.
const LEAD_TICKS: u64 = 20_000;

/// What some processors do, for those that are told their place among all in use.
pub(super) struct Places<'w, W> {
    all: &'w [Mutex<W>],
    /// Of each processor in use: its part among `all`.
    parts: Vec<Option<usize>>,
}

impl<'w, W> Places<'w, W> {
    /// Of `all`, those of `cpus`.
    pub(super) fn new(all: &'w [Mutex<W>], cpus: &[u16]) -> Self {
        let has = |number: usize| cpus.iter().position(|&cpu| number == usize::from(cpu));
        Self { all, parts: smp::in_use().map(|one| has(one.index())).collect() }
    }

    /// The part of the processor at `place`, if it has one.
    pub(super) fn of(&self, place: usize) -> Option<MutexGuard<'w, W>> {
        self.parts.get(place).copied().flatten().map(|at| self.all[at].lock())
    }

    /// How far times of those that have a part are apart, among the times of all.
    pub(super) fn skew(&self, tsc: &[u64]) -> u64 {
        let own = tsc.iter().zip(&self.parts).filter(|(_, part)| part.is_some());
        smp::skew(&own.map(|(tsc, _)| *tsc).collect::<Vec<u64>>())
    }
}

/// What a processor does at the same time as the others.
pub(super) enum Phase {
    Open,
    Run,
    End,
    Close,
}

/// Has all processors do `each` phase at the same time, each told its place among all in use.
pub(super) fn together(
    processors: Option<&AllProcessors>,
    skew: impl Fn(&[u64]) -> u64,
    each: &(dyn Fn(usize, &Phase) + Sync),
) -> Together {
    let offsets = processors.map(AllProcessors::offsets).unwrap_or_default();
    let on_all = |phase: Phase| smp::on_all(|place| each(place, &phase)).expect(BOOT);
    let at_once = |phase: Phase| {
        let done = smp::at_instant(&offsets, LEAD_TICKS, |place| each(place, &phase));
        Some(skew(&done.expect(BOOT).tsc))
    };
    on_all(Phase::Open);
    let (begin_skew, end_skew) = (at_once(Phase::Run), at_once(Phase::End));
    on_all(Phase::Close);
    Together { begin_skew, end_skew, ..Together::default() }
}

/// All at the same time.
pub(super) fn at_once(
    work: &[Mutex<Work>],
    cpus: &[u16],
    (machine, sampled): (&probe::Machine, Option<Sampled>),
    processors: Option<&AllProcessors>,
) -> Together {
    let places = Places::new(work, cpus);
    together(processors, |tsc| places.skew(tsc), &|place, phase| {
        let Some(mut one) = places.of(place) else { return };
        match phase {
            Phase::Open => one.scheduler.open(),
            Phase::Run => {
                one.scheduler.begin();
                one.tasks(machine, sampled);
            }
            Phase::End => one.scheduler.end(),
            Phase::Close => one.scheduler.close(),
        }
    })
}
