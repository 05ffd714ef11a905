//! The job kind `count` on this processor: its tasks run under the scheduler, which tells the counters of every switch.

use super::probe::Machine;
use super::tasks;
use alloc::string::{String, ToString};
use arch::debug;
use arch::interrupts::{self, TrapFrame};
use arch::msr::{Absent, Msr};
use arch::pmu::pmi::{self, ControlBlock, Delivery, VECTOR};
use arch::pmu::{self, Counter, Driver, Registers};
use arch::time::tsc;
use core::ptr;
use kernel::counting::Platform;
use kernel::counting::address::AddressGate;
use kernel::counting::job::{self, CountRun, Planned};
use kernel::tasks::{Emitted, Observer, Summary, run};
use protocol::count::Count;
use protocol::record::{self, CountResult};
use raw_cpuid::CpuIdResult;

/// What the handlers work with while an item runs.
struct Running {
    run: CountRun,
    processor: Processor,
    current: Option<u16>,
    /// The first thing that went wrong in a handler.
    error: Option<String>,
}

/// Set while interrupts may come. The PMI's handler and the scheduler take turns, as interrupts are off in both.
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

    fn taken(&mut self, vector: u8) -> u64 {
        interrupts::taken(vector)
    }
}

fn on_pmi(frame: &mut TrapFrame) {
    // SAFETY: interrupts are off; what this one came into neither uses the block nor the run.
    unsafe {
        pmi::service_installed(frame);
        if let Some(running) = RUNNING.as_mut() {
            let done = running.run.interrupt(&mut running.processor);
            running.note(done);
        }
    }
}

/// A task is at an address at which counting starts or stops.
fn on_debug(_: &mut TrapFrame, dr6: u64) -> bool {
    // SAFETY: interrupts are off; what this one came into is a task, or else there is no address of it.
    let Some(running) = (unsafe { RUNNING.as_mut() }) else { return false };
    match running.run.trapped(dr6, &mut running.processor) {
        Ok(own) => own,
        Err(error) => {
            running.note(Err(error));
            true
        }
    }
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

/// Tells [`RUNNING`] what the scheduler does.
#[derive(Default)]
struct Watch {
    /// The task with breakpoints, and these. They are set while it has the processor.
    breakpoints: Option<(u16, AddressGate)>,
}

impl Watch {
    /// Called by the scheduler only, one call at a time.
    fn running<'a>(&mut self) -> &'a mut Running {
        // SAFETY: set by `count` as long as there is a watch, and used with interrupts off only, here and in `on_pmi`.
        unsafe { &mut *RUNNING }
    }
}

impl Observer for Watch {
    fn loaded(&mut self, tasks: &[Emitted]) {
        let running = self.running();
        let done = running.run.start(&mut running.processor);
        running.note(done);
        match running.run.place(tasks.iter().map(|task| task.init.start)) {
            Ok(breakpoints) => self.breakpoints = breakpoints,
            Err(error) => running.note(Err(error)),
        }
    }

    fn ended(&mut self) {
        let running = self.running();
        let done = running.run.stop(&mut running.processor);
        running.note(done);
    }

    fn created(&mut self, task: u16, parent: Option<u16>) {
        self.running().run.created(task, parent);
    }

    fn switched(&mut self, from: Option<u16>, to: Option<u16>) {
        if let Some((task, gate)) = self.breakpoints {
            if from == Some(task) {
                debug::clear_breakpoints();
            }
            if to == Some(task) {
                // SAFETY: ring 0, interrupt table loaded; the addresses are the task's, where the kernel is not.
                unsafe { debug::set_breakpoints(gate.addresses(), gate.dr7(), on_debug) };
            }
        }
        self.running().switch(to);
    }

    fn exited(&mut self, task: u16, parent: Option<u16>) {
        let running = self.running();
        let done = running.run.exited(task, parent, &mut running.processor);
        running.note(done);
    }

    /// What the tick does with the counters is the kernel's.
    fn tick(&mut self) {
        let running = self.running();
        let task = running.current;
        running.switch(None);
        let done = running.run.tick(&mut running.processor);
        running.note(done);
        running.switch(task);
    }
}

/// Counts while the tasks of `item` run.
///
/// # Errors
/// Why the tasks cannot run or the PMU refuses, in a sentence.
pub fn count(
    item: &Count,
    machine: &Machine,
    processor: &mut tasks::Processor,
) -> Result<CountResult, String> {
    let planned = match (&machine.known, &machine.pmu) {
        (Some(known), _) => job::plan(item, known),
        (None, pmu) => {
            let reason = match pmu {
                Err(missing) => alloc::format!("there is no PMU: {missing}"),
                Ok(_) => "the PMU's events are not known".to_string(),
            };
            let each = item.requests.iter().map(|request| record::Uncounted {
                event: request.event.to_string(),
                reason: reason.clone(),
            });
            Planned { set: None, uncounted: each.collect() }
        }
    };
    let uncounted = planned.uncounted;
    let (Some(set), Ok(has)) = (planned.set, &machine.pmu) else {
        let Summary { tasks, switches, ticks, .. } =
            run(&item.workload, item.limit_us, processor, &mut ())?;
        let (ticks, lengthened) = (ticks.count, ticks.lengthened);
        let result = CountResult { tasks, switches, ticks, lengthened, ..CountResult::default() };
        return Ok(CountResult { uncounted, ..result });
    };
    // SAFETY: ring 0, interrupt table loaded; the firmware owns the PMU, and `on_pmi` handles what is armed here.
    let mut own = Processor { registers: unsafe { pmu::Machine::new() } };
    let counting = CountRun::begin(item, set, Driver::new(has.clone()), &mut own)
        .map_err(|error| error.to_string())?;
    let mut running = Running { run: counting, processor: own, current: None, error: None };
    // SAFETY: the pointer is taken back before `running` is used otherwise.
    unsafe { RUNNING = &raw mut running };
    let ran = run(&item.workload, item.limit_us, processor, &mut Watch::default());
    // SAFETY: interrupts are off.
    unsafe { RUNNING = ptr::null_mut() };
    let Running { run: counting, processor: mut own, error, .. } = running;
    let result = counting.finish(item, &mut own);
    own.withdraw();
    let Summary { tasks, ticks, .. } = ran?;
    let result = result.map_err(|error| error.to_string())?;
    match error {
        Some(error) => Err(error),
        None => Ok(CountResult { tasks, uncounted, lengthened: ticks.lengthened, ..result }),
    }
}
