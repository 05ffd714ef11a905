//! Many instructions in one delta count as the same one by one.

mod common;

use common::{EN, INT, INV, OS, USR, write};
use pmu_model::{Delta, Host, Model, Occurrence, Pmu, Ring, Timing};
use proptest::prelude::*;

/// Branches, mispredicted ones, conditional ones; loads, last-level misses.
const EVENTS: [u64; 5] = [0xC4, 0xC5, 0x1C4, 0x81D0, 0x412E];

/// A selector that a delta of several instructions serves.
fn selector() -> impl Strategy<Value = u64> {
    let branches = (0..3usize, 0..3u64, any::<bool>())
        .prop_map(|(event, mask, invert)| EVENTS[event] | mask << 24 | u64::from(invert) * INV);
    let plain = prop::sample::select(&EVENTS[..]);
    let amounts = prop::sample::select(&[0xC0u64, 0x3C, 0x13C, 0xC0 | 1 << 24 | INV][..]);
    prop_oneof![branches, plain, amounts]
}

/// What an instruction does: a branch or none, and a number of loads.
fn instruction() -> impl Strategy<Value = (Option<Occurrence>, u64)> {
    use Occurrence::*;
    const BRANCHES: [Occurrence; 6] =
        [JccNotTaken, JccTakenForward, Return, MissedJccNotTaken, MissedReturn, FarBranch];
    (prop::option::of(prop::sample::select(&BRANCHES[..])), 0..3u64)
}

fn machine(timing: Timing, selectors: &[u64]) -> Pmu {
    let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, timing);
    for (n, selector) in (0..).zip(selectors) {
        write(&mut pmu, 0x186 + n, selector | EN | USR | OS | INT);
    }
    pmu
}

fn counters(pmu: &mut Pmu) -> [u64; 4] {
    [0xC1, 0xC2, 0xC3, 0xC4].map(|msr| pmu.read_msr(msr).unwrap())
}

proptest! {
    #[test]
    fn in_bulk_as_one_by_one(
        shift in 0..6u8,
        selectors in prop::collection::vec(selector(), 4),
        stays in prop::collection::vec(prop::collection::vec(instruction(), 0..60), 1..8),
    ) {
        let timing = Timing::of_tsc(shift);
        let (mut bulk, mut stepped) = (machine(timing, &selectors), machine(timing, &selectors));
        prop_assert_eq!(bulk.needs().unspread, 0);
        for stay in stays {
            let mut sum = Delta::bulk(Ring::User, stay.len() as u64);
            for (branch, loads) in stay {
                let mut one = Delta::step(Ring::User).with(Occurrence::Load, loads);
                one.add(Occurrence::LlcMiss, loads / 2);
                sum.add(Occurrence::Load, loads);
                sum.add(Occurrence::LlcMiss, loads / 2);
                if let Some(branch) = branch {
                    one.add(branch, 1);
                    sum.add(branch, 1);
                }
                stepped.advance(&one);
            }
            bulk.advance(&sum);
            prop_assert_eq!(counters(&mut bulk), counters(&mut stepped));
        }
    }

    /// Up to the limit and no further, the overflow is that of the last instruction.
    #[test]
    fn a_limit_is_the_event_that_overflows(left in 1..200u64, instructions in 0..300u64) {
        let branch = |count| Delta::bulk(Ring::User, count).with(Occurrence::Return, count);
        let mut pmu = machine(Timing::of_tsc(2), &[0xC4]);
        write(&mut pmu, 0x4C1, (1 << 48) - left);
        let limit = pmu.limits(pmu_model::RingMask::USER).next().unwrap();
        prop_assert_eq!(limit.left, left);
        let mut sum = branch(limit.left - 1);
        sum.instructions += instructions;
        prop_assert_eq!(pmu.advance(&sum).overflowed, 0);
        let outcome = pmu.advance(&branch(1));
        prop_assert!(outcome.pmi && outcome.overflowed == 1 && outcome.late_instructions == 0);
    }
}

#[test]
fn millions_fit() {
    let mut pmu = machine(Timing::of_tsc(0), &[0xC4]);
    let many = 3 << 40;
    pmu.advance(&Delta::bulk(Ring::Kernel, many).with(Occurrence::RelativeJump, many));
    assert_eq!(counters(&mut pmu)[0], many);
}
