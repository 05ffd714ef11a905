//! What SVM of the guest's adds to each stay: intercepts, and virtual interrupts.

use super::entry::is_open_to_devices;
use super::{Inner, Irq};
use crate::payload::guest::Guest;
use emulated_pmu::vmcb::{
    Event, IGNORE_PRIORITY, IRQ_PRIORITY, IRQ_VECTOR, Intercepts, VIRTUAL_GIF, VIRTUAL_GIF_ENABLE,
    VIRTUAL_IRQ, VIRTUAL_MASKING, VIRTUAL_PRIORITY, exit, virtual_interrupt,
};

/// What the processor has of the guest's interrupt control at all times.
const ALWAYS: u64 = VIRTUAL_PRIORITY | VIRTUAL_GIF | VIRTUAL_MASKING | VIRTUAL_GIF_ENABLE;
/// And while the virtual interrupt is the guest's.
const GUESTS: u64 = VIRTUAL_IRQ | IRQ_PRIORITY | IGNORE_PRIORITY | IRQ_VECTOR;

/// Before an entry, with the block as it would be without: `event` is what it delivers. Returns whether interrupts of devices
/// have to be let in by the processor's own IF.
pub fn begin(guest: &mut Guest, event: Option<Event>) -> bool {
    let (own, in_shadow) = (guest.vmcb.rflags & crate::payload::guest::IF != 0, guest.in_shadow());
    let vmcb = &mut guest.vmcb;
    if !guest.svm.enabled {
        vmcb.add_intercepts(Intercepts::INVLPGA);
    }
    if !guest.svm.holds_interrupts() {
        return false;
    }
    vmcb.add_intercepts(Intercepts::INTR);
    let delivers = vmcb.int_control & VIRTUAL_IRQ != 0;
    let (mut irq, mut opens) = (Irq::Event, false);
    let waits = !guest.waiting.is_empty();
    if let Some(Inner { control, tables, .. }) = &guest.svm.inner {
        control.merge_into(vmcb);
        if control.nested_cr3.is_some() {
            vmcb.nested_cr3 = *tables;
        }
        vmcb.int_control |= control.int_control & ALWAYS;
        opens = guest.svm.inner.as_ref().is_some_and(is_open_to_devices);
        if !delivers && control.int_control & VIRTUAL_IRQ != 0 {
            vmcb.int_control |= control.int_control & GUESTS;
            if control.wants(exit::VIRTUAL_IRQ) {
                vmcb.add_intercepts(Intercepts::VIRTUAL_IRQ);
            }
            irq = Irq::Guests;
        } else if !delivers && waits && !control.wants(exit::INTR) && !control.masks_virtually() {
            irq = Irq::Window;
        }
        // QEMU's virtual interrupts wait for IF; what a guest injects does not.
        if let Some(Event::Interrupt { .. }) = event
            && guest.svm.injected
            && (!own || in_shadow)
        {
            vmcb.int_control &= !GUESTS;
            vmcb.event = event.map_or(0, Event::encode);
        }
    } else if guest.svm.gif && !delivers && waits {
        irq = Irq::Window;
    }
    if irq == Irq::Window {
        vmcb.int_control |= virtual_interrupt(0);
        vmcb.add_intercepts(Intercepts::VIRTUAL_IRQ);
    }
    guest.svm.irq = irq;
    opens
}

/// Behind an exit, before anybody looks at it.
pub fn end(guest: &mut Guest, event: Option<Event>) {
    if !guest.svm.holds_interrupts() {
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
