//! The lines that a repeated string instruction touches.

use super::cache::LINE_BYTES;

/// The elements at one of its two operands. A run touches a line when an element is in it and the element before did
/// not, so in either direction each line counts once.
///
/// Whoever sees the instruction gives every element that is done, in order: the source's before the destination's. The
/// run begins again with each instruction, and when one that was interrupted continues after an event's delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringRun {
    /// The lines of the last element, first and last.
    last: Option<(u64, u64)>,
}

/// A part of an element that is in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePart {
    /// Linear address of its first byte.
    pub linear: u64,
    /// Bytes.
    pub bytes: u32,
}

impl StringRun {
    /// A run in which no element is done.
    pub const NEW: Self = Self { last: None };

    /// An element is done: what it touches that the one before did not, one piece for each line.
    #[inline]
    pub fn element(&mut self, linear: u64, bytes: u32) -> impl Iterator<Item = LinePart> + use<> {
        let end = linear.wrapping_add(u64::from(bytes.max(1)) - 1);
        let (first, last) = (linear / LINE_BYTES, end / LINE_BYTES);
        let before = self.last.replace((first, last));
        let is_new = move |line: u64| before.is_none_or(|(from, to)| line != from && line != to);
        let head = LinePart { linear, bytes: if first == last { bytes } else { rest(linear) } };
        let start = last * LINE_BYTES;
        let tail = LinePart { linear: start, bytes: (end - start + 1) as u32 };
        let head = is_new(first).then_some(head);
        let tail = (first != last && is_new(last)).then_some(tail);
        head.into_iter().chain(tail)
    }

    /// Whether an element touches nothing that the one before did not, and leaves this as it is: [`StringRun::element`] may then
    /// be left out.
    #[inline]
    #[must_use]
    pub const fn is_quiet(&self, linear: u64, bytes: u32) -> bool {
        let line = linear / LINE_BYTES;
        let end = linear.wrapping_add(bytes as u64 - 1) / LINE_BYTES;
        matches!(self.last, Some((first, last)) if first == line && last == line && end == line)
    }

    /// How many elements after the last one, which began at `linear`, touch nothing new; `backward` says in which
    /// direction the next one lies. Leaving out so many, or fewer, changes nothing if [`StringRun::leave_out`] says so.
    #[must_use]
    pub const fn quiet(linear: u64, bytes: u32, backward: bool) -> u64 {
        let bytes = bytes as u64;
        if backward {
            linear % LINE_BYTES / bytes
        } else {
            (LINE_BYTES - 1 - linear.wrapping_add(bytes - 1) % LINE_BYTES) / bytes
        }
    }

    /// The elements up to that at `linear` were done, and were quiet.
    pub const fn leave_out(&mut self, linear: u64) {
        self.last = Some((linear / LINE_BYTES, linear / LINE_BYTES));
    }
}

/// Bytes from an address to the end of its line.
const fn rest(linear: u64) -> u32 {
    (LINE_BYTES - linear % LINE_BYTES) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(elements: impl IntoIterator<Item = u64>, bytes: u32) -> Vec<(u64, u32)> {
        let mut run = StringRun::NEW;
        let all = elements.into_iter().flat_map(|at| run.element(at, bytes).collect::<Vec<_>>());
        all.map(|piece| (piece.linear, piece.bytes)).collect()
    }

    #[test]
    fn a_line_is_touched_once_in_either_direction() {
        let up = |from: u64, count: u64| (0..count).map(move |n| from + 8 * n);
        assert_eq!(pieces(up(0x1000, 16), 8), [(0x1000, 8), (0x1040, 8)]);
        let down: Vec<u64> = up(0x1000, 16).rev().collect();
        assert_eq!(pieces(down, 8), [(0x1078, 8), (0x1038, 8)]);
    }

    #[test]
    fn an_element_across_two_lines_touches_what_is_new() {
        let up = |from: u64, count: u64| (0..count).map(move |n| from + 8 * n);
        assert_eq!(pieces(up(0x1004, 9), 8), [(0x1004, 8), (0x1040, 4)]);
        let down: Vec<u64> = up(0x1004, 9).rev().collect();
        assert_eq!(pieces(down, 8), [(0x1044, 8), (0x103c, 4)]);
        assert_eq!(pieces([0x103c], 8), [(0x103c, 4), (0x1040, 4)]);
    }

    #[test]
    fn a_run_that_begins_anew_touches_its_line_again() {
        assert_eq!(pieces([0x1000], 1), [(0x1000, 1)]);
        let mut run = StringRun::NEW;
        assert_eq!(run.element(0x1000, 1).count(), 1);
        assert_eq!(run.element(0x1001, 1).count(), 0);
        run = StringRun::NEW;
        assert_eq!(run.element(0x1002, 1).count(), 1);
    }

    proptest! {
        #[test]
        fn an_element_that_is_quiet_changes_nothing(
            before in proptest::option::of(0u64..0x200),
            at in 0u64..0x200,
            size in prop::sample::select(&[1u32, 2, 4, 8][..]),
        ) {
            let mut run = StringRun::NEW;
            before.into_iter().for_each(|before| drop(run.element(before, size)));
            let (old, quiet) = (run, run.is_quiet(at, size));
            let touches = run.element(at, size).count();
            if quiet {
                prop_assert_eq!((touches, run), (0, old));
            } else if at % 64 + u64::from(size) <= 64 {
                // One that crosses a line is never quiet.
                prop_assert!(touches > 0 || run != old);
            }
        }

        #[test]
        fn leaving_out_quiet_elements_changes_nothing(
            start in 0x1000u64..0x1100,
            size in prop::sample::select(&[1u32, 2, 4, 8][..]),
            count in 1u64..300,
            backward in any::<bool>(),
        ) {
            let at = |n: u64| {
                let distance = n * u64::from(size);
                if backward { 0x10_0000 + start - distance } else { start + distance }
            };
            let all = pieces((0..count).map(at), size);
            let (mut run, mut n, mut seen) = (StringRun::NEW, 0, Vec::new());
            while n < count {
                seen.extend(run.element(at(n), size).map(|piece| (piece.linear, piece.bytes)));
                let quiet = StringRun::quiet(at(n), size, backward).min(count - n - 1);
                if quiet > 0 {
                    run.leave_out(at(n + quiet));
                }
                n += 1 + quiet;
            }
            prop_assert_eq!(seen, all);
        }
    }
}
