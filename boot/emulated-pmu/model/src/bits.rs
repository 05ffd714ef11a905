//! Bits of a mask by their numbers.

/// The bits that are set.
pub(crate) fn bits_of(mut mask: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lowest
    })
}
