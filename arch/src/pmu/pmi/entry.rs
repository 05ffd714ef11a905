//! The way in and out on this processor.

use super::assembly::{self, Handlers};
use super::handling::AroundAll;
use super::ibs::IBS_VECTOR;
use super::service::{drain, note_tick, pause, resume, service};
use super::serviced;
use super::{ControlBlock, Interrupted, Raw, TIMER_VECTOR, stop_timer};
use crate::apic::{self, Register};
use crate::interrupts;
use crate::msr::{self, Msr};
use crate::smp::{self, MAX_PROCESSORS};
use crate::time::tsc;
use crate::trap::{TrapFrame, exception};
use spin::Mutex;

/// Vector of the PMI, if it comes as a fixed interrupt.
pub const VECTOR: u8 = 0xe0;
/// LVT delivery mode NMI: bits 10:8 (SDM vol. 3, 10.5.1).
const MODE_NMI: u32 = 0b100 << 8;
/// LVT mask bit.
const MASK: u32 = 1 << 16;

/// How the interrupt comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// As vector [`VECTOR`], when interrupts are on.
    Fixed,
    /// As NMI, always.
    Nmi,
}

/// Processors whose PMI is installed: they share the interrupt table, so the first one makes the entry and the last one
/// takes it away. Not asked by the handlers. A bit for each, as all are looked through whenever one changes its block.
static INSTALLED: Mutex<[u64; WORDS]> = Mutex::new([0; WORDS]);
const WORDS: usize = MAX_PROCESSORS.div_ceil(64);

/// The block that this processor's handler uses. To be changed only while its LVTPC is masked; counts may be read at
/// any time.
#[must_use]
pub fn block() -> *mut ControlBlock {
    smp::this().block()
}

/// Takes a copy of `new` as this processor's block and lets its PMIs come.
///
/// # Safety
/// Ring 0, interrupt table loaded, APIC on, interrupts off. The block has to fit what is programmed; a log that it names
/// has to live until [`uninstall`]. Where other processors have PMIs as well, all must be of one kind: the same
/// delivery, and a status register, a stop and a freeze for all or for none.
pub unsafe fn install(new: &ControlBlock, delivery: Delivery) {
    let vector = match delivery {
        Delivery::Fixed => VECTOR,
        Delivery::Nmi => exception::NMI.0,
    };
    let [mut entry, found] = Handlers::of(apic::page().is_some(), delivery).addresses(new);
    // AMD's APIC leaves LVTPC open at delivery: an overflow during the handler is an interrupt of its own.
    if new.needs_service() || new.status == 0 && !new.stays_unmasked {
        entry = serviced::on_overflow as *const () as u64;
    } else if new.status == 0 {
        entry = assembly::searching_entry as *const () as u64;
    }
    // SAFETY: the caller's promise; the entries leave the interrupted code as it was.
    unsafe {
        let open = put(new, delivery, |block| {
            block.found = found;
            block.around = AroundAll::of(block);
            interrupts::set_entry(vector, entry);
            if block.sampling().is_some() {
                let vector = if delivery == Delivery::Nmi { vector } else { IBS_VECTOR };
                interrupts::set_entry(vector, serviced::on_sample as *const () as u64);
            }
        });
        if let Some(sampling) = (&*block()).sampling() {
            let lvt = if delivery == Delivery::Nmi { open } else { u32::from(IBS_VECTOR) };
            apic::write_extended(sampling.entry, lvt);
        }
        apic::write(Register::LvtPmc, open);
    }
}

/// The same as a fixed interrupt, which `handler` takes in place of one of ours: it calls [`service_installed`]. LVTPC stays
/// masked until [`exchange`].
///
/// # Safety
/// As for [`install`].
pub unsafe fn install_for(handler: interrupts::Handler) {
    // SAFETY: the caller's promise.
    unsafe {
        put(&ControlBlock::EMPTY, Delivery::Fixed, |_| {
            interrupts::set_handler(VECTOR, Some(handler));
        });
    }
}

/// Takes `new` in place of the block that is installed, and lets its PMIs come. Asks for no lock, so it can be called in
/// the handler.
///
/// # Safety
/// As for [`install`], after [`install_for`] on this processor.
pub unsafe fn exchange(mut new: ControlBlock) {
    mask();
    let block = block();
    // SAFETY: LVTPC is masked and interrupts are off, so no handler uses the block.
    unsafe {
        (new.lvt, new.nmi, new.apic) = ((*block).lvt, (*block).nmi, (*block).apic);
        block.write(new);
        apic::write(Register::LvtPmc, (*block).lvt);
    }
}

/// Keeps this processor's PMIs away until the next [`exchange`]. Asks for no lock.
pub fn mask() {
    apic::write(Register::LvtPmc, MASK);
}

/// Makes this processor's block a copy of `new`, with `enter` for what goes into the interrupt table. Returns what opens LVTPC.
///
/// # Safety
/// As for [`install`].
unsafe fn put(
    new: &ControlBlock,
    delivery: Delivery,
    enter: impl FnOnce(&mut ControlBlock),
) -> u32 {
    let lvt = match delivery {
        Delivery::Fixed => u32::from(VECTOR),
        Delivery::Nmi => MODE_NMI,
    };
    // SAFETY: LVTPC is masked by `uninstall`, so no handler uses the block.
    unsafe {
        uninstall();
        let this = smp::this();
        let mut installed = INSTALLED.lock();
        installed[this.index() / 64] |= 1 << (this.index() % 64);
        let block = this.block();
        block.write(new.clone());
        let block = &mut *block;
        if !block.reopens() {
            // The assembly compares alone: the end of a streamlined freeze is due everywhere.
            block.closes_in(&(0..0));
        }
        block.lvt = lvt;
        block.nmi = u32::from(delivery == Delivery::Nmi);
        block.apic = apic::page().unwrap_or(0);
        enter(block);
    }
    lvt
}

/// Masks this processor's LVTPC and the entry of instruction-based samples, and stops the timer that samples. The last one to
/// do so gives the vectors back.
///
/// # Safety
/// Ring 0, interrupt table loaded, interrupts off. If the timer or an instruction-based unit sampled, they are on for a
/// moment.
pub unsafe fn uninstall() {
    apic::write(Register::LvtPmc, MASK);
    let index = smp::this().index();
    let was_installed = INSTALLED.lock()[index / 64] & 1 << (index % 64) != 0;
    // SAFETY: LVTPC is masked, and no unit samples any more, so no handler changes the block.
    let sampling = unsafe { (&*block()).sampling().copied() }.filter(|_| was_installed);
    if let Some(sampling) = sampling {
        apic::write_extended(sampling.entry, MASK);
    }
    if stop_timer() || sampling.is_some() {
        // A tick that waits must be taken while its handler is there: nobody else would end it, and then its vector
        // would keep all of its priority class out.
        x86_64::instructions::interrupts::enable();
        x86_64::instructions::nop();
        x86_64::instructions::nop();
        x86_64::instructions::interrupts::disable();
    }
    let mut installed = INSTALLED.lock();
    installed[index / 64] &= !(1 << (index % 64));
    if installed.iter().any(|&word| word != 0) {
        return;
    }
    for vector in [VECTOR, exception::NMI.0, TIMER_VECTOR, IBS_VECTOR] {
        interrupts::set_handler(vector, None);
        // SAFETY: the vector's own stub.
        unsafe { interrupts::reset_entry(vector) };
    }
}

/// Services this processor's block for a PMI that came into `frame`: for a handler that has more to do after it, and so
/// takes the vector from the one that [`install`] sets.
///
/// # Safety
/// In the handler of a PMI, with a block installed by [`install`].
pub unsafe fn service_installed(frame: &TrapFrame) {
    // SAFETY: this handler and whoever holds LVTPC masked never run at the same time.
    let block = unsafe { &mut *smp::Processor::of_frame(frame).block() };
    let mut processor = processor(block);
    service(block, &mut processor, &interrupted(frame));
}

/// Takes out the PEBS records that are still in their buffer. `cs`: the code segment of what ran, which records do not have.
///
/// # Safety
/// Ring 0, the counters stopped, this processor's LVTPC masked, and what the block names still there.
pub unsafe fn drain_installed(cs: u64) {
    // SAFETY: no handler uses the block, as no counter runs and LVTPC is masked.
    let block = unsafe { &mut *block() };
    let mut processor = processor(block);
    drain(block, &mut processor, &Interrupted { cs, ..Interrupted::default() });
}

/// The gate is closed from now on, whatever is interrupted: what is pending does not let the counters continue.
///
/// # Safety
/// Ring 0, a block installed by [`install`], the counters stopped.
pub unsafe fn shut() {
    let block = block();
    // SAFETY: one word of the block, which a handler may look at before or after.
    unsafe {
        if (*block).reopens() {
            (&raw mut (*block).shut).write_volatile(1);
        }
    }
}

/// A task is about to continue, whose number samples get: starts the counters of the block that is installed.
///
/// # Safety
/// Ring 0, interrupts off, a block installed by [`install`].
pub unsafe fn let_in(task: u32) {
    // SAFETY: interrupts are off, so only an NMI's handler could use the block: it comes from a counter, and they stand.
    let block = unsafe { &mut *block() };
    block.task = task;
    let mut processor = processor(block);
    resume(block, &mut processor);
}

/// The task was interrupted at `frame`: stops the counters, and handles what had overflowed.
///
/// # Safety
/// As for [`let_in`].
pub unsafe fn let_out(frame: &TrapFrame) {
    // SAFETY: as above, from the first write on; an NMI before it finds the block whole, which nothing here has read.
    unsafe {
        let block = block();
        pause(&mut *block, &mut processor(&*block), &interrupted(frame));
    }
}

/// A sample by time is due at `frame`, where a timer has interrupted that serves others as well. Says whether such come late, so
/// that the interval is to be doubled.
///
/// # Safety
/// As for [`let_in`], behind [`let_out`].
pub unsafe fn sample_tick(frame: &TrapFrame) -> bool {
    // SAFETY: as above.
    let block = unsafe { &mut *block() };
    note_tick(block, &mut processor(block), &interrupted(frame))
}

/// The processor, for the handlers.
pub(super) fn processor(block: &ControlBlock) -> Processor {
    Processor { lvt: block.lvt }
}

/// What was interrupted.
pub(super) fn interrupted(frame: &TrapFrame) -> Interrupted {
    let f = frame;
    let registers = [
        f.rax, f.rcx, f.rdx, f.rbx, f.rsp, f.rbp, f.rsi, f.rdi, f.r8, f.r9, f.r10, f.r11, f.r12,
        f.r13, f.r14, f.r15,
    ];
    Interrupted { rip: f.rip, cs: f.cs, registers }
}

pub(super) struct Processor {
    lvt: u32,
}

impl Raw for Processor {
    #[inline]
    fn rdmsr(&mut self, msr: u32) -> u64 {
        // SAFETY: the block names registers that the driver has used before.
        unsafe { msr::read(Msr(msr)) }
    }

    #[inline]
    fn wrmsr(&mut self, msr: u32, value: u64) {
        // SAFETY: as above, with values that the driver made.
        unsafe { msr::write(Msr(msr), value) };
    }

    fn unmask(&mut self) {
        apic::write(Register::LvtPmc, self.lvt);
    }

    fn mask(&mut self) {
        apic::write(Register::LvtPmc, MASK);
        interrupts::stray::storm(VECTOR);
    }

    fn mask_extended(&mut self, entry: u8) {
        apic::write_extended(entry, MASK);
        interrupts::stray::storm(IBS_VECTOR);
    }

    fn end(&mut self) {
        apic::end_of_interrupt();
    }

    fn slow_timer(&mut self) {
        let count = apic::read(Register::TimerInitialCount);
        apic::write(Register::TimerInitialCount, count.saturating_mul(2));
    }

    #[inline]
    fn tsc(&mut self) -> u64 {
        tsc::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 3, figure 10-8: bits 10:8 are the delivery mode, 100 is NMI; bit 16 is the mask.
    #[test]
    fn the_fields_of_lvtpc_are_where_the_manual_has_them() {
        assert_eq!((MODE_NMI, MASK), (0x400, 0x1_0000));
    }
}
