//! Faults of topdown slots and PERF_METRICS.

use super::user;
use crate::common::{EN, USR, read, write};
use pmu_model::{Mutation, Occurrence, Pmu};

pub(super) fn is_of_slots(fault: Mutation) -> bool {
    let name = format!("{fault:?}");
    name.starts_with("Slots") || name.starts_with("Metrics")
}

/// A hundred instructions, a tenth of them mispredicted branches, as slots and as PERF_METRICS.
pub(super) fn slots_are_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    const METRICS: u32 = 0x329;
    let width = u64::from(pmu.spec().width);
    let count = |pmu: &mut Pmu, enable: u64| {
        write(pmu, 0x186, 0x01A4 | EN | USR);
        write(pmu, 0x38D, 0x2000);
        write(pmu, 0x38F, enable | 1 << 35 | 1);
        write(pmu, 0x30C, 0);
        write(pmu, 0xC1, 0);
        write(pmu, METRICS, 0);
        pmu.advance(&user(100).with(Occurrence::MissedReturn, 10));
        (read(pmu, 0x30C), read(pmu, 0xC1), read(pmu, METRICS))
    };
    let (slots, general, shares) = count(pmu, 1 << 48);
    let field = |index: u32| shares >> (8 * index) & 0xFF;
    // Each misprediction takes 16 cycles of its own.
    let cycles = 100 + 160;
    match fault {
        SlotsTwice => slots == width * cycles,
        SlotsEventDiffers => general == slots,
        MetricsSumTooSmall => (0..4).map(field).sum::<u64>() == 255,
        MetricsRetiringLost => field(0) == 100 * 255 / slots,
        MetricsMispredictsLost => field(1) > 150,
        MetricsSecondLevelWrong => field(7) <= field(3),
        MetricsWriteGoesOn => {
            write(pmu, METRICS, 0);
            read(pmu, METRICS) == 0
        }
        MetricsReservedAccepted => pmu.write_msr(METRICS, 1 << 32).is_err(),
        MetricsRdpmcAbsent => pmu.rdpmc(0x2000_0000) == Ok(shares),
        MetricsEnableIgnored => count(pmu, 0).2 == 0,
        MetricsStatusStuck => {
            write(pmu, 0x391, 1 << 48);
            read(pmu, 0x38E) == 1 << 48
        }
        MetricsOverflowEarly => {
            count(pmu, 1 << 48);
            read(pmu, 0x38E) & 1 << 48 == 0
        }
        _ => unreachable!("{fault:?} is none of slots"),
    }
}
