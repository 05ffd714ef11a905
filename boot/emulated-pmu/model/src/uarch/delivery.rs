//! What the front end delivers: the rules are those of [`front_end`](super::front_end).

use super::front_end::{FrontEndShape, MOST_LOOP};
use super::replacement::{Dice, Policy};
use super::store::Store;
use core::mem::replace;

/// Parts of a cycle, so that every rate up to 16 is a whole number of them: the least common multiple.
const PARTS: u32 = 720_720;

/// The front end of a logical processor.
#[derive(Clone, Debug)]
pub(super) struct FrontEnd {
    shape: FrontEndShape,
    issue: u16,
    cache: Option<Store>,
    /// Where the next instruction lies, if none jumps.
    next: u64,
    /// The line that is read or filled: its block, its instructions so far, and whether it was there.
    line: (u64, u16, bool),
    /// The last loop: where it starts, instructions of its last round, and of this one.
    start: u64,
    length: u16,
    count: u16,
    /// It comes from the loop buffer.
    is_looped: bool,
    /// Parts of a cycle that what came before has taken beyond whole ones.
    parts: u32,
}

impl FrontEnd {
    pub fn new(shape: FrontEndShape, issue: u8) -> Self {
        let sets = if shape.uops > 0 { u64::from(shape.sets()) } else { 0 };
        let cache = (sets > 0).then(|| Store::new(sets, shape.ways.into(), Policy::Lru));
        Self {
            shape,
            issue: issue.into(),
            cache,
            next: 0,
            line: (0, 0, false),
            start: 0,
            length: 0,
            count: 0,
            is_looped: false,
            parts: 0,
        }
    }

    pub fn is_there(&self) -> bool {
        self.shape != FrontEndShape::NONE
    }

    /// An instruction of so many bytes: the cycles that it takes beyond those of its issue.
    pub fn instruction(&mut self, place: u64, bytes: u64, dice: &mut Dice) -> u32 {
        let next = replace(&mut self.next, place + bytes);
        if self.shape.looped > 0 {
            self.follow(place, place < next);
        }
        let is_held = self.look_up(place, place == next, dice);
        let rate = match (self.is_looped, is_held) {
            (true, _) => self.issue,
            (false, true) if self.shape.looped > 0 => self.shape.outside,
            (false, true) => self.issue,
            (false, false) => self.shape.decode,
        };
        self.parts += PARTS / u32::from(rate) - PARTS / u32::from(self.issue);
        let cycles = self.parts / PARTS;
        self.parts %= PARTS;
        cycles
    }

    /// Whether the micro-op cache holds it. What it does not hold is there the next time.
    fn look_up(&mut self, place: u64, follows: bool, dice: &mut Dice) -> bool {
        let Some(cache) = &mut self.cache else { return true };
        let block = place / u64::from(self.shape.block);
        let (last, count, was_there) = self.line;
        let goes_on = follows && last == block && count < self.shape.line;
        let is_there = if goes_on { was_there } else { cache.touch(block, place, dice) };
        self.line = (block, if goes_on { count + 1 } else { 1 }, is_there);
        is_there
    }

    /// Follows loops, which start where a jump leads back.
    fn follow(&mut self, place: u64, is_back: bool) {
        // One more than any loop buffer has is as good as more.
        self.count = (self.count + 1).min(MOST_LOOP + 2);
        if !is_back {
            // The code after a loop is none of it.
            self.is_looped &= self.count <= self.length;
            return;
        }
        let length = self.count - 1;
        let is_again = place == self.start && length == self.length;
        self.is_looped = is_again && length <= self.shape.looped;
        (self.start, self.length, self.count) = (place, length, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles, beyond those of issue, of rounds of a loop of instructions of four bytes.
    fn rounds<const ROUNDS: usize>(shape: FrontEndShape, instructions: u64) -> [u32; ROUNDS] {
        let mut front = FrontEnd::new(shape, 8);
        let mut dice = Dice::NEW;
        let mut of = |at| front.instruction(0x4000 + 4 * at, 4, &mut dice);
        [(); ROUNDS].map(|()| (0..instructions).map(&mut of).sum())
    }

    #[test]
    fn d1_what_the_micro_op_cache_does_not_hold_is_decoded() {
        let shape = FrontEndShape {
            uops: 256,
            ways: 4,
            line: 8,
            block: 32,
            decode: 4,
            ..FrontEndShape::NONE
        };
        // 8 sets of 4 lines: each instruction takes an eighth of a cycle more.
        assert_eq!(rounds(shape, 256), [32, 0, 0]);
        // Five lines of a set.
        assert_eq!(rounds(shape, 264), [33, 5, 5]);
        assert_eq!(rounds(shape, 512), [64, 64, 64]);
        // Two lines of each block.
        let six = FrontEndShape { uops: 384, line: 6, ways: 8, ..shape };
        assert_eq!(rounds(six, 256), [32, 0, 0]);
        assert_eq!(rounds(six, 264), [33, 5, 5]);
        // Blocks of two lines, so that sets repeat after twice as many bytes.
        let large = FrontEndShape { block: 64, ..shape };
        assert_eq!(rounds(large, 256), [32, 0, 0]);
    }

    #[test]
    fn d1_a_loop_comes_from_the_loop_buffer_after_two_equal_rounds() {
        let shape = FrontEndShape { looped: 64, outside: 4, ..FrontEndShape::NONE };
        assert_eq!(rounds(shape, 64), [8, 8, 0, 0, 0]);
        assert_eq!(rounds(shape, 66), [8, 8, 8, 9, 8], "66 eighths of a cycle");
        assert_eq!(rounds(shape, 400), [50, 50, 50, 50, 50]);
        // What comes after it does not.
        let mut front = FrontEnd::new(shape, 8);
        let mut dice = Dice::NEW;
        let mut of = |at: u64| front.instruction(at, 4, &mut dice);
        for _ in 0..8 {
            (0..32).for_each(|at| _ = of(4 * at));
        }
        assert_eq!((32..96).map(|at| of(4 * at)).sum::<u32>(), 8);
    }
}
