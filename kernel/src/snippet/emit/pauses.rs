//! The gate's code at markers in the body: each becomes a jump to code after the function, which jumps back. So the
//! bytes of the body keep their places, and its own jumps their distances.

use super::{Code, gate_open_bytes};
use arch::pmu::Gate;
use core::ops::Range;
use protocol::marker::{MARKER_BYTES, Marker, STUB_BYTES, markers};

impl Code<'_> {
    /// Connects the markers in all copies of `body`, which are at `copies`. Without a gate they stay NOPs.
    pub(super) fn pauses(&mut self, body: &[u8], copies: &Range<u64>, gate: &Gate) {
        let found = markers(body);
        if found.is_empty() || gate.on().is_empty() {
            return;
        }
        for copy in copies.clone().step_by(body.len()) {
            for &(offset, marker) in &found {
                self.pause(copy + offset as u64, marker, gate);
            }
        }
    }

    fn pause(&mut self, at: u64, marker: Marker, gate: &Gate) {
        let stub = self.address();
        match marker {
            Marker::Pause => self.close_kept(gate),
            Marker::Resume => self.open(gate),
        }
        self.jump(at + MARKER_BYTES as u64);
        debug_assert!(self.address() - stub <= STUB_BYTES);
        let end = core::mem::replace(&mut self.at, (at - self.place.code) as usize);
        self.jump(stub);
        self.put(&[0x90; MARKER_BYTES - JUMP_BYTES]);
        self.at = end;
    }

    /// jmp rel32
    fn jump(&mut self, target: u64) {
        let displacement = self.displacement(target, JUMP_BYTES);
        self.put(&[0xe9]);
        self.put(&displacement);
    }

    /// Closes the gate with all registers and flags preserved.
    fn close_kept(&mut self, gate: &Gate) {
        let before = self.at;
        self.kept(|code| code.writes(gate.off()));
        debug_assert!((self.at - before) as u64 <= gate_open_bytes(gate));
    }
}

const JUMP_BYTES: usize = 5;
