//! How far it is from one sample to the next, and what the control register says of that.

use super::{Features, Unit};
use thiserror::Error;

/// Maximum counts leave their lowest four bits out.
const STEP: u64 = 16;
/// Bits of the maximum count in bits 15:0: IbsOpMaxCnt\[19:4\], IbsFetchMaxCnt\[19:4\].
const LOW: u64 = 0xffff;
/// The rest of IbsOpMaxCnt, bits 26:20 of the count and of the register.
const HIGH: u64 = 0x7f << 20;
/// IbsOpLdLatEn: loads below a threshold are not sampled (Linux, `IBS_OP_LDLAT_EN`).
const FILTERS: u64 = 1 << 63;
/// IbsOpCntCtl: operations in place of cycles.
const COUNTS_OPS: u64 = 1 << 19;

/// IbsRandEn: bits 3:0 of the count of fetches start from random ones.
const FETCH_RANDOM: u64 = 1 << 57;
/// Random periods start from 1 to 127, on average from this.
const MIDDLE: u64 = 64;

/// Why there is no such period.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum PeriodError {
    /// It is not a multiple of 16.
    #[error("IBS periods are multiples of {STEP}, {asked} is not; the nearest are {} and {}", asked / STEP * STEP, asked / STEP * STEP + STEP)]
    Step {
        /// What was requested.
        asked: u64,
    },
    /// It does not fit the register.
    #[error("a period of {asked} is out of IBS's range, which is {STEP} to {most} here")]
    Range {
        /// What was requested.
        asked: u64,
        /// The longest.
        most: u64,
    },
    /// CPUID leaf 0x8000001B EAX\[4\] is clear.
    #[error("IBS counts cycles here, but no operations (CPUID 0x8000001B EAX[4])")]
    NoOps,
    /// CPUID leaf 0x8000001B EAX\[3\] is clear.
    #[error(
        "IBS's current count cannot be written here (CPUID 0x8000001B EAX[3]), so its periods are not randomised"
    )]
    FixedStart,
    /// CPUID leaf 0x8000001B EAX\[2\] or \[1\] is clear.
    #[error("this processor's IBS samples no {0} (CPUID 0x8000001B EAX)")]
    NoUnit(&'static str),
}

/// A period, as the control register takes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Period {
    unit: Unit,
    /// The control register with that maximum count, and the unit off.
    off: u64,
    length: u64,
}

impl Period {
    /// A period of `length` cycles, operations or fetches.
    ///
    /// # Errors
    /// The processor, which has these features, cannot make it.
    pub const fn new(
        unit: Unit,
        operations: bool,
        length: u64,
        has: Features,
    ) -> Result<Self, PeriodError> {
        let (feature, name) = match unit {
            Unit::Op => (Features::OP, "operations"),
            Unit::Fetch => (Features::FETCH, "fetches"),
        };
        if !has.contains(feature) {
            return Err(PeriodError::NoUnit(name));
        }
        if operations && !has.contains(Features::COUNTS_OPS) {
            return Err(PeriodError::NoOps);
        }
        let wide = matches!(unit, Unit::Op) && has.contains(Features::WIDE_COUNT);
        let most = if wide { HIGH | LOW << 4 } else { LOW << 4 };
        if length < STEP || length > most {
            return Err(PeriodError::Range { asked: length, most });
        }
        if !length.is_multiple_of(STEP) {
            return Err(PeriodError::Step { asked: length });
        }
        let counts = if operations { COUNTS_OPS } else { 0 };
        let off = length >> 4 & LOW | length & HIGH | counts;
        Ok(Self { unit, off, length })
    }

    /// The same with random periods, whose mean is this one: software lets each start from a count of its own of 1 to 127, and
    /// the maximum is higher by 64. Linux keeps as many low bits of IbsOpCurCnt random (`IBS_OP_CUR_CNT_RAND`); of a fetch's
    /// count the lowest four are the processor's own random ones (IbsRandEn).
    ///
    /// # Errors
    /// The processor cannot, or the maximum does not fit.
    pub const fn randomised(self, has: Features) -> Result<Self, PeriodError> {
        if matches!(self.unit, Unit::Op) && !has.contains(Features::READ_WRITE_COUNT) {
            return Err(PeriodError::FixedStart);
        }
        let operations = self.off & COUNTS_OPS != 0;
        match Self::new(self.unit, operations, self.length + MIDDLE, has) {
            Ok(longer) => {
                let random = if matches!(self.unit, Unit::Fetch) { FETCH_RANDOM } else { 0 };
                Ok(Self { unit: self.unit, off: longer.off | random, length: self.length })
            }
            Err(PeriodError::Range { most, .. }) => {
                Err(PeriodError::Range { asked: self.length, most: most - MIDDLE })
            }
            Err(other) => Err(other),
        }
    }

    /// The same, of loads alone that take at least `cycles`, in steps of 128 from 128 to 2048 (IbsOpLdLat and its threshold, less
    /// one, Linux `IBS_OP_LDLAT_EN` and `IBS_OP_LDLAT_THRSH`). Unchanged where the processor cannot, or the threshold is lower:
    /// whoever takes the samples has to look at each anyway.
    #[must_use]
    pub const fn of_loads_from(self, cycles: u64, has: Features) -> Self {
        const STEP: u64 = 128;
        let most = 16;
        let steps = if cycles / STEP > most { most } else { cycles / STEP };
        let can = has.contains(Features::LOAD_LATENCY) && matches!(self.unit, Unit::Op);
        if !can || steps == 0 {
            return self;
        }
        Self { off: self.off | FILTERS | (steps - 1) << 59, ..self }
    }

    /// Whether the unit itself keeps loads away.
    #[must_use]
    pub const fn is_filtered(self) -> bool {
        self.off & FILTERS != 0
    }

    /// Bits of the control register that let a random period start from a count that `random` chooses, and how long that period
    /// is. Of fetches 8 stands for the bits that the processor chooses, which nobody sees.
    #[must_use]
    pub const fn start(self, random: u32) -> (u64, u64) {
        let longest = self.length + MIDDLE;
        match self.unit {
            Unit::Op => {
                // As much of 127 as the random number is of its range.
                let count = 1 + ((random as u64 * 127) >> 32);
                (count << 32, longest - count)
            }
            Unit::Fetch => {
                let steps = random as u64 >> 29;
                (steps << 16, longest - (steps << 4) - 8)
            }
        }
    }

    /// What is sampled.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// Its length.
    #[must_use]
    pub const fn length(self) -> u64 {
        self.length
    }

    /// The control register with the unit off and no sample.
    #[must_use]
    pub const fn off(self) -> u64 {
        self.off
    }

    /// What to write one after the other to switch the unit off on family 10h, where an interrupt may stay pending otherwise: the
    /// maximum count is cleared first, and the unit goes off in a write of its own (erratum 420; Linux, `perf_ibs_disable_event`).
    #[must_use]
    pub const fn off_in_two(self) -> [u64; 2] {
        [self.on() & !(LOW | HIGH), self.off & !(LOW | HIGH)]
    }

    /// The control register with the unit on.
    #[must_use]
    pub const fn on(self) -> u64 {
        self.off | self.unit.enable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Features = Features::all();

    #[test]
    fn a_period_is_written_where_the_manual_has_its_bits() {
        let of = |unit, ops, length, has| Period::new(unit, ops, length, has).unwrap();
        let narrow = ALL.difference(Features::WIDE_COUNT);
        assert_eq!(of(Unit::Op, false, 0x1_2340, narrow).on(), 0x2_1234);
        assert_eq!(of(Unit::Op, true, 0x1_2340, narrow).off(), 0x8_1234);
        // Bits 26:20 stand where they are.
        assert_eq!(of(Unit::Op, false, 0x765_4320, ALL).off(), 0x760_5432);
        assert_eq!(of(Unit::Fetch, false, 0xf_fff0, ALL).on(), 0x1_0000_0000_ffff);
    }

    #[test]
    fn s1_a_latency_filter_stands_above_the_count_where_there_is_one() {
        let period = Period::new(Unit::Op, false, 256, ALL).unwrap();
        let bits = |cycles| period.of_loads_from(cycles, ALL).off() >> 59;
        assert_eq!([0, 127, 128, 255, 256, 2048, 9999].map(bits), [0, 0, 16, 16, 17, 31, 31]);
        let without = ALL.difference(Features::LOAD_LATENCY);
        assert_eq!(period.of_loads_from(256, without), period);
        let fetch = Period::new(Unit::Fetch, false, 256, ALL).unwrap();
        assert_eq!(fetch.of_loads_from(256, ALL), fetch);
        assert!(
            [127, 128].map(|cycles| period.of_loads_from(cycles, ALL).is_filtered())
                == [false, true]
        );
        // The filter stays where the unit is switched on and off.
        assert_eq!(period.of_loads_from(256, ALL).on() >> 59, 17);
    }

    #[test]
    fn s1_random_periods_have_the_length_as_their_mean() {
        for (unit, length, control) in [(Unit::Op, 0x100, 0x14), (Unit::Fetch, 0x1000, 0x104)] {
            let period = Period::new(unit, false, length, ALL).unwrap().randomised(ALL).unwrap();
            assert_eq!((period.off() & 0xffff, period.length()), (control, length));
            assert_eq!(period.off() >> 57, u64::from(unit == Unit::Fetch));
            let all = (0..=u32::MAX).step_by(1 << 20).map(|random| period.start(random));
            let (mut sum, mut count, mut least, mut most) = (0, 0, u64::MAX, 0);
            for (bits, long) in all {
                assert_eq!(bits & !unit.count_bits(), 0);
                assert_eq!(
                    unit.count(bits) + long + if unit == Unit::Fetch { 8 } else { 0 },
                    length + 64
                );
                (sum, count) = (sum + long, count + 1);
                (least, most) = (least.min(long), most.max(long));
            }
            assert!(sum.abs_diff(count * length) <= count / 2, "{unit:?}: {sum} in {count}");
            assert!(least <= length - 56 && most >= length + 56, "{unit:?}: {least} to {most}");
        }
        let period = |length| Period::new(Unit::Op, true, length, ALL).unwrap();
        let none = ALL.difference(Features::READ_WRITE_COUNT);
        assert_eq!(period(256).randomised(none), Err(PeriodError::FixedStart));
        let range = PeriodError::Range { asked: 0x7ff_fff0, most: 0x7ff_ffb0 };
        assert_eq!(period(0x7ff_fff0).randomised(ALL), Err(range));
        assert!(period(0x7ff_ffb0).randomised(ALL).is_ok());
        // What is counted stays: operations, or cycles.
        let cycles = Period::new(Unit::Op, false, 256, ALL).unwrap().randomised(ALL).unwrap();
        let operations = period(256).randomised(ALL).unwrap();
        assert_eq!([cycles, operations].map(|one| one.off() & COUNTS_OPS), [0, COUNTS_OPS]);
        let old = ALL.difference(Features::COUNTS_OPS);
        assert!(Period::new(Unit::Op, false, 256, old).unwrap().randomised(old).is_ok());
        // A filter stays in addition to it, whichever comes first.
        let filtered = period(256).randomised(ALL).unwrap().of_loads_from(128, ALL);
        assert_eq!(filtered.off() >> 59, 16);
    }

    #[test]
    fn periods_that_cannot_be_are_refused_with_those_that_can() {
        let of = |unit, ops, length, has| Period::new(unit, ops, length, has).unwrap_err();
        let said = of(Unit::Op, false, 1009, ALL).to_string();
        assert!(said.contains("the nearest are 1008 and 1024"), "{said}");
        assert_eq!(
            of(Unit::Op, false, 15, ALL),
            PeriodError::Range { asked: 15, most: 0x7ff_fff0 }
        );
        let narrow = ALL.difference(Features::WIDE_COUNT);
        for (unit, has) in [(Unit::Op, narrow), (Unit::Fetch, ALL)] {
            let most = 0xf_fff0;
            assert!(Period::new(unit, false, most, has).is_ok());
            assert_eq!(
                of(unit, false, most + 16, has),
                PeriodError::Range { asked: most + 16, most }
            );
        }
        let old = ALL.difference(Features::COUNTS_OPS);
        assert_eq!(of(Unit::Op, true, 64, old), PeriodError::NoOps);
        let none = Features::VALID;
        assert_eq!(of(Unit::Op, false, 64, none), PeriodError::NoUnit("operations"));
        assert_eq!(of(Unit::Fetch, false, 64, none), PeriodError::NoUnit("fetches"));
    }

    proptest! {
        /// All lengths that there are, of both units.
        #[test]
        fn no_period_touches_another_bit(steps in 1..=(HIGH | LOW << 4) / STEP, ops: bool, fetch: bool, wide: bool) {
            let (unit, most) = match (fetch, wide) {
                (true, _) => (Unit::Fetch, LOW << 4),
                (false, true) => (Unit::Op, HIGH | LOW << 4),
                (false, false) => (Unit::Op, LOW << 4),
            };
            let has = if wide { ALL } else { ALL.difference(Features::WIDE_COUNT) };
            let length = (1 + (steps - 1) % (most / STEP)) * STEP;
            let operations = ops && !fetch;
            let period = Period::new(unit, operations, length, has).unwrap();
            prop_assert_eq!(period.off() & COUNTS_OPS != 0, operations);
            let bits = LOW | if fetch { 0 } else { HIGH };
            let other = period.off() & !bits & !COUNTS_OPS;
            prop_assert_eq!(other, 0);
            let counted = (period.off() & LOW) << 4 | period.off() & HIGH;
            prop_assert_eq!(counted, length);
            prop_assert_eq!(period.on() ^ period.off(), unit.enable());
        }

        /// The rest: no length between the multiples, and none that is too long.
        #[test]
        fn lengths_that_cannot_be_are_no_period(length in 0..HIGH << 2, fetch: bool) {
            let (unit, most) = if fetch { (Unit::Fetch, LOW << 4) } else { (Unit::Op, HIGH | LOW << 4) };
            let fits = (STEP..=most).contains(&length) && length.is_multiple_of(STEP);
            prop_assert_eq!(Period::new(unit, false, length, ALL).is_ok(), fits);
        }
    }

    /// APM vol. 2, IbsOpCtl: IbsOpMaxCnt in bits 26:20 and 15:0, IbsOpCntCtl in bit 19.
    #[test]
    fn the_fields_are_where_the_manual_has_them() {
        assert_eq!((LOW, HIGH, COUNTS_OPS), (0xffff, 0x7f0_0000, 0x8_0000));
    }
}
