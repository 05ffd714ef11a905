//! An assignment as register values, ready to be written.

use super::{Assignment, Counter};
use crate::cpu::Vendor;
use crate::encode::{Counters, Encoded, merge_select};
use crate::msr::MsrValue;
use alloc::vec::Vec;

/// What to write before counting starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Event selects by counter, those of AMD's merge partners included, in rising order.
    pub selects: Vec<(u8, u64)>,
    /// IA32_FIXED_CTR_CTRL.
    pub fixed_control: u64,
    /// Extra MSRs.
    pub msrs: Vec<MsrValue>,
    /// The counters in the layout of IA32_PERF_GLOBAL_CTRL: general-purpose ones from bit 0, fixed
    /// ones from bit 32.
    pub global_control: u64,
    /// The precise ones among them, in the layout of IA32_PEBS_ENABLE.
    pub pebs_enable: u64,
}

/// The registers of an assignment of these requests.
#[must_use]
pub fn registers(assignment: &Assignment, requests: &[&Encoded], vendor: Vendor) -> Registers {
    let mut out = Registers { msrs: assignment.msrs.clone(), ..Registers::default() };
    for (place, request) in assignment.places.iter().zip(requests) {
        let Some(choice) = request.choices.get(place.choice) else {
            continue;
        };
        let bit = match (place.counter, choice.counters) {
            (Counter::General(index), Counters::General { select, merge, .. }) => {
                out.selects.push((index, select.to_bits(vendor)));
                if merge {
                    out.selects.push((index + 1, merge_select().to_bits(vendor)));
                    out.global_control |= 2 << index;
                }
                1 << index
            }
            (Counter::Fixed(index), Counters::Fixed { control, .. }) => {
                out.fixed_control |= control.to_bits(index);
                1 << (32 + index)
            }
            // The register counts by bit 48, and its slots by those of fixed counter 3.
            (Counter::Metric(_), Counters::Metric { control, .. }) => {
                out.fixed_control |= control.to_bits(3);
                1 << 48 | 1 << 35
            }
            _ => 0,
        };
        out.global_control |= bit;
        if request.precise > 0 {
            out.pebs_enable |= bit;
        }
    }
    out.selects.sort_unstable();
    out
}
