//! Whose exit it is, and what a nested guest's block intercepts.

use super::Control;
use crate::vmcb::{
    IRQ_PRIORITY, IRQ_VECTOR, Intercepts, NESTED_PAGING, VIRTUAL_GIF, VIRTUAL_GIF_ENABLE,
    VIRTUAL_IRQ, VIRTUAL_MASKING, VIRTUAL_PRIORITY, Vmcb, exit,
};

/// CR0.TS and CR0.MP, whose changes alone are not selective writes.
const CR0_LAZY: u64 = 1 << 3 | 1 << 1;
/// Bits of interrupt control that are the nested guest's own.
pub const OWN_INTERRUPTS: u64 = VIRTUAL_PRIORITY
    | VIRTUAL_IRQ
    | VIRTUAL_GIF
    | IRQ_PRIORITY
    | crate::vmcb::IGNORE_PRIORITY
    | VIRTUAL_MASKING
    | VIRTUAL_GIF_ENABLE
    | IRQ_VECTOR;

impl Control {
    /// Whether the guest intercepts what has this exit code. For ports and registers, its permission maps decide then.
    #[must_use]
    pub fn wants(&self, code: u64) -> bool {
        let bit = |vector: u64, bit: u64| vector >> bit & 1 != 0;
        match code {
            exit::READ_CR0..exit::READ_DR0 => bit(self.cr_intercepts.into(), code),
            exit::READ_DR0..=exit::LAST_DR => bit(self.dr_intercepts.into(), code - exit::READ_DR0),
            exit::EXCEPTION..=exit::LAST_EXCEPTION => {
                bit(self.exceptions.into(), code - exit::EXCEPTION)
            }
            exit::INTR..0xa0 => bit(self.intercepts.bits(), code - exit::INTR),
            0xa0..=exit::LAST_INTERCEPT => bit(self.more_intercepts.into(), code - 0xa0),
            exit::NESTED_PAGE_FAULT => self.nested_cr3.is_some(),
            _ => false,
        }
    }

    /// The same of the exception `vector`.
    #[must_use]
    pub fn wants_exception(&self, vector: u8) -> bool {
        vector < 32 && self.wants(exit::EXCEPTION + u64::from(vector))
    }

    /// Whether a MOV that changes CR0 from `old` to `new` is intercepted as a selective one: APM vol. 2, 15.8.1.
    #[must_use]
    pub fn wants_selective(&self, old: u64, new: u64) -> bool {
        self.intercepts.contains(Intercepts::CR0_SELECTIVE) && (old ^ new) & !CR0_LAZY != 0
    }

    /// Adds to what the hypervisor has put into `block` what the guest requests. Interrupts are not in it.
    pub fn merge_into(&self, block: &mut Vmcb) {
        block.cr_intercepts |= self.cr_intercepts;
        block.dr_intercepts |= self.dr_intercepts;
        block.exceptions |= self.exceptions;
        // Windows for interrupts are the hypervisor's matter.
        block.add_intercepts(self.intercepts.difference(Intercepts::VIRTUAL_IRQ));
        block.more_intercepts = self.more_intercepts;
        if let Some(tables) = self.nested_cr3 {
            block.nested_control |= NESTED_PAGING;
            block.nested_cr3 = tables;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn control(fill: impl FnOnce(&mut Vmcb)) -> Control {
        let mut block = Vmcb::zeroed();
        fill(&mut block);
        Control::of(&block)
    }

    #[test]
    fn codes_lie_in_the_vectors_where_the_manual_has_them() {
        let control = control(|block| {
            block.cr_intercepts = 1 << 8 | 1 << 16;
            block.dr_intercepts = 1 << 7 | 1 << 31;
            block.exceptions = 1 << 14;
            block.set_intercepts(Intercepts::CPUID | Intercepts::MWAIT);
            block.more_intercepts = 1;
        });
        let wanted: Vec<u64> = (0..0x500).filter(|&code| control.wants(code)).collect();
        assert_eq!(wanted, [0x08, 0x10, 0x27, 0x3f, 0x4e, 0x72, 0x8b, 0xa0]);
        assert!(control.wants_exception(14) && !control.wants_exception(13));
        assert!(!control.wants_exception(46), "none that there is not");
        assert!(!control.wants(exit::INVALID) && !control.wants(u64::MAX));
    }

    #[test]
    fn nested_page_faults_are_those_of_nested_paging() {
        assert!(!control(|_| ()).wants(exit::NESTED_PAGE_FAULT));
        assert!(control(|block| block.nested_control = 1).wants(exit::NESTED_PAGE_FAULT));
    }

    #[test]
    fn ts_and_mp_alone_are_no_selective_write() {
        let control = control(|block| block.set_intercepts(Intercepts::CR0_SELECTIVE));
        assert!(!control.wants_selective(0x8000_0011, 0x8000_001b));
        assert!(control.wants_selective(0x8000_0011, 0x8001_0011));
        assert!(!control_of_nothing().wants_selective(0, 1));
    }

    fn control_of_nothing() -> Control {
        control(|_| ())
    }

    proptest! {
        /// Whatever either side intercepts is intercepted, and nothing else; what the guest does not request is not told to it.
        #[test]
        fn both_sides_intercepts_are_in_the_block(
            own: [u32; 4], guests: [u32; 4], paging: [bool; 2], codes in prop::collection::vec(0u64..0xa0, 40),
        ) {
            let fill = |block: &mut Vmcb, [cr, dr, exceptions, low]: [u32; 4], paging: bool| {
                (block.cr_intercepts, block.dr_intercepts, block.exceptions) = (cr, dr, exceptions);
                block.set_intercepts(Intercepts::from_bits_retain(u64::from(low) << 16 | u64::from(low)));
                block.nested_control = paging.into();
                block.nested_cr3 = u64::from(cr) << 12;
            };
            let (mut block, mut asked) = (Vmcb::zeroed(), Vmcb::zeroed());
            fill(&mut block, own, paging[0]);
            fill(&mut asked, guests, paging[1]);
            let (mine, control) = (Control::of(&block), Control::of(&asked));
            control.merge_into(&mut block);
            let merged = Control::of(&block);
            for code in codes {
                let theirs = control.wants(code) && code != exit::VIRTUAL_IRQ;
                prop_assert_eq!(merged.wants(code), mine.wants(code) || theirs, "{:#x}", code);
            }
            prop_assert_eq!(merged.nested_cr3, control.nested_cr3.or(mine.nested_cr3));
        }
    }
}
