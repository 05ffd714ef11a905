//! The window of instructions in flight, by parameters.
//!
//! Instructions begin in order, one in a cycle, and leave in order, each when it is done. One that reads registers starts when those are
//! ready; a load is done after its cycles, anything else after one. So loads that miss overlap, as far as instructions can begin:
//!
//! - while there are `rob` instructions that have not left, none begins;
//! - while `registers` of these write a general register, none that writes one begins;
//! - while `vectors` of these write a vector register, none that writes one begins;
//! - while `loads` of these load, none that loads begins;
//! - while `scheduler` instructions wait for a register, none that reads one begins.
//!
//! An instruction that serialises begins when all before it are done. RSP and flags are ready at once. Stores, fetches and mispredictions
//! take the time that they take without a window, and so do all loads if there is none.

/// Most entries of each part; a window has at least [`LEAST`] instructions.
pub const MOST_ENTRIES: u32 = 1024;
/// Fewest instructions of a window.
pub const LEAST: u32 = 16;

/// What fits into the window at once; 0: any number, and for instructions: there is no window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowShape {
    /// Instructions: entries of the reorder buffer.
    pub rob: u16,
    /// Those that write a general register.
    pub registers: u16,
    /// Those that write a vector register.
    pub vectors: u16,
    /// Loads.
    pub loads: u16,
    /// Those that wait for a register.
    pub scheduler: u16,
}

impl WindowShape {
    /// No window.
    pub const NONE: Self = Self { rob: 0, registers: 0, vectors: 0, loads: 0, scheduler: 0 };

    /// As a list, in the order of the fields.
    #[must_use]
    pub const fn list(self) -> [u16; 5] {
        [self.rob, self.registers, self.vectors, self.loads, self.scheduler]
    }

    /// From such a list.
    #[must_use]
    pub const fn of([rob, registers, vectors, loads, scheduler]: [u16; 5]) -> Self {
        Self { rob, registers, vectors, loads, scheduler }
    }

    /// Whether it is one that can be given.
    #[must_use]
    pub fn is_sound(self) -> bool {
        let rob = u32::from(self.rob);
        let [_, others @ ..] = self.list();
        match rob {
            0 => others == [0; 4],
            _ => {
                (LEAST..=MOST_ENTRIES).contains(&rob)
                    && others.iter().all(|one| *one == 0 || (2..=self.rob).contains(one))
            }
        }
    }
}

/// An instruction, as the window sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// General registers that it reads, a bit for each by its number; without RSP.
    pub reads: u16,
    /// The same that it writes.
    pub writes: u16,
    /// It writes a vector register: XMM, YMM or ZMM.
    pub vector: bool,
    /// It loads.
    pub loads: bool,
    /// It serialises: it begins when all before it are done.
    pub waits: bool,
}

impl Step {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.reads as u64
            | (self.writes as u64) << 16
            | (self.loads as u64) << 32
            | (self.waits as u64) << 33
            | (self.vector as u64) << 34
    }

    /// From such a word.
    #[must_use]
    pub const fn of_word(word: u64) -> Self {
        Self {
            reads: word as u16,
            writes: (word >> 16) as u16,
            loads: word >> 32 & 1 != 0,
            waits: word >> 33 & 1 != 0,
            vector: word >> 34 & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_steps_and_shapes_are_words_and_lists() {
        let one = Step { reads: 1, writes: 4, loads: true, ..Step::default() };
        let vector = Step { vector: true, ..Step::default() };
        let fence = Step { waits: true, ..Step::default() };
        let [wide, last] = [Step { reads: u16::MAX, ..fence }, Step { writes: 1 << 15, ..one }];
        for step in [one, fence, vector, wide, last] {
            assert_eq!(Step::of_word(step.word()), step);
        }
        let sound = |list| WindowShape::of(list).is_sound();
        assert!(sound([0; 5]) && sound([16, 0, 2, 2, 16]) && sound([1024, 1024, 0, 0, 9]));
        assert!(!sound([0, 4, 0, 0, 0]) && !sound([0, 0, 4, 0, 0]) && !sound([15, 0, 0, 0, 0]));
        assert!(!sound([1025, 0, 0, 0, 0]) && !sound([32, 33, 0, 0, 0]));
        assert!(!sound([32, 0, 33, 0, 0]) && !sound([32, 0, 0, 1, 0]));
    }
}
