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

    /// What a field has of the slots, to the nearest slot: of up to 127 slots the true count, whether the register rounds down or to
    /// the nearest 255th, as a 255th of them is less than half a slot. The back end has what the other three of its level leave, as
    /// each slot is one of the four: where all four are made to add up to 255, one of them has the rounding of all.
    #[must_use]
    pub fn nearest(self, field: u8) -> u64 {
        const BACK_END: u8 = 3;
        let near = |field: u8| {
            let share = u128::from(self.shares.field(field));
            ((u128::from(self.slots) * share + 127) / 255) as u64
        };
        if field == BACK_END && self.shares.first_level() == 255 {
            return (0..BACK_END).fold(self.slots, |left, other| left.saturating_sub(near(other)));
        }
        near(field)
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
    fn m16_few_slots_are_known_to_the_slot_however_the_register_rounds() {
        for slots in 1..=127_u64 {
            for own in 0..=slots {
                let down = 255 * own / slots;
                let near = (255 * own + slots / 2) / slots;
                for share in [down, near] {
                    let reading = Slots { slots, shares: PerfMetrics(share << 8) };
                    assert_eq!(reading.nearest(1), own, "{share}/255 of {slots}");
                }
            }
        }
        // 11, 11, 11 and 27 slots: each of the first three loses most of a 255th, which the back end has.
        let reading = Slots { slots: 60, shares: PerfMetrics(117 << 24 | 46 << 16 | 46 << 8 | 46) };
        assert_eq!([0, 1, 2, 3].map(|field| reading.nearest(field)), [11, 11, 11, 27]);
        let greatest = Slots { slots: u64::MAX, shares: PerfMetrics(0xff) };
        assert_eq!(greatest.nearest(0), u64::MAX);
    }

    #[test]
    fn four_fields_make_the_first_level() {
        let metrics = PerfMetrics(0xff00_0000_6432_1e4b);
        assert_eq!((metrics.field(0), metrics.field(3), metrics.field(7)), (0x4b, 0x64, 0xff));
        assert_eq!(metrics.first_level(), 255);
        assert_eq!((metrics.part(510, 0), metrics.part(u64::MAX, 7)), (150, u64::MAX));
    }
}
