//! `until_overflow` names the exact instruction: against stepping one by one.

mod common;

use common::{EDGE, EN, INV, OS, USR, counter, pmu, width, write};
use core::num::NonZeroU32;
use pmu_model::{Delta, Host, Model, Pmu, Ratio, Ring, RingMask, Timing};
use proptest::prelude::*;

/// Steps single instructions until something overflows; `None` after `limit`.
fn walk(pmu: &Pmu, ring: Ring, limit: u64) -> Option<u64> {
    let mut pmu = pmu.clone();
    (1..=limit).find(|_| pmu.advance(&Delta::step(ring)).overflowed != 0)
}

/// Bulk events by code and unit mask.
fn bulk_events(model: Model) -> Vec<u64> {
    match model {
        Model::K10 | Model::Zen2 => vec![0x76, 0xC0, 0xC1],
        Model::Zen4 => vec![0x76, 0xC0, 0xC1, 1 << 32 | 0x120],
        Model::Haswell => vec![0x3C, 0xC0, 0x13C, 0x15C, 0x25C],
        Model::IceLake | Model::SapphireRapids | Model::ArrowLake => {
            vec![0x3C, 0xC0, 0x13C, 0x1A4, 0x2A4]
        }
        Model::Nehalem => vec![0x3C, 0xC0, 0x13C, 0x10E],
        _ => vec![0x3C, 0xC0, 0x13C],
    }
}

/// Which event, rings, CMASK, INV and EDGE, events until it wraps.
fn programs() -> impl Strategy<Value = (prop::sample::Index, u64, u64, (bool, bool), u64)> {
    (any::<prop::sample::Index>(), 0u64..4, 0u64..3, any::<(bool, bool)>(), 1u64..700)
}

proptest! {
    #[test]
    fn until_overflow_is_the_first_overflowing_instruction(
        model in prop::sample::select(common::with_counters().collect::<Vec<_>>()),
        events in prop::collection::vec(programs(), 2..=2),
        fixed in prop::collection::vec((0u64..4, 1u64..700), 4..=4),
        before in 0u64..50,
        clock in (1u32..9, 1u32..9),
        cycles in prop::sample::select(&[1u32, 1, 2, 3, 16][..]),
    ) {
        let timing = Timing {
            instruction_cycles: NonZeroU32::new(cycles).unwrap(),
            reference_clock: Ratio::new(clock.0, clock.1),
            bus_clock: Ratio::new(clock.1, clock.0),
            ..Timing::DEFAULT
        };
        let mut pmu = Pmu::new(model, Host::EXAMPLE, timing);
        let top = 1u64 << width(model);
        for (n, (event, rings, cmask, (invert, edge), left)) in events.iter().enumerate() {
            let registers = counter(model, n as u32);
            let code = *event.get(&bulk_events(model));
            // The extra nibble of AMD's event code is in bits 35:32.
            let code = if code > 0xFFFF { 0x1_0000_0120 } else { code };
            write(&mut pmu, registers.selector, code | rings << 16 | cmask << 24 | EN
                | if *invert { INV } else { 0 } | if *edge { EDGE } else { 0 });
            write(&mut pmu, registers.counter, top - left);
        }
        for n in 0..common::fixed_counters(model) {
            let (rings, left) = fixed[n as usize];
            let control = pmu.read_msr(0x38D).unwrap() | rings << (4 * n);
            write(&mut pmu, 0x38D, control);
            write(&mut pmu, 0x309 + n, top - left);
            let control = pmu.read_msr(0x38F).unwrap() | 1 << (32 + n);
            write(&mut pmu, 0x38F, control);
        }
        // Somewhere in the middle of a clock's tick.
        pmu.advance(&common::user(before));
        for (ring, mask) in [(Ring::User, RingMask::USER), (Ring::Kernel, RingMask::KERNEL)] {
            let horizon = pmu.until_overflow(mask).filter(|steps| *steps <= 8000);
            prop_assert_eq!(horizon, walk(&pmu, ring, 8000), "{:?} {:?}", model, ring);
        }
        let both = pmu.until_overflow(RingMask::BOTH);
        let least = [RingMask::USER, RingMask::KERNEL].into_iter()
            .filter_map(|mask| pmu.until_overflow(mask)).min();
        prop_assert_eq!(both, least);
    }

    /// Many instructions at once count what they count one by one.
    #[test]
    fn a_bulk_report_is_the_sum_of_its_steps(
        event in prop::sample::select(&[0x3C, 0xC0, 0x13C, 0x10E, 0x1C2, 0x9C][..]),
        condition in (0u64..3, any::<bool>(), any::<bool>()),
        parts in prop::collection::vec(0u64..40, 0..8),
        shift in 0u8..5,
    ) {
        let (cmask, invert, edge) = condition;
        let selector = event | USR | OS | EN | cmask << 24
            | if invert { INV } else { 0 } | if edge { EDGE } else { 0 };
        let fresh = || {
            let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::of_tsc(shift));
            write(&mut pmu, 0x186, selector);
            pmu
        };
        let (mut bulk, mut steps) = (fresh(), fresh());
        for part in parts {
            bulk.advance(&common::user(part));
            for _ in 0..part {
                steps.advance(&Delta::step(Ring::User));
            }
            prop_assert_eq!(bulk.read_msr(0x4C1).unwrap(), steps.read_msr(0x4C1).unwrap());
        }
    }

    /// No mix of rings overflows before the figure for both.
    #[test]
    fn no_mix_of_rings_comes_earlier(
        rings in prop::collection::vec(any::<bool>(), 300),
        counters in prop::collection::vec((1u64..4, 1u64..250), 3..=3),
    ) {
        let mut pmu = pmu(Model::Skylake);
        for (n, (rings, left)) in counters.into_iter().enumerate() {
            let code = if n == 2 { 0x13C } else { 0xC0 };
            write(&mut pmu, 0x186 + n as u32, code | rings << 16 | EN);
            write(&mut pmu, 0x4C1 + n as u32, (1 << 48) - left);
        }
        let safe = pmu.until_overflow(RingMask::BOTH).unwrap();
        for user in rings.into_iter().take(safe as usize - 1) {
            let ring = if user { Ring::User } else { Ring::Kernel };
            prop_assert_eq!(pmu.advance(&Delta::step(ring)).overflowed, 0);
        }
    }
}

#[test]
fn nothing_that_runs_has_no_horizon() {
    for model in Model::ALL {
        assert_eq!(pmu(model).until_overflow(RingMask::BOTH), None, "{model:?}");
    }
    let mut pmu = pmu(Model::Skylake);
    // Branches must be stepped; they are not in the horizon.
    write(&mut pmu, 0x186, 0xC4 | USR | OS | EN);
    assert_eq!(pmu.until_overflow(RingMask::BOTH), None);
    assert!(pmu.needs().stepping());
}

#[test]
fn a_counter_of_one_ring_has_no_horizon_in_the_other() {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x186, 0xC0 | USR | EN);
    assert_eq!(pmu.until_overflow(RingMask::USER), Some(1 << 48));
    assert_eq!(pmu.until_overflow(RingMask::KERNEL), None);
    assert_eq!(pmu.until_overflow(RingMask::BOTH), Some(1 << 48));
    assert_eq!(pmu.until_overflow(RingMask::NONE), None);
}

#[test]
fn cycles_in_which_nothing_retires_are_seen_by_counter_mask_and_inversion() {
    // 1,000 instructions of 16 cycles: 1,000 cycles with one, 15,000 without, and as many edges as instructions.
    const ONE: u64 = 1 << 24;
    for (selector, expected) in [
        (0x3C, 16_000),
        (0xC0, 1_000),
        (0xC0 | ONE, 1_000),
        (0xC0 | ONE | INV, 15_000),
        (0xC0 | ONE | EDGE, 1_000),
        (0xC0 | 16 << 24 | INV, 16_000),
    ] {
        let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::of_tsc(4));
        write(&mut pmu, 0x186, selector | USR | OS | EN);
        pmu.advance(&common::user(1_000));
        assert_eq!(pmu.read_msr(0x4C1).unwrap(), expected, "{selector:#x}");
    }
}
