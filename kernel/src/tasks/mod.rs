//! Running a workload: tasks that are switched between by a timer.
//!
//! [`scheduler`] decides whose turn it is, and [`ticks`] when the timer comes next; [`emit`] makes a loop out of a task's
//! code; [`assigned`] is what of it each processor does, `moving` the same of tasks that move between them; `report` puts together how it went. The processors themselves are
//! after [`Machine`], so that all this runs on the host as well. Whoever counts or samples watches through an
//! [`Observer`] on each processor.

pub mod assigned;
pub mod deadlines;
pub mod emit;
pub mod family;
mod moving;
mod queue;
mod report;
pub mod scheduler;
#[cfg(test)]
mod tests;
pub mod ticks;

pub use assigned::{AssignedProcessor, ProcessorScheduler};
pub use deadlines::{Deadlines, Due};
pub use emit::Emitted;
pub use family::Family;
pub use scheduler::Scheduler;

use crate::heartbeat::Beat;
use alloc::string::String;
use alloc::vec::Vec;
use arch::smp::Handover;
use arch::trap::TrapFrame;
use moving::{Outcome, Went};
use protocol::job::workload::Workload;
use protocol::record::{TaskResult, Ticks, Together, VectorCount};

/// Sees what the scheduler does. Called with interrupts off, in the interrupt: an observer neither allocates nor waits
/// for a lock. `None` stands for the kernel itself. All calls but the first come from the processor that is observed.
///
/// A task that ends is switched away from first, to the kernel; then it exits, and its parent with it if that had only
/// waited for it; then the kernel switches to the next task. One that exits has an heir: its parent, or if that is gone
/// before it, the nearest ancestor that is there.
pub trait Observer: Send {
    /// All tasks are in memory, those of other processors too. Called on the boot processor, before anything else. May
    /// allocate.
    fn placed(&mut self, tasks: &[Emitted]) {
        let _ = tasks;
    }
    /// Tasks are about to run here. May allocate.
    fn opened(&mut self) {}
    /// This is the instant: tasks run from here on.
    fn loaded(&mut self) {}
    /// All tasks are gone, on all processors, and the kernel goes on.
    fn ended(&mut self) {}
    /// The end of it. May allocate.
    fn closed(&mut self) {}
    /// A task came into being: at the beginning, or when its parent is about to run for the first time.
    fn created(&mut self, task: u16, parent: Option<u16>) {
        let _ = (task, parent);
    }
    /// The processor goes from one to another.
    fn switched(&mut self, from: Option<u16>, to: Option<u16>) {
        let _ = (from, to);
    }
    /// A task is gone, after all the children that it waits for. Children that it does not wait for are its heir's.
    fn exited(&mut self, task: u16, heir: Option<u16>) {
        let _ = (task, heir);
    }
    /// The running task asks for its counts of event number `event`. `None`: there are none.
    fn reads(&mut self, task: u16, event: u64) -> Option<Read> {
        let _ = (task, event);
        None
    }
    /// The running task reaches a marker.
    fn marks(&mut self, task: u16, marker: u32) {
        let _ = (task, marker);
    }
    /// The running task waits for somebody at the console: comes back when it may go on. `alive` is to be called now and then
    /// meanwhile, with the TSC.
    fn waits(&mut self, task: u16, alive: &mut dyn FnMut(u64)) {
        let _ = (task, alive);
    }
    /// The timer came.
    fn tick(&mut self) {}
    /// The kernel has work of its own to do in the middle of a task's time: does it so that none of it is the task's.
    fn aside(&mut self, work: &mut dyn FnMut()) {
        work();
    }
}

/// What a task reads of itself while it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Read {
    /// Its counts.
    Counts {
        /// Its own count.
        own: u64,
        /// The count of its descendants: of those that have exited, and of those that are there.
        children: u64,
    },
    /// The set whose count it read before does not count it any more.
    Stale {
        /// The generation in which that set had acquired the counters.
        acquired: u64,
        /// The generation in which it lost them.
        generation: u64,
    },
}

/// Sees nothing.
impl Observer for () {}

/// Sees what the other does, if there is one.
impl<O: Observer + ?Sized> Observer for Option<&mut O> {
    fn created(&mut self, task: u16, parent: Option<u16>) {
        self.iter_mut().for_each(|observer| observer.created(task, parent));
    }

    #[inline(always)]
    fn switched(&mut self, from: Option<u16>, to: Option<u16>) {
        if let Some(observer) = self {
            observer.switched(from, to);
        }
    }

    fn exited(&mut self, task: u16, heir: Option<u16>) {
        self.iter_mut().for_each(|observer| observer.exited(task, heir));
    }

    fn reads(&mut self, task: u16, event: u64) -> Option<Read> {
        self.as_mut()?.reads(task, event)
    }

    fn marks(&mut self, task: u16, marker: u32) {
        self.iter_mut().for_each(|observer| observer.marks(task, marker));
    }

    fn tick(&mut self) {
        self.iter_mut().for_each(|observer| observer.tick());
    }

    fn aside(&mut self, work: &mut dyn FnMut()) {
        match self {
            Some(observer) => observer.aside(work),
            None => work(),
        }
    }
}

/// Why the scheduler is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The kernel gives the processor away.
    Start,
    /// The timer.
    Tick,
    /// The timer, and the running task has executed nothing since it was last asked after.
    Stall,
    /// The running task lets others go first.
    Yield,
    /// The running task ended.
    Exit,
    /// The running task raised an exception.
    Fault,
}

/// What the timer is to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// What it does.
    Leave,
    /// One interrupt, so many TSC ticks from now.
    Once(u64),
    /// An interrupt every so many TSC ticks.
    Every(u64),
    /// Nothing.
    Stop,
}

/// What the scheduler says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// Who goes on; `None`: all tasks are gone, and the kernel does.
    pub next: Option<u16>,
    /// The timer.
    pub timer: Timer,
}

/// What a task left behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left {
    /// Its registers when it was switched away from for the last time. For an exception, those at the exception.
    pub frame: TrapFrame,
    /// CR2 at its exception.
    pub cr2: u64,
    /// The loop's count in memory.
    pub count: u64,
    /// The eight bytes that R14 pointed to.
    pub value: u64,
    /// CRC-32 of its memory areas.
    pub memory_crc32: u32,
}

/// Processors that can run tasks.
pub trait Machine {
    /// Whether tasks can run on the processor of this number, and be counted.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn has(&self, cpu: u16) -> Result<(), String>;

    /// Rate of the TSC in Hz.
    fn tsc_hz(&self) -> u64;

    /// Makes tasks ready to run, each with fresh memory and registers.
    ///
    /// # Errors
    /// Why that cannot be, in a sentence.
    fn load(&mut self, workload: &Workload) -> Result<Vec<Emitted>, String>;

    /// Runs the loaded tasks of each processor as its scheduler says. Every scheduler is called in the order
    /// [`ProcessorScheduler::open`], [`ProcessorScheduler::begin`], [`ProcessorScheduler::decide`] until that says that the
    /// kernel goes on, [`ProcessorScheduler::end`], [`ProcessorScheduler::close`]. Returns how several processors worked
    /// together.
    fn run(&mut self, assigned: &mut [AssignedProcessor]) -> Option<Together>;

    /// Whether processors work one after the other, as what each does is counted by a clock of all.
    fn works_in_turn(&self) -> bool;

    /// The same as [`Machine::run`] of tasks that move between the processors. When a scheduler says that the kernel goes on, and not
    /// [`ProcessorScheduler::is_over`], it is asked again by [`Cause::Start`] as soon as it [`ProcessorScheduler::has_next`]; of
    /// processors that work in turn, when the others have had theirs. A task is let go by its handover when nothing of it is in
    /// the processor any more.
    fn run_moving(
        &mut self,
        assigned: &mut [AssignedProcessor],
        handovers: &[Handover],
    ) -> Option<Together>;

    /// What a task left behind after [`Machine::run`].
    fn left(&mut self, task: usize) -> Left;

    /// How often a vector was taken since boot, on all processors.
    fn taken(&self, vector: u8) -> u64;
}

/// How a workload went.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The tasks, in order.
    pub tasks: Vec<TaskResult>,
    /// Changes from a task or the kernel to another of them.
    pub switches: u64,
    /// The timer's ticks.
    pub ticks: Ticks,
    /// Interrupts and exceptions by vector.
    pub interrupts: Vec<VectorCount>,
    /// Instructions that retired in ring 3 meanwhile, whoever ran. For whoever counts them: `run` does not.
    pub user_instructions: Option<u64>,
    /// How several processors worked together.
    pub together: Option<Together>,
}

/// Runs `workload` to its end. Ticks that come faster than the processor switches leave the tasks no time, and are
/// lengthened until they do. A task that has the processor for longer than `limit_us` microseconds in all is ended. Each of
/// `watched` is a processor's number and who observes it; one that has no tasks only waits for the others.
///
/// # Errors
/// Why it cannot be run, in a sentence.
pub fn run<O: Observer>(
    workload: &Workload,
    limit_us: u64,
    machine: &mut impl Machine,
    watched: &mut [(u16, O)],
) -> Result<Summary, String> {
    run_beating(workload, limit_us, machine, watched, None)
}

/// The same, which tells `heart` at ticks how far the tasks are.
///
/// # Errors
/// Why it cannot be run, in a sentence.
pub fn run_beating<O: Observer>(
    workload: &Workload,
    limit_us: u64,
    machine: &mut impl Machine,
    watched: &mut [(u16, O)],
    heart: Option<&dyn Beat>,
) -> Result<Summary, String> {
    assigned::check(workload, watched, machine)?;
    let emitted = machine.load(workload)?;
    watched.iter_mut().for_each(|(_, observer)| observer.placed(&emitted));
    let before: Vec<u64> = (0..=255).map(|vector| machine.taken(vector)).collect();
    let hz = machine.tsc_hz();
    let heart = heart.map(|beat| assigned::Heart::new(beat, workload, [limit_us, hz]));
    let Outcome { together, tasks: went, switches, ticks } = match workload.moves() {
        true => {
            let observers = watched.iter_mut().map(|(cpu, one)| (*cpu, one as &mut dyn Observer));
            moving::run(workload, [limit_us, hz], observers.collect(), machine, heart)
        }
        false => {
            let bounds = [limit_us, hz];
            let (together, schedulers) = assigned::run(workload, bounds, watched, machine, heart);
            stayed(workload, together, &schedulers)
        }
    };
    let taken = (0..=255).zip(before).map(|(vector, before)| VectorCount {
        vector,
        count: machine.taken(vector).wrapping_sub(before),
    });
    let interrupts = taken.filter(|taken| taken.count > 0).collect();
    let tasks = workload.tasks.iter().zip(&emitted).zip(went).enumerate();
    let tasks = tasks.map(|(index, ((task, emitted), went))| {
        let result = report::task(task, emitted, went.account, &machine.left(index), went.cpu);
        TaskResult { moves: went.moves, shares: went.shares, ..result }
    });
    let tasks = tasks.collect();
    Ok(Summary { tasks, switches, ticks, interrupts, user_instructions: None, together })
}

/// How tasks went that do not move.
fn stayed(workload: &Workload, together: Option<Together>, schedulers: &[Scheduler]) -> Outcome {
    let went = |index: usize| {
        let cpu = workload.cpu_of(index);
        let account = schedulers.iter().find(|one| one.cpu() == cpu).map(|one| one.account(index));
        Went { account: account.unwrap_or_default(), cpu, ..Went::default() }
    };
    Outcome {
        together,
        tasks: (0..workload.tasks.len()).map(went).collect(),
        switches: schedulers.iter().map(Scheduler::switches).sum(),
        ticks: Ticks {
            lengthened: schedulers.iter().filter_map(Scheduler::lengthened).max(),
            ..ticks::together(schedulers.iter().map(Scheduler::intervals))
        },
    }
}
