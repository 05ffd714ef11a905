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

/// Fixed counter 3 and the register that divides it, each read once: all fields of a reading are of the same slots.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Slots {
    /// Fixed counter 3.
    pub slots: u64,
    /// How they are divided.
    pub shares: PerfMetrics,
}

impl Slots {
    /// What `field` has of the slots, or all of them.
    #[must_use]
    pub const fn of(self, field: Option<u8>) -> u64 {
        match field {
            Some(index) => self.shares.part(self.slots, index),
            None => self.slots,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_reading_are_of_the_same_slots() {
        let reading = Slots { slots: 510, shares: PerfMetrics(0xb4_00_4b) };
        assert_eq!(
            [Some(0), Some(1), Some(2), None].map(|field| reading.of(field)),
            [150, 0, 360, 510]
        );
    }

    #[test]
    fn four_fields_make_the_first_level() {
        let metrics = PerfMetrics(0xff00_0000_6432_1e4b);
        assert_eq!((metrics.field(0), metrics.field(3), metrics.field(7)), (0x4b, 0x64, 0xff));
        assert_eq!(metrics.first_level(), 255);
        assert_eq!((metrics.part(510, 0), metrics.part(u64::MAX, 7)), (150, u64::MAX));
    }
}
