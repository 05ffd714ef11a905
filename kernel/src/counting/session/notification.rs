//! What a session tells.

use alloc::vec::Vec;

/// Most notifications that wait; what comes on top is counted as dropped.
const MOST: usize = 256;

/// What happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occasion {
    /// A request overflowed; the number counts its overflows since it last got a counter.
    Overflow {
        /// The request.
        request: usize,
        /// Which overflow, from 1.
        number: u64,
    },
    /// Every group has had its turn; the number counts such passes from 1.
    Pass(u64),
    /// The last pass is over, or the set was terminated.
    End,
}

/// One of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Notification {
    /// What has happened to the set.
    pub occasion: Occasion,
    /// When: the TSC.
    pub tsc: u64,
}

/// Those that wait.
#[derive(Clone, Debug)]
pub(super) struct Notifications {
    waiting: Vec<Notification>,
    dropped: u64,
}

impl Notifications {
    pub fn new() -> Self {
        Self { waiting: Vec::with_capacity(MOST), dropped: 0 }
    }

    pub fn push(&mut self, occasion: Occasion, tsc: u64) {
        if self.waiting.len() < MOST {
            self.waiting.push(Notification { occasion, tsc });
        } else {
            self.dropped += 1;
        }
    }
}

impl super::Session {
    /// Hands over what has been notified since the last call, oldest first, and how many there was no room for.
    pub fn take_notifications(&mut self, mut take: impl FnMut(Notification)) -> u64 {
        self.notifications.waiting.drain(..).for_each(&mut take);
        core::mem::take(&mut self.notifications.dropped)
    }
}
