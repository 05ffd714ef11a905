//! One processor's tasks, run on it.

use crate::firmware::probe;
use alloc::vec;
use alloc::vec::Vec;
use arch::apic;
use arch::interrupts::TrapFrame;
use arch::pmu::pmi::{self, Interval};
use arch::task::{self, Context, KERNEL, TICK_VECTOR};
use arch::time::tsc;
use kernel::tasks::{Cause, Decision, ProcessorScheduler, Read, Timer};

/// RFLAGS.CF (SDM vol. 1, 3.4.3.1).
const CARRY: u64 = 1;

/// Tasks are sampled: `arch::pmu::pmi`'s counters run while a task does, with this timer beside them.
#[derive(Clone, Copy)]
pub struct Sampled {
    pub timer: Option<Interval>,
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
        let Some(timer) = timer(machine) else { return };
        // A switch is no place to search.
        let most = self.numbers.iter().max().map_or(0, |&most| usize::from(most) + 1);
        let mut places = vec![KERNEL; most];
        for (place, &number) in self.numbers.iter().enumerate() {
            places[usize::from(number)] = place;
        }
        let (cr2, stops, numbers) = (&mut self.cr2[..], &mut self.stops[..], &self.numbers[..]);
        let mut switcher =
            Switcher { scheduler, timer, sampled, places, numbers, cr2, stops, came: 0, went: 0 };
        let sampling_timer = sampled.and_then(|sampled| sampled.timer);
        let mut on_event = |cause: task::Cause, task: usize, frame: &mut TrapFrame| match cause
            == task::Cause::Yield
            && switcher.sampled.is_none()
        {
            true => switcher.yields(),
            false => switcher.event(cause, task, frame),
        };
        if let Some(interval) = sampling_timer {
            // SAFETY: ring 0, interrupts off, the APIC on. The scheduler has just stopped its own use of the timer, and
            // does not take it up again.
            unsafe { pmi::start_timer(interval) };
        }
        // SAFETY: the caller's promise; interrupt table loaded, one workload at a time. When the last task is gone the
        // scheduler stops the timer. What a task of ring 0 does beyond its memory is its author's business.
        unsafe { task::run(&mut self.contexts, &mut on_event) };
    }
}

/// What is at work while tasks run.
struct Switcher<'a> {
    scheduler: &'a mut dyn ProcessorScheduler,
    timer: apic::Timer,
    sampled: Option<Sampled>,
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

    /// Anything else.
    #[inline(never)]
    fn event(&mut self, cause: task::Cause, task: usize, frame: &mut TrapFrame) -> usize {
        if self.sampled.is_some() {
            // SAFETY: in an interrupt of ring 0's, all of which come with interrupts off; `sampled`'s caller has
            // installed the block.
            unsafe { pmi::let_out(frame) };
        }
        let now = tsc::now();
        let why = match cause {
            task::Cause::Start => Cause::Start,
            task::Cause::Tick => self.tick(now, task, frame),
            task::Cause::Yield => Cause::Yield,
            task::Cause::Exit => Cause::Exit,
            task::Cause::Fault => {
                if let Some(place) = self.cr2.get_mut(task) {
                    *place = task::fault_address();
                }
                Cause::Fault
            }
            task::Cause::Read => return self.reads(task, frame),
            task::Cause::Wait => return self.waits(task),
        };
        let next = match why {
            Cause::Tick if self.sampled.is_none() => match self.scheduler.ticked(now) {
                Some(next) => self.places[usize::from(next)],
                None => self.decide(why, now),
            },
            _ => self.decide(why, now),
        };
        self.went = if cause == task::Cause::Tick { tsc::now() } else { self.came };
        next
    }

    /// The task reads its count of the event whose number is in RAX, and goes on: its own is in RAX then, that of its descendants
    /// in RDX. Without a count CF is set, and both are as they were.
    #[cold]
    #[inline(never)]
    fn reads(&mut self, task: usize, frame: &mut TrapFrame) -> usize {
        match self.scheduler.reads(frame.rax) {
            Some(Read { own, children }) => {
                (frame.rax, frame.rdx) = (own, children);
                frame.rflags &= !CARRY;
            }
            None => frame.rflags |= CARRY,
        }
        if self.sampled.is_some() {
            // SAFETY: as for `let_out`; the task that ran goes on.
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
        if self.sampled.is_some() {
            // SAFETY: as for `let_out`; the task that ran goes on.
            unsafe { pmi::let_in(self.numbers.get(task).copied().unwrap_or_default().into()) };
        }
        task
    }

    /// Asks who goes on, and does what is to be done for it.
    #[inline(never)]
    fn decide(&mut self, why: Cause, now: u64) -> usize {
        let Decision { next, timer } = self.scheduler.decide(why, now);
        match self.sampled.and_then(|sampled| sampled.timer) {
            Some(_) if next.is_none() => {
                pmi::stop_timer();
            }
            Some(_) => {}
            None => self.set(timer),
        }
        if let (Some(task), true) = (next, self.sampled.is_some()) {
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
