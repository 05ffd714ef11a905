//! The call of a function in place of a body, and what runs after it.

use super::mode_switch::ModeSwitch;
use super::{Code, RSP};
use core::ops::Range;

/// Bytes of [`Code::call`].
pub(super) const CALL_BYTES: u64 = 5;

impl Code<'_> {
    /// call rel32. Programs are below the arena, so within its reach.
    pub(super) fn call(&mut self, target: u64) -> Range<u64> {
        let displacement = self.displacement(target, CALL_BYTES as usize);
        let start = self.put(&[0xe8]).start;
        self.put(&displacement);
        start..self.address()
    }

    /// The teardown code, with the stack as it was at the start of init. Returns where it lies, and where it lands.
    pub(super) fn teardown(
        &mut self,
        switch: Option<ModeSwitch>,
        code: &[u8],
    ) -> (Range<u64>, Option<u64>) {
        let entry = switch.map(|switch| self.prepare(switch));
        self.load_constant(RSP, self.place.pointers[0]);
        if let Some(entry) = entry {
            self.enter(entry);
        }
        let teardown = self.put(code);
        (teardown, switch.map(|switch| self.land(switch, 2)))
    }
}
