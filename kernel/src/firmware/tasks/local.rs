//! One processor's tasks, run on it.

use super::moving::Moving;
use crate::firmware::probe;
use alloc::vec;
use alloc::vec::Vec;
use arch::apic;
use arch::pmu::pmi;
use arch::task::{self, Context, KERNEL, TICK_VECTOR};
use arch::time::tsc;
use arch::trap::TrapFrame;
use kernel::tasks::{Cause, Deadlines, Decision, ProcessorScheduler, Read, Timer};

/// RFLAGS.CF and RFLAGS.ZF (SDM vol. 1, 3.4.3.1).
const CARRY: u64 = 1;
const ZERO: u64 = 1 << 6;

/// Tasks are sampled: `arch::pmu::pmi`'s counters run while a task does.
#[derive(Clone, Copy)]
pub struct Sampled {
    /// Time between two samples that the timer takes beside the scheduler's ticks, in TSC ticks.
    pub interval: Option<u64>,
}

/// The tasks of one processor.
#[derive(Default)]
pub struct LocalTasks {
    /// Its number.
    pub cpu: u16,
    /// Their numbers among all tasks.
    pub numbers: Vec<u16>,
    pub contexts: Vec<Context>,
    /// CR2 at the exception of each.
    pub cr2: Vec<u64>,
    /// Where each was when a tick last interrupted it.
    stops: Vec<Stop>,
}

/// Where a task has stopped: enough of it that one which executes anything does not stay the same for long, that of a
/// repeated string instruction included.
#[derive(Clone, Copy, Default)]
struct Stop([u64; 4]);

impl Stop {
    fn of(frame: &TrapFrame) -> Self {
        Self([frame.rip, frame.rsp, frame.rcx, frame.r15])
    }

    /// Word by word, without a comparison of memory, which would look at each byte.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }
}

impl LocalTasks {
    /// No tasks on processor `cpu`.
    pub fn new(cpu: u16) -> Self {
        Self { cpu, ..Self::default() }
    }

    /// Room for what is kept of so many tasks that come and go.
    pub fn visited(tasks: u16) -> Self {
        let stops = vec![Stop::default(); tasks.into()];
        Self { numbers: (0..tasks).collect(), cr2: vec![0; tasks.into()], stops, ..Self::default() }
    }

    /// Adds a task under its number among all tasks.
    pub fn push(&mut self, number: u16, context: Context) {
        self.numbers.push(number);
        self.contexts.push(context);
        self.cr2.push(0);
        self.stops.push(Stop::default());
    }

    /// The registers of task `number` as it left them, and CR2.
    pub fn left(&self, number: u16) -> Option<(&Context, u64)> {
        let place = self.numbers.iter().position(|&own| own == number)?;
        Some((&self.contexts[place], self.cr2[place]))
    }

    /// Runs them until `scheduler` says that the kernel goes on.
    ///
    /// # Safety
    /// On the processor whose they are, with interrupts off; nobody else uses its timer. Each context leads into code and
    /// stacks of its own, in an address space that has the kernel's upper half.
    pub unsafe fn run(
        &mut self,
        machine: &probe::Machine,
        sampled: Option<Sampled>,
        scheduler: &mut dyn ProcessorScheduler,
    ) {
        let mut contexts = core::mem::take(&mut self.contexts);
        // SAFETY: the caller's promise; interrupt table loaded, one workload at a time. When the last task is gone the
        // scheduler stops the timer. What a task of ring 0 does beyond its memory is its author's business.
        let mut run = |decide: task::Decide| unsafe { task::run(&mut contexts, decide) };
        self.switch(machine, sampled, scheduler, &mut run);
        self.contexts = contexts;
    }

    /// Runs those of `moving` that `scheduler` gives to this processor, until it says that the kernel goes on.
    ///
    /// # Safety
    /// As for [`LocalTasks::run`], but that the contexts are those that the scheduler has taken by their handovers.
    pub unsafe fn run_moving(
        &mut self,
        machine: &probe::Machine,
        moving: Moving,
        scheduler: &mut dyn ProcessorScheduler,
    ) {
        let Moving { contexts, handovers } = moving;
        // SAFETY: as above.
        let mut run =
            |decide: task::Decide| unsafe { task::run_moving(contexts, handovers, decide) };
        self.switch(machine, None, scheduler, &mut run);
    }

    /// Calls `run` with what is done at each event.
    fn switch(
        &mut self,
        machine: &probe::Machine,
        sampled: Option<Sampled>,
        scheduler: &mut dyn ProcessorScheduler,
        run: &mut dyn FnMut(task::Decide),
    ) {
        let Some(timer) = timer(machine) else { return };
        // A switch is no place to search.
        let most = self.numbers.iter().max().map_or(0, |&most| usize::from(most) + 1);
        let mut places = vec![KERNEL; most];
        for (place, &number) in self.numbers.iter().enumerate() {
            places[usize::from(number)] = place;
        }
        let (cr2, stops, numbers) = (&mut self.cr2[..], &mut self.stops[..], &self.numbers[..]);
        let mut switcher = Switcher {
            scheduler,
            timer,
            sampled: sampled.is_some(),
            deadlines: None,
            places,
            numbers,
            cr2,
            stops,
            came: 0,
            went: 0,
        };
        let interval = sampled.and_then(|sampled| sampled.interval);
        switcher.deadlines = interval.map(|interval| Deadlines::new(interval, tsc::now()));
        if switcher.sampled {
            return run(&mut |cause, task, frame| switcher.event(cause, task, frame));
        }
        run(&mut |cause, task, frame| match cause {
            task::Cause::Yield => switcher.yields(),
            task::Cause::Tick => switcher.ticks(task, frame),
            _ => switcher.event(cause, task, frame),
        });
    }
}

/// What is at work while tasks run.
struct Switcher<'a> {
    scheduler: &'a mut dyn ProcessorScheduler,
    timer: apic::Timer,
    /// Tasks are sampled.
    sampled: bool,
    /// What the timer serves, if it samples as well.
    deadlines: Option<Deadlines>,
    /// Where each task is among those of this processor, by its number.
    places: Vec<usize>,
    /// The number of each.
    numbers: &'a [u16],
    cr2: &'a mut [u64],
    stops: &'a mut [Stop],
    /// TSC when the kernel came and when it went, of the last tick.
    came: u64,
    went: u64,
}

impl Switcher<'_> {
    /// A task lets others go first, and none is sampled.
    #[inline]
    fn yields(&mut self) -> usize {
        // Behind anything but a tick, none is a stall.
        self.went = self.came;
        match self.scheduler.yields(tsc::behind()) {
            Some(next) => self.places[usize::from(next)],
            None => self.decide(Cause::Yield, tsc::now()),
        }
    }

    /// The timer's tick, while no task is sampled. The timer serves nothing else then.
    #[inline(never)]
    fn ticks(&mut self, task: usize, frame: &TrapFrame) -> usize {
        let now = tsc::now();
        let why = self.tick(now, task, frame);
        let next = match why {
            Cause::Tick => self.scheduler.ticked(now),
            _ => None,
        };
        let next = match next {
            Some(next) => self.places[usize::from(next)],
            None => self.decide(why, now),
        };
        self.went = tsc::now();
        next
    }

    /// Anything else.
    #[inline(never)]
    fn event(&mut self, cause: task::Cause, task: usize, frame: &mut TrapFrame) -> usize {
        if self.sampled {
            // SAFETY: in an interrupt of ring 0's, all of which come with interrupts off; `sampled`'s caller has
            // installed the block.
            unsafe { pmi::let_out(frame) };
        }
        let now = tsc::now();
        let why = match cause {
            task::Cause::Start => Cause::Start,
            task::Cause::Tick if !self.is_tick(now, frame) => return self.goes_on(task),
            task::Cause::Tick => self.tick(now, task, frame),
            task::Cause::Yield => Cause::Yield,
            task::Cause::Exit => Cause::Exit,
            task::Cause::Fault => {
                if let Some(place) = self.cr2.get_mut(task) {
                    *place = task::fault_address();
                }
                Cause::Fault
            }
            task::Cause::Read | task::Cause::Mark => return self.asks(cause, task, frame),
            task::Cause::Wait => return self.waits(task),
        };
        let next = self.decide(why, now);
        // A processor whose turn begins has its first tick as far from here as others have theirs from the one before.
        if cause == task::Cause::Start {
            self.came = now;
        }
        let is_edge = matches!(cause, task::Cause::Start | task::Cause::Tick);
        self.went = if is_edge { tsc::now() } else { self.came };
        next
    }

    /// The task reads its count of the event whose number is in RAX, and goes on: its own is in RAX then, that of its descendants
    /// in RDX. Without a count CF is set, and both are as they were; but if the count that it read before is no longer its own,
    /// ZF is set as well, and they have the generations of that. Or it comes to the marker in EAX, and goes on as it was.
    #[cold]
    #[inline(never)]
    fn asks(&mut self, cause: task::Cause, task: usize, frame: &mut TrapFrame) -> usize {
        match cause {
            task::Cause::Mark => self.scheduler.marks(frame.rax as u32),
            _ => {
                let (values, flags) = match self.scheduler.reads(frame.rax) {
                    Some(Read::Counts { own, children }) => ([own, children], 0),
                    Some(Read::Stale { acquired, generation }) => {
                        ([acquired, generation], CARRY | ZERO)
                    }
                    None => ([frame.rax, frame.rdx], CARRY),
                };
                [frame.rax, frame.rdx] = values;
                frame.rflags = frame.rflags & !(CARRY | ZERO) | flags;
            }
        }
        self.goes_on(task)
    }

    /// The task that ran goes on.
    fn goes_on(&mut self, task: usize) -> usize {
        if self.sampled {
            // SAFETY: as for `let_out`.
            unsafe { pmi::let_in(self.numbers.get(task).copied().unwrap_or_default().into()) };
        }
        task
    }

    /// The task waits for somebody at the console, and goes on.
    #[cold]
    #[inline(never)]
    fn waits(&mut self, task: usize) -> usize {
        self.scheduler.waits();
        // The time is no tick's.
        self.came = tsc::now();
        self.went = self.came;
        if self.sampled {
            // SAFETY: as for `let_out`; the task that ran goes on.
            unsafe { pmi::let_in(self.numbers.get(task).copied().unwrap_or_default().into()) };
        }
        task
    }

    /// The timer came at `now`: takes the sample that is due. Says whether it is the scheduler's tick as well.
    fn is_tick(&mut self, now: u64, frame: &TrapFrame) -> bool {
        let Some(deadlines) = &mut self.deadlines else { return true };
        let due = deadlines.take(now);
        // SAFETY: as for `let_out`, which was called.
        if due.sample && unsafe { pmi::sample_tick(frame) } {
            deadlines.double();
        }
        let now = tsc::now();
        self.timer.once(deadlines.next(now));
        due.tick
    }

    /// Asks who goes on, and does what is to be done for it.
    #[inline(never)]
    fn decide(&mut self, why: Cause, now: u64) -> usize {
        let Decision { next, timer } = self.scheduler.decide(why, now);
        self.set(timer);
        if let (Some(task), true) = (next, self.sampled) {
            // SAFETY: as for `let_out`.
            unsafe { pmi::let_in(task.into()) };
        }
        next.map_or(KERNEL, |number| self.places[usize::from(number)])
    }

    /// The timer came at `now`.
    #[inline]
    fn tick(&mut self, now: u64, task: usize, frame: &TrapFrame) -> Cause {
        self.timer.ticked();
        let stop = Stop::of(frame);
        let before = self.stops.get_mut(task);
        let stays = before.is_some_and(|before| core::mem::replace(before, stop).is(&stop));
        // A task that waits in one place is not held up: it has more time than the kernel.
        let had = self.went.wrapping_sub(self.came);
        let stalled = stays && now.wrapping_sub(self.went) < had;
        self.came = now;
        if stalled { Cause::Stall } else { Cause::Tick }
    }

    fn set(&mut self, timer: Timer) {
        if let (Some(deadlines), Timer::Once(_) | Timer::Every(_)) = (&mut self.deadlines, timer) {
            let now = tsc::now();
            deadlines.set(timer, now);
            return self.timer.once(deadlines.next(now));
        }
        match timer {
            Timer::Leave => {}
            Timer::Once(ticks) => self.timer.once(ticks),
            Timer::Every(ticks) => self.timer.every(ticks),
            Timer::Stop => self.timer.stop(),
        }
    }
}

/// The timer of the processor that this runs on.
pub fn timer(machine: &probe::Machine) -> Option<apic::Timer> {
    // SAFETY: ring 0, interrupt table loaded. A rate that is not 0 shows that the APIC is on; nobody else uses its
    // timer, and `arch::task` handles the vector while tasks run.
    unsafe { apic::Timer::new(&machine.clock, machine.apic_timer_hz, TICK_VECTOR) }
}
