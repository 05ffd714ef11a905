//! What each processor does of a workload: its own tasks under its own scheduler, watched by its own observer.

use super::{Cause, Decision, Machine, Observer, Read, Scheduler};
use crate::heartbeat::Beat;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use protocol::job::workload::{Task, Workload};
use protocol::record::{Together, Unit, Within};

/// Leads one processor through a workload. All calls come from that processor, one at a time.
pub trait ProcessorScheduler: Send {
    /// Before anything runs. May allocate.
    fn open(&mut self);
    /// Directly before the first decision, at the same instant on all processors if they work at the same time.
    fn begin(&mut self);
    /// The running task lets others go first, at TSC `now`: who goes on, if that is all and the timer is left as it is; `None`
    /// asks [`ProcessorScheduler::decide`].
    fn yields(&mut self, now: u64) -> Option<u16> {
        let _ = now;
        None
    }
    /// The same at a tick at which the running task had got on.
    fn ticked(&mut self, now: u64) -> Option<u16> {
        let _ = now;
        None
    }
    /// The running task reads its counts of event number `event`, and goes on; `None`: there are none.
    fn reads(&mut self, event: u64) -> Option<Read>;
    /// The running task reaches a marker, and goes on.
    fn marks(&mut self, marker: u32) {
        let _ = marker;
    }
    /// The running task waits for somebody at the console, and goes on.
    fn waits(&mut self) {}
    /// Who goes on, at TSC `now`.
    fn decide(&mut self, cause: Cause, now: u64) -> Decision;
    /// Whether all tasks are gone on all processors, when the kernel goes on here: if not, they may come here again.
    fn is_over(&self) -> bool {
        true
    }
    /// Whether there is a task that could run here now, while the kernel does.
    fn has_next(&self) -> bool {
        false
    }
    /// All tasks are gone on all processors, again at one instant.
    fn end(&mut self);
    /// Behind everything. May allocate.
    fn close(&mut self);
}

/// A processor with the scheduler of its tasks.
pub struct AssignedProcessor<'a> {
    /// The processor's number.
    pub cpu: u16,
    /// Its scheduler.
    pub scheduler: &'a mut dyn ProcessorScheduler,
}

/// Whether all processors are there.
pub(super) fn check<O>(
    workload: &Workload,
    watched: &[(u16, O)],
    machine: &impl Machine,
) -> Result<(), String> {
    for (index, Task { name, .. }) in workload.tasks.iter().enumerate() {
        let cpus = if workload.moves() {
            workload.cpus_of(index)
        } else {
            Vec::from([workload.cpu_of(index)])
        };
        for cpu in cpus {
            let has = machine.has(cpu);
            has.map_err(|why| format!("task `{name}` is to run on processor {cpu}: {why}"))?;
        }
    }
    for (cpu, _) in watched {
        machine.has(*cpu).map_err(|why| format!("processor {cpu} is to be counted: {why}"))?;
    }
    Ok(())
}

/// The scheduler of a processor, and its observer if it has one.
struct ObservedScheduler<'a, O> {
    scheduler: Scheduler,
    observer: Option<&'a mut O>,
    heart: Option<Heart<'a>>,
}

/// Where to tell how far the tasks are.
#[derive(Clone, Copy)]
pub(super) struct Heart<'a> {
    beat: &'a dyn Beat,
    /// TSC at the first decision.
    begin: u64,
    /// Milliseconds that all tasks together may take.
    most: u64,
    /// TSC ticks in a millisecond.
    ticks: u64,
    /// TSC before which it is too early, as far as is known here.
    early_until: u64,
}

impl<'a> Heart<'a> {
    /// Of a workload whose tasks may take `limit_us` each.
    pub(super) fn new(beat: &'a dyn Beat, workload: &Workload, [limit_us, hz]: [u64; 2]) -> Self {
        let most = (limit_us / 1000).saturating_mul(workload.tasks.len() as u64);
        Self { beat, begin: 0, most, ticks: (hz / 1000).max(1), early_until: 0 }
    }

    /// Whether it is too early at TSC `now`.
    #[inline]
    fn is_early(&mut self, now: u64) -> bool {
        now < self.early_until || self.is_early_still(now)
    }

    /// The same, asked of the report: others may have told something since.
    #[cold]
    #[inline(never)]
    fn is_early_still(&mut self, now: u64) -> bool {
        self.early_until = now.saturating_add(self.beat.early_for(now));
        now < self.early_until
    }

    /// Tells how far the tasks are when the scheduler is asked, if it is time.
    pub(super) fn tell_of(&mut self, cause: Cause, now: u64, observer: &mut impl Observer) {
        match cause {
            Cause::Start if self.begin == 0 => self.begin = now,
            Cause::Start | Cause::Tick if !self.is_early(now) => {
                observer.aside(&mut || self.tell(now));
            }
            _ => {}
        }
    }

    fn tell(&self, now: u64) {
        let done = now.wrapping_sub(self.begin) / self.ticks;
        self.beat.beat(now, Within { unit: Unit::Milliseconds, done, total: self.most });
    }
}

impl<O: Observer> ObservedScheduler<'_, O> {
    /// Tells how far the tasks are, if somebody wants to know and it is time.
    fn tell(&mut self, cause: Cause, now: u64) {
        let Some(heart) = &mut self.heart else { return };
        if cause == Cause::Start {
            heart.begin = now;
        } else if !heart.is_early(now) {
            self.observer.aside(&mut || heart.tell(now));
        }
    }
}

impl<O: Observer> ProcessorScheduler for ObservedScheduler<'_, O> {
    fn open(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.opened());
    }

    fn begin(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.loaded());
    }

    fn yields(&mut self, now: u64) -> Option<u16> {
        self.scheduler.yields(now, &mut self.observer)
    }

    fn ticked(&mut self, now: u64) -> Option<u16> {
        if let Some(heart) = &mut self.heart
            && !heart.is_early(now)
        {
            // It is told first, in `decide`.
            return None;
        }
        self.scheduler.ticked(now, &mut self.observer)
    }

    fn reads(&mut self, event: u64) -> Option<Read> {
        let task = self.scheduler.current()?;
        self.observer.as_mut()?.reads(task, event)
    }

    fn marks(&mut self, marker: u32) {
        if let (Some(task), Some(observer)) = (self.scheduler.current(), &mut self.observer) {
            observer.marks(task, marker);
        }
    }

    fn waits(&mut self) {
        let mut heart = self.heart;
        let mut alive = |now| {
            if let Some(heart) = &mut heart
                && !heart.is_early(now)
            {
                heart.tell(now);
            }
        };
        if let (Some(task), Some(observer)) = (self.scheduler.current(), &mut self.observer) {
            observer.waits(task, &mut alive);
        }
    }

    fn decide(&mut self, cause: Cause, now: u64) -> Decision {
        if matches!(cause, Cause::Start | Cause::Tick) {
            self.tell(cause, now);
        }
        self.scheduler.decide(cause, now, &mut self.observer)
    }

    fn end(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.ended());
    }

    fn close(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.closed());
    }
}

/// Runs loaded tasks on all their processors, and has those that are only watched wait.
pub(super) fn run<O: Observer>(
    workload: &Workload,
    [limit_us, hz]: [u64; 2],
    watched: &mut [(u16, O)],
    machine: &mut impl Machine,
    heart: Option<Heart>,
) -> (Option<Together>, Vec<Scheduler>) {
    let mut cpus = workload.cpus();
    cpus.extend(watched.iter().map(|(cpu, _)| *cpu));
    cpus.sort_unstable();
    cpus.dedup();
    let mut observers: Vec<_> = watched.iter_mut().map(|(cpu, one)| (*cpu, Some(one))).collect();
    let observed = |cpu: u16| {
        let own = observers.iter_mut().find(|(own, _)| *own == cpu);
        let observer = own.and_then(|(_, observer)| observer.take());
        ObservedScheduler {
            scheduler: Scheduler::new(workload, limit_us, hz, cpu),
            observer,
            heart,
        }
    };
    let mut observed: Vec<ObservedScheduler<O>> = cpus.iter().copied().map(observed).collect();
    let assigned = observed.iter_mut().zip(&cpus);
    let mut assigned: Vec<AssignedProcessor> =
        assigned.map(|(observed, &cpu)| AssignedProcessor { cpu, scheduler: observed }).collect();
    let together = machine.run(&mut assigned);
    (together, observed.into_iter().map(|observed| observed.scheduler).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};
    use proptest::prelude::*;
    use std::prelude::v1::*;

    /// Beats that are too early for 100 ticks after the last one, whoever made it.
    struct Every100(AtomicU64);

    impl Beat for Every100 {
        fn beat(&self, now: u64, _within: Within) {
            self.0.store(now, Ordering::Relaxed);
        }

        fn early_for(&self, now: u64) -> u64 {
            100_u64.saturating_sub(now - self.0.load(Ordering::Relaxed))
        }
    }

    proptest! {
        /// A processor that does not ask each time knows what it would be told, although others tell how far they are as well.
        #[test]
        fn t9_a_processor_that_remembers_knows_when_it_is_early(
            steps in prop::collection::vec((0_u64..60, any::<bool>(), any::<bool>()), 1..100),
        ) {
            let beat = Every100(AtomicU64::new(0));
            let workload = Workload { tasks: Vec::new(), tick_ns: 0, jitter: None };
            let mut heart = Heart::new(&beat, &workload, [1_000, 1_000_000]);
            let mut now = 0;
            for (ticks, by_others, tells) in steps {
                now += ticks;
                if by_others && beat.early_for(now) == 0 {
                    heart.tell(now);
                }
                let early = beat.early_for(now) > 0;
                prop_assert_eq!(heart.is_early(now), early, "at {}", now);
                if tells && !early {
                    heart.tell(now);
                }
            }
        }
    }
}
