use super::*;
use iced_x86::Code;

fn of(bits: u32, bytes: &[u8]) -> Facts {
    let instruction = step::decode(bytes, 0x1ff8, bits).expect("it is valid");
    Facts::of(&mut InstructionInfoFactory::new(), &instruction)
}

#[test]
fn what_shows_that_an_instruction_is_done() {
    for (bytes, end) in [
        (&[0x48, 0xff, 0xc0][..], End::Always),
        (&[0x75, 0x10], End::Always),
        (&[0x48, 0x8b, 0x07], End::Load),
        (&[0xc3], End::Load),
        (&[0x0f, 0x10, 0x07], End::Load),
        (&[0x48, 0x01, 0x07], End::Store),
        (&[0xff, 0x37], End::Store),
        (&[0xe8, 0, 0, 0, 0], End::Store),
        (&[0x0f, 0xab, 0x07], End::Store),
        // A division and a load of a segment register fail after their load; QEMU splits the others.
        (&[0x48, 0xf7, 0x37], End::Unknown),
        (&[0x8e, 0x07], End::Unknown),
        (&[0x48, 0xcf], End::Unknown),
        (&[0xc5, 0xfc, 0x10, 0x07], End::Unknown),
        (&[0x0f, 0xae, 0x07], End::Unknown),
        (&[0xf3, 0xa4], End::Unknown),
        (&[0xa6], End::Unknown),
        (&[0xec], End::Unknown),
    ] {
        assert_eq!(of(64, bytes).end, end, "{bytes:x?}");
    }
}

#[test]
fn how_addresses_are_found() {
    for (bytes, shape) in [
        (&[0x48, 0xff, 0xc0][..], Shape::None),
        (&[0x48, 0x8b, 0x07], Shape::Single),
        (&[0x50], Shape::Single),
        (&[0xff, 0x37], Shape::Pair),
        (&[0xa4], Shape::Pair),
        // vmovups ymm0, [rdi]; fld tbyte [rdi].
        (&[0xc5, 0xfc, 0x10, 0x07], Shape::Spanning),
        (&[0xdb, 0x2f], Shape::Spanning),
        // div [rdi], fxsave [rdi].
        (&[0x48, 0xf7, 0x37], Shape::Deferred),
        (&[0x0f, 0xae, 0x07], Shape::Deferred),
        // vinserti128 ymm0, ymm0, [rdi], 1, and the same of floats.
        (&[0xc4, 0xe3, 0x7d, 0x38, 0x07, 0x01], Shape::Deferred),
        (&[0xc4, 0xe3, 0x7d, 0x18, 0x07, 0x01], Shape::Deferred),
        // cmpsb, iretq, clflush [rdi], invlpg [rdi], mov cr3, rax; vpgatherdd ymm0, [rdi + ymm1], ymm2.
        (&[0xa6], Shape::Registers),
        (&[0x48, 0xcf], Shape::Registers),
        (&[0x0f, 0xae, 0x3f], Shape::Registers),
        (&[0x0f, 0x01, 0x3f], Shape::Registers),
        (&[0x0f, 0x22, 0xd8], Shape::Registers),
        (&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x0f], Shape::Registers),
        (&[0xf3, 0xa4], Shape::None),
    ] {
        assert_eq!(of(64, bytes).shape, shape, "{bytes:x?}");
    }
}

#[test]
fn branches_have_offsets_and_a_direction() {
    // JNZ to itself, from 0x1ff8.
    let branch = of(64, &[0x75, 0xfe]).branch.expect("a branch");
    assert_eq!((branch.from, branch.next, branch.target), (0xff8, 0xffa, 0xff8));
    assert!(branch.backward && !branch.ambiguous);
    // Over a page: after it in another page.
    let branch = of(64, &[0x0f, 0x85, 0, 0x10, 0, 0]).branch.expect("a branch");
    assert!(branch.ambiguous && !branch.backward);
    assert!(!of(64, &[0x0f, 0x85, 0, 0, 0, 0]).branch.expect("a branch").ambiguous);
    // In 16-bit code the target wraps, and the linear address has the segment's base in it.
    let at = |linear: u64, bytes: &[u8]| {
        let instruction = step::decode(bytes, linear, 16).expect("it is valid");
        assert_eq!(instruction.code(), Code::Jne_rel8_16);
        Facts::of(&mut InstructionInfoFactory::new(), &instruction).branch.expect("a branch")
    };
    assert!(!at(0x5_1234, &[0x75, 0x10]).backward);
    assert!(at(0x5_1234, &[0x75, 0xf0]).backward);
}

#[test]
fn tallies_have_what_the_mode_asks_for() {
    let call = of(64, &[0xff, 0x17]);
    let entries = |mode| call.tally(mode, call.branch).entries().collect::<Vec<_>>();
    let (load, store) = (Occurrence::Load as usize, Occurrence::Store as usize);
    assert_eq!(entries(Mode::BRANCHES), [(Occurrence::IndirectCall as usize, 1)]);
    assert_eq!(entries(Mode::ACCESSES), [(load, 1), (store, 1)]);
    assert_eq!(entries(Mode::ACCESSES | Mode::MEMORY), [], "callbacks count them");
    assert_eq!(entries(Mode::INSTRUCTIONS), [(tally::INSTRUCTIONS, 1)]);
    let locked = of(64, &[0xf0, 0xff, 0x07]).tally(Mode::ACCESSES, None);
    let expected = [(Occurrence::LoadStore as usize, 1), (Occurrence::Locked as usize, 1)];
    assert_eq!(locked.entries().collect::<Vec<_>>(), expected);
    assert!(of(64, &[0xf3, 0xa4]).tally(Mode::INSTRUCTIONS, None).is_none());
}
