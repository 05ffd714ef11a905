//! What is compared behind each call.

use super::note;
use crate::descriptors::{self, KERNEL_DATA};
use crate::interrupts::fixup;
use core::arch::asm;
use x86_64::instructions::segmentation::{DS, ES, FS, GS, SS, Segment};
use x86_64::registers::control::{Cr0, Cr3, Cr4};
use x86_64::structures::DescriptorTablePointer;
use x86_64::structures::gdt::SegmentSelector;

// Positions in `NAMES`.
const CR0: usize = 0;
const CR3: usize = 1;
const CR4: usize = 2;
const CR8: usize = 3;
const GDTR: usize = 5;
const IDTR: usize = 6;
const LDTR: usize = 7;
const TR: usize = 8;
const FIRST_SEGMENT: usize = 9;
const DR7: usize = 14;

/// The registers as they were before a call.
pub(crate) struct Core {
    cr0: u64,
    cr3: (x86_64::structures::paging::PhysFrame, u16),
    cr4: u64,
    cr8: u64,
    gdt: DescriptorTablePointer,
    idt: DescriptorTablePointer,
    ldt: u16,
    task: u16,
}

impl Core {
    pub(crate) fn save() -> Self {
        use x86_64::instructions::tables::{sgdt, sidt};
        let (cr0, cr3, cr4) = (Cr0::read_raw(), Cr3::read_raw(), Cr4::read_raw());
        Self { cr0, cr3, cr4, cr8: read_cr8(), gdt: sgdt(), idt: sidt(), ldt: sldt(), task: str() }
    }

    /// Puts back what differs.
    ///
    /// # Safety
    /// The state must be one that this code can go on in.
    pub(crate) unsafe fn restore(&self) {
        use x86_64::instructions::tables::{lgdt, lidt, sgdt, sidt};
        if no_breakpoints() {
            note(DR7);
        }
        // SAFETY: the caller's promise.
        unsafe {
            if Cr3::read_raw() != self.cr3 {
                Cr3::write_raw(self.cr3.0, self.cr3.1);
                note(CR3);
            }
            if Cr0::read_raw() != self.cr0 {
                Cr0::write_raw(self.cr0);
                note(CR0);
            }
            if Cr4::read_raw() != self.cr4 {
                Cr4::write_raw(self.cr4);
                note(CR4);
            }
            if read_cr8() != self.cr8 {
                asm!("mov cr8, {}", in(reg) self.cr8, options(nostack, preserves_flags));
                note(CR8);
            }
            if parts(&sgdt()) != parts(&self.gdt) {
                lgdt(&self.gdt);
                note(GDTR);
            }
            if parts(&sidt()) != parts(&self.idt) {
                lidt(&self.idt);
                note(IDTR);
            }
            if sldt() != self.ldt {
                asm!("lldt {:x}", in(reg) self.ldt, options(nostack, preserves_flags));
                note(LDTR);
            }
            if str() != self.task {
                descriptors::reload_task(SegmentSelector(self.task));
                note(TR);
            }
            segments();
        }
    }
}

/// Puts the segment registers back. Behind nearly every call all are as they should be, so that is asked first.
///
/// # Safety
/// The descriptor table is the firmware's.
unsafe fn segments() {
    const DATA: u16 = KERNEL_DATA.0;
    let differing = (DS::get_reg().0 ^ DATA)
        | (ES::get_reg().0 ^ DATA)
        | (SS::get_reg().0 ^ DATA)
        | FS::get_reg().0
        | GS::get_reg().0;
    if differing == 0 {
        return;
    }
    let segments = [
        (DS::get_reg(), KERNEL_DATA, DS::set_reg as unsafe fn(SegmentSelector)),
        (ES::get_reg(), KERNEL_DATA, ES::set_reg),
        (SS::get_reg(), KERNEL_DATA, SS::set_reg),
        (FS::get_reg(), SegmentSelector::NULL, FS::set_reg),
        (GS::get_reg(), SegmentSelector::NULL, GS::set_reg),
    ];
    for (index, (now, wanted, set)) in segments.into_iter().enumerate() {
        if now != wanted {
            // SAFETY: the caller's promise; the selectors are those that the firmware runs with.
            unsafe { set(wanted) };
            note(FIRST_SEGMENT + index);
        }
    }
}

/// Limit and base; the structure itself is packed and cannot be compared.
fn parts(pointer: &DescriptorTablePointer) -> (u16, u64) {
    (pointer.limit, { pointer.base }.as_u64())
}

fn read_cr8() -> u64 {
    let value: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr8", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

fn sldt() -> u16 {
    let selector: u16;
    // SAFETY: reads a register.
    unsafe { asm!("sldt {:x}", out(reg) selector, options(nomem, nostack, preserves_flags)) };
    selector
}

fn str() -> u16 {
    let selector: u16;
    // SAFETY: reads a register.
    unsafe { asm!("str {:x}", out(reg) selector, options(nomem, nostack, preserves_flags)) };
    selector
}

/// Breakpoint enables, and general detect: the next access to a debug register raises #DB.
const ACTIVE: u64 = 0x20ff;

/// Switches off breakpoints, which could lie in the firmware itself. Returns whether there were any.
pub(crate) fn no_breakpoints() -> bool {
    let (value, detected): (u64, u64);
    // SAFETY: reads a register. With general detect on, the read raises #DB, whose delivery switches that off (SDM
    // vol. 3, 17.2.4), and then is made again.
    unsafe {
        asm!(
            "xor {detected:e}, {detected:e}",
            "jmp 2f",
            "3: mov {detected:e}, 1",
            "2: mov {value}, dr7",
            fixup!("2b", "3b"),
            value = out(reg) value, detected = out(reg) detected,
            options(nostack),
        );
    }
    if value & ACTIVE != 0 {
        // Bit 10 reads as 1 (SDM vol. 3, figure 17-1).
        // SAFETY: switches everything off.
        unsafe {
            asm!("mov dr7, {}", in(reg) 1u64 << 10, options(nomem, nostack, preserves_flags));
        };
    }
    value & ACTIVE != 0 || detected != 0
}
