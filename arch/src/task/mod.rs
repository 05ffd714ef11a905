//! Tasks: pieces of code that share the processor, in ring 0 or ring 3, each with its own registers.
//!
//! [`run`] gives the processor away and comes back when nobody wants it any more. In between only interrupts bring the
//! kernel back: the timer's tick, a software interrupt by which a task yields or exits, an exception that it raised.
//! Each is put before a function that decides who goes on. A switch is an exchange of the [`TrapFrame`] on the
//! interrupt stack, together with what the stubs do not save ([`Context`]). Which task is whose turn, and when the next
//! tick comes, is not decided here.
//!
//! Each processor runs its own tasks, and its handlers touch no other's. What a task of ring 0 can do to it: anything. CR0, CR4, the
//! descriptor tables and the data segments are put right when a task ends, and breakpoints are off then: whoever watches a
//! task by debug registers sets them when it is given the processor. One that switches interrupts off keeps the processor.

mod context;
pub mod memory;
mod segments;

pub use context::{Context, Extended};

use crate::apic;
use crate::interrupts::{self, TrapFrame, exception};
use crate::smp::{self, Processor};
use crate::state::Core as State;
use core::arch::asm;
use core::sync::atomic::Ordering;
use spin::Mutex;
use x86_64::registers::control::Cr2;

/// Software interrupt by which a task ends.
pub const EXIT_VECTOR: u8 = 0x82;
/// Software interrupt by which a task lets others go first.
pub const YIELD_VECTOR: u8 = 0x83;
/// Software interrupt by which the kernel gives the processor away.
const START_VECTOR: u8 = 0x84;
/// Vector of the timer's tick. Of lower priority than the PMI's (SDM vol. 3, 10.8.3.1).
pub const TICK_VECTOR: u8 = 0xd0;

/// Why the kernel has the processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
    Fault {
        /// CR2: the faulting address, if the exception is #PF.
        cr2: u64,
    },
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Why the kernel has the processor.
    pub cause: Cause,
    /// The task that had it; `None`: the kernel.
    pub task: Option<usize>,
    /// Registers at the interrupt.
    pub frame: &'a TrapFrame,
}

/// Says who goes on; `None`: the kernel. Called in the interrupt: it must neither allocate nor wait.
pub type Decide<'a> = &'a mut dyn FnMut(Event) -> Option<usize>;

/// A run in progress.
pub(crate) struct Running<'a> {
    contexts: &'a mut [Context],
    kernel: Context,
    state: State,
    current: Option<usize>,
    decide: Decide<'a>,
    /// The kernel is at work: an exception now is its own.
    inside: bool,
}

/// Processors with a run in progress: they share the table of handlers, so the first one sets these and the last one takes
/// them away. Not asked by the handlers.
static RUNS: Mutex<usize> = Mutex::new(0);

const HANDLERS: [(u8, interrupts::Handler); 4] = [
    (START_VECTOR, |frame| enter(frame, Cause::Start)),
    (YIELD_VECTOR, |frame| enter(frame, Cause::Yield)),
    (EXIT_VECTOR, |frame| enter(frame, Cause::Exit)),
    (TICK_VECTOR, on_tick),
];

/// One run more, or one less.
fn count_runs(begins: bool) {
    let mut runs = RUNS.lock();
    *runs = if begins { *runs + 1 } else { *runs - 1 };
    for (vector, handler) in HANDLERS {
        interrupts::set_handler(vector, (*runs > 0).then_some(handler));
    }
}

/// Runs tasks on this processor until `decide` says that the kernel goes on.
///
/// # Safety
/// Ring 0 with interrupts off, interrupt table loaded; no other run in progress on this processor. The contexts must lead into code and
/// stacks that are mapped, in address spaces that have the kernel at the same place as this one; what the code writes
/// to must be memory that nothing else relies on. When `decide` says `None`, the timer must have been stopped.
pub unsafe fn run(contexts: &mut [Context], decide: Decide) {
    let mut running = Running {
        contexts,
        kernel: Context::kernel(),
        state: State::save(),
        current: None,
        decide,
        inside: true,
    };
    // Nothing uses the variable but this processor's handlers, until they have come back here.
    let place = &smp::this().tasks;
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
    count_runs(false);
}

fn on_tick(frame: &mut TrapFrame) {
    apic::end_of_interrupt();
    enter(frame, Cause::Tick);
}

/// Ends the task that raised the exception, if one did: called for an exception that nothing else explains.
pub(crate) fn recover(frame: &mut TrapFrame) -> bool {
    // These two come from outside.
    let foreign = [exception::NMI, exception::MACHINE_CHECK].contains(&frame.exception());
    // SAFETY: `run` stored the address of its own variable, and waits for what this interrupts.
    let task = unsafe { Processor::of_frame(frame).tasks.load(Ordering::Relaxed).as_ref() }
        .filter(|running| !running.inside && running.current.is_some());
    if foreign || task.is_none() {
        return false;
    }
    enter(frame, Cause::Fault { cr2: Cr2::read_raw() });
    true
}

/// Puts what happened before `decide`, and does what it says.
fn enter(frame: &mut TrapFrame, cause: Cause) {
    // SAFETY: as in `recover`; interrupts are off, and no other processor has this pointer, so this is the only reference.
    let running = unsafe { Processor::of_frame(frame).tasks.load(Ordering::Relaxed).as_mut() };
    // Not one of this processor's tasks: the tick behind its last one, or a snippet's own INT.
    let Some(running) = running else { return };
    running.inside = true;
    let ended = matches!(cause, Cause::Exit | Cause::Fault { .. });
    if ended {
        // SAFETY: the kernel ran with these values before; its own parts are mapped in every address space.
        unsafe { running.state.restore() };
    }
    let from = running.current;
    let to = (running.decide)(Event { cause, task: from, frame });
    if to != from {
        if to.is_none() && !ended {
            // SAFETY: as above.
            unsafe { running.state.restore() };
        }
        let segments = place(running.contexts, &mut running.kernel, from).save(frame);
        // SAFETY: `run`'s caller promises that contexts are sound; the kernel's was saved above, at the start.
        unsafe { place(running.contexts, &mut running.kernel, to).load(frame, segments) };
        running.current = to;
    }
    running.inside = to.is_none();
}

fn place<'a>(
    contexts: &'a mut [Context],
    kernel: &'a mut Context,
    index: Option<usize>,
) -> &'a mut Context {
    match index.and_then(|index| contexts.get_mut(index)) {
        Some(context) => context,
        None => kernel,
    }
}
