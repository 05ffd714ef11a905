//! What an exit leaves in the guest's block: APM vol. 2, 15.6 and 15.7.

use super::{Control, State};
use crate::vmcb::{Event, SHADOW, VIRTUAL_GIF, VIRTUAL_IRQ, VIRTUAL_PRIORITY, Vmcb, exit};

/// Interrupt control that the processor changes while the nested guest runs.
const CHANGED: u64 = VIRTUAL_PRIORITY | VIRTUAL_IRQ | VIRTUAL_GIF;
/// Segments of descriptor tables have no more than base and limit.
const BREAKPOINT: u64 = exit::EXCEPTION + 3;
const OVERFLOW: u64 = exit::EXCEPTION + 4;
const BOUND: u64 = exit::EXCEPTION + 5;

/// An exit to the guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exit {
    /// Its code.
    pub code: u64,
    /// The first exit information.
    pub info_1: u64,
    /// The second one.
    pub info_2: u64,
    /// What was being delivered.
    pub delivering: Option<Event>,
    /// The nested guest's registers.
    pub state: State,
    /// Interrupt control as the processor has left it.
    pub int_control: u64,
    /// The interrupt shadow.
    pub shadow: bool,
    /// Where the nested guest continues after the instruction; 0 if that is not told: see [`is_of_instruction`].
    pub next_rip: u64,
}

impl Exit {
    /// Writes it to the guest's block.
    pub fn write(&self, control: &Control, block: &mut Vmcb) {
        self.state.put(block);
        block.exit_code = self.code;
        (block.exit_info_1, block.exit_info_2) = (self.info_1, self.info_2);
        block.exit_int_info = self.delivering.map_or(0, Event::encode);
        block.int_control = control.int_control & !CHANGED | self.int_control & CHANGED;
        block.int_state = if self.shadow { SHADOW } else { 0 };
        block.next_rip = self.next_rip;
        // Of EVENTINJ the valid bit is cleared.
        block.event = control.event & !(1 << 31);
    }
}

/// Whether exits of this code state where the next instruction is: those of instructions, of ports and of model-specific
/// registers, and those of INT3, INTO and BOUND (15.7.1).
#[must_use]
pub const fn is_of_instruction(code: u64) -> bool {
    // Control and debug registers; the selective write and all up to MSR; VMRUN up to RDPRU.
    matches!(code, exit::READ_CR0..=exit::LAST_DR | exit::CR0_SELECTIVE..=exit::MSR | exit::VMRUN..=0x8e)
        || matches!(code, BREAKPOINT | OVERFLOW | BOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_finds_its_exit_and_its_event_gone() {
        let mut block = Vmcb::zeroed();
        let virtual_irq = crate::vmcb::virtual_interrupt(0x33);
        block.int_control = 1 << 24 | virtual_irq;
        block.event = Event::Nmi.encode();
        let control = Control::of(&block);
        let state = State { rip: 0x1234, cpl: 3, ..State::default() };
        let delivering = Some(Event::Interrupt { vector: 0x51 });
        let exit = Exit {
            code: 0x4e,
            info_1: 7,
            info_2: 0x5000,
            delivering,
            state,
            // It has been taken, with another priority, and the hypervisor's own bits are no matter of the guest's.
            int_control: 0x0f | 1 << 25,
            shadow: true,
            next_rip: 0x1236,
        };
        exit.write(&control, &mut block);
        assert_eq!(State::of(&block), state);
        assert_eq!((block.exit_code, block.exit_info_1, block.exit_info_2), (0x4e, 7, 0x5000));
        assert_eq!(Event::decode(block.exit_int_info), delivering);
        assert_eq!(block.int_control, 1 << 24 | virtual_irq & !VIRTUAL_IRQ | 0x0f);
        assert_eq!((block.int_state, block.next_rip), (1, 0x1236));
        assert_eq!(Event::injected(block.event), Ok(None));
    }

    #[test]
    fn instructions_tell_where_they_end_and_others_do_not() {
        let told =
            [0x00, 0x10, 0x3f, 0x43, 0x65, exit::CPUID, exit::PORT, exit::MSR, exit::VMMCALL];
        assert!(told.into_iter().all(is_of_instruction));
        let untold = [0x41, 0x4e, exit::INTR, exit::NMI, exit::VIRTUAL_IRQ, 0x7d, exit::SHUTDOWN];
        assert!(!untold.into_iter().any(is_of_instruction));
        assert!(!is_of_instruction(exit::NESTED_PAGE_FAULT));
    }
}
