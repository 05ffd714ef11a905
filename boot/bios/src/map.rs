//! Memory maps by INT 15h, E820h, as they are: ranges may overlap, and then the one that is not to be used wins (ACPI specification
//! 6.5, 15.1 forbids that, and machines do it: Linux, `arch/x86/kernel/e820.c`, `e820__update_table`).

use core::ops::Range;

/// Bytes of a page: one that is used in part is not to be given out.
const PAGE: u64 = 4096;

/// What of a range of memory consists of whole pages.
#[must_use]
pub fn whole_pages(start: u64, bytes: u64) -> Range<u64> {
    let end = start.saturating_add(bytes) & !(PAGE - 1);
    start.checked_next_multiple_of(PAGE).unwrap_or(end)..end
}

/// The pages that have anything of a range.
#[must_use]
pub fn touched_pages(start: u64, bytes: u64) -> Range<u64> {
    let end = start.saturating_add(bytes);
    start & !(PAGE - 1)..end.checked_next_multiple_of(PAGE).unwrap_or(end & !(PAGE - 1))
}

/// The first part of `range` that none of `covers` has.
#[must_use]
pub fn first_uncovered(
    range: Range<u64>,
    covers: impl Iterator<Item = Range<u64>> + Clone,
) -> Option<Range<u64>> {
    let Range { start: mut at, end } = range;
    while at < end {
        let over = covers.clone().filter(|cover| cover.start < end && at < cover.end);
        match over.filter(|cover| !cover.is_empty()).min_by_key(|cover| cover.start) {
            None => return Some(at..end),
            Some(cover) if at < cover.start => return Some(at..cover.start),
            Some(cover) => at = cover.end,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// All parts.
    fn uncovered(range: Range<u64>, covers: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut at = range.start;
        core::iter::from_fn(|| {
            let piece = first_uncovered(at..range.end, covers.iter().cloned())?;
            at = piece.end;
            Some(piece)
        })
        .collect()
    }

    #[test]
    fn x3_reserved_ranges_are_cut_out_of_usable_ones() {
        let usable = MIB..0xc000_0000;
        // Within, over an edge, one in another, and beside it.
        let smram = 0xbf80_0000..0xc080_0000;
        let covers = [0x2000_0000..0x2010_0000, smram, 0x2008_0000..0x2009_0000, 0..MIB];
        let left = [MIB..0x2000_0000, 0x2010_0000..0xbf80_0000];
        assert_eq!(uncovered(usable.clone(), &covers), left);
        assert_eq!(uncovered(usable.clone(), &[]), std::slice::from_ref(&usable));
        assert_eq!(uncovered(usable.clone(), std::slice::from_ref(&usable)), []);
        assert_eq!(uncovered(usable.clone(), &[5..5, 2 * MIB..2 * MIB]), [usable]);
    }

    #[test]
    fn x3_a_page_that_is_reserved_in_part_is_reserved() {
        assert_eq!(whole_pages(0x9_f001, 0x2000), 0xa_0000..0xa_1000);
        assert_eq!(touched_pages(0x9_fc00, 0x400), 0x9_f000..0xa_0000);
        assert!(whole_pages(1, 4096).is_empty());
        for at in [0, u64::MAX - 5, u64::MAX] {
            let (whole, touched) = (whole_pages(at, u64::MAX), touched_pages(at, u64::MAX));
            assert!(whole.end <= touched.end && touched.start <= whole.start, "{at:#x}");
        }
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_nobody_covers(covers in prop::collection::vec((0..40_u64, 0..12_u64), 0..8)) {
            let covers: Vec<_> = covers.into_iter().map(|(start, length)| start..start + length).collect();
            let left = uncovered(5..45, &covers);
            for at in 0..60 {
                let is_free = (5..45).contains(&at) && !covers.iter().any(|cover| cover.contains(&at));
                prop_assert_eq!(left.iter().any(|piece| piece.contains(&at)), is_free, "{}", at);
            }
        }
    }
}
