//! Which physical memory is mapped. Not all below the highest address: AMD's machines with a terabyte have a hole in front of it that belongs
//! to HyperTransport, and the processor may read ahead into whatever is mapped write-back, which ends in a machine check there (Linux,
//! commit 66520ebc2df3).

use super::Region;

/// Devices lie below 4 GiB even where memory does not reach that far.
const FOUR_GIB: u64 = 4 << 30;
/// Most ranges; what lies beyond them is added to the last one.
const MOST: usize = 32;

/// The ranges: the first 4 GiB, and what memory there is beyond.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mapped {
    ranges: [Region; MOST],
    count: usize,
}

impl Mapped {
    /// All of `regions`, and the first 4 GiB.
    #[must_use]
    pub fn new(regions: impl Iterator<Item = Region>) -> Self {
        let none = Region { start: 0, end: 0 };
        let mut mapped = Self { ranges: [none; MOST], count: 1 };
        mapped.ranges[0].end = FOUR_GIB;
        regions.for_each(|region| mapped.add(region));
        mapped
    }

    fn add(&mut self, region: Region) {
        let known = self.ranges[..self.count].iter_mut();
        let mut touching =
            known.filter(|known| known.start <= region.end && region.start <= known.end);
        if let Some(known) = touching.next() {
            known.end = known.end.max(region.end);
            known.start = known.start.min(region.start);
        } else if self.count < MOST {
            self.ranges[self.count] = region;
            self.count += 1;
        } else {
            let last = &mut self.ranges[MOST - 1];
            last.end = last.end.max(region.end);
            last.start = last.start.min(region.start);
        }
    }

    /// Whether all of a range is mapped.
    #[must_use]
    pub fn has(&self, start: u64, end: u64) -> bool {
        self.ranges[..self.count].iter().any(|range| range.start <= start && end <= range.end)
    }

    /// Gives the first addresses of all pages of `page` bytes that have a part of a range to `each`, once and in their order.
    ///
    /// # Errors
    /// Of `each`.
    pub fn each_page<E>(
        &self,
        page: u64,
        mut each: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        loop {
            let ranges = self.ranges[..self.count].iter().filter(|range| at < range.end);
            let Some(first) = ranges.map(|range| range.start.max(at) & !(page - 1)).min() else {
                return Ok(());
            };
            at = first.max(at);
            each(at)?;
            at += page;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    /// AMD's hole in front of 1 TiB, in GiB.
    const HOLE: u64 = 1012;

    fn mapped(regions: &[(u64, u64)]) -> Mapped {
        Mapped::new(regions.iter().map(|&(start, end)| Region { start, end }))
    }

    fn pages(mapped: &Mapped, page: u64) -> Vec<u64> {
        let mut pages = Vec::new();
        let done = mapped.each_page(page, |at| {
            pages.push(at / page);
            Ok::<_, ()>(())
        });
        assert_eq!(done, Ok(()));
        pages
    }

    #[test]
    fn the_hole_in_front_of_a_terabyte_is_left_out() {
        // Out of order, as firmware may list them, and memory at 2 GiB that the first range has.
        let regions = [(1024 * GIB, 1030 * GIB), (4 * GIB, HOLE * GIB), (GIB, 2 * GIB)];
        let mapped = mapped(&regions);
        let wanted: Vec<u64> = (0..HOLE).chain(1024..1030).collect();
        assert_eq!(pages(&mapped, GIB), wanted);
        assert!(mapped.has(0, 4 * GIB) && mapped.has(3 * GIB, 5 * GIB));
        assert!(mapped.has(1029 * GIB, 1030 * GIB) && !mapped.has(1029 * GIB, 1030 * GIB + 1));
        assert!(!mapped.has(HOLE * GIB, HOLE * GIB + 8), "the hole");
    }

    #[test]
    fn a_page_that_is_needed_in_part_is_there_once() {
        let two = 2 << 20;
        let mapped = mapped(&[(5 * GIB + 1, 5 * GIB + 2), (5 * GIB + 4096, 5 * GIB + 8192)]);
        assert_eq!(pages(&mapped, GIB), [0, 1, 2, 3, 5]);
        let small = pages(&mapped, two);
        assert_eq!((small.len(), small.last()), (2049, Some(&(5 * GIB / two))));
    }

    #[test]
    fn more_ranges_than_there_is_room_for_are_one() {
        let many: Vec<_> = (0..100).map(|at| ((10 + 2 * at) * GIB, (11 + 2 * at) * GIB)).collect();
        let mapped = mapped(&many);
        assert!(many.iter().all(|&(start, end)| mapped.has(start, end)));
        assert_eq!(mapped.each_page(GIB, Err), Err(0));
    }
}
