//! The way by which lines come into the first level, and non-temporal stores go to memory, by parameters.
//!
//! It takes one line at a time. A line that a load or a store brings keeps it busy for the cycles of the level that has it; the next line
//! begins when it is free, and who needs it waits until then. Non-temporal stores of one line are combined and keep it busy once, from the
//! first of them on; they leave the line in no cache. Lines that are written back keep nothing busy. With 0 cycles a line keeps nothing busy.

/// Most cycles of a line.
pub const MOST_TRANSFER: u16 = 4000;

/// Cycles for which a line keeps the way busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// From the second level.
    pub l2: u16,
    /// From the third level.
    pub l3: u16,
    /// From memory.
    pub memory: u16,
    /// Of non-temporal stores, to memory.
    pub stream: u16,
}

impl Transfer {
    /// Nothing keeps it busy.
    pub const NONE: Self = Self { l2: 0, l3: 0, memory: 0, stream: 0 };

    /// As a list, in the order of the fields.
    #[must_use]
    pub const fn list(self) -> [u16; 4] {
        [self.l2, self.l3, self.memory, self.stream]
    }

    /// From such a list.
    #[must_use]
    pub const fn of([l2, l3, memory, stream]: [u16; 4]) -> Self {
        Self { l2, l3, memory, stream }
    }

    /// Cycles of a line which level number `served` has, from 0, of so many levels; one more is memory.
    #[must_use]
    pub const fn cycles(self, served: usize, levels: usize) -> u16 {
        match served {
            0 => 0,
            _ if served >= levels => self.memory,
            1 => self.l2,
            _ => self.l3,
        }
    }
}

/// The way, and who has it.
#[cfg(feature = "hierarchy")]
#[derive(Clone, Debug)]
pub(super) struct Way {
    transfer: Transfer,
    /// From when on it is free.
    free: u64,
    /// The line whose non-temporal stores are combined.
    combined: Option<u64>,
}

#[cfg(feature = "hierarchy")]
impl Way {
    pub const fn new(transfer: Transfer) -> Self {
        Self { transfer, free: 0, combined: None }
    }

    /// A line comes that level number `served` of so many has: the cycles that it waits.
    pub fn bring(&mut self, now: u64, served: usize, levels: usize) -> u32 {
        self.take(now, self.transfer.cycles(served, levels))
    }

    /// A non-temporal store to a line: the cycles that it waits.
    pub fn stream(&mut self, now: u64, line: u64) -> u32 {
        match self.combined.replace(line) == Some(line) {
            true => 0,
            false => self.take(now, self.transfer.stream),
        }
    }

    fn take(&mut self, now: u64, cycles: u16) -> u32 {
        if cycles == 0 {
            return 0;
        }
        let begins = self.free.max(now);
        self.free = begins + u64::from(cycles);
        (begins - now).try_into().unwrap_or(u32::MAX)
    }
}

#[cfg(all(test, feature = "hierarchy"))]
mod tests {
    use super::*;

    #[test]
    fn d1_a_line_waits_until_the_way_is_free() {
        let mut way = Way::new(Transfer { l2: 5, l3: 9, memory: 30, stream: 12 });
        // What the first level has needs no way.
        assert_eq!([way.bring(10, 0, 3), way.bring(10, 0, 3)], [0, 0]);
        assert_eq!([way.bring(10, 1, 3), way.bring(12, 2, 3), way.bring(20, 3, 3)], [0, 3, 4]);
        // Free from 54 on.
        assert_eq!([way.bring(53, 2, 2), way.bring(84, 1, 1)], [1, 0]);
        assert_eq!(way.bring(1000, 1, 2), 0);
        let mut free = Way::new(Transfer::NONE);
        assert!((0..9).all(|served| free.bring(0, served, 3) == 0 && free.stream(0, 1) == 0));
    }

    #[test]
    fn d1_non_temporal_stores_of_a_line_are_combined() {
        let mut way = Way::new(Transfer { stream: 12, ..Transfer::NONE });
        let waits: [u32; 4] =
            [(0, 7), (1, 7), (2, 8), (15, 8)].map(|(now, at)| way.stream(now, at));
        assert_eq!(waits, [0, 0, 10, 0]);
        // Of two lines in turn nothing is combined.
        assert_eq!([way.stream(24, 7), way.stream(36, 8)], [0, 0]);
        assert_eq!(way.stream(37, 7), 11);
    }
}
