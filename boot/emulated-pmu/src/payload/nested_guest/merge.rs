//! What SVM of the guest's adds to each guest run: intercepts, and virtual interrupts. Also the window for interrupts that wait,
//! which there is without.

use super::entry::{BREAKPOINT, OVERFLOW, is_open_to_devices};
use super::{Inner, Irq, leave};
use crate::payload::guest::{Guest, IF};
use emulated_pmu::vmcb::{
    Event, IGNORE_PRIORITY, IRQ_PRIORITY, IRQ_VECTOR, Intercepts, VIRTUAL_GIF, VIRTUAL_GIF_ENABLE,
    VIRTUAL_IRQ, VIRTUAL_MASKING, VIRTUAL_PRIORITY, Vmcb, exit, virtual_interrupt,
};

/// What the processor has of the guest's interrupt control at all times.
const ALWAYS: u64 = VIRTUAL_PRIORITY | VIRTUAL_GIF | VIRTUAL_MASKING | VIRTUAL_GIF_ENABLE;
/// And while the virtual interrupt is the guest's.
const GUESTS: u64 = VIRTUAL_IRQ | IRQ_PRIORITY | IGNORE_PRIORITY | IRQ_VECTOR;

/// Before an entry, with the block as it would be without: `event` is what it delivers. Returns whether interrupts of devices
/// must be let in by the processor's own IF.
pub fn begin(guest: &mut Guest, event: Option<Event>) -> bool {
    if !guest.svm.enabled {
        guest.vmcb.add_intercepts(Intercepts::INVLPGA);
    }
    guest.svm.irq = Irq::Event;
    let opens_window = core::mem::take(&mut guest.leaves_for_interrupt);
    if !guest.svm.holds_interrupts() {
        if opens_window {
            open_window(guest);
        }
        return false;
    }
    guest.vmcb.add_intercepts(Intercepts::INTR);
    let delivers = guest.vmcb.int_control & VIRTUAL_IRQ != 0;
    let waits = !guest.waiting.is_empty();
    let Some(inner) = &guest.svm.inner else {
        if guest.svm.gif && !delivers && waits {
            open_window(guest);
        }
        return false;
    };
    merge(inner, guest.svm.lets_through, guest.vmcb);
    let (control, opens) = (inner.control, is_open_to_devices(inner));
    if delivers {
        inject_closed(guest, event);
    } else if control.int_control & VIRTUAL_IRQ != 0 {
        guest.vmcb.int_control |= control.int_control & GUESTS;
        guest.vmcb.add_intercepts(Intercepts::VIRTUAL_IRQ);
        guest.svm.irq = Irq::Guests;
    } else if waits && !control.masks_virtually() {
        open_window(guest);
    }
    opens
}

/// Puts into the block what the guest has requested.
fn merge(inner: &Inner, lets_through: bool, vmcb: &mut Vmcb) {
    /// Reads of control registers.
    const READS: u32 = 0xffff;
    let control = &inner.control;
    control.merge_into(vmcb);
    // QEMU 10 looks at the bit of CR0 for all control registers, and at that of RDTSC for RDTSCP, and has their exit codes.
    if lets_through {
        vmcb.cr_intercepts &= !READS;
        vmcb.set_intercepts(vmcb.intercepts().difference(Intercepts::RDTSC));
    } else {
        vmcb.cr_intercepts |= u32::from(control.cr_intercepts & READS != 0);
        if control.wants(exit::RDTSCP) {
            vmcb.add_intercepts(Intercepts::RDTSC);
        }
    }
    if control.wants_exception(BREAKPOINT) || control.wants_exception(OVERFLOW) {
        // QEMU's INT3 and INTO look at this alone.
        vmcb.add_intercepts(Intercepts::INT_N);
    }
    if control.nested_cr3.is_some() {
        vmcb.nested_cr3 = inner.tables;
    }
    vmcb.int_control |= control.int_control & ALWAYS;
}

/// Makes whoever runs leave when it lets interrupts in.
fn open_window(guest: &mut Guest) {
    guest.vmcb.int_control |= virtual_interrupt(0);
    guest.vmcb.add_intercepts(Intercepts::VIRTUAL_IRQ);
    guest.svm.irq = Irq::Window;
}

/// QEMU's virtual interrupts wait for IF; what a guest injects does not.
fn inject_closed(guest: &mut Guest, event: Option<Event>) {
    let own = guest.vmcb.rflags & IF != 0 && !guest.in_shadow();
    if guest.svm.injected && !own {
        guest.vmcb.int_control &= !GUESTS;
        guest.vmcb.event = event.map_or(0, Event::encode);
    }
}

/// A virtual interrupt could be taken. What waits outside comes first; then the guest's own, which is an exit or is delivered
/// like any other interrupt.
pub fn take_virtual_interrupt(guest: &mut Guest) {
    let own = guest.vmcb.rflags & IF != 0 && !guest.in_shadow();
    let from_outside = !guest.waiting.is_empty() && guest.svm.lets_interrupts_in(own);
    if guest.svm.irq != Irq::Guests || from_outside {
        return;
    }
    let Some(inner) = &mut guest.svm.inner else { return };
    let control = &mut inner.control;
    if control.wants(exit::VIRTUAL_IRQ) {
        return leave::leave(guest, exit::VIRTUAL_IRQ, (0, 0), None);
    }
    control.int_control &= !VIRTUAL_IRQ;
    let vector = (control.int_control >> IRQ_VECTOR.trailing_zeros()) as u8;
    guest.event = Some(Event::Interrupt { vector });
}

/// After an exit, before anybody looks at it.
pub fn end(guest: &mut Guest, event: Option<Event>) {
    if !guest.svm.holds_interrupts() {
        if guest.svm.irq == Irq::Window {
            guest.vmcb.int_control &= !VIRTUAL_IRQ;
        }
        return;
    }
    let (irq, injected) = (guest.svm.irq, core::mem::take(&mut guest.svm.injected));
    let vmcb = &mut guest.vmcb;
    let left = vmcb.int_control;
    if let Some(inner) = &mut guest.svm.inner {
        let mut changed = VIRTUAL_PRIORITY | VIRTUAL_GIF;
        if irq == Irq::Guests {
            changed |= VIRTUAL_IRQ;
        }
        inner.control.int_control = inner.control.int_control & !changed | left & changed;
    }
    if irq != Irq::Event {
        vmcb.int_control &= !VIRTUAL_IRQ;
    } else if injected && guest.vmcb.undelivered().is_some() {
        // Something came before it: it is delivered yet.
        guest.vmcb.int_control &= !VIRTUAL_IRQ;
        guest.event = event;
        guest.svm.injected = true;
    }
    if Event::decode(guest.vmcb.exit_int_info).is_none() {
        guest.svm.rewind = 0;
    }
}
