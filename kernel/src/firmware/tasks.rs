//! The processor as one that runs tasks, and a counter that goes with them.

use super::probe;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use arch::apic;
use arch::interrupts::TrapFrame;
use arch::memory::{Frames, Space};
use arch::pmu::driver::{Rings, Selection};
use arch::pmu::pmi::{self, Interval};
use arch::pmu::{self, Counter, Driver};
use arch::task::memory::{self, Memory};
use arch::task::{self, Context, Extended, TICK_VECTOR};
use arch::time::tsc;
use kernel::snippet::{Place, emit};
use kernel::tasks::{self, Cause, Decide, Emitted, Left, Observer, Summary, Timer};
use protocol::checksum::crc32;
use protocol::workload::{Ring, Task, Tasks};

/// Memory of tasks, kept from one workload for the next.
#[derive(Default)]
pub struct Slots(Vec<Memory>);

impl Slots {
    /// Machine code of a task at `address`, `most` bytes at most; empty if no task's code lies there.
    pub fn code(&mut self, address: u64, most: usize) -> Vec<u8> {
        for (index, memory) in self.0.iter_mut().enumerate() {
            let at = address.wrapping_sub(memory::code(index));
            if at < memory::CODE_BYTES {
                let code = &memory.code_mut()[at as usize..];
                return code[..code.len().min(most)].to_vec();
            }
        }
        Vec::new()
    }
}

/// Runs a workload, and counts each task's instructions in ring 3 if there is a PMU.
///
/// # Errors
/// Why it cannot be run, in a sentence.
pub fn run(item: &Tasks, processor: &mut Processor) -> Result<Summary, String> {
    let (workload, limit_us) = (&item.workload, item.limit_us);
    let Some(mut counter) = UserInstructions::open(processor.machine, workload.tasks.len()) else {
        return tasks::run(workload, limit_us, processor, &mut ());
    };
    let ran = tasks::run(workload, limit_us, processor, &mut counter);
    let total = counter.close();
    let mut summary = ran?;
    summary.user_instructions = Some(total);
    for (task, counts) in summary.tasks.iter_mut().zip(&counter.counts) {
        task.user_instructions = Some(counts.own);
        task.child_user_instructions = Some(counts.children);
    }
    Ok(summary)
}

/// The processor with the tasks that it is to run.
pub struct Processor<'a> {
    machine: &'a probe::Machine,
    space: &'a Space,
    frames: &'a mut Frames,
    slots: &'a mut Slots,
    contexts: Vec<Context>,
    /// Where the code of each task lies.
    emitted: Vec<Emitted>,
    /// CR2 at the exception of each task.
    cr2: Vec<u64>,
    /// Where each task was when a tick last interrupted it.
    stops: Vec<Stop>,
    sampled: Option<Sampled>,
}

/// Tasks are sampled: `arch::pmu::pmi`'s counters run while a task does, with this timer beside them.
#[derive(Clone, Copy)]
struct Sampled {
    timer: Option<Interval>,
}

impl<'a> Processor<'a> {
    /// The processor without tasks, in the address space in use.
    pub fn new(
        machine: &'a probe::Machine,
        space: &'a Space,
        frames: &'a mut Frames,
        slots: &'a mut Slots,
    ) -> Self {
        let (contexts, emitted, cr2, stops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { machine, space, frames, slots, contexts, emitted, cr2, stops, sampled: None }
    }

    /// The same for tasks that are sampled with the block that `pmi::install` has taken. If `timer` samples, the
    /// scheduler has none: there are no ticks, and nothing ends a task that takes too long.
    #[must_use]
    pub fn sampled(self, timer: Option<Interval>) -> Self {
        Self { sampled: Some(Sampled { timer }), ..self }
    }

    /// Where the code of each loaded task lies.
    #[must_use]
    pub fn emitted(&self) -> &[Emitted] {
        &self.emitted
    }
}

impl Processor<'_> {
    fn timer(&self) -> Option<apic::Timer> {
        // SAFETY: ring 0, interrupt table loaded. A rate that is not 0 shows that the APIC is on; nobody else uses its
        // timer, and `arch::task` handles the vector while tasks run.
        unsafe { apic::Timer::new(&self.machine.clock, self.machine.apic_timer_hz, TICK_VECTOR) }
    }

    /// Makes one task ready, as the next one.
    fn prepare(&mut self, task: &Task) -> Result<Emitted, String> {
        let index = self.contexts.len();
        if self.slots.0.len() == index {
            let memory = Memory::allocate(index, self.frames);
            self.slots.0.push(memory.map_err(|error| format!("task `{}`: {error}", task.name))?);
        }
        let memory = &mut self.slots.0[index];
        let user = task.ring == Ring::User;
        // SAFETY: no task runs; physical memory is mapped, and the space is the one in use.
        let root = unsafe { memory.clear(self.space.root(), user) };
        let area = |area| memory::area(index, area);
        let place = Place {
            code: memory::code(index),
            data: memory::count(index),
            pointers: [memory::stack(index), area(0), area(1), area(2), area(VALUE_AREA)],
        };
        let emitted = tasks::emit::emit(memory.code_mut(), &place, task);
        let count = &mut memory.count_mut()[emit::COUNT_AT..][..8];
        count.copy_from_slice(&task.turns.to_le_bytes());
        let frame = tasks::emit::registers(&place, task, &emitted);
        let extended = task.extended_state.then(|| Extended::new(self.machine.extended));
        self.contexts.push(Context::new(&frame, user, root.as_u64(), extended));
        self.emitted.push(emitted.clone());
        Ok(emitted)
    }
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

/// The memory area that R14 points to.
const VALUE_AREA: u64 = memory::AREAS - 1;

impl tasks::Machine for Processor<'_> {
    fn tsc_hz(&self) -> u64 {
        self.machine.clock.hz
    }

    fn load(&mut self, tasks: &[Task]) -> Result<Vec<Emitted>, String> {
        if self.timer().is_none() {
            return Err("tasks need the local APIC's timer, which does not count here".to_string());
        }
        self.cr2 = vec![0; tasks.len()];
        self.stops = vec![Stop::default(); tasks.len()];
        self.contexts.clear();
        self.emitted.clear();
        tasks.iter().map(|task| self.prepare(task)).collect()
    }

    fn run(&mut self, decide: Decide) {
        let Some(mut timer) = self.timer() else { return };
        let (cr2, stops, sampled) = (&mut self.cr2, &mut self.stops, self.sampled);
        // TSC when the kernel came and when it went, of the last tick.
        let (mut came, mut went) = (0, 0);
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
            let decision = decide(cause, now);
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
            decision.next.map(usize::from)
        };
        if let Some(interval) = sampling_timer {
            // SAFETY: ring 0, interrupts off, the APIC on. The scheduler has just stopped its own use of the timer, and
            // does not take it up again.
            unsafe { pmi::start_timer(interval) };
        }
        // SAFETY: ring 0, interrupts off, interrupt table loaded; one workload runs at a time. `load` made each context
        // with its own code, stack and address space, which has the kernel's upper half. When the last task is gone
        // the scheduler stops the timer. What a task of ring 0 does beyond its memory is its author's business.
        unsafe { task::run(&mut self.contexts, &mut on_event) };
    }

    fn left(&mut self, task: usize) -> Left {
        let memory = &mut self.slots.0[task];
        let count = memory.count_mut()[emit::COUNT_AT..][..8].try_into();
        Left {
            frame: *self.contexts[task].frame(),
            cr2: self.cr2[task],
            count: u64::from_le_bytes(count.expect("eight bytes")),
            value: memory.value(VALUE_AREA),
            memory_crc32: crc32(memory.data_mut()),
        }
    }

    fn taken(&self, vector: u8) -> u64 {
        arch::interrupts::taken(vector)
    }
}

/// Counts of one task.
#[derive(Clone, Copy, Default)]
struct Counts {
    own: u64,
    children: u64,
}

/// A counter of instructions in ring 3 that each task has for itself: read and zeroed at each switch. What a child has
/// is added to its parent when it exits. A second counter counts the same through, whoever runs.
struct UserInstructions {
    registers: pmu::Machine,
    driver: Driver,
    counter: Counter,
    through: Counter,
    counts: Vec<Counts>,
}

impl UserInstructions {
    /// Starts counting, if there is a PMU.
    fn open(machine: &probe::Machine, tasks: usize) -> Option<Self> {
        let has = machine.pmu.as_ref().ok()?;
        // INST_RETIRED.ANY_P, architectural (SDM vol. 3, table 20-1); AMD: retired instructions, PMCx0C0.
        let selection = Selection::of(0xc0, 0).in_rings(Rings::USER);
        let mut counters = has.generals();
        let (counter, through) = (counters.next()?, counters.next()?);
        // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and no interrupt is armed.
        let mut registers = unsafe { pmu::Machine::new() };
        let mut driver = Driver::new(has.clone());
        driver.reset(&mut registers).ok()?;
        for counter in [counter, through] {
            driver.program(&mut registers, counter, &selection).ok()?;
            driver.write(&mut registers, counter, 0).ok()?;
        }
        driver.start(&mut registers).ok()?;
        let counts = vec![Counts::default(); tasks];
        Some(Self { registers, driver, counter, through, counts })
    }

    /// Stops counting and frees the counters. Returns what was counted through.
    fn close(&mut self) -> u64 {
        let total = self.driver.read(&mut self.registers, self.through).unwrap_or(0);
        // The registers took these writes before.
        let _ = self.driver.reset(&mut self.registers);
        total
    }
}

impl Observer for UserInstructions {
    fn switched(&mut self, from: Option<u16>, _: Option<u16>) {
        let counted = self.driver.read(&mut self.registers, self.counter).unwrap_or(0);
        let _ = self.driver.write(&mut self.registers, self.counter, 0);
        if let Some(counts) = from.and_then(|task| self.counts.get_mut(usize::from(task))) {
            counts.own += counted;
        }
    }

    fn exited(&mut self, task: u16, parent: Option<u16>) {
        let Counts { own, children } = self.counts[usize::from(task)];
        if let Some(parent) = parent {
            self.counts[usize::from(parent)].children += own + children;
        }
    }
}
