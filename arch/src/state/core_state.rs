//! What is compared after each call.

use super::note;
use crate::descriptors::{self, KERNEL_DATA};
use crate::interrupts::fixup;
use core::arch::asm;
use core::mem::MaybeUninit;
use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{DS, ES, FS, GS, SS, Segment};
use x86_64::registers::control::{Cr0, Cr4};
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
    cr3: u64,
    cr4: u64,
    cr8: u64,
    gdt: Table,
    idt: Table,
    /// LDTR in the lower half, TR in the upper one.
    tasks: u64,
}

/// GDTR or IDTR, as SGDT and SIDT store it after three words: so both parts are aligned.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Table {
    unused: [MaybeUninit<u16>; 3],
    limit: u16,
    base: u64,
}

impl Table {
    /// Not 0 if they differ.
    fn difference(self, other: Self) -> u64 {
        u64::from(self.limit ^ other.limit) | (self.base ^ other.base)
    }

    fn pointer(self) -> DescriptorTablePointer {
        DescriptorTablePointer { limit: self.limit, base: VirtAddr::new_truncate(self.base) }
    }
}

macro_rules! stored {
    ($instruction:literal) => {{
        let mut table = MaybeUninit::<Table>::uninit();
        // SAFETY: stores ten bytes, for which the structure has room after its first three words; the words before may be anything.
        unsafe {
            asm!(concat!($instruction, " [{} + 6]"), in(reg) table.as_mut_ptr(),
                options(nostack, preserves_flags));
            table.assume_init()
        }
    }};
}

macro_rules! control {
    ($register:literal) => {{
        let value: u64;
        // SAFETY: reads a register.
        unsafe {
            asm!(concat!("mov {}, ", $register), out(reg) value,
                options(nomem, nostack, preserves_flags));
        }
        value
    }};
}

impl Core {
    #[inline(always)]
    pub(crate) fn save() -> Self {
        Self {
            cr0: control!("cr0"),
            cr3: control!("cr3"),
            cr4: control!("cr4"),
            cr8: control!("cr8"),
            gdt: stored!("sgdt"),
            idt: stored!("sidt"),
            tasks: tasks(),
        }
    }

    /// Puts back what differs. After nearly every call nothing does, so all of it is asked first, and at once.
    ///
    /// # Safety
    /// The state must be one that this code can continue in.
    #[inline(always)]
    pub(crate) unsafe fn restore(&self) {
        // First, as a breakpoint could are in what follows.
        if no_breakpoints() {
            note(DR7);
        }
        let now = Self::save();
        let differing = (now.cr0 ^ self.cr0)
            | (now.cr3 ^ self.cr3)
            | (now.cr4 ^ self.cr4)
            | (now.cr8 ^ self.cr8)
            | now.gdt.difference(self.gdt)
            | now.idt.difference(self.idt)
            | (now.tasks ^ self.tasks)
            | segment_difference();
        if differing != 0 {
            // SAFETY: the caller's promise.
            unsafe { self.put_back(&now) };
        }
    }

    /// # Safety
    /// As for [`Core::restore`].
    #[cold]
    #[inline(never)]
    unsafe fn put_back(&self, now: &Self) {
        use x86_64::instructions::tables::{lgdt, lidt};
        // SAFETY: the caller's promise.
        unsafe {
            if now.cr3 != self.cr3 {
                asm!("mov cr3, {}", in(reg) self.cr3, options(nostack, preserves_flags));
                note(CR3);
            }
            if now.cr0 != self.cr0 {
                Cr0::write_raw(self.cr0);
                note(CR0);
            }
            if now.cr4 != self.cr4 {
                Cr4::write_raw(self.cr4);
                note(CR4);
            }
            if now.cr8 != self.cr8 {
                asm!("mov cr8, {}", in(reg) self.cr8, options(nostack, preserves_flags));
                note(CR8);
            }
            if now.gdt.difference(self.gdt) != 0 {
                lgdt(&self.gdt.pointer());
                note(GDTR);
            }
            if now.idt.difference(self.idt) != 0 {
                lidt(&self.idt.pointer());
                note(IDTR);
            }
            let [ldt, task] = [self.tasks as u16, (self.tasks >> 32) as u16];
            if now.tasks as u16 != ldt {
                asm!("lldt {:x}", in(reg) ldt, options(nostack, preserves_flags));
                note(LDTR);
            }
            if (now.tasks >> 32) as u16 != task {
                descriptors::reload_task(SegmentSelector(task));
                note(TR);
            }
            segments();
        }
    }
}

/// LDTR and TR.
fn tasks() -> u64 {
    let (ldt, task): (u64, u64);
    // SAFETY: reads registers. Into a 32-bit register SLDT and STR clear all but the selector.
    unsafe {
        asm!("sldt {:e}", "str {:e}", out(reg) ldt, out(reg) task, options(nomem, nostack, preserves_flags));
    }
    ldt | task << 32
}

/// Not 0 if a segment register is not as the firmware has it.
fn segment_difference() -> u64 {
    const DATA: u16 = KERNEL_DATA.0;
    let differing = (DS::get_reg().0 ^ DATA)
        | (ES::get_reg().0 ^ DATA)
        | (SS::get_reg().0 ^ DATA)
        | FS::get_reg().0
        | GS::get_reg().0;
    differing.into()
}

/// Puts the segment registers back.
///
/// # Safety
/// The descriptor table is the firmware's.
unsafe fn segments() {
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

/// Breakpoint enables, and general detect: the next access to a debug register raises #DB.
const ACTIVE: u64 = 0x20ff;

/// Switches off breakpoints, which could are in the firmware itself. Returns whether there were any.
#[inline(always)]
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
