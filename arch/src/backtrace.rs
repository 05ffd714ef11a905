//! Return addresses by the chain of frame pointers.
//!
//! The firmware is compiled with frame pointers: RBP points to the caller's RBP, with the return address
//! above. Every step is checked against the stack's bounds, because this runs after something broke.

use core::ops::Range;

/// Most return addresses in a trace.
pub const MAX_FRAMES: usize = 32;

/// Walks up from `rbp`, through frames that are in one of `stacks` and only towards higher addresses.
/// `read` reads a word of the stack; addresses outside `code` end the walk.
pub fn walk(
    mut rbp: u64,
    stacks: &[Range<u64>],
    code: &Range<u64>,
    mut read: impl FnMut(u64) -> u64,
    mut each: impl FnMut(u64),
) {
    for _ in 0..MAX_FRAMES {
        let whole = |stack: &&Range<u64>| stack.contains(&rbp) && stack.contains(&(rbp + 15));
        if !rbp.is_multiple_of(8) || !stacks.iter().any(|stack| whole(&stack)) {
            return;
        }
        let (next, address) = (read(rbp), read(rbp + 8));
        if !code.contains(&address) {
            return;
        }
        each(address);
        if next <= rbp {
            return;
        }
        rbp = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(memory: &[u64], rbp: u64) -> Vec<u64> {
        let stack = 0x1000..0x1000 + 8 * memory.len() as u64;
        let mut found = vec![];
        let read = |at: u64| memory[((at - 0x1000) / 8) as usize];
        walk(rbp, &[stack], &(0x8000..0x9000), read, |address| {
            found.push(address);
        });
        found
    }

    #[test]
    fn a_chain_is_followed_to_its_end() {
        // Frames at 0x1000, 0x1018, 0x1030; the last one's caller has no code address.
        let memory = [0x1018, 0x8001, 0, 0x1030, 0x8002, 0, 0, 0];
        assert_eq!(trace(&memory, 0x1000), [0x8001, 0x8002]);
    }

    #[test]
    fn a_broken_chain_ends_the_trace() {
        assert_eq!(trace(&[0x1000, 0x8001], 0x1000), [0x8001], "a frame that points to itself");
        assert_eq!(trace(&[0x1008, 0x8001], 0x1008), [], "a frame that leaves the stack");
        assert_eq!(trace(&[0, 0x8001], 0x1001), [], "an odd frame pointer");
    }

    proptest! {
        #[test]
        fn no_memory_makes_the_walk_leave_the_stack(
            memory in prop::collection::vec(0x0ff0u64..0x1200, 2..64), rbp in 0x0ff0u64..0x1200,
        ) {
            let mut memory = memory;
            memory.iter_mut().skip(1).step_by(2).for_each(|word| *word = 0x8000);
            prop_assert!(trace(&memory, rbp).len() <= MAX_FRAMES);
        }
    }
}
