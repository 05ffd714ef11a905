//! What comes next while a nested guest runs: its own exception, or something that waits outside.

use super::Control;
use crate::vmcb::{Event, exit};

/// What waits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pending {
    /// To be delivered at the next entry.
    pub event: Option<Event>,
    /// The guest has injected that: it is not intercepted (APM vol. 2, 15.20).
    pub injected: bool,
    /// A non-maskable interrupt.
    pub nmi: bool,
    /// An interrupt of a device.
    pub interrupt: bool,
    /// Interrupts of devices can be taken: by the guest's IF, or the nested guest's, see [`Control::masks_virtually`].
    pub interruptible: bool,
}

/// An exit to the guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Due {
    /// Its code.
    pub code: u64,
    /// The first exit information.
    pub info_1: u64,
}

impl Pending {
    /// The exit that comes before the nested guest executes anything more, if one does. An event that the guest has injected
    /// is delivered first.
    #[must_use]
    pub fn exit(&self, control: &Control) -> Option<Due> {
        let due = |code, info_1| Some(Due { code, info_1 });
        match self.event {
            Some(Event::Exception { vector, error })
                if !self.injected && control.wants_exception(vector) =>
            {
                due(exit::EXCEPTION + u64::from(vector), error.unwrap_or(0).into())
            }
            Some(_) => None,
            None if self.nmi && control.wants(exit::NMI) => due(exit::NMI, 0),
            None if self.interrupt && self.interruptible && control.wants(exit::INTR) => {
                due(exit::INTR, 0)
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmcb::{Intercepts, Vmcb};

    fn control(intercepts: Intercepts, exceptions: u32) -> Control {
        let mut block = Vmcb::zeroed();
        block.set_intercepts(intercepts);
        block.exceptions = exceptions;
        Control::of(&block)
    }

    #[test]
    fn an_nmi_comes_before_an_interrupt_and_an_exception_before_both() {
        let control = control(Intercepts::NMI | Intercepts::INTR, 1 << 13);
        let event = Some(Event::Exception { vector: 13, error: Some(5) });
        let all =
            Pending { event, injected: false, nmi: true, interrupt: true, interruptible: true };
        assert_eq!(all.exit(&control), Some(Due { code: 0x4d, info_1: 5 }));
        let rest = Pending { event: None, ..all };
        assert_eq!(rest.exit(&control), Some(Due { code: exit::NMI, info_1: 0 }));
        let last = Pending { nmi: false, ..rest };
        assert_eq!(last.exit(&control), Some(Due { code: exit::INTR, info_1: 0 }));
        assert_eq!(Pending { interruptible: false, ..last }.exit(&control), None);
    }

    #[test]
    fn what_is_injected_is_delivered_first_and_never_intercepted() {
        let control = control(Intercepts::NMI | Intercepts::INTR, u32::MAX);
        let event = Some(Event::Exception { vector: 6, error: None });
        let injected =
            Pending { event, injected: true, nmi: true, interrupt: true, interruptible: true };
        assert_eq!(injected.exit(&control), None);
        let interrupt = Some(Event::Interrupt { vector: 0x40 });
        assert_eq!(Pending { event: interrupt, ..injected }.exit(&control), None);
    }

    #[test]
    fn what_the_guest_does_not_intercept_goes_to_the_nested_guest() {
        let none = control(Intercepts::empty(), 0);
        let event = Some(Event::Exception { vector: 13, error: Some(0) });
        let all =
            Pending { event, injected: false, nmi: true, interrupt: true, interruptible: true };
        assert_eq!(all.exit(&none), None);
        assert_eq!(Pending { event: None, ..all }.exit(&none), None);
    }
}
