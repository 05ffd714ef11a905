//! Places in a body where counting pauses and goes on.
//!
//! A marker is a NOP of eight bytes with a displacement that nobody uses, so that code with markers disassembles and
//! runs as it is, and jumps across them keep their distance. The firmware puts a jump to the gate's code in its place.

use alloc::vec::Vec;

/// What a marker stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Marker {
    /// The counters stop.
    Pause,
    /// They go on.
    Resume,
}

/// Bytes of a marker.
pub const MARKER_BYTES: usize = 8;
/// nop dword ptr [rax + rax + "BcPs"]
pub const PAUSE: [u8; MARKER_BYTES] = [0x0f, 0x1f, 0x84, 0x00, b'B', b'c', b'P', b's'];
/// nop dword ptr [rax + rax + "BcRs"]
pub const RESUME: [u8; MARKER_BYTES] = [0x0f, 0x1f, 0x84, 0x00, b'B', b'c', b'R', b's'];

/// Most bytes of the code that a marker jumps to: eight writes to model-specific registers of 17 bytes, six moves of 7
/// bytes around them, a fence and the jump back.
pub const STUB_BYTES: u64 = 8 * 17 + 6 * 7 + 3 + 5;

/// The markers in `code`, by their offsets.
#[must_use]
pub fn markers(code: &[u8]) -> Vec<(usize, Marker)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + MARKER_BYTES <= code.len() {
        let marker = match &code[at..at + MARKER_BYTES] {
            bytes if *bytes == PAUSE => Some(Marker::Pause),
            bytes if *bytes == RESUME => Some(Marker::Resume),
            _ => None,
        };
        found.extend(marker.map(|marker| (at, marker)));
        at += if marker.is_some() { MARKER_BYTES } else { 1 };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n1_markers_are_found_where_they_stand() {
        let code = [&[0x90, 0x0f][..], &PAUSE, &[0xf9], &RESUME, &RESUME[..7]].concat();
        assert_eq!(markers(&code), [(2, Marker::Pause), (11, Marker::Resume)]);
        assert_eq!(markers(&[]), []);
    }

    /// Eight writes of 17 bytes are 136, six moves of 7 are 42; LFENCE has three, a near JMP five.
    #[test]
    fn a_stub_has_186_bytes_at_most() {
        assert_eq!(STUB_BYTES, 186);
    }
}
