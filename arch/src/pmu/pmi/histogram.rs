//! Interrupted addresses, counted in the interrupt: a table of a fixed size, without lock or allocation.

use super::hash;
use crate::descriptors::is_compatibility;

/// How often one counter overflowed at one address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Bucket {
    /// The address.
    pub address: u64,
    /// The task, as in a sample.
    pub task: u32,
    /// Number of the counter's bit in the global status.
    pub bit: u8,
    /// The interrupted code's CS.
    pub cs: u16,
    used: bool,
    /// How often. 0: the bucket is free.
    pub count: u64,
}

impl Bucket {
    /// Ring of the interrupted code.
    #[must_use]
    pub const fn ring(&self) -> u8 {
        (self.cs & 3) as u8
    }

    /// Whether 32-bit code was interrupted.
    #[must_use]
    pub const fn is_compatibility(&self) -> bool {
        is_compatibility(self.cs as u64)
    }
}

/// The table. An address that finds no bucket within [`Histogram::PROBES`] places is counted in
/// [`Histogram::elsewhere`], so the sum is always exact.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: *mut Bucket,
    /// A power of two.
    len: usize,
    /// Overflows that found no bucket.
    pub elsewhere: u64,
}

impl Histogram {
    /// Places at which an address may lie.
    pub const PROBES: usize = 64;

    /// A table in the first 2^n of `buckets`, all free. `None` if there are none.
    pub(super) fn new(buckets: &mut [Bucket]) -> Option<Self> {
        let len = 1 << buckets.len().checked_ilog2()?;
        let mut table = Self { buckets: buckets.as_mut_ptr(), len, elsewhere: 0 };
        table.clear();
        Some(table)
    }

    /// Everything to 0.
    pub(super) fn clear(&mut self) {
        self.elsewhere = 0;
        for index in 0..self.len {
            *self.at(index) = Bucket::default();
        }
    }

    fn at(&mut self, index: usize) -> &mut Bucket {
        // SAFETY: `new` took the buckets as a slice of at least `len`; the index is below it. The block's holder
        // promised that they live as long as it is used, and one processor's handler alone uses them.
        unsafe { &mut *self.buckets.add(index & (self.len - 1)) }
    }

    /// Counts one overflow of the counter of `bit`.
    #[inline]
    pub(super) fn count(&mut self, address: u64, task: u32, cs: u16, bit: u8) {
        let start = hash::start(address ^ hash::owner(task, bit));
        for step in 0..Self::PROBES.min(self.len) {
            let bucket = self.at(start.wrapping_add(step));
            if !bucket.used {
                *bucket = Bucket { address, task, bit, cs, used: true, count: 0 };
            }
            if (bucket.address, bucket.task, bucket.bit, bucket.cs) == (address, task, bit, cs) {
                bucket.count += 1;
                return;
            }
        }
        self.elsewhere += 1;
    }

    /// The buckets in use, in no order.
    pub fn used(&self) -> impl Iterator<Item = &Bucket> {
        // SAFETY: as in `at`; whoever holds the block by reference does not let the handler run.
        let all = unsafe { core::slice::from_raw_parts(self.buckets, self.len) };
        all.iter().filter(|bucket| bucket.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn i5_a_full_table_counts_what_finds_no_place() {
        let mut buckets = [Bucket::default(); 5];
        let mut table = Histogram::new(&mut buckets).unwrap();
        assert_eq!(table.len, 4);
        for address in [7, 7, 8, 9, 10, 11, 7, 12] {
            table.count(address, 0, 0, 0);
        }
        assert_eq!((table.used().count(), table.elsewhere), (4, 2));
        assert_eq!(table.used().find(|bucket| bucket.address == 7).unwrap().count, 3);
        assert!(Histogram::new(&mut []).is_none());
    }

    #[test]
    fn m11_a_table_that_is_cleared_holds_nothing_and_counts_from_0() {
        let mut buckets = [Bucket::default(); 4];
        let mut table = Histogram::new(&mut buckets).unwrap();
        (0..6).for_each(|address| table.count(address, 0, 0, 0));
        assert_eq!((table.used().count(), table.elsewhere), (4, 2));
        table.clear();
        assert_eq!((table.used().count(), table.elsewhere), (0, 0));
        table.count(9, 0, 0, 0);
        let all: Vec<(u64, u64)> = table.used().map(|one| (one.address, one.count)).collect();
        assert_eq!(all, [(9, 1)]);
    }

    /// Selectors of the tables in `descriptors`: 64-bit code of both rings, and 32-bit code.
    #[test]
    fn a_bucket_says_which_kind_of_code_was_interrupted() {
        use crate::descriptors::{KERNEL_CODE_32, USER_CODE_32};
        let of = |cs| {
            let bucket = Bucket { cs, ..Bucket::default() };
            (bucket.ring(), bucket.is_compatibility())
        };
        assert_eq!(of(KERNEL_CODE_32.0), (0, true));
        assert_eq!(of(USER_CODE_32.0), (3, true));
        assert_eq!((of(8), of(7 << 3 | 3)), ((0, false), (3, false)));
    }

    proptest! {
        /// Against a map that knows no bounds.
        #[test]
        fn i5_counts_are_exact_and_nothing_is_lost(
            seen in prop::collection::vec((0u64..40, 0u32..3, 0u16..4, 0u8..3), 0..400), size in 1usize..300,
        ) {
            let mut buckets = vec![Bucket::default(); size];
            let mut table = Histogram::new(&mut buckets).unwrap();
            let mut expected = std::collections::BTreeMap::new();
            for &(address, task, cs, bit) in &seen {
                table.count(address << 4, task, cs, bit);
                *expected.entry((address << 4, task, cs, bit)).or_insert(0u64) += 1;
            }
            let mut sum = table.elsewhere;
            for bucket in table.used() {
                let key = (bucket.address, bucket.task, bucket.cs, bucket.bit);
                // A bucket was there from the first time on, or never.
                prop_assert_eq!(bucket.count, expected[&key]);
                sum += bucket.count;
            }
            prop_assert_eq!(sum, seen.len() as u64);
        }
    }

    /// More addresses than there are places for one: they begin at several.
    #[test]
    fn i5_other_addresses_begin_at_other_places() {
        let mut buckets = vec![Bucket::default(); 1024];
        let mut table = Histogram::new(&mut buckets).unwrap();
        (0..200).for_each(|n| table.count(0x1000 + 8 * n, 0, 0x33, 0));
        assert_eq!((table.elsewhere, table.used().count()), (0, 200));
    }
}
