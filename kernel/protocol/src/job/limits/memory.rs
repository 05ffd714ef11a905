//! Bounds of the memory that a job asks for.

use super::*;
use crate::job::memory::{Fill, GUARD_BYTES, HIGH, LOW, Memory};
use alloc::string::ToString;
use alloc::vec::Vec;

/// Pieces of memory of all items together.
pub const MAX_MEMORIES: usize = 1_000;
/// Pieces of memory of one item.
pub const MAX_ITEM_MEMORIES: usize = 16;
/// Bytes of one piece of memory: half of what the addresses above 4 GiB have room for.
pub const MAX_MEMORY_BYTES: u64 = 1 << 38;
/// Longest name of a piece of memory: it becomes part of a symbol's.
pub const MAX_MEMORY_NAME: usize = 64;
/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// Bytes of all files that memory is filled with: they go along with the job, and the boot loader reads them.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// Bytes of a pointer.
const POINTER: u32 = 8;

/// Checks the memory of all items.
pub(super) fn check_memories(job: &Job) -> Result<(), LimitError> {
    let all = &job.memory;
    range("the number of pieces of memory", all.len() as u64, 0, MAX_MEMORIES as u64)?;
    let mut of_items = Vec::new();
    let mut files = 0u64;
    for (piece, number) in all.iter().zip(0usize..) {
        let wrong =
            |error| LimitError::Memory { name: piece.name.to_string(), error: error_box(error) };
        check_memory(piece).map_err(wrong)?;
        if let Fill::Bytes(bytes) = &piece.fill {
            files += bytes.len() as u64;
        }
        let ascend = piece.items.is_sorted_by(|one, next| one < next);
        let last = piece.items.last().map_or(0, |&last| u64::from(last) + 1);
        if !ascend || last > job.items.len() as u64 {
            return Err(wrong(LimitError::MemoryPlace(
                "it names items that the job does not have",
            )));
        }
        of_items.extend(piece.items.iter().map(|&item| (item, number)));
    }
    range("bytes of files in memory", files, 0, MAX_FILE_BYTES)?;
    of_items.sort_unstable();
    of_items.chunk_by(|one, other| one.0 == other.0).try_for_each(|group| {
        let pieces: Vec<&Memory> = group.iter().map(|&(_, number)| &all[number]).collect();
        check_together(&job.items[group[0].0 as usize], &pieces)
    })
}

fn error_box(error: LimitError) -> alloc::boxed::Box<LimitError> {
    alloc::boxed::Box::new(error)
}

fn check_memory(piece: &Memory) -> Result<(), LimitError> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if piece.name.is_empty() || !piece.name.bytes().all(word) {
        return Err(LimitError::MemoryName);
    }
    length("the name", piece.name.len(), MAX_MEMORY_NAME)?;
    range("size", piece.bytes, 1, MAX_MEMORY_BYTES)?;
    let mapped = piece.mapped();
    let inside = |range: &core::ops::Range<u64>| {
        let (first, last) = (range.start + GUARD_BYTES, range.end - GUARD_BYTES);
        first <= mapped.start && mapped.end <= last
    };
    let align = piece.page_size.bytes().max(GUARD_BYTES);
    if !piece.at.is_multiple_of(align) || !(inside(&LOW) || inside(&HIGH)) {
        return Err(LimitError::MemoryPlace("its address is not one that memory can have"));
    }
    match &piece.fill {
        Fill::Zero => Ok(()),
        Fill::Pattern(bytes) => {
            range("bytes of the pattern", bytes.len() as u64, 1, MAX_PATTERN_BYTES as u64)
        }
        Fill::Bytes(bytes) => range("bytes of the file", bytes.len() as u64, 0, piece.bytes),
        Fill::Chase(chase) => {
            let most = piece.bytes.min(u64::from(u32::MAX));
            range("stride", chase.stride.into(), POINTER.into(), most)?;
            if chase.stride.is_multiple_of(POINTER) {
                return Ok(());
            }
            Err(LimitError::Stride(chase.stride))
        }
    }
}

/// Checks the memory of one item: `pieces` are all that it has.
fn check_together(item: &Item, pieces: &[&Memory]) -> Result<(), LimitError> {
    let most = MAX_ITEM_MEMORIES as u64;
    range("the number of pieces of memory of one item", pieces.len() as u64, 0, most)?;
    let compatibility = item.has_compatibility();
    for (index, piece) in pieces.iter().enumerate() {
        let wrong =
            |error| LimitError::Memory { name: piece.name.to_string(), error: error_box(error) };
        let has_code = item.part().snippet().is_some() || item.part().workload().is_some();
        if !has_code && !matches!(item, Item::Facts(_)) {
            return Err(wrong(LimitError::MemoryPlace(
                "the conformance suite does not use memory",
            )));
        }
        let mapped = piece.mapped();
        if compatibility && mapped.end > u64::from(u32::MAX) {
            let reason = "it lies above 4 GiB, out of reach: up to 252 MiB in all, in pages of 4 KiB or 2 MiB, lie below";
            return Err(wrong(LimitError::Compatibility(reason)));
        }
        for other in &pieces[..index] {
            if other.name == piece.name {
                return Err(wrong(LimitError::MemoryTwice));
            }
            let theirs = other.mapped();
            if mapped.start < theirs.end + GUARD_BYTES && theirs.start < mapped.end + GUARD_BYTES {
                return Err(wrong(LimitError::MemoryPlace("it is too close to another one")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use crate::job::control::PageSize;
    use crate::job::memory::tests::piece;
    use crate::job::memory::{Chase, Order};
    use crate::job::tests::snippet;
    use alloc::borrow::Cow;

    const AT: u64 = LOW.start + GUARD_BYTES;

    fn job(memory: Vec<Memory<'static>>) -> Job<'static> {
        Job {
            name: Cow::Borrowed("j"),
            baud: MAX_BAUD,
            on_end: crate::job::OnEnd::Halt,
            exit_port: None,
            self_test: None,
            requires: Vec::new(),
            items: alloc::vec![Item::Snippet(snippet("s", &[0x90]))],
            criteria: Vec::new(),
            memory,
        }
    }

    fn said(change: impl FnOnce(&mut Memory)) -> Option<alloc::string::String> {
        let mut one = piece("list", AT, 1 << 20);
        change(&mut one);
        check_job(&job(alloc::vec![one])).err().map(|error| error.to_string())
    }

    #[test]
    fn n5_each_bound_of_memory_is_told_with_its_name() {
        assert_eq!(said(|_| ()), None);
        let chase = |stride| Fill::Chase(Chase { stride, order: Order::Random, seed: 0 });
        type Case = (fn(&mut Memory), &'static str);
        let cases: [Case; 7] = [
            (|m| m.bytes = 0, "memory `list`: size is 0; it must be 1 to 274877906944"),
            (|m| m.at += 4096, "memory `list`: its address is not one that memory can have"),
            (
                |m| m.at = 0xffff_8000_0000_0000,
                "memory `list`: its address is not one that memory can have",
            ),
            (|m| m.name = "a b".into(), "memory `a b`: its name may have letters, digits and _"),
            (
                |m| m.page_size = PageSize::Giant,
                "memory `list`: its address is not one that memory can have",
            ),
            (
                |m| m.items = alloc::vec![1],
                "memory `list`: it names items that the job does not have",
            ),
            (
                |m| m.fill = Fill::Bytes(alloc::vec![0; (1 << 20) + 1].into()),
                "memory `list`: bytes of the file is 1048577; it must be 0 to 1048576",
            ),
        ];
        for (change, wanted) in cases {
            assert_eq!(said(change).as_deref(), Some(wanted));
        }
        assert_eq!(said(|m| m.fill = chase(8)), None);
        for (stride, wanted) in [
            (0, "stride is 0; it must be 8 to 1048576"),
            (12, "stride is 12; it must be a multiple of 8, the bytes of a pointer"),
            (1 << 21, "stride is 2097152; it must be 8 to 1048576"),
        ] {
            assert_eq!(
                said(|m| m.fill = chase(stride)),
                Some(alloc::format!("memory `list`: {wanted}"))
            );
        }
    }

    #[test]
    fn n5_memory_of_one_item_has_names_and_places_of_its_own() {
        let two =
            |name, at| check_job(&job(alloc::vec![piece("one", AT, 4096), piece(name, at, 4096)]));
        assert_eq!(two("two", AT + 2 * GUARD_BYTES), Ok(()));
        let twice = two("one", AT + 2 * GUARD_BYTES).unwrap_err();
        assert_eq!(twice.to_string(), "memory `one`: the item has another one with this name");
        // One guard lies between them, whichever comes first in the job.
        let both = |first, second, bytes| {
            let (one, other) = (piece("one", first, bytes), piece("two", second, bytes));
            check_job(&job(alloc::vec![one, other])).is_ok()
        };
        for (first, second) in [(AT, AT + 2 * GUARD_BYTES), (AT + 2 * GUARD_BYTES, AT)] {
            assert!(both(first, second, GUARD_BYTES));
            assert!(!both(first, second, GUARD_BYTES + 1));
        }
        let near = two("two", AT).unwrap_err();
        assert_eq!(near.to_string(), "memory `two`: it is too close to another one");
        let many = (0..17).map(|i| piece(["a", "b"][i % 2], AT, 1)).collect();
        assert!(
            check_job(&job(many)).unwrap_err().to_string().contains("is 17; it must be 0 to 16")
        );
    }

    #[test]
    fn n5_memory_leaves_a_guard_at_both_ends_of_where_it_may_lie() {
        for range in [LOW, HIGH] {
            let fits = |at| check_job(&job(alloc::vec![piece("m", at, GUARD_BYTES)])).is_ok();
            assert!(fits(range.start + GUARD_BYTES) && fits(range.end - 2 * GUARD_BYTES));
            assert!(!fits(range.start) && !fits(range.end - GUARD_BYTES));
        }
    }

    #[test]
    fn t6_n5_memory_out_of_reach_of_32_bit_code_is_refused() {
        let mut compatibility = snippet("s", &[0x90]);
        compatibility.setup.bits = Bits::Compatibility;
        let check = |at| {
            let memory = alloc::vec![piece("list", at, 4096)];
            check_job(&Job {
                items: alloc::vec![Item::Snippet(compatibility.clone())],
                ..job(memory)
            })
        };
        assert_eq!(check(AT), Ok(()));
        let error = check(HIGH.start + GUARD_BYTES).unwrap_err().to_string();
        assert!(error.starts_with("memory `list`: bits = 32: it lies above 4 GiB"), "{error}");
        let above = alloc::vec![piece("list", HIGH.start + GUARD_BYTES, 4096)];
        assert_eq!(check_job(&job(above.clone())), Ok(()));
        // Tasks have widths of their own.
        let tasks = |bits| {
            use crate::job::LoopCounter::Memory as Counter;
            let one = crate::job::workload::tests::task("t", None);
            let tasks =
                alloc::vec![crate::job::workload::Task { bits, loop_counter: Counter, ..one }];
            let workload = crate::job::workload::Workload { tasks, tick_ns: 0, jitter: None };
            let items = crate::job::workload::Tasks {
                name: "n".into(),
                workload,
                limit_us: 1,
                energy: Vec::new(),
                uncore: Vec::new(),
            };
            check_job(&Job { items: alloc::vec![Item::Tasks(items)], ..job(above.clone()) })
        };
        assert_eq!(
            (tasks(Bits::SixtyFour).is_ok(), tasks(Bits::Compatibility).is_ok()),
            (true, false)
        );
    }
}
