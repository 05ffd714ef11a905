//! Where a search begins in the tables that the overflow handler fills.

/// Where the search for a key begins; the caller masks it by its table's length.
///
/// Multiplicative hashing by 2^64 divided by the golden ratio (Knuth, vol. 3, 6.4). A bit of the product depends on the key's bits up to its
/// own place, so bits of the key from 32 on tell apart in large tables only.
#[inline]
pub(super) const fn start(key: u64) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    (key.wrapping_mul(SPREAD) >> 32) as usize
}

/// The part of a key that tells tasks and counters apart: at bits that count in a table of any length.
#[inline]
pub(super) const fn owner(task: u32, bit: u8) -> u64 {
    (task as u64) << 18 ^ (bit as u64) << 25
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// One address in many tasks and counters: each begins somewhere else, nearly always.
    #[test]
    fn tasks_and_counters_begin_at_other_places() {
        for len in [256, 1024, 65536] {
            let start = |task, bit| start(0xffff_8000_0010_2040 ^ owner(task, bit)) & (len - 1);
            let places: BTreeSet<usize> =
                (0..16).flat_map(|task| (0..8).map(move |bit| start(task, bit))).collect();
            assert!(places.len() >= 96, "{} places in {len}", places.len());
        }
    }
}
