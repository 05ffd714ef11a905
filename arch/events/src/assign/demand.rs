//! What assignment needs to know of a request: sets of units and MSR values, and nothing else.

use crate::encode::{Choice, Counters, Encoded};
use crate::msr::MsrValue;
use alloc::vec::Vec;

/// Where fixed counters start in a set of units: general-purpose counters are bits 0 to 47.
pub(crate) const FIXED_AT: u32 = 48;
/// Where the fields of MSR_PERF_METRICS start among the fixed counters, of which no processor has more than eight.
pub(crate) const METRICS_BEHIND: u8 = 8;
/// All fixed counters.
pub(crate) const FIXED_UNITS: u64 = !0 << FIXED_AT;

/// One way to count a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Any one of these units.
    pub units: u64,
    /// While this MSR holds this value.
    pub msr: Option<MsrValue>,
}

/// A request, as far as assignment goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Ways to count it, in the order of the request's choices.
    pub ways: Vec<Way>,
    /// All units of all ways.
    pub units: u64,
    /// It needs the next unit as well; its own is an even one.
    pub merge: bool,
    /// No other request may be on a general-purpose counter.
    pub alone: bool,
}

impl Demand {
    pub fn new(request: &Encoded) -> Self {
        let way = |choice: &Choice| match choice.counters {
            Counters::General { counters, .. } => {
                Way { units: counters & !FIXED_UNITS, msr: choice.msr }
            }
            Counters::Fixed { index, .. } => Way {
                units: match index {
                    0..METRICS_BEHIND => 1 << (FIXED_AT + u32::from(index)),
                    _ => 0,
                },
                msr: choice.msr,
            },
            // Each counts together with all others.
            Counters::Metric { field, .. } => Way {
                units: 1_u64
                    .checked_shl(FIXED_AT + u32::from(METRICS_BEHIND) + u32::from(field))
                    .unwrap_or(0),
                msr: None,
            },
        };
        let merge =
            |choice: &Choice| matches!(choice.counters, Counters::General { merge: true, .. });
        Self::of(
            request.choices.iter().map(way).collect(),
            request.choices.iter().any(merge),
            request.taken_alone,
        )
    }

    pub fn of(ways: Vec<Way>, merge: bool, alone: bool) -> Self {
        Self { units: ways.iter().fold(0, |units, way| units | way.units), ways, merge, alone }
    }

    /// Whether a choice of units is all that it needs.
    pub fn is_plain(&self) -> bool {
        !self.merge && !self.alone && self.ways.iter().all(|way| way.msr.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units 48 to 63.
    #[test]
    fn the_fixed_counters_are_the_16_units_behind_48() {
        assert_eq!(FIXED_UNITS, 0xffff_0000_0000_0000);
    }
}
