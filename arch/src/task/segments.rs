//! The data segments of a task. 64-bit code does not need them; 32-bit code reaches nothing without.

use core::arch::asm;
use x86_64::instructions::segmentation::{DS, ES, FS, GS, Segment};
use x86_64::structures::gdt::SegmentSelector;

/// Selectors of DS, ES, FS and GS, from the lowest 16 bits up: they are read and compared at each switch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Segments(u64);

impl Segments {
    /// DS and ES are `data`, FS and GS empty.
    pub(super) const fn flat(data: SegmentSelector) -> Self {
        let data = data.0 as u64;
        Self(data | data << 16)
    }

    /// What the processor holds.
    #[inline]
    pub(super) fn read() -> Self {
        let packed: u64;
        // SAFETY: reads registers; a 32-bit destination is zero-extended (SDM vol. 2, MOV).
        unsafe {
            asm!(
                "mov {packed:e}, gs",
                "shl {packed}, 16",
                "mov {next:e}, fs",
                "or {packed}, {next}",
                "shl {packed}, 16",
                "mov {next:e}, es",
                "or {packed}, {next}",
                "shl {packed}, 16",
                "mov {next:e}, ds",
                "or {packed}, {next}",
                packed = out(reg) packed,
                next = out(reg) _,
                options(nomem, nostack),
            );
        }
        Self(packed)
    }

    /// Gives them back to the processor. Most tasks leave them alone, and loads are slow.
    #[cold]
    pub(super) fn load(self) {
        let [ds, es, fs, gs] =
            [0, 16, 32, 48].map(|bit| usable(SegmentSelector((self.0 >> bit) as u16)));
        // SAFETY: in 64-bit mode, in which the kernel runs, DS and ES mean nothing, and the kernel uses neither FS nor
        // GS. What cannot be read is not loaded.
        unsafe {
            DS::set_reg(ds);
            ES::set_reg(es);
            FS::set_reg(fs);
            GS::set_reg(gs);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_selectors_are_packed_as_the_processor_holds_them() {
        let read = Segments::read();
        let each = [DS::get_reg(), ES::get_reg(), FS::get_reg(), GS::get_reg()];
        for (bit, selector) in [0, 16, 32, 48].into_iter().zip(each) {
            assert_eq!((read.0 >> bit) as u16, selector.0);
        }
        assert_eq!(Segments::flat(SegmentSelector(0x1b)), Segments(0x1b_001b));
    }
}
