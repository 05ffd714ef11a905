//! The registers that VMRUN and an exit exchange: APM vol. 2, 15.5.1 and 15.6. All others stay as they are.

use crate::vmcb::{Segment, Vmcb};

/// The state save area's part that they exchange.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "the registers' names")]
pub struct State {
    pub es: Segment,
    pub cs: Segment,
    pub ss: Segment,
    pub ds: Segment,
    pub gdtr: Segment,
    pub idtr: Segment,
    pub cpl: u8,
    pub efer: u64,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub dr6: u64,
    pub dr7: u64,
    pub rflags: u64,
    pub rip: u64,
    pub rsp: u64,
    pub rax: u64,
}

impl State {
    /// Of a block.
    #[must_use]
    pub fn of(block: &Vmcb) -> Self {
        Self {
            es: block.es,
            cs: block.cs,
            ss: block.ss,
            ds: block.ds,
            gdtr: block.gdtr,
            idtr: block.idtr,
            cpl: block.cpl,
            efer: block.efer,
            cr0: block.cr0,
            cr2: block.cr2,
            cr3: block.cr3,
            cr4: block.cr4,
            dr6: block.dr6,
            dr7: block.dr7,
            rflags: block.rflags,
            rip: block.rip,
            rsp: block.rsp,
            rax: block.rax,
        }
    }

    /// Into a block.
    pub fn put(&self, block: &mut Vmcb) {
        (block.es, block.cs, block.ss, block.ds) = (self.es, self.cs, self.ss, self.ds);
        (block.gdtr, block.idtr, block.cpl, block.efer) =
            (self.gdtr, self.idtr, self.cpl, self.efer);
        (block.cr0, block.cr2, block.cr3, block.cr4) = (self.cr0, self.cr2, self.cr3, self.cr4);
        (block.dr6, block.dr7, block.rflags) = (self.dr6, self.dr7, self.rflags);
        (block.rip, block.rsp, block.rax) = (self.rip, self.rsp, self.rax);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_exchanged_comes_back() {
        let segment = |selector| Segment { selector, attributes: 0x93, limit: 7, base: 9 };
        let state = State {
            es: segment(1),
            cs: segment(2),
            ss: segment(3),
            ds: segment(4),
            gdtr: segment(5),
            idtr: segment(6),
            cpl: 3,
            efer: 10,
            cr0: 11,
            cr2: 12,
            cr3: 13,
            cr4: 14,
            dr6: 15,
            dr7: 16,
            rflags: 17,
            rip: 18,
            rsp: 19,
            rax: 20,
        };
        let mut block = Vmcb::zeroed();
        state.put(&mut block);
        assert_eq!(State::of(&block), state);
    }
}
