//! A generator of numbers that look random: the same from the same seed on every machine.

/// Xorshift of 64 bits with Marsaglia's shifts 13, 7 and 17. Its state is never 0.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// One that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds shall differ in many bits: the golden ratio's, as in Fibonacci hashing.
        let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(if spread == 0 { 0x9e37_79b9_7f4a_7c15 } else { spread })
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`: the bits as a fraction of it. Some come more often than others by one in 2 to the 64 over
    /// `bound`. 0 if `bound` is.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}
