//! Delivery of interrupts without a guest run of their own.
//!
//! QEMU sets RF in the frame of an interrupt, which is taken back after a guest run that ends at the handler's first instruction
//! ([`super::step`]). Here the frame is written by the hypervisor and the guest continues in the handler, where nothing about
//! that is rare: a kernel is interrupted hundreds of times a second, and each exit has QEMU forget all it knows of pages.

use super::guest::Guest;
use super::memory::read_physical;
use core::arch::asm;
use core::mem::MaybeUninit;
use emulated_pmu::delivery::{Delivered, Interrupted, deliver, selector};
use emulated_pmu::vmcb::{Event, Segment, Vmcb};

/// CR4.LA57.
const CR4_LA57: u64 = 1 << 12;

/// Delivers what is pending, if it is an interrupt. False, and nothing is changed, where that is the processor's matter.
pub fn here(guest: &mut Guest) -> bool {
    let Some(event @ (Event::Interrupt { .. } | Event::Nmi)) = guest.event else { return false };
    let watches = guest.debug.is_active() || guest.after_ss || guest.held != 0;
    if guest.plugin.is_none() || guest.needs.branch_records || watches || !guest.is_long_mode() {
        return false;
    }
    let Some(delivered) = delivered(guest, event.vector()) else { return false };
    let Some(frame) = frame(guest, delivered.rsp) else { return false };
    for (word, value) in delivered.frame.into_iter().enumerate() {
        // SAFETY: five words of a page that the guest's processor would have written to now; identity mapped.
        unsafe { (frame as *mut u64).add(word).write_volatile(value) };
    }
    let vmcb = &mut guest.vmcb;
    let (selector, attributes, limit) = delivered.cs;
    vmcb.cs = Segment { selector, attributes, limit, base: 0 };
    if delivered.empties_ss {
        vmcb.ss = Segment::default();
    }
    (vmcb.rip, vmcb.rsp, vmcb.rflags, vmcb.cpl) =
        (delivered.rip, delivered.rsp, delivered.rflags, 0);
    vmcb.int_state &= !1;
    guest.event = None;
    guest.svm.is_delivered();
    guest.runs = Default::default();
    guest.string_touched = false;
    if let Some(plugin) = &mut guest.plugin {
        plugin.goes_elsewhere();
    }
    guest.counting.pmu().record_event_delivery();
    true
}

fn delivered(guest: &Guest, vector: u8) -> Option<Delivered> {
    let vmcb = &guest.vmcb;
    let word = |table: &Segment, offset: u64| {
        (offset + 7 <= u64::from(table.limit)).then(|| guest.read_word(table.base + offset))?
    };
    let offset = 16 * u64::from(vector);
    let gate = [word(&vmcb.idtr, offset)?, word(&vmcb.idtr, offset + 8)?];
    let descriptor = word(&vmcb.gdtr, u64::from(selector(gate)? & !0b111))?;
    let before = Interrupted {
        rip: vmcb.rip,
        cs: vmcb.cs.selector,
        rflags: vmcb.rflags,
        rsp: vmcb.rsp,
        ss: vmcb.ss.selector,
        cpl: vmcb.cpl,
        la57: vmcb.cr4 & CR4_LA57 != 0,
    };
    deliver(&before, gate, descriptor, |at| word(&task_segment(), at))
}

/// TR, which is the guest's while the hypervisor runs.
fn task_segment() -> Segment {
    static mut BLOCK: MaybeUninit<Vmcb> = MaybeUninit::zeroed();
    let block = &raw mut BLOCK;
    // SAFETY: a block of its own, used here only, at its physical address; VMSAVE stores registers, SVM is on.
    unsafe {
        asm!("vmsave rax", in("rax") block, options(nostack));
        (*block).assume_init_ref().task
    }
}

/// The physical address of a frame whose words are in one page to which ring 0 has written before.
fn frame(guest: &Guest, at: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    const BYTES: u64 = 40;
    let within = at % PAGE + BYTES <= PAGE;
    guest.translation().written(at, read_physical).filter(|_| within)
}
