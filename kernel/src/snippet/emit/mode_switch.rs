//! Leaving the measuring code's ring or width for init code and body, and coming back.
//!
//! Ring 3 is entered by IRETQ and left by INT (`user`); 32-bit code of ring 0 is entered and left by far jumps
//! (`compatibility`). Either way init code and body are two stays, gate and timer are in 64-bit code of ring 0 between them, and
//! the ways in and out are in both code sizes and cancel. 64-bit code of ring 0 needs nothing of this.

use super::{Code, compatibility, user};
use protocol::bits::Bits;
use protocol::job::Setup;
use protocol::job::control::Ring;

/// How init code and body are entered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ModeSwitch {
    /// Ring 3, as 32-bit code if so.
    User {
        /// 32-bit code.
        compatibility: bool,
    },
    /// 32-bit code of ring 0.
    Compatibility,
}

/// Where the address that a stay begins at must be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Place of an immediate operand of eight bytes.
    pub(super) at: usize,
    pub(super) switch: ModeSwitch,
}

impl ModeSwitch {
    /// That of a snippet; `None`: its code is as the measuring code.
    pub(super) fn of(setup: &Setup) -> Option<Self> {
        let compatibility = setup.bits == Bits::Compatibility;
        match setup.control.ring {
            Ring::User => Some(Self::User { compatibility }),
            Ring::Kernel => compatibility.then_some(Self::Compatibility),
        }
    }

    /// Bytes of [`Code::enter`].
    pub(super) fn enter_bytes(self) -> u64 {
        match self {
            Self::User { .. } => user::ENTER_BYTES,
            Self::Compatibility => compatibility::ENTER_BYTES,
        }
    }
}

impl Code<'_> {
    /// Prepares the first switch. Overwrites RAX.
    pub(super) fn prepare(&mut self, switch: ModeSwitch) -> Entry {
        if let ModeSwitch::User { compatibility } = switch {
            self.prepare_user(compatibility);
        }
        self.entry(switch)
    }

    /// Begins the stay that continues after this.
    pub(super) fn enter(&mut self, Entry { at, switch }: Entry) {
        let begin = self.address() + switch.enter_bytes();
        let target = match switch {
            ModeSwitch::User { .. } => begin,
            ModeSwitch::Compatibility => compatibility::target(begin),
        };
        self.memory[at..at + 8].copy_from_slice(&target.to_le_bytes());
        match switch {
            ModeSwitch::User { .. } => self.enter_user(),
            ModeSwitch::Compatibility => self.enter_compatibility(),
        }
        debug_assert_eq!(self.address(), begin);
    }

    /// Ends stay `index`; returns the address at which the measuring code continues.
    pub(super) fn land(&mut self, switch: ModeSwitch, index: usize) -> u64 {
        match switch {
            ModeSwitch::User { .. } => self.leave_user(index),
            ModeSwitch::Compatibility => self.leave_compatibility(),
        }
        self.address()
    }

    /// After the first landing: prepares the second stay, with all registers as they are.
    pub(super) fn keep(&mut self, switch: ModeSwitch) -> Entry {
        self.keep_rax(|code| {
            if matches!(switch, ModeSwitch::User { .. }) {
                code.keep_user();
            }
            code.entry(switch)
        })
    }
}
