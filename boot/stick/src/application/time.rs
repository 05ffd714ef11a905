//! Waiting for a limited time.

use core::time::Duration;
use uefi::Event;
use uefi::boot::{self, EventType, TimerTrigger, Tpl};

/// A moment that comes.
pub struct Deadline(Event);

impl Deadline {
    /// After so long.
    pub fn after(time: Duration) -> uefi::Result<Self> {
        // SAFETY: no function is called for it.
        let event = unsafe { boot::create_event(EventType::TIMER, Tpl::APPLICATION, None, None) }?;
        let deadline = Self(event);
        boot::set_timer(&deadline.0, TimerTrigger::Relative(time))?;
        Ok(deadline)
    }

    /// Whether it has come. Says so once.
    pub fn is_over(&self) -> bool {
        boot::check_event(&self.0).unwrap_or(true)
    }

    /// What is signaled then.
    pub fn event(&self) -> &Event {
        &self.0
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        let _ = boot::close_event(unsafe { self.0.unsafe_clone() });
    }
}
