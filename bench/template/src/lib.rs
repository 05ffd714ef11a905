//! What is measured. Replace it by code of your own, or name your crate in Cargo.toml.
#![no_std]

/// Binomial coefficient: how many ways there are to choose `k` of `n` things.
#[must_use]
pub fn choose(n: u64, k: u64) -> u64 {
    (0..k).fold(1, |product, i| product * (n - i) / (i + 1))
}

/// FNV-1a, a hash of 64 bits.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Sorts by insertion.
pub fn insertion_sort(numbers: &mut [u64]) {
    for end in 1..numbers.len() {
        let mut at = end;
        while at > 0 && numbers[at - 1] > numbers[at] {
            numbers.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Square root by Newton's method.
#[must_use]
pub fn square_root(number: f64) -> f64 {
    (0..20).fold(number, |root, _| 0.5 * (root + number / root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_right() {
        assert_eq!(choose(10, 3), 120);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert!((square_root(2.0) - core::f64::consts::SQRT_2).abs() < 1e-15);
        let mut numbers = [3, 1, 2];
        insertion_sort(&mut numbers);
        assert_eq!(numbers, [1, 2, 3]);
    }
}
