//! Fetches of code, by lines, the direct jumps at which fetching goes on elsewhere, and what the front end delivers.
//!
//! A line is named by where it lies in QEMU's memory: a page of the guest has one place there, and lines that lie some bytes apart in
//! the guest's contiguous memory do so there as well.

use crate::running::running;
use core::ffi::c_void;

/// The lines that instructions fetch, by the index of the instruction: those of its bytes, but for one in which the instruction before it
/// ended. Of each its place and bytes; what has no place fetches nothing.
pub fn lines(places: &[(u64, u64)], line: u64) -> Vec<(usize, u64)> {
    let (mut all, mut last) = (Vec::new(), None);
    for (index, (at, bytes)) in places.iter().enumerate().filter(|(_, (at, _))| *at != 0) {
        for own in at / line..=(at + bytes.max(&1) - 1) / line {
            if last != Some(own) {
                all.push((index, own));
                last = Some(own);
            }
        }
    }
    all
}

/// An instruction begins that fetches a line.
pub extern "C" fn fetched(_: u32, line: *mut c_void) {
    let Some(vcpu) = running() else { return };
    if vcpu.traces {
        vcpu.core.fetch(line as u64, &mut vcpu.sums);
    }
}

/// An unconditional direct jump or call begins, which lies at this place in QEMU's memory.
pub extern "C" fn jumped(_: u32, place: *mut c_void) {
    let Some(vcpu) = running() else { return };
    if vcpu.traces {
        vcpu.core.jump(place as u64, &mut vcpu.sums);
    }
}

/// An instruction as a word, for [`delivered`]: where it lies in QEMU's memory, and its bytes, at most 15.
pub const fn instruction(place: u64, bytes: u64) -> u64 {
    place << 4 | bytes
}

/// The front end delivers an instruction, where it has a micro-op cache or a loop buffer.
pub extern "C" fn delivered(_: u32, instruction: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let (place, bytes) = (instruction as u64 >> 4, instruction as u64 & 15);
    vcpu.core.deliver(place, bytes, &mut vcpu.sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_each_line_of_a_block_is_fetched_when_its_first_instruction_begins() {
        let places = [(0x1038, 4), (0x103c, 3), (0x103f, 5), (0x1044, 15), (0x1080, 1), (0, 3)];
        assert_eq!(lines(&places, 64), [(0, 0x40), (2, 0x41), (4, 0x42)]);
        assert_eq!(lines(&places, 32), [(0, 0x81), (2, 0x82), (4, 0x84)]);
        // A jump's target may lie in a line in which the block has been before.
        assert_eq!(lines(&[(0x1000, 2), (0x2000, 2), (0x1004, 2)], 64).len(), 3);
        assert_eq!(lines(&[], 64), []);
    }
}
