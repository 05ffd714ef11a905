//! What a processor does when it delivers an interrupt in long mode: SDM vol. 3, 6.14; AMD APM vol. 2, 8.9.

/// RFLAGS: TF, NT, RF and VM are cleared for the handler, and IF by an interrupt gate.
const CLEARED: u64 = 1 << 8 | 1 << 14 | 1 << 16 | 1 << 17;
const IF: u64 = 1 << 9;
/// A gate's type, system descriptor, and presence in bits 40 to 44 and 47 of its first half: interrupt gate, trap gate.
const GATE: u64 = 0b1001_1111 << 40;
const INTERRUPT_GATE: u64 = 0b1000_1110 << 40;
const TRAP_GATE: u64 = 0b1000_1111 << 40;
/// Presence, DPL, code that is not conforming; L and not D: 64-bit code of ring 0.
const CODE: u64 = 0b1111_1100 << 40 | 0b11 << 53;
const CODE_64: u64 = 0b1001_1000 << 40 | 0b01 << 53;
/// A descriptor's base.
const BASE: u64 = 0xff00_00ff_ffff_0000;
const GRANULARITY: u64 = 1 << 55;
/// RSP0 and IST1 in the TSS (SDM vol. 3, figure 8-11).
const RSP0: u64 = 4;
const IST1: u64 = 0x24;

/// The state that an interrupt finds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Interrupted {
    /// Registers.
    pub rip: u64,
    /// CS, its selector.
    pub cs: u16,
    /// RFLAGS.
    pub rflags: u64,
    /// RSP.
    pub rsp: u64,
    /// SS, its selector.
    pub ss: u16,
    /// The ring.
    pub cpl: u8,
    /// CR4.LA57: linear addresses have 57 bits and not 48.
    pub la57: bool,
}

/// The state in which the handler begins: in ring 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// The handler.
    pub rip: u64,
    /// CS: selector, attributes as in the VMCB, limit.
    pub cs: (u16, u16, u32),
    /// RFLAGS.
    pub rflags: u64,
    /// RSP, where [`Delivered::frame`] lies.
    pub rsp: u64,
    /// SS is null.
    pub empties_ss: bool,
    /// From RSP on.
    pub frame: [u64; 5],
}

/// The selector of a gate's handler, if it is in the global table.
#[must_use]
pub fn selector(gate: [u64; 2]) -> Option<u16> {
    let selector = (gate[0] >> 16) as u16;
    (selector & 0b100 == 0 && selector >> 3 != 0).then_some(selector)
}

/// Delivers through `gate`, to the segment of `descriptor`; `tss` reads 8 bytes of the TSS. `None` where an exception comes of
/// it, or something that is rare.
#[must_use]
pub fn deliver(
    before: &Interrupted,
    gate: [u64; 2],
    descriptor: u64,
    tss: impl FnOnce(u64) -> Option<u64>,
) -> Option<Delivered> {
    let selector = selector(gate)?;
    let kind = gate[0] & GATE;
    let is_interrupt_gate = kind == INTERRUPT_GATE;
    if !is_interrupt_gate && kind != TRAP_GATE || descriptor & (CODE | BASE) != CODE_64 {
        return None;
    }
    let rip = gate[0] & 0xffff | gate[0] >> 32 & 0xffff_0000 | gate[1] << 32;
    let stack = match gate[0] >> 32 & 0b111 {
        0 if before.cpl == 0 => None,
        0 => Some(RSP0),
        number => Some(IST1 + 8 * (number - 1)),
    };
    let top = stack.map_or(Some(before.rsp), tss)? & !0xf;
    let bits = if before.la57 { 57 } else { 48 };
    if !is_canonical(rip, bits) || !is_canonical(top, bits) {
        return None;
    }
    let limit = (descriptor & 0xffff | descriptor >> 32 & 0xf_0000) as u32;
    let limit = if descriptor & GRANULARITY != 0 { limit << 12 | 0xfff } else { limit };
    let attributes = (descriptor >> 40 & 0xff | (descriptor >> 52 & 0xf) << 8) as u16;
    let masked = if is_interrupt_gate { CLEARED | IF } else { CLEARED };
    Some(Delivered {
        rip,
        cs: (selector & !0b11, attributes, limit),
        rflags: before.rflags & !masked,
        rsp: top.wrapping_sub(40),
        // QEMU does so wherever there is a new stack.
        empties_ss: stack.is_some(),
        frame: [before.rip, before.cs.into(), before.rflags, before.rsp, before.ss.into()],
    })
}

/// Whether all bits above are as the uppermost of so many.
fn is_canonical(address: u64, bits: u32) -> bool {
    let unused = 64 - bits;
    (address as i64) << unused >> unused == address as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLER: u64 = 0xffff_8000_1234_5678;
    const DESCRIPTOR: u64 = 0x00af_9b00_0000_ffff;
    const BEFORE: Interrupted = Interrupted {
        rip: 0x1000,
        cs: 0x33,
        rflags: 0x1_4346,
        rsp: 0x7ff8,
        ss: 0x2b,
        cpl: 3,
        la57: false,
    };

    fn gate(kind: u64, ist: u64) -> [u64; 2] {
        let low = HANDLER & 0xffff | (HANDLER & 0xffff_0000) << 32;
        [low | 0x10 << 16 | ist << 32 | kind << 40, HANDLER >> 32]
    }

    /// Linux' stacks lie beyond 48 bits wherever the processor has page tables of five levels.
    #[test]
    fn a_stack_may_lie_as_high_as_the_page_tables_reach() {
        const STACK: u64 = 0xffa0_0000_0010_3f58;
        let deliver = |la57, rsp| {
            let before = Interrupted { rsp, cpl: 0, la57, ..BEFORE };
            deliver(&before, gate(0x8e, 0), DESCRIPTOR, |_| None).map(|delivered| delivered.rsp)
        };
        assert_eq!(deliver(false, STACK), None);
        assert_eq!(deliver(true, STACK), Some(STACK - 8 - 40));
        assert_eq!(deliver(true, STACK & !(1 << 56)), None, "of neither kind");
    }

    fn stack(at: u64) -> Option<u64> {
        Some(0xffff_9000_0000_0008 + (at << 16))
    }

    #[test]
    fn from_ring_3_the_stack_is_that_of_ring_0() {
        let delivered = deliver(&BEFORE, gate(0x8e, 0), DESCRIPTOR, stack).expect("nothing rare");
        assert_eq!(delivered.rip, HANDLER);
        assert_eq!(delivered.rsp, 0xffff_9000_0004_0000 - 40);
        assert_eq!(delivered.cs, (0x10, 0xa9b, u32::MAX));
        // TF, IF, NT and RF are gone, the others stay; the frame has all of them.
        assert_eq!(delivered.rflags, 0x46);
        assert_eq!(delivered.frame, [0x1000, 0x33, 0x1_4346, 0x7ff8, 0x2b]);
        assert!(delivered.empties_ss);
        let trap = deliver(&BEFORE, gate(0x8f, 0), DESCRIPTOR, stack).expect("a trap gate");
        assert_eq!(trap.rflags, 0x246);
    }

    #[test]
    fn in_ring_0_the_stack_goes_on_aligned_or_is_the_gates_own() {
        let before = Interrupted { cpl: 0, ..BEFORE };
        let none = |_| panic!("no TSS");
        let delivered = deliver(&before, gate(0x8e, 0), DESCRIPTOR, none).expect("nothing rare");
        assert_eq!((delivered.rsp, delivered.empties_ss), (0x7ff0 - 40, false));
        let own = deliver(&before, gate(0x8e, 3), DESCRIPTOR, stack).expect("a stack of its own");
        assert_eq!((own.rsp, own.empties_ss), (0xffff_9000_0034_0000 - 40, true));
    }

    #[test]
    fn what_raises_an_exception_is_left_to_the_processor() {
        let fails = |gate, descriptor| deliver(&BEFORE, gate, descriptor, stack).is_none();
        assert!(fails(gate(0x0e, 0), DESCRIPTOR), "absent");
        assert!(fails(gate(0x85, 0), DESCRIPTOR), "a task gate");
        let [low, high] = gate(0x8e, 0);
        assert!(fails([low, high ^ 1 << 20], DESCRIPTOR), "not canonical");
        assert!(fails([low & !0xffff_0000, high], DESCRIPTOR), "a null selector");
        assert!(fails([low | 0b100 << 16, high], DESCRIPTOR), "a local table");
        for wrong in [1 << 47, 1 << 45, 1 << 43, 1 << 42, 1 << 53, 1 << 54, 1 << 16] {
            assert!(fails([low, high], DESCRIPTOR ^ wrong), "{wrong:#x}");
        }
        assert!(deliver(&BEFORE, [low, high], DESCRIPTOR, |_| None).is_none(), "no TSS");
        assert!(
            deliver(&BEFORE, [low, high], DESCRIPTOR, |_| Some(1 << 50)).is_none(),
            "its stack"
        );
    }
}
