//! The pieces, counted by hand once more.

use super::*;
use crate::vectors::USER_VECTOR;

fn bytes<const N: usize>(address: u64) -> [u8; N] {
    // SAFETY: the pieces are code of this program, which can be read, and followed by more of it.
    unsafe { core::ptr::read(address as *const [u8; N]) }
}

/// Three turns, counted in the listing above.
#[test]
fn c6_what_three_turns_of_each_piece_are() {
    for (piece, [instructions, branches, taken, conditional]) in [
        (Ring0Code::Empty, [1, 1, 1, 0]),
        (Ring0Code::Loop, [7, 4, 3, 3]),
        (Ring0Code::NotTaken, [13, 7, 3, 6]),
        (Ring0Code::Calls, [13, 10, 9, 3]),
        (Ring0Code::Unpredictable, [28, 7, 6, 6]),
        (Ring0Code::ColdLoads, [19, 4, 3, 3]),
        (Ring0Code::Straight, [513, 1, 1, 0]),
        (Ring0Code::Rewrite, [11, 4, 3, 3]),
    ] {
        let expected = Counts { instructions, branches, taken, conditional };
        assert_eq!(piece.counts(3), expected, "{piece:?}");
        let twice = expected.and(expected);
        let seen = [twice.instructions, twice.branches, twice.taken, twice.conditional];
        assert_eq!(seen, [instructions, branches, taken, conditional].map(|count| 2 * count));
    }
    assert_eq!(Ring0Code::after_rewrite(3), 7);
    for (piece, instructions, interrupts) in [
        (Ring3Code::Loop, 6, 1),
        (Ring3Code::Interrupts, 6, 4),
        (Ring3Code::Faults, 7, 1),
        (Ring3Code::Rdpmc, 4, 1),
        (Ring3Code::Rdtsc, 3, 1),
        (Ring3Code::SystemCalls, 6, 1),
    ] {
        assert_eq!((piece.instructions(3), piece.interrupts(3)), (instructions, interrupts));
    }
}

#[test]
fn c6_the_addresses_are_those_of_the_instructions() {
    let sites = calls_sites();
    assert_eq!(sites.call, Ring0Code::Calls.address());
    assert_eq!(bytes(sites.call), [0xe8], "CALL");
    assert_eq!(bytes(sites.after), [0x48, 0xff, 0xcf], "DEC RDI");
    assert_eq!(bytes(sites.jump), [0x75], "JNZ");
    assert_eq!((bytes(sites.piece_return), bytes(sites.leaf)), ([0xc3], [0xc3]), "RET");
    assert_eq!((sites.jump, sites.leaf), (sites.after + 3, sites.piece_return + 1));
    let end = Ring0Code::Straight.address() + STRAIGHT_INSTRUCTIONS;
    assert_eq!(bytes(end - 1), [0x90, 0xc3], "the last NOP, and RET");
}

#[test]
fn c6_the_pieces_of_ring_3_begin_at_their_offsets() {
    let code = user_code();
    for (piece, begin) in [
        (Ring3Code::Loop, &[0x49, 0xff, 0xc9, 0x75][..]),
        (Ring3Code::Interrupts, &[0xcd, USER_VECTOR]),
        (Ring3Code::Faults, &[0x45, 0x31, 0xc0]),
        (Ring3Code::Rdpmc, &[0x44, 0x89, 0xc9, 0x0f, 0x33]),
        (Ring3Code::Rdtsc, &[0x0f, 0x31]),
        (Ring3Code::SystemCalls, &[0x0f, 0x05]),
    ] {
        assert!(code[piece.offset() as usize..].starts_with(begin), "{piece:?}");
    }
    // SYSCALL, DEC, JNZ, INT 0x88: the end.
    assert_eq!(code[code.len() - 2..], [0xcd, 0x88]);
    // MOV RAX, [R8 + disp32].
    assert_eq!(fault_bytes(), 7);
}
