//! The job kind `count` on this processor.
//!
//! Tasks run one after the other, each a call of its machine code in ring 0 with interrupts on: the timer's ticks give
//! requests their turns and end the rows of the series.

use super::control::PLACE;
use super::probe::Machine;
use alloc::format;
use alloc::string::{String, ToString};
use arch::apic::{self, Register};
use arch::call::Function;
use arch::cpu::{self, extended};
use arch::interrupts::{self, TrapFrame};
use arch::memory::arena::Arena;
use arch::msr::{self, Absent, Msr};
use arch::pmu::pmi::{self, ControlBlock, Delivery, Interrupted, Raw, VECTOR};
use arch::pmu::{self, Counter, Driver, Gate, Registers};
use arch::time::tsc;
use core::ptr;
use kernel::counting::Platform;
use kernel::counting::job::{self, CountRun, Planned};
use kernel::run::Uncounted;
use kernel::snippet::{Phase, emit, fault};
use protocol::count::Count;
use protocol::job::{Difference, Setup, Snippet};
use protocol::record::{self, CountResult};
use protocol::workload::{Ring, Task};
use raw_cpuid::CpuIdResult;

/// Vector of the timer's tick, below the PMI's.
const TICK_VECTOR: u8 = 0xd0;
/// LVT timer: periodic (SDM vol. 3, 10.5.4).
const PERIODIC: u32 = 1 << 17;
/// LVT mask bit.
const MASK: u32 = 1 << 16;
/// Divide configuration: by 1 (SDM vol. 3, figure 10-10), as when the timer's rate was measured.
const DIVIDE_BY_1: u32 = 0b1011;
/// STI.
const ENABLE_INTERRUPTS: u8 = 0xfb;

/// What the handlers work with while an item runs.
struct Running {
    run: CountRun,
    processor: Processor,
    current: Option<u16>,
    /// The first thing that went wrong in a handler.
    error: Option<String>,
}

/// Set while interrupts may come. The handlers and the code that runs with interrupts off take turns.
static mut RUNNING: *mut Running = ptr::null_mut();

/// This processor's PMU, and its interrupt.
struct Processor {
    registers: pmu::Machine,
}

impl Registers for Processor {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.registers.cpuid(leaf, subleaf)
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.registers.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        self.registers.wrmsr(msr, value)
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        self.registers.rdpmc(index)
    }
}

impl Platform for Processor {
    fn tsc(&mut self) -> u64 {
        tsc::now()
    }

    fn overflows(&mut self, counter: Counter) -> u64 {
        // SAFETY: the handler counts up in it, which a read may see before or after.
        unsafe { (*pmi::block()).overflows(counter) }
    }

    fn deliver(&mut self, block: ControlBlock) {
        // SAFETY: ring 0, interrupt table loaded, APIC on; interrupts are off, so that the handler below is in place
        // before the first one comes. The block is of what is programmed, and has no log.
        unsafe {
            pmi::install(block, Delivery::Fixed);
            interrupts::reset_entry(VECTOR);
        }
        interrupts::set_handler(VECTOR, Some(on_pmi));
    }

    fn withdraw(&mut self) {
        // SAFETY: ring 0, interrupt table loaded.
        unsafe { pmi::uninstall() };
    }
}

/// The registers in the interrupt's handler.
struct Handler;

impl Raw for Handler {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        // SAFETY: the block names registers that the driver has used before.
        unsafe { msr::read(Msr(msr)) }
    }

    fn wrmsr(&mut self, msr: u32, value: u64) {
        // SAFETY: as above, with values that the driver made.
        unsafe { msr::write(Msr(msr), value) };
    }

    fn unmask(&mut self) {
        apic::write(Register::LvtPmc, u32::from(VECTOR));
    }

    fn end(&mut self) {
        apic::end_of_interrupt();
    }

    fn tsc(&mut self) -> u64 {
        tsc::now()
    }
}

fn on_pmi(frame: &mut TrapFrame) {
    // SAFETY: interrupts are off; what this one came into neither uses the block nor the run.
    unsafe {
        let from = Interrupted { rip: frame.rip, cs: frame.cs, ..Interrupted::default() };
        pmi::service(&mut *pmi::block(), &mut Handler, &from);
        if let Some(running) = RUNNING.as_mut() {
            let done = running.run.interrupt(&mut running.processor);
            running.note(done);
        }
    }
}

fn on_tick(_: &mut TrapFrame) {
    // SAFETY: as above.
    if let Some(running) = unsafe { RUNNING.as_mut() } {
        let task = running.current;
        running.switch(None);
        let done = running.run.tick(&mut running.processor);
        running.note(done);
        running.switch(task);
    }
    apic::end_of_interrupt();
}

impl Running {
    /// From what runs to `to`.
    fn switch(&mut self, to: Option<u16>) {
        let from = core::mem::replace(&mut self.current, to);
        let done = self.run.switched(from, to, &mut self.processor);
        self.note(done);
    }

    fn note<E: ToString>(&mut self, done: Result<(), E>) {
        if let Err(error) = done {
            self.error.get_or_insert(error.to_string());
        }
    }
}

/// Counts while the tasks of `item` run.
pub fn count(item: &Count, machine: &Machine, arena: &mut Arena) -> Result<CountResult, Uncounted> {
    let refuse = |text: String| Uncounted::Refused(text);
    for task in &item.workload.tasks {
        runnable(task).map_err(refuse)?;
    }
    let planned = match (&machine.known, &machine.pmu) {
        (Some(known), _) => job::plan(item, known),
        (None, pmu) => {
            let reason = match pmu {
                Err(missing) => format!("there is no PMU: {missing}"),
                Ok(_) => "the PMU's events are not known".to_string(),
            };
            let each = item.requests.iter().map(|request| record::Uncounted {
                event: request.event.to_string(),
                reason: reason.clone(),
            });
            Planned { set: None, uncounted: each.collect() }
        }
    };
    let (Some(set), Ok(has)) = (planned.set, &machine.pmu) else {
        return Ok(CountResult { uncounted: planned.uncounted, ..CountResult::default() });
    };
    // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and `on_pmi` handles what is armed here.
    let mut processor = Processor { registers: unsafe { pmu::Machine::new() } };
    let run = CountRun::begin(item, set, Driver::new(has.clone()), &mut processor)
        .map_err(|error| refuse(error.to_string()))?;
    let mut running = Running { run, processor, current: None, error: None };
    start_ticks(item.workload.tick_ns, machine.apic_timer_hz);
    // SAFETY: the pointer is taken back before `running` ends.
    unsafe { RUNNING = &raw mut running };
    let ended = tasks(item, machine, arena);
    // SAFETY: interrupts are off.
    unsafe { RUNNING = ptr::null_mut() };
    stop_ticks();
    let Running { run, mut processor, error, .. } = running;
    let result = run.finish(item, &mut processor);
    processor.withdraw();
    ended?;
    if let Some(error) = error {
        return Err(refuse(error));
    }
    let result = result.map_err(|error| refuse(error.to_string()))?;
    Ok(CountResult { uncounted: planned.uncounted, ..result })
}

fn runnable(task: &Task) -> Result<(), String> {
    if task.ring == Ring::User {
        return Err(format!("task {}: tasks of ring 3 are not run here", task.name));
    }
    match task.cpu {
        None | Some(0) => Ok(()),
        Some(cpu) => Err(format!("task {}: processor {cpu} is not started", task.name)),
    }
}

/// All of them, parents before children. A parent ends after its children.
fn tasks(item: &Count, machine: &Machine, arena: &mut Arena) -> Result<(), Uncounted> {
    // SAFETY: set by the caller; used with interrupts off only, here and below.
    let running = || unsafe { &mut *RUNNING };
    for (index, task) in (0..).zip(&item.workload.tasks) {
        let snippet = snippet(task);
        let emitted = emit::emit(arena.code_mut(), &PLACE, &snippet, 1, &Gate::EMPTY);
        cpu::serialise();
        let function = Function { entry: emitted.function.start, exit: emitted.exit };
        running().run.created(index, task.parent);
        running().switch(Some(index));
        // SAFETY: as for a snippet. The code switches interrupts on, whose handlers use memory of their own.
        let ended = unsafe {
            if task.extended_state {
                extended::reset(machine.extended);
            }
            function.run()
        };
        x86_64::instructions::interrupts::disable();
        running().switch(None);
        if let Err(trap) = ended {
            let fault = fault::explain(&trap, &emitted, Phase::Measured, &snippet);
            return Err(Uncounted::Fault(alloc::boxed::Box::new(fault)));
        }
    }
    for (index, task) in item.workload.tasks.iter().enumerate().rev() {
        let running = running();
        let done = running.run.exited(index as u16, task.parent, &mut running.processor);
        running.note(done);
    }
    Ok(())
}

/// A task as the function that `emit` makes.
fn snippet<'a>(task: &'a Task) -> Snippet<'a> {
    let init = core::iter::once(ENABLE_INTERRUPTS).chain(task.init.iter().copied());
    Snippet {
        name: (*task.name).into(),
        init: init.collect::<alloc::vec::Vec<u8>>().into(),
        body: (*task.body).into(),
        unroll: 1,
        loop_count: task.turns,
        loop_counter: task.loop_counter,
        extended_state: task.extended_state,
        warmup: 0,
        runs: 1,
        difference: Difference::Empty,
        values: false,
        expect: None,
        events: alloc::vec::Vec::new(),
        setup: Setup::default(),
    }
}

fn start_ticks(tick_ns: u64, timer_hz: u64) {
    let count = u128::from(timer_hz) * u128::from(tick_ns) / 1_000_000_000;
    if count == 0 {
        return;
    }
    interrupts::set_handler(TICK_VECTOR, Some(on_tick));
    apic::write(Register::TimerDivide, DIVIDE_BY_1);
    apic::write(Register::LvtTimer, PERIODIC | u32::from(TICK_VECTOR));
    apic::write(Register::TimerInitialCount, u32::try_from(count).unwrap_or(u32::MAX));
}

fn stop_ticks() {
    apic::write(Register::TimerInitialCount, 0);
    apic::write(Register::LvtTimer, MASK);
    // A tick that waits is let in while its handler finds nothing to do.
    x86_64::instructions::interrupts::enable();
    x86_64::instructions::nop();
    x86_64::instructions::nop();
    x86_64::instructions::interrupts::disable();
    interrupts::set_handler(TICK_VECTOR, None);
}
