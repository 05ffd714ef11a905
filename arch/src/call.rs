//! Calling machine code that may fault.
//!
//! The code is a function that saves what the ABI wants saved and has a second way out, its *exit*,
//! which needs no register: it restores everything from memory that the code itself addresses
//! relative to RIP. When the code faults, the handler notes the frame and continues at the exit, and
//! the call comes back with [`Trap`]. So nothing that foreign code does to the registers matters.

use crate::smp::{self, Processor};
use crate::state::{Core, no_breakpoints};
use crate::trap::TrapFrame;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spin::Mutex;
use x86_64::registers::control::Cr2;

/// The call that runs on a processor.
pub(crate) struct Running {
    /// Address of its exit; 0 when none runs.
    exit: AtomicU64,
    /// Whether it trapped.
    trapped: AtomicBool,
    trap: Mutex<Option<Trap>>,
    /// Its code runs: the exit is a place to continue at when its time is up.
    runs: AtomicBool,
}

impl Running {
    /// None runs.
    pub(crate) const fn none() -> Self {
        Self {
            exit: AtomicU64::new(0),
            trapped: AtomicBool::new(false),
            trap: Mutex::new(None),
            runs: AtomicBool::new(false),
        }
    }
}

/// Whether the code of a call runs on the processor that `frame` is of.
pub(crate) fn runs(frame: &TrapFrame) -> bool {
    Processor::of_frame(frame).call.runs.load(Ordering::Relaxed)
}

/// How a call ended early.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// Registers at the exception.
    pub frame: TrapFrame,
    /// CR2: the faulting address, if the exception is #PF.
    pub cr2: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a call ended early.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Cause {
    /// The frame's exception.
    #[default]
    Exception,
    /// [`crate::watchdog`]: its time was up.
    TimeLimit,
}

/// Executable code with its two ends.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Where it begins.
    pub entry: u64,
    /// The way out that needs no register.
    pub exit: u64,
}

impl Function {
    /// Runs the code.
    ///
    /// # Errors
    /// The exception that ended it.
    ///
    /// # Safety
    /// `entry` must be a function of the C ABI without arguments, laid out as the module says; both
    /// addresses must be mapped executable. Whatever the code writes to must be memory that nothing
    /// else relies on. Interrupts must be off.
    pub unsafe fn run(&self) -> Result<(), Box<Trap>> {
        self.guarded(|entry| {
            // SAFETY: the caller promises that this is such a function.
            let function: extern "sysv64" fn() = unsafe { core::mem::transmute(entry) };
            function();
        })
    }

    /// Runs the code until `again`, which is asked after each run, says no. The state that the firmware depends on is compared after
    /// each run, and put back where it differs, with what it was before the first one: so it is saved once.
    ///
    /// # Errors
    /// The exception that ended a run; there is none after it.
    ///
    /// # Safety
    /// As for [`Function::run`].
    pub unsafe fn run_while(&self, mut again: impl FnMut() -> bool) -> Result<(), Box<Trap>> {
        let running = &smp::this().call;
        let state = Core::save();
        loop {
            self.once(running, &state, |entry| {
                // SAFETY: as in `run`.
                let function: extern "sysv64" fn() = unsafe { core::mem::transmute(entry) };
                function();
            })?;
            if !again() {
                return Ok(());
            }
        }
    }

    /// Calls the function by `call`, which gets its entry, with the exit ready for exceptions.
    pub(crate) fn guarded(&self, call: impl FnOnce(u64)) -> Result<(), Box<Trap>> {
        self.once(&smp::this().call, &Core::save(), call)
    }

    #[inline(always)]
    fn once(
        &self,
        running: &Running,
        state: &Core,
        call: impl FnOnce(u64),
    ) -> Result<(), Box<Trap>> {
        running.exit.store(self.exit, Ordering::Relaxed);
        running.runs.store(true, Ordering::Relaxed);
        call(self.entry);
        running.runs.store(false, Ordering::Relaxed);
        // The exit is a way back only as long as nothing has been pushed over the return address.
        running.exit.store(0, Ordering::Relaxed);
        // SAFETY: the values that were in force when the call began.
        unsafe { state.restore() };
        // Only an exception of this processor writes it, and none comes between.
        if running.trapped.load(Ordering::Relaxed) {
            running.trapped.store(false, Ordering::Relaxed);
            return Err(Box::new(
                running.trap.lock().take().expect("a trapped call leaves its frame"),
            ));
        }
        Ok(())
    }
}

/// Ends the running call, if there is one: called for an exception that nothing else explains.
pub(crate) fn recover(frame: &mut TrapFrame) -> bool {
    end(frame, Cause::Exception)
}

/// Ends the running call, if there is one, for whatever reason.
pub(crate) fn end(frame: &mut TrapFrame, cause: Cause) -> bool {
    let running = &Processor::of_frame(frame).call;
    let exit = running.exit.load(Ordering::Relaxed);
    if exit == 0 || running.trapped.load(Ordering::Relaxed) {
        return false;
    }
    no_breakpoints();
    *running.trap.lock() = Some(Trap { frame: *frame, cr2: Cr2::read_raw(), cause });
    running.trapped.store(true, Ordering::Relaxed);
    leave(frame);
    true
}

/// Sends the frame of the running call to its exit.
pub(crate) fn leave(frame: &mut TrapFrame) {
    frame.rip = Processor::of_frame(frame).call.exit.load(Ordering::Relaxed);
    frame.cs = u64::from(crate::descriptors::KERNEL_CODE.0);
    frame.ss = u64::from(crate::descriptors::KERNEL_DATA.0);
    // Only the reserved bit that is always 1: no single stepping, no alignment check, interrupts off.
    frame.rflags = 2;
}
