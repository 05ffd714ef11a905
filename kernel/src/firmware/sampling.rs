//! The real machine as one that is sampled.

use super::control::PLACE;
use super::per_cpu::AllProcessors;
use super::target::Target;
use super::tasks::Processors;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::apic;
use arch::cpu::extended;
use arch::descriptors::KERNEL_CODE_32;
use arch::pmu::pmi::{self, ControlBlock, Delivery, Interval};
use arch::pmu::{Driver, Gate, Registers};
use arch::smp;
use arch::time::tsc;
use core::ops::Range;
use kernel::processors::{Member, agreement};
use kernel::sampling::{Pmu, Sampler, Scheduled};
use kernel::snippet::measure::Unmeasured;
use kernel::snippet::{Phase, emit};
use kernel::tasks;
use protocol::bits::Bits;
use protocol::hex::Hex;
use protocol::job::sampling::Sampling;
use protocol::job::workload::Task;
use protocol::job::{Difference, Setup, Snippet};
use protocol::program::ProgramKey;
use protocol::record::CodePlace;
use x86_64::instructions::{interrupts, nop};

/// What a processor does for another one while that waits for it, or hands back to it.
struct Moved<T>(T);

// SAFETY: `smp::run_on` waits for the work, so that one processor at a time has what is moved, and memory is one for all.
unsafe impl<T> Send for Moved<T> {}

/// `gather` has made sure of it.
const IN_USE: &str = "a processor in use, called from the boot processor";

/// The longest instruction.
const INSTRUCTION_BYTES: u64 = 15;

/// The task as the snippet that does the same: its body in a loop, between code that opens and closes the gate.
fn snippet<'a>(task: &'a Task) -> Snippet<'a> {
    Snippet {
        name: Cow::Borrowed(&task.name),
        init: Cow::Borrowed(&task.init),
        body: Cow::Borrowed(&task.body),
        unroll: 1,
        loop_count: task.turns,
        loop_counter: task.loop_counter,
        extended_state: task.extended_state,
        warmup: 0,
        runs: 1,
        difference: Difference::Empty,
        values: false,
        events: Vec::new(),
        setup: Setup { bits: task.bits, ..Setup::default() },
    }
}

impl Sampler for Target<'_> {
    fn pmu(&mut self) -> Result<Pmu<'_>, String> {
        let known = match (&self.machine.known, &self.machine.pmu) {
            (Some(known), _) => known,
            (None, Err(missing)) => return Err(alloc::format!("there is no PMU: {missing}")),
            (None, Ok(_)) => return Err("the PMU's events are not known".to_string()),
        };
        let driver = self.counting.own.driver.as_mut().ok_or("there is no PMU")?;
        Ok(Pmu { registers: &mut self.counting.own.registers, driver, known })
    }

    fn gather(&mut self, cpus: &[u16], counts: bool) -> Result<(), String> {
        self.take_into_use(cpus)?;
        if let Some(&cpu) = cpus.iter().find(|&&cpu| smp::processor(cpu.into()).is_none()) {
            let missing = smp::CallError::NoProcessor(cpu.into(), smp::count());
            return Err(alloc::format!("a task is to run on processor {cpu}: {missing}"));
        }
        let all = self.others.processors.as_ref().map_or(&[][..], AllProcessors::members);
        let named = |member: &&Member| {
            member.number == 0 || cpus.iter().any(|&cpu| u32::from(cpu) == member.number)
        };
        let members: Vec<Member> = all.iter().filter(named).filter(|_| counts).cloned().collect();
        // Events are chosen for the boot processor.
        agreement::check(&members).map_err(|difference| difference.to_string())?;
        members.iter().try_for_each(|member| match &member.pmu {
            // Of the boot processor the plan says so.
            Err(why) if member.number != 0 => {
                Err(alloc::format!("processor {} cannot be sampled: {why}", member.number))
            }
            _ => Ok(()),
        })
    }

    fn on(
        &mut self,
        cpu: u16,
        work: &mut dyn FnMut(&mut dyn Registers, &mut Driver),
    ) -> Result<(), String> {
        let none = || "there is no PMU".to_string();
        if cpu == 0 {
            let driver = self.counting.own.driver.as_mut().ok_or_else(none)?;
            work(&mut self.counting.own.registers, driver);
            return Ok(());
        }
        let all = self.others.processors.as_ref().ok_or_else(none)?;
        let place = all.place(cpu.into());
        let own = &all.per_cpu[place.ok_or_else(none)?];
        let work = Moved(work);
        let call = move || {
            let (mut own, work) = (own.lock(), { work }.0);
            let counters = &mut own.counters;
            let driver = counters.driver.as_mut()?;
            work(&mut counters.registers, driver);
            Some(())
        };
        smp::run_on(cpu.into(), call).expect(IN_USE).ok_or_else(none)
    }

    fn load_task(&mut self, task: &Task, gate: &Gate) -> (CodePlace, Range<u64>) {
        self.emit(Phase::Measured, &snippet(task), 1, gate);
        let emitted = self.loaded.emitted();
        let hex = |range: &Range<u64>| [Hex(range.start), Hex(range.end)];
        let (body, init) = (hex(&emitted.body), hex(&emitted.init));
        let function = hex(&emitted.function);
        (CodePlace { body, init, function, program: None }, emitted.closed.clone())
    }

    fn run_task(&mut self, task: &Task, vectors: bool) -> Result<u64, Unmeasured> {
        let function = self.loaded.function();
        let is_32_bit = task.bits == Bits::Compatibility;
        self.counting.code_segment = if is_32_bit { KERNEL_CODE_32.0.into() } else { 0 };
        // SAFETY: as for a snippet: the function was emitted with its exit, and is mapped executable. Interrupts, if
        // they are on, are the sampling handlers' alone, which have stacks of their own and take no lock. Nobody else
        // uses the timer.
        let ended = unsafe {
            if self.loaded.resets_extended {
                extended::reset(self.machine.extended);
            }
            if vectors {
                interrupts::enable();
            }
            // As near to the task as can be: the rest is not what is sampled.
            if let Some(interval) = self.counting.timer {
                pmi::start_timer(interval);
            }
            let ended = function.run();
            interrupts::disable();
            pmi::stop_timer();
            if let Some(driver) = &self.counting.own.driver {
                // A task that faulted left the counters running.
                let _ = driver.stop(&mut self.counting.own.registers);
            }
            pmi::shut();
            if vectors {
                // The exit of a fault switches interrupts off. What waits comes in now.
                interrupts::enable();
                nop();
                nop();
                interrupts::disable();
            }
            ended
        };
        if let Err(trap) = ended {
            let (emitted, phase) = (self.loaded.emitted(), self.loaded.phase());
            let fault = kernel::snippet::fault::explain(&trap, emitted, phase, &snippet(task));
            return Err(Unmeasured::Fault(Box::new(fault)));
        }
        // SAFETY: the emitted code has written it.
        let data = unsafe { &*(PLACE.data as *const emit::Data) };
        Ok(data.stop.wrapping_sub(data.start))
    }

    fn run_tasks(&mut self, item: &Sampling, interval: Option<u64>) -> Result<Scheduled, String> {
        let (frames, slots) = (&mut self.asked.controls.frames, &mut self.slots);
        let heart = self.heart;
        let of_tasks = (slots, &mut self.programs);
        let others = self.others.processors.as_ref();
        let processors = Processors::new(self.machine, &self.space, frames, of_tasks, others);
        let mut processor = processors.sampled(interval);
        // Each task's own, as it loses the processor.
        self.counting.code_segment = 0;
        let start = tsc::now();
        let (workload, limit_us) = (&item.workload, item.limit_us);
        let ran =
            tasks::run_beating::<()>(workload, limit_us, &mut processor, &mut [], Some(heart));
        let ticks = tsc::now() - start;
        let hex = |range: Range<u64>| [Hex(range.start), Hex(range.end)];
        let place = |(emitted, program): (&tasks::Emitted, Option<ProgramKey>)| CodePlace {
            body: hex(emitted.body.clone()),
            init: hex(emitted.init.clone()),
            // The software interrupt at the end has two bytes; what overflows on its way in is sampled after it.
            function: hex(emitted.init.start..emitted.exit + 3),
            program,
        };
        let programs = processor.called(workload);
        let places = processor.emitted().iter().zip(programs).map(place).collect();
        let mut summary = ran?;
        processor.explain(workload, &mut summary.tasks);
        Ok(Scheduled { summary, places, ticks })
    }

    fn deliver(
        &mut self,
        cpu: u16,
        block: &ControlBlock,
        delivery: Delivery,
        timer: Option<Interval>,
    ) {
        let block = Moved(block);
        // SAFETY: ring 0, interrupt table loaded, APIC on; the block is that of the driver's counters, and the session
        // that it names memory of lives until `withdraw`. Sampled processors have PMUs of one kind.
        let install = move || unsafe { pmi::install({ block }.0, delivery) };
        smp::run_on(cpu.into(), install).expect(IN_USE);
        self.counting.timer = timer;
    }

    fn withdraw(&mut self, cpu: u16, block: &mut ControlBlock) {
        self.counting.timer = None;
        let (block, cs) = (Moved(block), self.counting.code_segment);
        // SAFETY: LVTPC and the timer are masked then, so no handler uses the block any more.
        let take = move || unsafe {
            pmi::uninstall();
            // The counters stand, and the session still has the records' memory.
            pmi::drain_installed(cs);
            let block = { block }.0;
            block.clone_from(&*pmi::block());
        };
        smp::run_on(cpu.into(), take).expect(IN_USE);
    }

    fn clocks(&self) -> [u64; 2] {
        [self.machine.clock.hz, self.machine.apic_timer_hz]
    }

    fn code(&mut self, address: u64) -> Vec<u8> {
        let Some(emitted) = self.loaded.around(address) else {
            let code = self.slots.code(address, INSTRUCTION_BYTES as usize);
            return if code.is_empty() {
                self.programs.any(address, INSTRUCTION_BYTES)
            } else {
                code
            };
        };
        let bytes = INSTRUCTION_BYTES.min(emitted.function.end - address) as usize;
        // SAFETY: the emitted code, which nothing writes to now.
        unsafe { core::slice::from_raw_parts(address as *const u8, bytes) }.to_vec()
    }

    fn pointers(&self, task: Option<usize>) -> [u64; 5] {
        task.map_or(PLACE.pointers, super::tasks::pointers)
    }

    fn has_extended_lvt(&mut self, entry: u8) -> bool {
        apic::has_extended(entry)
    }

    fn has_emulated_pmu(&self) -> bool {
        self.machine.emulated.is_some()
    }
}
