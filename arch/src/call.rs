//! Calling machine code that may fault.
//!
//! The code is a function that saves what the ABI wants saved and has a second way out, its *exit*,
//! which needs no register: it restores everything from memory that the code itself addresses
//! relative to RIP. When the code faults, the handler notes the frame and continues at the exit, and
//! the call comes back with [`Trap`]. So nothing that foreign code does to the registers matters.

use crate::descriptors::KERNEL_DATA;
use crate::interrupts::TrapFrame;
use crate::smp::{self, Processor};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spin::Mutex;
use x86_64::instructions::segmentation::{DS, ES, FS, GS, SS, Segment};
use x86_64::registers::control::{Cr0, Cr2, Cr3, Cr4};
use x86_64::registers::debug::Dr7;
use x86_64::registers::debug::Dr7Value;
use x86_64::structures::DescriptorTablePointer;
use x86_64::structures::gdt::SegmentSelector;

/// The call that runs on a processor.
pub(crate) struct Running {
    /// Address of its exit; 0 when none runs.
    exit: AtomicU64,
    /// Whether it trapped.
    trapped: AtomicBool,
    trap: Mutex<Option<Trap>>,
}

impl Running {
    /// None runs.
    pub(crate) const fn none() -> Self {
        Self { exit: AtomicU64::new(0), trapped: AtomicBool::new(false), trap: Mutex::new(None) }
    }
}

/// How a call ended early.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// Registers at the exception.
    pub frame: TrapFrame,
    /// CR2: the faulting address, if the exception is #PF.
    pub cr2: u64,
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

    /// Calls the function by `call`, which gets its entry, with the exit ready for exceptions.
    pub(crate) fn guarded(&self, call: impl FnOnce(u64)) -> Result<(), Box<Trap>> {
        let running = &smp::this().call;
        running.exit.store(self.exit, Ordering::Relaxed);
        let state = State::save();
        call(self.entry);
        // SAFETY: the values that were in force when the call began.
        unsafe { state.restore() };
        running.exit.store(0, Ordering::Relaxed);
        if running.trapped.swap(false, Ordering::Relaxed) {
            return Err(Box::new(
                running.trap.lock().take().expect("a trapped call leaves its frame"),
            ));
        }
        Ok(())
    }
}

/// What foreign code of ring 0 can change so that the next call would find another machine.
struct State {
    cr0: u64,
    cr3: (x86_64::structures::paging::PhysFrame, u16),
    cr4: u64,
    gdt: DescriptorTablePointer,
    idt: DescriptorTablePointer,
}

impl State {
    fn save() -> Self {
        use x86_64::instructions::tables::{sgdt, sidt};
        let (cr0, cr3, cr4) = (Cr0::read_raw(), Cr3::read_raw(), Cr4::read_raw());
        Self { cr0, cr3, cr4, gdt: sgdt(), idt: sidt() }
    }

    /// Writes only what differs, since each of these writes costs a VM exit or a TLB flush.
    ///
    /// # Safety
    /// The state must be one that this code can go on in.
    unsafe fn restore(&self) {
        use x86_64::instructions::tables::{lgdt, lidt, sgdt, sidt};
        // SAFETY: the caller's promise.
        unsafe {
            if Cr3::read_raw() != self.cr3 {
                Cr3::write_raw(self.cr3.0, self.cr3.1);
            }
            if Cr0::read_raw() != self.cr0 {
                Cr0::write_raw(self.cr0);
            }
            if Cr4::read_raw() != self.cr4 {
                Cr4::write_raw(self.cr4);
            }
            if parts(&sgdt()) != parts(&self.gdt) {
                lgdt(&self.gdt);
            }
            if parts(&sidt()) != parts(&self.idt) {
                lidt(&self.idt);
            }
            for (now, wanted, set) in [
                (DS::get_reg(), KERNEL_DATA, DS::set_reg as unsafe fn(SegmentSelector)),
                (ES::get_reg(), KERNEL_DATA, ES::set_reg),
                (SS::get_reg(), KERNEL_DATA, SS::set_reg),
                (FS::get_reg(), SegmentSelector::NULL, FS::set_reg),
                (GS::get_reg(), SegmentSelector::NULL, GS::set_reg),
            ] {
                if now != wanted {
                    set(wanted);
                }
            }
        }
        no_breakpoints();
    }
}

/// Limit and base; the structure itself is packed and cannot be compared.
fn parts(pointer: &DescriptorTablePointer) -> (u16, u64) {
    (pointer.limit, { pointer.base }.as_u64())
}

/// Switches off breakpoints, which could lie in the firmware itself.
fn no_breakpoints() {
    let off = Dr7Value::from_bits_truncate(0);
    if Dr7::read().bits() & 0xff != 0 {
        Dr7::write(off);
    }
}

/// Ends the running call, if there is one: called for an exception that nothing else explains.
pub(crate) fn recover(frame: &mut TrapFrame) -> bool {
    let running = &Processor::of_frame(frame).call;
    let exit = running.exit.load(Ordering::Relaxed);
    if exit == 0 || running.trapped.load(Ordering::Relaxed) {
        return false;
    }
    no_breakpoints();
    *running.trap.lock() = Some(Trap { frame: *frame, cr2: Cr2::read_raw() });
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
