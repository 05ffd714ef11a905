//! What a processor's scheduler and its PMI tell the counters. Each processor has its own, and nothing here is shared, so
//! neither path asks for a lock.

use super::platform::Processor;
use super::remote::Remote;
use crate::firmware::tasks::VALUE_AREA;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::debug;
use arch::pmu::pmi;
use arch::pmu::{Capabilities, Driver};
use arch::smp;
use arch::task::memory;
use arch::trap::TrapFrame;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::counting::address::AddressGate;
use kernel::counting::gate::Begin;
use kernel::counting::job::{CountRun, Part, Shares, sees_the_kernel};
use kernel::tasks::{Emitted, Observer, Read};
use protocol::job::count::Count;

/// What the handlers of one processor work with while an item runs.
struct Running {
    run: CountRun,
    processor: Processor,
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
            // Where the kernel itself was interrupted (it lets in what waited when its last task has ended), its way out starts what
            // is put off, if there is one: started here, the counters would count the kernel.
            if !frame.is_of_kernel() {
                running.processor.go_on();
            }
        }
    }
}

/// A task is at an address at which counting starts or stops.
fn on_debug(_: &mut TrapFrame, dr6: u64) -> Option<bool> {
    let running = here().load(Ordering::Relaxed).cast::<Running>();
    // SAFETY: interrupts are off; what this one came into is a task, or the first instruction behind one: else there is no
    // address of it.
    let running = unsafe { running.as_mut() }?;
    match running.run.trapped(dr6, &mut running.processor) {
        Ok(own) => own,
        Err(error) => {
            running.note(Err(error));
            Some(true)
        }
    }
}

impl Running {
    /// From what runs to `to`.
    #[inline(never)]
    fn switch(&mut self, to: Option<u16>) {
        let done = self.run.switched(self.run.current(), to, &mut self.processor);
        self.note(done);
    }

    /// From one task to another, if that is all there is to do about it.
    #[inline(always)]
    fn switch_planned(&mut self, from: u16, to: u16) -> bool {
        self.run.switched_planned(from, to, &mut self.processor)
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
    shares: Shares,
    /// The PMU; `None`: nothing can be counted, and somebody listens all the same.
    has: Option<Capabilities>,
    /// Where each task begins.
    begins: Vec<Begin>,
    /// The tasks with breakpoints, and these. They are set while their task has the processor.
    breakpoints: Vec<(u16, AddressGate)>,
    /// What [`here`] has, for the observer, which needs not look for it; null while nothing is counted.
    running: AtomicPtr<Running>,
    /// Who controls it from outside.
    remote: Option<Box<Remote<'a>>>,
    done: Result<Part, String>,
}

impl<'a> Watch<'a> {
    /// For a processor with this PMU, which counts these shares.
    pub fn new(item: &'a Count<'a>, shares: Shares, has: Option<Capabilities>) -> Self {
        let done = Err("it was not counted".to_string());
        let running = AtomicPtr::new(ptr::null_mut());
        Self {
            item,
            shares,
            has,
            begins: Vec::new(),
            breakpoints: Vec::new(),
            running,
            remote: None,
            done,
        }
    }

    /// The same, controlled by what `open` opens.
    pub fn listening(self, open: impl FnOnce() -> Option<Remote<'a>>) -> Self {
        Self { remote: open().map(Box::new), ..self }
    }

    /// Calls `with` with the console, if there is one, and with what counts here, if it does, between two tasks.
    #[cold]
    fn between_tasks(
        &mut self,
        with: impl FnOnce(&mut Remote, Option<(&mut CountRun, &mut Processor)>) -> Result<(), String>,
    ) {
        let Some(mut remote) = self.remote.take() else { return };
        if self.has.is_none() {
            // Nothing can go wrong where nothing is counted.
            let _ = with(&mut remote, None);
            self.remote = Some(remote);
            return;
        }
        self.tell(|running| {
            let task = running.run.current();
            running.switch(None);
            let done = with(&mut remote, Some((&mut running.run, &mut running.processor)));
            running.note(done);
            running.switch(task);
        });
        self.remote = Some(remote);
    }

    /// Whether anything can be counted.
    pub const fn counts(&self) -> bool {
        self.has.is_some()
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
        if let Some(running) = self.running() {
            tell(running);
        }
    }

    /// What counts here, if something does.
    #[inline(always)]
    fn running(&mut self) -> Option<&mut Running> {
        // SAFETY: made by `opened` and taken back by `closed`, on this processor; used with interrupts off only, by
        // observers, one call at a time, and in `on_pmi`.
        unsafe { self.running.load(Ordering::Relaxed).as_mut() }
    }

    /// The debug registers are those of the task that gets the processor.
    #[cold]
    fn change_breakpoints(&self, from: Option<u16>, to: Option<u16>) {
        let of = |one| self.breakpoints.iter().find(|(task, _)| Some(*task) == one);
        match (of(from), of(to)) {
            // SAFETY: ring 0, interrupt table loaded; the addresses are the task's, where the kernel is not.
            (_, Some((_, gate))) => unsafe {
                debug::set_breakpoints(gate.addresses(), gate.dr7(), on_debug);
            },
            (Some(_), None) => debug::clear_breakpoints(),
            (None, None) => {}
        }
    }
}

impl Observer for Watch<'_> {
    fn placed(&mut self, tasks: &[Emitted]) {
        let begin = |(index, task): (usize, &Emitted)| {
            let area = |area| memory::area(index, area);
            let registers = [memory::stack(index), area(0), area(1), area(2), area(VALUE_AREA)];
            Begin { code: task.init.start, registers }
        };
        self.begins = tasks.iter().enumerate().map(begin).collect();
    }

    fn opened(&mut self) {
        let Some(has) = self.has.clone() else { return };
        // SAFETY: on the processor that is counted, whose PMU the firmware owns; interrupts are off.
        let mut processor = unsafe { Processor::open() };
        let shares = core::mem::take(&mut self.shares);
        let driver = Driver::new(has);
        if shares.sets.iter().any(|share| sees_the_kernel(self.item, &share.set)) {
            // SAFETY: likewise; the tasks to come are those of this item.
            unsafe { processor.defer(&driver) };
        }
        let begun = CountRun::begin(self.item, shares, &driver, &mut processor);
        let placed = begun.map_err(|error| error.to_string()).and_then(|mut run| {
            let breakpoints = run.place(&self.begins).map_err(|error| error.to_string())?;
            Ok((run, breakpoints))
        });
        match placed {
            Ok((run, breakpoints)) => {
                self.breakpoints = breakpoints;
                let running = Box::new(Running { run, processor, error: None });
                let running = Box::into_raw(running);
                here().store(running.cast(), Ordering::Relaxed);
                self.running.store(running, Ordering::Relaxed);
            }
            Err(error) => {
                processor.close();
                self.done = Err(error);
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
        here().store(ptr::null_mut(), Ordering::Relaxed);
        let running = self.running.swap(ptr::null_mut(), Ordering::Relaxed);
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

    /// Always inlined with all that it calls where the plan holds: calls would cost a switch some 35 instructions.
    #[inline(always)]
    fn switched(&mut self, from: Option<u16>, to: Option<u16>) {
        if !self.breakpoints.is_empty() {
            self.change_breakpoints(from, to);
        }
        let Some(running) = self.running() else { return };
        match (from, to) {
            (Some(from), Some(to)) if running.switch_planned(from, to) => {}
            _ => running.switch(to),
        }
    }

    fn exited(&mut self, task: u16, heir: Option<u16>) {
        self.tell(|running| {
            let done = running.run.exited(task, heir, &mut running.processor);
            running.note(done);
        });
    }

    fn reads(&mut self, task: u16, event: u64) -> Option<Read> {
        let mut read = None;
        self.tell(|running| match running.run.reads(task, event, &mut running.processor) {
            Ok(found) => read = found,
            Err(error) => running.note(Err::<(), _>(error)),
        });
        read
    }

    /// What a marker does with the counters is the kernel's.
    fn marks(&mut self, task: u16, marker: u32) {
        self.tell(|running| {
            if running.run.heeds(marker) {
                running.switch(None);
                let done = running.run.marked(Some(task), marker, &mut running.processor);
                running.note(done);
                running.switch(Some(task));
            }
        });
    }

    fn aside(&mut self, work: &mut dyn FnMut()) {
        let mut task = None;
        self.tell(|running| {
            task = running.run.current();
            running.switch(None);
        });
        work();
        self.tell(|running| running.switch(task));
    }

    /// What the tick does with the counters is the kernel's.
    fn tick(&mut self) {
        let mut remote = self.remote.take();
        if let (Some(remote), None) = (&mut remote, &self.has) {
            remote.listen(None);
        }
        self.tell(|running| {
            let task = running.run.current();
            running.switch(None);
            let done = running.run.tick(task, &mut running.processor);
            running.note(done);
            if let Some(remote) = &mut remote {
                remote.listen(Some((&mut running.run, &mut running.processor)));
            }
            running.switch(task);
        });
        self.remote = remote;
    }

    fn waits(&mut self, task: u16, alive: &mut dyn FnMut(u64)) {
        self.between_tasks(|remote, counted| remote.wait(task, counted, alive));
    }
}
