use super::registers::LbrSelect;
use super::*;
use pmu_model::{Branch, BranchKind, Ring};

const KERNEL: u64 = 0xffff_ffff_8000_0000;

/// A jump from place `n` to place `n + 1`, every third one mispredicted, every other one a call.
fn branch(n: u64) -> Branch {
    Branch {
        from: KERNEL + 0x100 * n,
        to: KERNEL + 0x100 * (n + 1),
        kind: if n.is_multiple_of(2) { BranchKind::RelativeJump } else { BranchKind::RelativeCall },
        taken: true,
        mispredicted: n.is_multiple_of(3),
        ring: Ring::Kernel,
        cycles: 5,
    }
}

#[test]
fn records_come_newest_first_on_every_model() {
    for (model, mut pmu, driver) in machines() {
        let has = driver.capabilities();
        lbr::start(&mut pmu, has, LbrSelect::empty()).unwrap();
        for n in 0..50 {
            pmu.record_branch(&branch(n));
        }
        lbr::stop(&mut pmu, has).unwrap();
        pmu.record_branch(&branch(90));
        let seen = lbr::records(&mut pmu, has).unwrap();
        assert_eq!(seen.len(), usize::from(has.lbr.entries()), "{model:?}");
        for (age, record) in (0..).zip(&seen) {
            let expected = branch(49 - age);
            assert_eq!((record.from, record.to), (expected.from, expected.to), "{model:?} {age}");
            if let Some(mispredicted) = record.mispredicted {
                assert_eq!(mispredicted, expected.mispredicted, "{model:?} {age}");
            }
        }
    }
}

#[test]
fn a_start_forgets_what_was_recorded_before() {
    for (model, mut pmu, driver) in machines() {
        let has = driver.capabilities();
        if has.lbr == LbrKind::Single {
            continue;
        }
        for records in [3, 1] {
            lbr::start(&mut pmu, has, LbrSelect::empty()).unwrap();
            for n in 0..records {
                pmu.record_branch(&branch(n));
            }
            lbr::stop(&mut pmu, has).unwrap();
            let seen = lbr::records(&mut pmu, has).unwrap().len();
            assert_eq!(seen as u64, records, "{model:?}");
        }
    }
}

#[test]
fn a_filter_keeps_out_what_it_names_or_is_refused() {
    for (model, mut pmu, driver) in machines() {
        let has = driver.capabilities();
        let started = lbr::start(&mut pmu, has, LbrSelect::NOT_RELATIVE_CALL);
        let filters = !matches!(model, Model::Core2 | Model::K10 | Model::Zen2);
        assert_eq!(started.is_ok(), filters, "{model:?}: {started:?}");
        if filters {
            for n in 0..8 {
                pmu.record_branch(&branch(n));
            }
            lbr::stop(&mut pmu, has).unwrap();
            let seen = lbr::records(&mut pmu, has).unwrap();
            let from: Vec<u64> = seen.iter().map(|record| record.from).collect();
            assert_eq!(from, [6, 4, 2, 0].map(|n| branch(n).from), "{model:?}");
        }
    }
}
