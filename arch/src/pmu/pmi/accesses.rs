//! Data accesses of samples, counted by address, source and class of latency; and what became of sampled branches.

use super::table::{Row, Table};
use super::{ControlBlock, hash};
use crate::pmu::data_source::{Datum, Told, Words};
use crate::pmu::pebs::Access as Recorded;

/// How often samples of one counter had a data address with one source and a latency of one class, in one task.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// The address, the source, and the sums of both latencies' last one.
    pub datum: Datum,
    /// The task, as in a sample.
    pub task: u32,
    /// Number of the counter's bit in the global status.
    pub bit: u8,
    /// How often. 0: the place is free.
    pub count: u64,
    /// Cycles, of all of them.
    pub latency: u64,
    /// The longest of them.
    pub longest: u32,
    /// How many have a latency.
    pub timed: u64,
    /// The other cycles, likewise.
    pub other: u64,
}

impl Access {
    fn of(datum: &Datum, task: u32, bit: u8) -> Self {
        Self {
            datum: *datum,
            task,
            bit,
            count: 1,
            latency: datum.latency.into(),
            longest: datum.latency,
            timed: u64::from(datum.latency > 0),
            other: datum.other.into(),
        }
    }
}

impl Row for Access {
    fn is_same(&self, other: &Self) -> bool {
        let key = |one: &Self| {
            (one.datum.address, one.datum.source, one.datum.class(), one.task, one.bit)
        };
        key(self) == key(other)
    }

    fn key(&self) -> u64 {
        let source = u64::from(self.datum.source) << 10 ^ u64::from(self.datum.class()) << 14;
        self.datum.address ^ source ^ hash::owner(self.task, self.bit)
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.latency += more.latency;
        self.longest = self.longest.max(more.longest);
        self.timed += more.timed;
        self.other += more.other;
    }
}

/// What records say of accesses, by counter, and a table for them.
#[derive(Clone, Copy, Debug)]
pub struct Accesses {
    words: Words,
    /// Counters whose records tell the source and latency of loads, as bits of the global status; of stores; whether a store
    /// hit the first level.
    told: [u64; 3],
    /// By source and class of latency; their addresses are 0.
    sources: Table<Access>,
    /// By address; their sources are all the same.
    addresses: Table<Access>,
}

impl Accesses {
    /// Nothing is told yet. `None` if there are no places.
    #[must_use]
    pub fn new(words: Words, sources: &mut [Access], addresses: &mut [Access]) -> Option<Self> {
        let (sources, addresses) = (Table::new(sources)?, Table::new(addresses)?);
        Some(Self { words, told: [0; 3], sources, addresses })
    }

    /// Records of the counter of `bit` (of the global status) tell this.
    #[must_use]
    pub fn telling(mut self, bit: u64, told: Told) -> Self {
        match told {
            Told::Nothing => {}
            Told::Load => self.told[0] |= bit,
            Told::Store => self.told[1] |= bit,
            Told::StoreHit => self.told[2] |= bit,
        }
        self
    }

    /// What the sources mean.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Accesses by source and class of latency.
    #[must_use]
    pub fn sources(&self) -> &Table<Access> {
        &self.sources
    }

    /// Accesses by address.
    #[must_use]
    pub fn addresses(&self) -> &Table<Access> {
        &self.addresses
    }

    pub(super) fn clear(&mut self) {
        self.sources.clear();
        self.addresses.clear();
    }

    /// The access of a record of these counters.
    fn datum(&self, access: &Recorded, counters: u64) -> Datum {
        let [loads, stores, hits] = self.told.map(|bits| bits & counters != 0);
        let told = match (loads, stores, hits) {
            (true, ..) => Told::Load,
            (_, true, _) => Told::Store,
            (.., true) => Told::StoreHit,
            _ => Told::Nothing,
        };
        self.words.datum(access, told)
    }
}

/// What became of a sampled branch, in one task.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Its address.
    pub address: u64,
    /// The task, as in a sample.
    pub task: u32,
    /// How often it was sampled. 0: the place is free.
    pub count: u64,
    /// Of these, how many were taken.
    pub taken: u64,
    /// How many were mispredicted.
    pub mispredicted: u64,
    /// How many were returns.
    pub returns: u64,
}

impl Row for Outcome {
    fn is_same(&self, other: &Self) -> bool {
        (self.address, self.task) == (other.address, other.task)
    }

    fn key(&self) -> u64 {
        self.address ^ hash::owner(self.task, 0)
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.taken += more.taken;
        self.mispredicted += more.mispredicted;
        self.returns += more.returns;
    }
}

impl ControlBlock {
    /// Counts accesses that samples tell the source of.
    pub fn count_accesses(&mut self, accesses: Accesses) {
        self.accesses = Some(accesses);
    }

    /// The accesses, if they are counted.
    #[must_use]
    pub fn accesses(&self) -> Option<&Accesses> {
        self.accesses.as_ref()
    }

    /// Counts what became of sampled branches in `places`, which have to outlive the block's use.
    pub fn count_outcomes(&mut self, places: &mut [Outcome]) {
        self.outcomes = Table::new(places);
    }

    /// What became of them, if that is counted.
    #[must_use]
    pub fn outcomes(&self) -> Option<&Table<Outcome>> {
        self.outcomes.as_ref()
    }

    /// The access of a record of these counters; where no accesses are counted, its address alone.
    pub(super) fn datum(&self, access: Option<&Recorded>, counters: u64) -> Datum {
        match (access, &self.accesses) {
            (None, _) => Datum::default(),
            (Some(access), None) => Datum::at(access.address),
            (Some(access), Some(accesses)) => accesses.datum(access, counters),
        }
    }

    /// Counts an access of these counters, if its source is told.
    pub(super) fn count_access(&mut self, datum: &Datum, status: u64) {
        let task = self.task;
        let Some(accesses) = self.accesses.as_mut().filter(|_| datum.is_told()) else { return };
        let mut left = status;
        while left != 0 {
            let bit = left.trailing_zeros() as u8;
            let access = Access::of(datum, task, bit);
            let plain = Datum { address: 0, ..*datum };
            accesses.sources.take(&Access { datum: plain, ..access });
            if datum.address != 0 {
                accesses.addresses.take(&Access { datum: Datum::at(datum.address), ..access });
            }
            left &= left - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_accesses_are_told_apart_by_source_and_class_and_their_cycles_add_up() {
        let (mut sources, mut addresses) = ([Access::default(); 16], [Access::default(); 4]);
        let mut block = ControlBlock::EMPTY;
        // Skylake's, whose layout is known.
        let words = Words::of_intel(0x5e, None);
        let accesses = Accesses::new(words, &mut sources, &mut addresses).unwrap();
        block.count_accesses(accesses.telling(1, Told::Load).telling(2, Told::StoreHit));
        let of = |source, latency| Recorded { address: 0x40, source, latency, transaction: 0 };
        for (source, latency) in [(1, 4), (1, 5), (1, 9), (3, 4)] {
            let datum = block.datum(Some(&of(source, latency)), 1);
            block.count_access(&datum, 1);
        }
        // As IBS tells none of a load that hit the first level.
        let datum = block.datum(Some(&of(1, 0)), 1);
        block.count_access(&datum, 1);
        let datum = block.datum(Some(&of(1, 4)), 2);
        block.count_access(&datum, 2);
        // Of the third counter nothing is told.
        let untold = block.datum(Some(&of(1, 4)), 4);
        assert_eq!(untold, Datum::at(0x40));
        block.count_access(&untold, 4);
        let table = block.accesses().unwrap();
        let mut rows: Vec<_> = table
            .sources()
            .used()
            .map(|row| (row.bit, row.datum.source & 0xf, row.count, row.latency, row.longest))
            .collect();
        rows.sort_unstable();
        let expected =
            [(0, 1, 1, 0, 0), (0, 1, 1, 9, 9), (0, 1, 2, 9, 5), (0, 3, 1, 4, 4), (1, 1, 1, 0, 0)];
        assert_eq!(rows, expected);
        let mut rows: Vec<_> = table
            .addresses()
            .used()
            .map(|row| {
                (row.bit, row.datum.address, [row.count, row.timed], row.latency, row.longest)
            })
            .collect();
        rows.sort_unstable();
        assert_eq!(rows, [(0, 0x40, [5, 4], 22, 9), (1, 0x40, [1, 0], 0, 0)]);
        block.clear();
        let table = block.accesses().unwrap();
        assert_eq!(table.sources().used().count() + table.addresses().used().count(), 0);
    }

    /// What is counted by source has no address, so that accesses of any are one row.
    #[test]
    fn s1_a_source_is_counted_of_all_addresses_together() {
        let (mut sources, mut addresses) = ([Access::default(); 4], [Access::default(); 4]);
        let mut block = ControlBlock::EMPTY;
        let words = Words::of_intel(0x5e, None);
        let accesses = Accesses::new(words, &mut sources, &mut addresses).unwrap();
        block.count_accesses(accesses.telling(1, Told::Load));
        for address in [0x40, 0x80] {
            let recorded = Recorded { address, source: 1, latency: 4, transaction: 0 };
            let datum = block.datum(Some(&recorded), 1);
            block.count_access(&datum, 1);
        }
        let table = block.accesses().unwrap();
        let rows: Vec<_> =
            table.sources().used().map(|row| (row.datum.address, row.count)).collect();
        assert_eq!(rows, [(0, 2)]);
        assert_eq!(table.addresses().used().count(), 2);
    }

    /// More rows than there are places for one: they begin at several.
    #[test]
    fn rows_of_other_addresses_begin_at_other_places() {
        let mut places = vec![Access::default(); 1024];
        let mut table = Table::new(&mut places).unwrap();
        for n in 0..200 {
            table.take(&Access::of(&Datum::at(0x1000 + 8 * n), 0, 0));
        }
        assert_eq!((table.elsewhere, table.used().count()), (0, 200));
        let mut places = vec![Outcome::default(); 1024];
        let mut table = Table::new(&mut places).unwrap();
        let one = Outcome { count: 1, ..Outcome::default() };
        (0..200).for_each(|n| table.take(&Outcome { address: 0x1000 + 8 * n, ..one }));
        assert_eq!((table.elsewhere, table.used().count()), (0, 200));
    }

    #[test]
    fn s1_outcomes_of_one_branch_add_up() {
        let mut places = [Outcome::default(); 1];
        let mut table = Table::new(&mut places).unwrap();
        let one = Outcome { address: 8, task: 0, count: 1, taken: 2, mispredicted: 3, returns: 4 };
        (0..3).for_each(|_| table.take(&one));
        let sum = Outcome { count: 3, taken: 6, mispredicted: 9, returns: 12, ..one };
        assert_eq!(table.used().collect::<Vec<_>>(), [&sum]);
    }
}
