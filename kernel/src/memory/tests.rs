//! What memory is filled with.

use super::*;
use proptest::prelude::*;
use protocol::job::control::{MemoryType, PageSize};
use std::borrow::Cow;

fn memory(bytes: u64, fill: Fill<'static>) -> Memory<'static> {
    Memory {
        name: Cow::Borrowed("m"),
        at: 0x7020_0000,
        bytes,
        page_size: PageSize::Small,
        memory_type: MemoryType::WriteBack,
        fill,
        items: vec![0],
    }
}

/// Whole pages that held something else, filled.
fn filled(memory: &Memory) -> Vec<u64> {
    let mapped = memory.mapped();
    let mut words = vec![!0; (mapped.end - mapped.start) as usize / WORD];
    fill(&mut words, memory, &mut |_| ());
    words
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The elements in the order of the chase, from the first one back to it.
fn followed(words: &[u64], memory: &Memory, stride: u64) -> Vec<u64> {
    let (mut at, mut seen) = (memory.at, Vec::new());
    loop {
        assert_eq!((at - memory.at) % stride, 0);
        seen.push((at - memory.at) / stride);
        at = words[((at - memory.at) / 8) as usize];
        if at == memory.at || seen.len() as u64 > memory.bytes {
            return seen;
        }
    }
}

#[test]
fn n5_zeros_patterns_and_files_end_where_they_should() {
    assert_eq!(filled(&memory(1, Fill::Zero)), [0; 512]);
    let pattern = Fill::Pattern(vec![1, 2, 3].into());
    let found = bytes(&filled(&memory(4097, pattern)));
    let wanted: Vec<u8> = [1, 2, 3].into_iter().cycle().take(4097).collect();
    assert_eq!(found[..4097], wanted);
    assert_eq!(found[4097..], [0; 4095]);
    let file = Fill::Bytes((0..=255).collect::<Vec<u8>>().into());
    let found = bytes(&filled(&memory(300, file)));
    assert_eq!(found[..256], (0..=255).collect::<Vec<u8>>());
    assert_eq!(found[256..], [0; 4096 - 256]);
    assert_eq!(filled(&memory(8, Fill::Bytes(vec![].into()))), [0; 512]);
}

#[test]
fn n5_a_chase_goes_forward_backward_or_as_its_seed_says() {
    let order = |order, seed| {
        let chase = Chase { stride: 16, order, seed };
        let memory = memory(80 + 15, Fill::Chase(chase));
        followed(&filled(&memory), &memory, 16)
    };
    assert_eq!(order(Order::Forward, 0), [0, 1, 2, 3, 4]);
    assert_eq!(order(Order::Backward, 0), [0, 4, 3, 2, 1]);
    assert_eq!(order(Order::Random, 1), order(Order::Random, 1));
    let different: std::collections::BTreeSet<_> =
        (0..200).map(|seed| order(Order::Random, seed)).collect();
    // All 24 cycles of five elements.
    assert_eq!(different.len(), 24);
}

#[test]
fn n5_progress_is_told_once_a_mebibyte() {
    let mut told = Vec::new();
    let memory = memory(3 << 20, Fill::Zero);
    fill(&mut vec![1; 3 << 17], &memory, &mut |bytes| told.push(bytes));
    assert_eq!(told, [0, 1 << 20, 2 << 20]);
}

#[test]
fn n5_the_report_says_place_pages_and_fill() {
    let chase = Chase { stride: 64, order: Order::Random, seed: 7 };
    let memory = memory(64 << 20, Fill::Chase(chase));
    assert_eq!(
        note(&memory),
        "67108864 bytes at 0x70200000, pages of 4 KiB: 16384; \
         a chase of 1048576 elements 64 bytes apart, in the random order of seed 7"
    );
}

proptest! {
    #[test]
    fn n5_a_chase_is_one_cycle_through_all_elements(
        words in 1u64..2000, stride in 1u32..40, seed: u64, which in 0usize..3,
    ) {
        let order = [Order::Random, Order::Forward, Order::Backward][which];
        let stride = 8 * stride;
        let bytes = 8 * words + u64::from(stride) - 1;
        let memory = memory(bytes, Fill::Chase(Chase { stride, order, seed }));
        let found = filled(&memory);
        let mut seen = followed(&found, &memory, stride.into());
        prop_assert_eq!(seen.len() as u64, bytes / u64::from(stride));
        seen.sort_unstable();
        prop_assert!((0..).zip(&seen).all(|(index, element)| index == *element));
        let pointers = found.iter().filter(|word| **word != 0).count();
        prop_assert_eq!(pointers, seen.len(), "nothing stands between the elements");
    }

    #[test]
    fn n5_any_pattern_is_repeated(
        pattern in prop::collection::vec(any::<u8>(), 1..50), length in 1u64..9000,
    ) {
        let memory = memory(length, Fill::Pattern(pattern.clone().into()));
        let found = bytes(&filled(&memory));
        let wanted: Vec<u8> = pattern.into_iter().cycle().take(length as usize).collect();
        prop_assert_eq!(&found[..length as usize], &wanted[..]);
        prop_assert!(found[length as usize..].iter().all(|byte| *byte == 0));
    }
}
