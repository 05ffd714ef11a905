//! What a processor's scheduler and its PMI tell the counters. Each processor has its own, and nothing here is shared, so
//! neither path asks for a lock.

use super::platform::Processor;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::interrupts::TrapFrame;
use arch::pmu::pmi;
use arch::pmu::{Capabilities, Driver};
use arch::smp;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::counting::job::{CountRun, Part, Share};
use kernel::tasks::Observer;
use protocol::count::Count;

/// What the handlers of one processor work with while an item runs.
struct Running {
    run: CountRun,
    processor: Processor,
    current: Option<u16>,
    /// The first thing that went wrong in a handler.
    error: Option<String>,
}

/// This processor's [`Running`]; null while it counts nothing. The PMI's handler and the scheduler take turns, as interrupts
/// are off in both. Nobody else stores anything there.
fn here() -> &'static AtomicPtr<()> {
    &smp::this().handlers_data
}

/// The handler of the PMI.
pub fn on_pmi(frame: &mut TrapFrame) {
    // SAFETY: interrupts are off; what this one came into neither uses the block nor the run. The frame is the handler's.
    unsafe {
        pmi::service_installed(frame);
        let own = &smp::Processor::of_interrupt(frame).handlers_data;
        if let Some(running) = own.load(Ordering::Relaxed).cast::<Running>().as_mut() {
            let done = running.run.interrupt(&mut running.processor);
            running.note(done);
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

/// Tells [`Running`] what the scheduler of its processor does.
pub struct Watch<'a> {
    item: &'a Count<'a>,
    shares: Vec<Share>,
    has: Capabilities,
    done: Result<Part, String>,
}

impl<'a> Watch<'a> {
    /// For a processor with this PMU, which counts these shares.
    pub fn new(item: &'a Count<'a>, shares: Vec<Share>, has: Capabilities) -> Self {
        Self { item, shares, has, done: Err("it was not counted".to_string()) }
    }

    /// What was counted.
    ///
    /// # Errors
    /// What went wrong first.
    pub fn part(self) -> Result<Part, String> {
        self.done
    }

    /// Calls `tell` with what counts here, if it does.
    fn tell(&mut self, tell: impl FnOnce(&mut Running)) {
        let running = here().load(Ordering::Relaxed).cast::<Running>();
        // SAFETY: made by `opened` and taken back by `closed`, on this processor; used with interrupts off only, here,
        // one call at a time, and in `on_pmi`.
        if let Some(running) = unsafe { running.as_mut() } {
            tell(running);
        }
    }
}

impl Observer for Watch<'_> {
    fn opened(&mut self) {
        // SAFETY: on the processor that is counted, whose PMU the firmware owns; interrupts are off.
        let mut processor = unsafe { Processor::open() };
        let shares = core::mem::take(&mut self.shares);
        let driver = Driver::new(self.has.clone());
        match CountRun::begin(self.item, shares, &driver, &mut processor) {
            Ok(run) => {
                let running = Box::new(Running { run, processor, current: None, error: None });
                here().store(Box::into_raw(running).cast(), Ordering::Relaxed);
            }
            Err(error) => {
                processor.close();
                self.done = Err(error.to_string());
            }
        }
    }

    fn loaded(&mut self) {
        self.tell(|running| {
            let done = running.run.start(&mut running.processor);
            running.note(done);
        });
    }

    fn ended(&mut self) {
        self.tell(|running| {
            let done = running.run.stop(&mut running.processor);
            running.note(done);
        });
    }

    fn closed(&mut self) {
        let running = here().swap(ptr::null_mut(), Ordering::Relaxed).cast::<Running>();
        if running.is_null() {
            return;
        }
        // SAFETY: the box that `opened` gave away; nobody has the pointer any more.
        let Running { run, mut processor, error, .. } = *unsafe { Box::from_raw(running) };
        let finished = run.finish(&mut processor).map_err(|error| error.to_string());
        processor.close();
        self.done = error.map_or(finished, Err);
    }

    fn created(&mut self, task: u16, parent: Option<u16>) {
        self.tell(|running| running.run.created(task, parent));
    }

    fn switched(&mut self, _: Option<u16>, to: Option<u16>) {
        self.tell(|running| running.switch(to));
    }

    fn exited(&mut self, task: u16, parent: Option<u16>) {
        self.tell(|running| {
            let done = running.run.exited(task, parent, &mut running.processor);
            running.note(done);
        });
    }

    /// What the tick does with the counters is the kernel's.
    fn tick(&mut self) {
        self.tell(|running| {
            let task = running.current;
            running.switch(None);
            let done = running.run.tick(task, &mut running.processor);
            running.note(done);
            running.switch(task);
        });
    }
}
