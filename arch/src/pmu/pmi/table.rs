//! Rows that are counted in the interrupt, in a table of a fixed size, without lock or allocation.

use super::hash;

/// A row: what it is distinguished by, and what it adds up.
pub trait Row: Copy + Default {
    /// Whether both are distinguished by the same.
    fn is_same(&self, other: &Self) -> bool;
    /// What it is distinguished by, as a number.
    fn key(&self) -> u64;
    /// How often. 0: the place is free.
    fn count(&self) -> u64;
    /// Adds what `more` adds up.
    fn add(&mut self, more: &Self);
}

/// The table. A row that finds no place within 64 places is counted in [`Table::elsewhere`], so the sum is always
/// exact.
#[derive(Clone, Copy, Debug)]
pub struct Table<R> {
    places: *mut R,
    /// A power of two.
    len: usize,
    /// Rows that found no place.
    pub elsewhere: u64,
}

impl<R: Row> Table<R> {
    /// Places at which a row may lie.
    const PROBES: usize = 64;

    /// A table in the first 2^n of `places`, all free; they have to outlive its use. `None` if there are none.
    #[must_use]
    pub fn new(places: &mut [R]) -> Option<Self> {
        let len = 1 << places.len().checked_ilog2()?;
        let mut table = Self { places: places.as_mut_ptr(), len, elsewhere: 0 };
        table.clear();
        Some(table)
    }

    /// Everything to 0.
    pub(super) fn clear(&mut self) {
        self.elsewhere = 0;
        for index in 0..self.len {
            *self.at(index) = R::default();
        }
    }

    fn at(&mut self, index: usize) -> &mut R {
        // SAFETY: `new` took the places as a slice of at least `len`; the index is below it. The block's holder promised that
        // they live as long as it is used, and one processor's handler alone uses them.
        unsafe { &mut *self.places.add(index & (self.len - 1)) }
    }

    /// Counts a row.
    pub(super) fn take(&mut self, row: &R) {
        let start = hash::start(row.key());
        for step in 0..Self::PROBES.min(self.len) {
            let place = self.at(start.wrapping_add(step));
            if place.count() == 0 {
                *place = *row;
                return;
            }
            if place.is_same(row) {
                place.add(row);
                return;
            }
        }
        self.elsewhere += 1;
    }

    /// The rows in use, in no order.
    pub fn used(&self) -> impl Iterator<Item = &R> {
        // SAFETY: as in `at`; whoever holds the block by reference does not let the handler run.
        let all = unsafe { core::slice::from_raw_parts(self.places, self.len) };
        all.iter().filter(|row| row.count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A key, and a sum.
    #[derive(Clone, Copy, Debug, Default)]
    struct Plain(u64, u64, u64);

    impl Row for Plain {
        fn is_same(&self, other: &Self) -> bool {
            self.0 == other.0
        }
        fn key(&self) -> u64 {
            self.0
        }
        fn count(&self) -> u64 {
            self.1
        }
        fn add(&mut self, more: &Self) {
            self.1 += more.1;
            self.2 += more.2;
        }
    }

    proptest! {
        /// Against a map that knows no bounds.
        #[test]
        fn rows_are_counted_exactly_and_none_is_lost(
            seen in prop::collection::vec((0u64..40, 0u64..1000), 0..300), size in 1usize..100,
        ) {
            let mut places = vec![Plain::default(); size];
            let mut table = Table::new(&mut places).unwrap();
            let mut expected = BTreeMap::new();
            for &(key, more) in &seen {
                table.take(&Plain(key << 4, 1, more));
                let row: &mut (u64, u64) = expected.entry(key << 4).or_default();
                (row.0, row.1) = (row.0 + 1, row.1 + more);
            }
            let mut sum = table.elsewhere;
            for row in table.used() {
                if table.elsewhere == 0 {
                    prop_assert_eq!((row.1, row.2), expected[&row.0]);
                }
                prop_assert!(row.1 <= expected[&row.0].0);
                sum += row.1;
            }
            prop_assert_eq!(sum, seen.len() as u64);
            table.clear();
            prop_assert_eq!(table.used().count(), 0);
        }
    }

    #[test]
    fn a_table_needs_a_place() {
        assert!(Table::<Plain>::new(&mut []).is_none());
    }

    /// More rows than there are places for one: they begin at several.
    #[test]
    fn rows_with_other_keys_begin_at_other_places() {
        let mut places = vec![Plain::default(); 1024];
        let mut table = Table::new(&mut places).unwrap();
        (0..200).for_each(|key| table.take(&Plain(key << 4, 1, 0)));
        assert_eq!((table.elsewhere, table.used().count()), (0, 200));
    }
}
