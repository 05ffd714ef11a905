//! The bounds themselves, as the guide and the messages have them. The tests beside this one use their names, and would
//! not notice another figure after one.

use super::*;
use crate::job::memory::GUARD_BYTES;
use crate::job::workload::MAX_TASK_CODE_BYTES;
use crate::{digest, marker, program, stream};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

#[test]
fn bounds_in_bytes_are_those_of_the_guide() {
    for (seen, figure) in [
        (MAX_CODE_BYTES as u64, MIB),
        (CODE_AREA_BYTES, 16 * MIB),
        (MAX_TASK_CODE_BYTES as u64, 192 * KIB),
        (MAX_MEMORY_BYTES, 256 * KIB * MIB),
        (MAX_FILE_BYTES, 64 * MIB),
        (GUARD_BYTES, 2 * MIB),
        (program::STACK_BYTES, MIB),
        (program::MESSAGE_BYTES, 520),
        (digest::MAX_BYTES as u64, MIB),
        (stream::MAX_LINE_BYTES as u64, MIB),
    ] {
        assert_eq!(seen, figure);
    }
    assert_eq!((MAX_SAMPLES, MAX_SAMPLES_WITH_REGISTERS), (524_288, 65_536));
}

/// Eight times three MOVs of an imm32 (5 bytes each) and WRMSR (2), six MOVs to and from memory (7), LFENCE (3), JMP (5).
#[test]
fn a_markers_code_has_room_for_its_longest_form() {
    assert_eq!(marker::STUB_BYTES, 186);
}
