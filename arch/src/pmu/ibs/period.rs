//! How far it is from one sample to the next, and what the control register says of that.

use super::{Features, Unit};
use thiserror::Error;

/// Maximum counts leave their lowest four bits out.
const STEP: u64 = 16;
/// Bits of the maximum count in bits 15:0: IbsOpMaxCnt\[19:4\], IbsFetchMaxCnt\[19:4\].
const LOW: u64 = 0xffff;
/// The rest of IbsOpMaxCnt, bits 26:20 of the count and of the register.
const HIGH: u64 = 0x7f << 20;
/// IbsOpCntCtl: operations in place of cycles.
const COUNTS_OPS: u64 = 1 << 19;

/// Why there is no such period.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum PeriodError {
    /// It is not a multiple of 16.
    #[error("IBS counts in steps of {STEP}: a period of {asked} is none, the nearest are {} and {}", asked / STEP * STEP, asked / STEP * STEP + STEP)]
    Step {
        /// What was asked for.
        asked: u64,
    },
    /// It does not fit the register.
    #[error("a period of {asked} is out of IBS's range, which is {STEP} to {most} here")]
    Range {
        /// What was asked for.
        asked: u64,
        /// The longest.
        most: u64,
    },
    /// CPUID leaf 0x8000001B EAX\[4\] is clear.
    #[error("IBS counts cycles here, but no operations (CPUID 0x8000001B EAX[4])")]
    NoOps,
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
        #[test]
        fn no_period_touches_another_bit(length in 0u64..1 << 28, ops: bool, fetch: bool) {
            let unit = if fetch { Unit::Fetch } else { Unit::Op };
            if let Ok(period) = Period::new(unit, ops && !fetch, length, ALL) {
                let allowed = LOW | if fetch { 0 } else { HIGH | COUNTS_OPS };
                prop_assert_eq!(period.off() & !allowed, 0);
                let counted = (period.off() & LOW) << 4 | period.off() & HIGH;
                prop_assert_eq!(counted, length);
                prop_assert_eq!(period.on() ^ period.off(), unit.enable());
            }
        }
    }
}
