//! Leaving the measuring code's ring or width for init code and body, and coming back.
//!
//! Ring 3 is entered by IRETQ and left by INT (`user`); 32-bit code of ring 0 is entered and left by far jumps
//! (`narrow`). Either way init code and body are two stays, gate and timer lie in 64-bit code of ring 0 between them, and
//! the ways in and out are in both code sizes and cancel. 64-bit code of ring 0 needs nothing of this.

use super::{Code, narrow, user};
use protocol::bits::Bits;
use protocol::control::Ring;
use protocol::job::Setup;

/// How init code and body are entered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stay {
    /// Ring 3, as 32-bit code if so.
    User {
        /// 32-bit code.
        narrow: bool,
    },
    /// 32-bit code of ring 0.
    Narrow,
}

/// Where the address that a stay begins at has to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Place of an immediate operand of eight bytes.
    pub(super) at: usize,
    pub(super) stay: Stay,
}

impl Stay {
    /// That of a snippet; `None`: its code is as the measuring code.
    pub(super) fn of(setup: &Setup) -> Option<Self> {
        let narrow = setup.bits == Bits::Narrow;
        match setup.control.ring {
            Ring::User => Some(Self::User { narrow }),
            Ring::Kernel => narrow.then_some(Self::Narrow),
        }
    }

    /// Bytes of [`Code::enter`].
    pub(super) fn enter_bytes(self) -> u64 {
        match self {
            Self::User { .. } => user::ENTER_BYTES,
            Self::Narrow => narrow::ENTER_BYTES,
        }
    }
}

impl Code<'_> {
    /// Prepares the first stay. Overwrites RAX.
    pub(super) fn prepare(&mut self, stay: Stay) -> Entry {
        if let Stay::User { narrow } = stay {
            self.prepare_user(narrow);
        }
        self.entry(stay)
    }

    /// Begins the stay that continues behind this.
    pub(super) fn enter(&mut self, Entry { at, stay }: Entry) {
        let begin = self.address() + stay.enter_bytes();
        let target = match stay {
            Stay::User { .. } => begin,
            Stay::Narrow => narrow::target(begin),
        };
        self.memory[at..at + 8].copy_from_slice(&target.to_le_bytes());
        match stay {
            Stay::User { .. } => self.enter_user(),
            Stay::Narrow => self.enter_narrow(),
        }
        debug_assert_eq!(self.address(), begin);
    }

    /// Ends stay `index`; returns the address at which the measuring code goes on.
    pub(super) fn land(&mut self, stay: Stay, index: usize) -> u64 {
        match stay {
            Stay::User { .. } => self.leave_user(index),
            Stay::Narrow => self.leave_narrow(),
        }
        self.address()
    }

    /// Behind the first landing: prepares the second stay, with all registers as they are.
    pub(super) fn keep(&mut self, stay: Stay) -> Entry {
        self.keep_rax(|code| {
            if matches!(stay, Stay::User { .. }) {
                code.keep_user();
            }
            code.entry(stay)
        })
    }
}
