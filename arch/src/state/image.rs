//! The firmware's own code and constants, which nothing may change: a sum over them.
//!
//! Their pages are read only, but code of ring 0 can clear CR0.WP, or write through the map of physical memory. What was
//! changed there cannot be restored, so it is looked for where there is reason to ([`super::is_broken`]) and at the end of a
//! job, not after each item: it takes some 2 instructions for each 8 bytes.

use crate::memory::image;
use core::arch::asm;
use x86_64::structures::paging::PageTableFlags;

/// Words that are summed in one turn of the loop.
const AT_ONCE: u64 = 8;

/// The sum over all pages of the image that cannot be written.
///
/// # Safety
/// The image is mapped as [`crate::memory::Space::build`] maps it.
#[must_use]
pub unsafe fn sum() -> u64 {
    let mut sum = 0;
    // SAFETY: the header lies where it was at the start.
    for segment in unsafe { image::segments() } {
        if !segment.flags.contains(PageTableFlags::WRITABLE) {
            let words = (segment.end - segment.start) / 8 / AT_ONCE * AT_ONCE;
            // SAFETY: the segment is mapped.
            sum = unsafe { add(sum, segment.start as *const u64, words) };
        }
    }
    sum
}

/// Adds `words` (a multiple of [`AT_ONCE`]), each at another place of the sum, so that order counts.
///
/// # Safety
/// There are so many words.
unsafe fn add(mut sum: u64, words: *const u64, count: u64) -> u64 {
    if count == 0 {
        return sum;
    }
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "2:",
            "add {sum}, [{at}]", "rol {sum}, 7",
            "add {sum}, [{at} + 8]", "rol {sum}, 7",
            "add {sum}, [{at} + 16]", "rol {sum}, 7",
            "add {sum}, [{at} + 24]", "rol {sum}, 7",
            "add {sum}, [{at} + 32]", "rol {sum}, 7",
            "add {sum}, [{at} + 40]", "rol {sum}, 7",
            "add {sum}, [{at} + 48]", "rol {sum}, 7",
            "add {sum}, [{at} + 56]", "rol {sum}, 7",
            "add {at}, 64",
            "dec {turns}",
            "jnz 2b",
            sum = inout(reg) sum, at = inout(reg) words => _, turns = inout(reg) count / AT_ONCE => _,
            options(nostack, readonly),
        );
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_the_sum_differs_with_any_word_and_with_their_order() {
        let words: Vec<u64> = (1..=64).map(|index| index * 0x0123_4567_89ab_cdef).collect();
        // SAFETY: 64 words.
        let of = |words: &[u64]| unsafe { add(0, words.as_ptr(), 64) };
        let whole = of(&words);
        for index in 0..64 {
            let mut other = words.clone();
            other[index] ^= 1;
            assert_ne!(of(&other), whole, "{index}");
        }
        let mut swapped = words.clone();
        swapped.swap(3, 40);
        assert_ne!(of(&swapped), whole);
        // SAFETY: no word is read.
        assert_eq!(unsafe { add(7, words.as_ptr(), 0) }, 7);
    }
}
