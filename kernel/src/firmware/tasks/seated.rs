//! One processor's tasks, run on it.

use crate::firmware::probe;
use alloc::vec;
use alloc::vec::Vec;
use arch::apic;
use arch::interrupts::TrapFrame;
use arch::pmu::pmi::{self, Interval};
use arch::task::{self, Context, TICK_VECTOR};
use arch::time::tsc;
use kernel::tasks::{Cause, Guide, Timer};

/// Tasks are sampled: `arch::pmu::pmi`'s counters run while a task does, with this timer beside them.
#[derive(Clone, Copy)]
pub struct Sampled {
    pub timer: Option<Interval>,
}

/// The tasks of one processor.
#[derive(Default)]
pub struct Here {
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
#[derive(Clone, Copy, Default, PartialEq)]
struct Stop([u64; 4]);

impl Stop {
    fn of(frame: &TrapFrame) -> Self {
        Self([frame.rip, frame.rsp, frame.rcx, frame.r15])
    }
}

impl Here {
    /// None yet.
    pub fn new(cpu: u16) -> Self {
        Self { cpu, ..Self::default() }
    }

    /// One more.
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

    /// Runs them until `guide` says that the kernel goes on.
    ///
    /// # Safety
    /// On the processor whose they are, with interrupts off; nobody else uses its timer. Each context leads into code and
    /// stacks of its own, in an address space that has the kernel's upper half.
    pub unsafe fn run(
        &mut self,
        machine: &probe::Machine,
        sampled: Option<Sampled>,
        guide: &mut dyn Guide,
    ) {
        let Some(mut timer) = timer(machine) else { return };
        let (numbers, cr2, stops) = (&self.numbers, &mut self.cr2, &mut self.stops);
        // TSC when the kernel came and when it went, of the last tick.
        let (mut came, mut went) = (0, 0);
        // A switch is no place to search.
        let most = numbers.iter().max().map_or(0, |&most| usize::from(most) + 1);
        let mut places = vec![0; most];
        (0..).zip(numbers).for_each(|(place, &number)| places[usize::from(number)] = place);
        let sampling_timer = sampled.and_then(|sampled| sampled.timer);
        let mut on_event = |event: task::Event| {
            if sampled.is_some() {
                // SAFETY: in an interrupt of ring 0's, all of which come with interrupts off; `sampled`'s caller has
                // installed the block.
                unsafe { pmi::let_out(event.frame) };
            }
            let now = tsc::now();
            let cause = match event.cause {
                task::Cause::Start => Cause::Start,
                task::Cause::Tick => {
                    timer.ticked();
                    let stop = Stop::of(event.frame);
                    let before = event.task.and_then(|task| stops.get_mut(task));
                    let stays =
                        before.is_some_and(|before| core::mem::replace(before, stop) == stop);
                    // A task that waits in one place is not held up: it has more time than the kernel.
                    let stalled = stays && now.wrapping_sub(went) < went.wrapping_sub(came);
                    came = now;
                    if stalled { Cause::Stall } else { Cause::Tick }
                }
                task::Cause::Yield => Cause::Yield,
                task::Cause::Exit => Cause::Exit,
                task::Cause::Fault { cr2: address } => {
                    if let Some(place) = event.task.and_then(|task| cr2.get_mut(task)) {
                        *place = address;
                    }
                    Cause::Fault
                }
            };
            let decision = guide.decide(cause, now);
            match decision.timer {
                _ if sampling_timer.is_some() => {
                    if decision.next.is_none() {
                        pmi::stop_timer();
                    }
                }
                Timer::Leave => {}
                Timer::Once(ticks) => timer.once(ticks),
                Timer::Every(ticks) => timer.every(ticks),
                Timer::Stop => timer.stop(),
            }
            if let (Some(task), true) = (decision.next, sampled.is_some()) {
                // SAFETY: as above.
                unsafe { pmi::let_in(task.into()) };
            }
            // Behind anything but a tick, none is a stall.
            went = if event.cause == task::Cause::Tick { tsc::now() } else { came };
            decision.next.map(|number| places[usize::from(number)])
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

/// The timer of the processor that this runs on.
pub fn timer(machine: &probe::Machine) -> Option<apic::Timer> {
    // SAFETY: ring 0, interrupt table loaded. A rate that is not 0 shows that the APIC is on; nobody else uses its
    // timer, and `arch::task` handles the vector while tasks run.
    unsafe { apic::Timer::new(&machine.clock, machine.apic_timer_hz, TICK_VECTOR) }
}
