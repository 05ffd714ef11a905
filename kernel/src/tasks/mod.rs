//! Running a workload: tasks that are switched between by a timer.
//!
//! [`scheduler`] decides whose turn it is, and [`ticks`] when the timer comes next; [`emit`] makes a loop out of a task's
//! code; `report` puts together how it went. The processor itself is behind [`Machine`], so that all this runs on the
//! host as well. Whoever counts or samples watches through an [`Observer`].

pub mod emit;
mod report;
pub mod scheduler;
#[cfg(test)]
mod tests;
pub mod ticks;

pub use emit::Emitted;
pub use scheduler::Scheduler;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::interrupts::TrapFrame;
use protocol::record::{TaskResult, Ticks, VectorCount};
use protocol::workload::{Task, Workload};

/// Sees what the scheduler does. Called with interrupts off, in the interrupt: an observer neither allocates nor waits
/// for a lock. `None` stands for the kernel itself.
///
/// A task that ends is switched away from first, to the kernel; then it exits, and its parent with it if that had only
/// waited for it; then the kernel switches to the next task.
pub trait Observer {
    /// The tasks are in memory, each where it says, and are about to run. May allocate.
    fn loaded(&mut self, tasks: &[Emitted]) {
        let _ = tasks;
    }
    /// All tasks are gone, and the kernel goes on. May allocate.
    fn ended(&mut self) {}
    /// A task came into being: at the beginning, or when its parent is about to run for the first time.
    fn created(&mut self, task: u16, parent: Option<u16>) {
        let _ = (task, parent);
    }
    /// The processor goes from one to another.
    fn switched(&mut self, from: Option<u16>, to: Option<u16>) {
        let _ = (from, to);
    }
    /// A task is gone, after all its children.
    fn exited(&mut self, task: u16, parent: Option<u16>) {
        let _ = (task, parent);
    }
    /// The timer came.
    fn tick(&mut self) {}
}

/// Sees nothing.
impl Observer for () {}

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

/// Asked at each cause, with the TSC.
pub type Decide<'a> = &'a mut dyn FnMut(Cause, u64) -> Decision;

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

/// A processor that can run tasks.
pub trait Machine {
    /// Rate of the TSC in Hz.
    fn tsc_hz(&self) -> u64;

    /// Makes tasks ready to run, each with fresh memory and registers.
    ///
    /// # Errors
    /// Why that cannot be, in a sentence.
    fn load(&mut self, tasks: &[Task]) -> Result<Vec<Emitted>, String>;

    /// Runs the loaded tasks as `decide` says, until it says that the kernel goes on.
    fn run(&mut self, decide: Decide);

    /// What a task left behind after [`Machine::run`].
    fn left(&mut self, task: usize) -> Left;

    /// How often a vector was taken since boot.
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
}

/// Runs `workload` to its end. Ticks that come faster than the processor switches leave the tasks no time, and are
/// lengthened until they do. A task that has the processor for longer than `limit_us` microseconds in all is ended.
///
/// # Errors
/// Why it cannot be run, in a sentence.
pub fn run(
    workload: &Workload,
    limit_us: u64,
    machine: &mut impl Machine,
    observer: &mut impl Observer,
) -> Result<Summary, String> {
    for task in &workload.tasks {
        if let Some(cpu) = task.cpu.filter(|&cpu| cpu != 0) {
            let name = &task.name;
            return Err(format!(
                "task `{name}` is to run on processor {cpu}; tasks run on processor 0 only"
            ));
        }
    }
    let emitted = machine.load(&workload.tasks)?;
    let mut scheduler = Scheduler::new(workload, limit_us, machine.tsc_hz());
    let before: Vec<u64> = (0..=255).map(|vector| machine.taken(vector)).collect();
    observer.loaded(&emitted);
    machine.run(&mut |cause, now| scheduler.decide(cause, now, observer));
    observer.ended();
    let taken = (0..=255).zip(before).map(|(vector, before)| VectorCount {
        vector,
        count: machine.taken(vector).wrapping_sub(before),
    });
    let interrupts = taken.filter(|taken| taken.count > 0).collect();
    let tasks = (0..).zip(&workload.tasks).zip(&emitted).map(|((index, task), emitted)| {
        report::task(task, emitted, scheduler.account(index), &machine.left(index))
    });
    Ok(Summary {
        tasks: tasks.collect(),
        switches: scheduler.switches(),
        ticks: scheduler.ticks(),
        interrupts,
        user_instructions: None,
    })
}
