//! The call of a function in place of a body, and what runs behind it.

use super::stay::Stay;
use super::{Code, RSP};
use core::ops::Range;

/// Bytes of [`Code::call`].
pub(super) const CALL_BYTES: u64 = 5;

impl Code<'_> {
    /// call rel32. Programs lie below the arena, so within its reach.
    pub(super) fn call(&mut self, target: u64) -> Range<u64> {
        let displacement = self.displacement(target, CALL_BYTES as usize);
        let start = self.put(&[0xe8]).start;
        self.put(&displacement);
        start..self.address()
    }

    /// The teardown code, with the stack as it was at the start of init. Returns where it lies, and where it lands.
    pub(super) fn teardown(
        &mut self,
        stay: Option<Stay>,
        code: &[u8],
    ) -> (Range<u64>, Option<u64>) {
        let entry = stay.map(|stay| self.prepare(stay));
        self.load_constant(RSP, self.place.pointers[0]);
        if let Some(entry) = entry {
            self.enter(entry);
        }
        let teardown = self.put(code);
        (teardown, stay.map(|stay| self.land(stay, 2)))
    }
}
