//! Tasks: pieces of code that share the processor, in ring 0 or ring 3, each with its own registers.
//!
//! [`run`] gives the processor away and comes back when nobody wants it any more. In between only interrupts bring the
//! kernel back: the timer's tick, a software interrupt by which a task yields or exits, an exception that it raised.
//! Each is put before a function that decides who continues. At a switch the [`TrapFrame`] on the interrupt stack is kept in
//! the [`Context`] of whoever was interrupted, together with what the entries (`entry`) do not save, and the interrupt
//! returns with the frame in the context of whoever continues. Which task is whose turn, and when the next tick comes, is not
//! decided here.
//!
//! Each processor runs its own tasks, or those that it has taken over from others ([`run_moving`]), and its handlers touch no other's. What a task of ring 0 can do to it: anything. CR0, CR4, the
//! descriptor tables and the data segments are put right when a task ends, and breakpoints are off then: whoever watches a
//! task by debug registers sets them when it is given the processor. One that switches interrupts off keeps the processor.

mod context;
mod contexts;
mod entry;
pub mod memory;
mod segments;

pub use context::{Context, Extended};
pub use contexts::MovingContexts;

use crate::apic;
use crate::descriptors;
use crate::interrupts;
use crate::smp::{self, Handover, Processor};
use crate::state::Core as State;
use crate::trap::{TrapFrame, exception};
use contexts::Contexts;
use core::arch::asm;
use core::sync::atomic::Ordering;
use spin::Mutex;
use x86_64::registers::control::Cr2;

/// Software interrupt by which the kernel gives the processor away.
const START_VECTOR: u8 = 0x84;
/// Vector of the timer's tick. Of lower priority than the PMI's (SDM vol. 3, 10.8.3.1).
pub const TICK_VECTOR: u8 = 0xd0;

/// Why the kernel has the processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Cause {
    /// It just gave it away: who begins?
    Start,
    /// The timer.
    Tick,
    /// The task lets others go first.
    Yield,
    /// The task ended.
    Exit,
    /// The task raised an exception, whose vector the frame has.
    Fault,
    /// The task asks what was counted of it. The answer goes into the frame, and the task continues.
    Read,
    /// The task has come to the marker whose number is in EAX, and goes on.
    Mark,
    /// The task waits for somebody at the console, who lets it go on.
    Wait,
}

/// In place of a task's number: the kernel.
pub const KERNEL: usize = usize::MAX;

/// Says who continues: a task by its place among the contexts, or the [`KERNEL`]. It is told why it is asked, who had the
/// processor, and the registers at the interrupt, which it may change for a task that reads. Called in the interrupt: it must
/// neither allocate nor wait.
pub type Decide<'a> = &'a mut dyn FnMut(Cause, usize, &mut TrapFrame) -> usize;

/// The address of the fault that brought the kernel back, if the exception is #PF: CR2.
#[must_use]
pub fn fault_address() -> u64 {
    Cr2::read_raw()
}

/// A run in progress.
pub(crate) struct Running<'a> {
    contexts: Contexts<'a>,
    kernel: Context,
    state: State,
    /// Who has the processor.
    current: usize,
    decide: Decide<'a>,
    /// The kernel is at work: an exception now is its own.
    inside: bool,
    /// Where the processor looks up where it pushes the registers of the task that it interrupts.
    stack: *mut u64,
    /// See [`context::harmless`].
    harmless: u64,
}

/// Processors with a run in progress: they share the interrupt table, so the first one makes the entries and the last one
/// takes them away. Not asked by the handlers.
static RUNS: Mutex<usize> = Mutex::new(0);

/// One run more, or one less.
fn count_runs(begins: bool) {
    let mut runs = RUNS.lock();
    *runs = if begins { *runs + 1 } else { *runs - 1 };
    let is_edge = *runs == usize::from(begins);
    interrupts::set_recovery(recover);
    let deferring = interrupts::deferring::in_use();
    for (vector, entries) in entry::ALL.into_iter().filter(|_| is_edge) {
        let entry = entries[usize::from(deferring)];
        // SAFETY: the interrupt table is loaded, as `run`'s caller promises; these are entries of vectors without an error
        // code, and no task runs here.
        unsafe {
            match begins {
                true => interrupts::set_task_entry(vector, entry as *const () as u64),
                false => interrupts::reset_entry(vector),
            }
        }
    }
}

/// The entries that stop and start counters, by their vectors.
#[cfg(test)]
pub(crate) fn deferring_entries() -> impl Iterator<Item = (u8, u64)> {
    entry::ALL.into_iter().map(|(vector, [_, entry])| (vector, entry as *const () as u64))
}

/// Runs tasks on this processor until `decide` says that the kernel goes on.
///
/// # Safety
/// Ring 0 with interrupts off, interrupt table loaded; no other run in progress on this processor. The contexts must lead into code and
/// stacks that are mapped, in address spaces that have the kernel at the same place as this one; what the code writes
/// to must be memory that nothing else relies on. When `decide` says `None`, the timer must have been stopped.
pub unsafe fn run(contexts: &mut [Context], decide: Decide) {
    // SAFETY: the caller's promise.
    unsafe { run_some(|this, stack| Contexts::own(contexts, this, stack), decide) };
}

/// The same of contexts that go from one processor to another. A context is let go, by its handover, when another one is in the
/// processor in its place. Its page tables need no shootdown: nobody changes them while tasks run, and the processor that takes it
/// over loads CR3, which leaves nothing in its TLB but what is the kernel's (SDM vol. 3, 4.10.4.1).
///
/// # Safety
/// As for [`run`]. Each processor that runs these contexts has the same handovers, one for each, and `decide` names those alone that
/// it has taken for this processor.
pub unsafe fn run_moving(contexts: &MovingContexts, handovers: &[Handover], decide: Decide) {
    // SAFETY: the caller's promise.
    unsafe { run_some(|this, stack| Contexts::moving(contexts, handovers, this, stack), decide) };
}

/// # Safety
/// As for [`run`].
unsafe fn run_some<'a>(
    contexts: impl FnOnce(&'static Processor, u64) -> Contexts<'a>,
    decide: Decide<'a>,
) {
    let this = smp::this();
    // SAFETY: ring 0 runs with the tables of this processor, and tasks one at a time.
    let (stack, device) = unsafe { descriptors::task_stack_of(this) };
    let contexts = contexts(this, device.as_u64());
    // What leaves has to be kept whole: the short way leaves some of it in the processor.
    let harmless = if contexts.move_away() { 0 } else { context::harmless() };
    let mut running = Running {
        contexts,
        kernel: Context::kernel(),
        state: State::save(),
        current: KERNEL,
        decide,
        inside: true,
        stack,
        harmless,
    };
    running.kernel.belongs_to(this, device.as_u64());
    // SAFETY: as above. The place is changed back below.
    let before = unsafe { core::mem::replace(&mut *stack.cast(), running.kernel.stack()) };
    // Nothing uses the variable but this processor's handlers, until they have come back here.
    let place = &this.tasks;
    place.store((&raw mut running).cast::<Running<'static>>(), Ordering::Relaxed);
    count_runs(true);
    // SAFETY: the handler comes back with all registers as they are; the memory that it changes is what `decide`
    // borrows, so the compiler must not keep any of it in registers: no `nomem`.
    unsafe { asm!("int {}", const START_VECTOR) };
    place.store(core::ptr::null_mut(), Ordering::Relaxed);
    // A tick that came after the kernel was back is still pending.
    x86_64::instructions::interrupts::enable();
    x86_64::instructions::nop();
    x86_64::instructions::interrupts::disable();
    // SAFETY: as above.
    unsafe { stack.write_unaligned(before) };
    count_runs(false);
}

/// Ends the task that raised the exception, if one did: called for an exception that nothing else explains.
fn recover(frame: &mut TrapFrame) -> bool {
    // These two come from outside.
    let foreign = [exception::NMI, exception::MACHINE_CHECK].contains(&frame.exception());
    // SAFETY: `run` stored the address of its own variable, and waits for what this interrupts.
    let task = unsafe { Processor::of_frame(frame).tasks.load(Ordering::Relaxed).as_mut() }
        .filter(|running| !running.inside && running.current != KERNEL);
    let Some(running) = task.filter(|_| !foreign) else { return false };
    // It lies on the stack for exceptions.
    place(&mut running.contexts, &mut running.kernel, running.current).keep(frame);
    running.restore();
    // SAFETY: a context's frame, which nothing changes before its task is interrupted.
    *frame = unsafe { *faulted(running, frame) };
    true
}

/// An exception of a task.
#[inline(never)]
fn faulted(running: &mut Running, frame: &mut TrapFrame) -> *const TrapFrame {
    running.event(frame, Cause::Fault)
}

/// What one of the [`entry`]s calls for `cause`. Returns the registers that the interrupt returns with.
extern "sysv64" fn entered(frame: &mut TrapFrame, cause: Cause) -> *const TrapFrame {
    let processor = Processor::of_frame(frame);
    processor.count(frame.vector);
    match running(processor) {
        Some(running) => running.event(frame, cause),
        // Not one of this processor's tasks: the tick after its last one, or a snippet's own INT.
        None => frame,
    }
}

/// The same at the timer's tick.
extern "sysv64" fn ticked(frame: &mut TrapFrame, cause: Cause) -> *const TrapFrame {
    apic::end_of_interrupt();
    entered(frame, cause)
}

/// The same after the last instruction of a task.
extern "sysv64" fn ended(frame: &mut TrapFrame, cause: Cause) -> *const TrapFrame {
    if let Some(running) = running(Processor::of_frame(frame)) {
        running.restore();
    }
    entered(frame, cause)
}

/// The run in progress on the processor that a handler interrupted.
#[inline]
fn running(processor: &Processor) -> Option<&'static mut Running<'static>> {
    // SAFETY: as in `recover`; interrupts are off, and no other processor has this pointer, so this is the only reference.
    unsafe { processor.tasks.load(Ordering::Relaxed).as_mut() }
}

impl Running<'_> {
    /// Puts what happened before `decide`, and does what it says.
    #[inline(always)]
    fn event(&mut self, frame: &mut TrapFrame, cause: Cause) -> *const TrapFrame {
        self.inside = true;
        let to = (self.decide)(cause, self.current, frame);
        // Most switches are between two of these.
        let Some((from, next)) = self.contexts.both_that_stay(self.current, to) else {
            return self.exchange(to);
        };
        if !from.gives_way_to(next, self.harmless) {
            return self.exchange(to);
        }
        // SAFETY: `run`'s caller promises that contexts are sound. The place is in the processor's state segment, of which
        // `run` has made sure.
        unsafe {
            next.enter();
            self.stack.write_unaligned(next.stack());
        }
        (self.current, self.inside) = (to, false);
        next.frame()
    }

    /// Any other switch.
    #[inline(never)]
    fn exchange(&mut self, to: usize) -> *const TrapFrame {
        if to == KERNEL {
            self.restore();
        }
        let Self { contexts, kernel, current, harmless, .. } = self;
        let from = *current;
        if to != from {
            let held = place(contexts, kernel, from).hold(*harmless);
            contexts.arrive(to);
            // SAFETY: as above; the kernel's was kept at the start.
            unsafe { place(contexts, kernel, to).load(held) };
        }
        let next: *mut Context = place(contexts, kernel, to);
        // SAFETY: as above; this processor has the context until it leaves it, which it does not here.
        let next = unsafe { &*next };
        // SAFETY: as above.
        unsafe { self.stack.write_unaligned(next.stack()) };
        (*current, self.inside) = (to, to == KERNEL);
        if to != from {
            contexts.leave(from);
        }
        next.frame()
    }

    /// The kernel's own values of what a task of ring 0 may have changed.
    #[cold]
    #[inline(never)]
    fn restore(&self) {
        // Those of a task of ring 3 are not the kernel's, and it has changed nothing by that.
        if self.contexts.get(self.current).is_some_and(Context::is_user) {
            context::load_kernel_segments();
        }
        // SAFETY: the kernel ran with these values before; its own parts are mapped in every address space.
        unsafe { self.state.restore() };
    }
}

/// Whose registers are kept where.
fn place<'a>(contexts: &'a mut Contexts, kernel: &'a mut Context, index: usize) -> &'a mut Context {
    contexts.get_mut(index).unwrap_or(kernel)
}
