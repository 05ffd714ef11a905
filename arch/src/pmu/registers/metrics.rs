//! MSR_PERF_METRICS (SDM vol. 3, 20.3.9.3).

/// Eight fractions of all issue slots, each in units of 1/255.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PerfMetrics(pub u64);

impl PerfMetrics {
    /// Fraction `index`: 0 retiring, 1 bad speculation, 2 front end, 3 back end; on Sapphire Rapids and later also
    /// 4 heavy operations, 5 mispredicted branches, 6 fetch latency, 7 memory.
    #[must_use]
    pub const fn field(self, index: u8) -> u8 {
        (self.0 >> (8 * index)) as u8
    }

    /// The slots of fraction `index`, rounded down, where all are `slots`. What the register rounds off is known to no one: the
    /// true count lies within 1/255 of all slots.
    #[must_use]
    pub const fn part(self, slots: u64, index: u8) -> u64 {
        (slots as u128 * self.field(index) as u128 / 255) as u64
    }

    /// The four fractions of the first level together: 255, but for rounding.
    #[must_use]
    pub fn first_level(self) -> u32 {
        (0..4).map(|index| u32::from(self.field(index))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fields_make_the_first_level() {
        let metrics = PerfMetrics(0xff00_0000_6432_1e4b);
        assert_eq!((metrics.field(0), metrics.field(3), metrics.field(7)), (0x4b, 0x64, 0xff));
        assert_eq!(metrics.first_level(), 255);
        assert_eq!((metrics.part(510, 0), metrics.part(u64::MAX, 7)), (150, u64::MAX));
    }
}
