//! The data segments of a task. 64-bit code does not need them; 32-bit code reaches nothing without.

use core::arch::asm;
use x86_64::instructions::segmentation::{DS, ES, FS, GS, Segment};
use x86_64::structures::gdt::SegmentSelector;

/// Selectors of the four.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Segments {
    ds: SegmentSelector,
    es: SegmentSelector,
    fs: SegmentSelector,
    gs: SegmentSelector,
}

impl Segments {
    /// DS and ES are `data`, FS and GS empty.
    pub(super) const fn flat(data: SegmentSelector) -> Self {
        let (fs, gs) = (SegmentSelector::NULL, SegmentSelector::NULL);
        Self { ds: data, es: data, fs, gs }
    }

    /// What the processor holds.
    pub(super) fn read() -> Self {
        Self { ds: DS::get_reg(), es: ES::get_reg(), fs: FS::get_reg(), gs: GS::get_reg() }
    }

    /// Gives them back to the processor, which holds `now`. Most tasks leave them alone, and loads are slow.
    pub(super) fn load(&self, now: &Self) {
        if self == now {
            return;
        }
        // SAFETY: in 64-bit mode, in which the kernel runs, DS and ES mean nothing, and the kernel uses neither FS nor
        // GS. What cannot be read is not loaded.
        unsafe {
            DS::set_reg(usable(self.ds));
            ES::set_reg(usable(self.es));
            FS::set_reg(usable(self.fs));
            GS::set_reg(usable(self.gs));
        }
    }
}

/// The selector, or an empty one if the table in use has nothing there that can be loaded: a task of ring 0 may have had
/// a table of its own.
fn usable(selector: SegmentSelector) -> SegmentSelector {
    let readable: u8;
    // SAFETY: reads a descriptor, and changes the zero flag alone (SDM vol. 2, VERR).
    unsafe {
        asm!("verr {0:x}", "setz {1}", in(reg) selector.0, out(reg_byte) readable, options(nomem, nostack));
    }
    if readable != 0 { selector } else { SegmentSelector::NULL }
}
