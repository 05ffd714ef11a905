//! A register of 32 bits that starts over, read often enough.

/// Joules in a second that no machine exceeds in one domain: a register is trusted to have wrapped at most once since it was read
/// if that many could not have made it wrap twice.
const MOST_WATTS: u64 = 1 << 11;

/// What a register of energy has counted since it began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Meter {
    last: u32,
    total: u64,
}

impl Meter {
    /// Begins with what the register reads now.
    #[must_use]
    pub const fn begin(reads: u32) -> Self {
        Self { last: reads, total: 0 }
    }

    /// The register reads this now. It may have wrapped once since it was read before.
    pub const fn note(&mut self, reads: u32) {
        self.total += reads.wrapping_sub(self.last) as u64;
        self.last = reads;
    }

    /// Units since the beginning.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Seconds within which a register with this unit (14 means 2^-14 J) must be read again.
    #[must_use]
    pub const fn seconds(unit: u8) -> u64 {
        (1 << 32 >> unit) / MOST_WATTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn s4_a_register_of_server_memory_is_read_within_half_a_minute() {
        // 2^32 units of 2^-16 J are 65,536 J.
        assert_eq!([Meter::seconds(16), Meter::seconds(14)], [32, 128]);
        assert!(Meter::seconds(0) > 1 << 20);
    }

    proptest! {
        /// Whatever the register began with, and wherever it wraps, the sum of what it moved by comes out.
        #[test]
        fn s4_a_register_that_wraps_loses_nothing(first: u32, steps in prop::collection::vec(any::<u32>(), 0..50)) {
            let (mut meter, mut reads) = (Meter::begin(first), first);
            for step in &steps {
                reads = reads.wrapping_add(*step);
                meter.note(reads);
            }
            prop_assert_eq!(meter.total(), steps.iter().map(|&step| u64::from(step)).sum::<u64>());
        }
    }
}
