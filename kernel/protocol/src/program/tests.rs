use super::*;
use proptest::prelude::*;

fn segment(address: u64, bytes: u64, memory: u64) -> Segment {
    Segment { address, bytes, memory, write: false, execute: true }
}

fn head() -> Head {
    let data = Segment { write: true, execute: false, ..segment(0x1000_1000, 3, 0x2000) };
    Head {
        segments: alloc::vec![segment(0x1000_0000, 5, 5), data],
        message: Some(0x1000_1008),
        ..Head::default()
    }
}

#[test]
fn a_program_comes_back_with_the_bytes_of_each_segment() {
    let bytes = pack(&head(), &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let program = Program::unpack(&bytes).unwrap();
    assert_eq!(program.head, head());
    let contents: Vec<&[u8]> = program.segments().map(|(_, bytes)| bytes).collect();
    assert_eq!(contents, [&[1, 2, 3, 4, 5][..], &[6, 7, 8]]);
}

#[test]
fn what_cannot_be_mapped_is_refused_by_its_reason() {
    let why = |segments: &[Segment]| {
        let head = Head { segments: segments.to_vec(), ..Head::default() };
        check(&head).unwrap_err().to_string()
    };
    let at = |address, memory| segment(address, 0, memory);
    let both = Segment { write: true, ..at(LINKED_AT, 1) };
    for (segments, expected) in [
        (&[][..], "0 segments"),
        (&[at(0x1000_0001, 1)], "does not begin at a page"),
        (&[at(0xf000, 1)], "outside"),
        (&[at(END, 1)], "outside"),
        (&[at(LINKED_AT, END - LINKED_AT + 1)], "outside"),
        (&[at(LINKED_AT, u64::MAX)], "outside"),
        (&[at(LINKED_AT, 0)], "or no bytes"),
        (&[segment(LINKED_AT, 2, 1)], "more bytes"),
        (&[both], "both writable and executable"),
        (&[at(LINKED_AT, 1), at(LINKED_AT, 1)], "shares a page"),
        (&[at(LINKED_AT, 4097), at(LINKED_AT + 4096, 1)], "shares a page"),
    ] {
        assert!(why(segments).contains(expected), "{}", why(segments));
    }
    // The last address, and as many segments as there may be.
    let fits = |segments: Vec<Segment>| check(&Head { segments, ..Head::default() });
    assert_eq!(fits(alloc::vec![at(LINKED_AT, END - LINKED_AT)]), Ok(()));
    let pages = |count: u64| (0..count).map(|n| at(LINKED_AT + n * PAGE, PAGE)).collect();
    assert_eq!(fits(pages(MAX_SEGMENTS as u64)), Ok(()));
    let over = MAX_SEGMENTS + 1;
    assert_eq!(fits(pages(over as u64)), Err(ProgramError::Segments(over)));
    for message in [0, LINKED_AT, 0x1000_1000 + 0x2000 - MESSAGE_BYTES + 1] {
        let head = Head { message: Some(message), ..head() };
        assert_eq!(check(&head), Err(ProgramError::Message(message)));
    }
}

proptest! {
    #[test]
    fn any_flipped_bit_and_any_cut_is_noticed(at: prop::sample::Index, bit in 0u8..8) {
        let good = pack(&head(), &[9; 8]).unwrap();
        let at = at.index(good.len());
        let mut bad = good.clone();
        bad[at] ^= 1 << bit;
        prop_assert!(Program::unpack(&bad).is_err());
        prop_assert!(Program::unpack(&good[..at]).is_err());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut framed = alloc::vec![0; 8];
        framed.extend_from_slice(&bytes);
        let _ = Program::unpack(&framed);
        let sum = sum(&bytes);
        framed[..8].copy_from_slice(&sum.to_le_bytes());
        let _ = Program::unpack(&framed);
    }
}

/// 1 MiB; a length of eight bytes, and 512 bytes of text.
#[test]
fn a_program_has_a_stack_of_1_mib_and_520_bytes_of_message() {
    assert_eq!((STACK_BYTES, MESSAGE_BYTES), (1_048_576, 520));
}
