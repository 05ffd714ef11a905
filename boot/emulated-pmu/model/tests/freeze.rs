//! Freezing on a PMI: the legacy way, the streamlined way, AMD's way.

mod common;

use common::{EN, INT, OS, USR, arm, counter, pmu, read, write};
use pmu_model::{Branch, BranchKind, Model, Pmu, Ring};

const LBR: u64 = 1;
const FREEZE_LBRS: u64 = 1 << 11;
const FREEZE_PERFMON: u64 = 1 << 12;
const LBR_FRZ: u64 = 1 << 58;
const CTR_FRZ: u64 = 1 << 59;

/// Counter 0 overflows after ten instructions with an interrupt; counter 1 counts alongside.
fn armed(model: Model, debugctl: u64, interrupt: u64) -> Pmu {
    let mut pmu = pmu(model);
    write(&mut pmu, 0x1D9, debugctl);
    let selector = common::INSTRUCTIONS | EN | USR | OS;
    write(&mut pmu, counter(model, 0).selector, selector | interrupt);
    write(&mut pmu, counter(model, 1).selector, selector);
    arm(&mut pmu, model, 0, 10);
    pmu
}

fn counts(pmu: &mut Pmu, model: Model) -> (u64, u64) {
    (read(pmu, counter(model, 0).counter), read(pmu, counter(model, 1).counter))
}

fn branch(to: u64) -> Branch {
    Branch {
        from: 0x1000,
        to,
        kind: BranchKind::RelativeJump,
        taken: true,
        mispredicted: false,
        ring: Ring::User,
        cycles: 1,
    }
}

#[test]
fn versions_2_and_3_clear_the_enables() {
    for model in [Model::Core2, Model::Nehalem, Model::Haswell] {
        let mut pmu = armed(model, FREEZE_PERFMON | FREEZE_LBRS | LBR, INT);
        assert!(pmu.advance(&common::user(10)).pmi);
        assert_eq!(read(&mut pmu, 0x38F), 0, "{model:?}");
        assert_eq!(read(&mut pmu, 0x1D9), FREEZE_PERFMON | FREEZE_LBRS, "{model:?}");
        assert_eq!(read(&mut pmu, 0x38E), 1, "no frozen bits in this status");
        pmu.advance(&common::user(100));
        assert_eq!(counts(&mut pmu, model), (0, 10), "{model:?}");
        assert!(!pmu.record_branch(&branch(0x2000)));
        // Software sets the enables again.
        write(&mut pmu, 0x38F, 3);
        pmu.advance(&common::user(1));
        assert_eq!(counts(&mut pmu, model), (1, 11), "{model:?}");
    }
}

#[test]
fn version_4_sets_status_bits_and_leaves_the_enables() {
    for model in [Model::Skylake, Model::IceLake, Model::SapphireRapids, Model::ArrowLake] {
        let mut pmu = armed(model, FREEZE_PERFMON | FREEZE_LBRS, INT);
        let control = read(&mut pmu, 0x38F);
        assert!(pmu.advance(&common::user(10)).pmi);
        assert_eq!(read(&mut pmu, 0x38F), control, "{model:?}");
        assert_eq!(read(&mut pmu, 0x38E), 1 | LBR_FRZ | CTR_FRZ, "{model:?}");
        pmu.advance(&common::user(100));
        assert_eq!(counts(&mut pmu, model), (0, 10), "{model:?}");
        assert_eq!(pmu.needs().bulk, 0, "nothing runs");
        // Writing the control again does not help; clearing the status does.
        write(&mut pmu, 0x38F, control);
        pmu.advance(&common::user(100));
        assert_eq!(counts(&mut pmu, model), (0, 10), "{model:?}");
        write(&mut pmu, 0x390, 1 | CTR_FRZ);
        assert_eq!(read(&mut pmu, 0x38E), LBR_FRZ);
        pmu.advance(&common::user(1));
        assert_eq!(counts(&mut pmu, model), (1, 11), "{model:?}");
    }
}

#[test]
fn amd_freezes_with_perfmonv2() {
    let mut pmu = armed(Model::Zen4, FREEZE_PERFMON | FREEZE_LBRS, INT);
    write(&mut pmu, 0xC000_010F, 0x40);
    assert!(pmu.record_branch(&branch(0x2000)));
    assert!(pmu.advance(&common::user(10)).pmi);
    assert_eq!(read(&mut pmu, 0xC000_0300), 1 | LBR_FRZ | CTR_FRZ);
    assert!(!pmu.record_branch(&branch(0x3000)));
    pmu.advance(&common::user(100));
    assert_eq!(counts(&mut pmu, Model::Zen4), (0, 10));
    write(&mut pmu, 0xC000_0302, 1 | LBR_FRZ | CTR_FRZ);
    assert!(pmu.record_branch(&branch(0x3000)));
    pmu.advance(&common::user(1));
    assert_eq!(counts(&mut pmu, Model::Zen4), (1, 11));
}

#[test]
fn amd_before_perfmonv2_has_no_freeze() {
    for model in [Model::K10, Model::Zen2] {
        let mut pmu = armed(model, FREEZE_PERFMON | FREEZE_LBRS, INT);
        assert!(pmu.advance(&common::user(10)).pmi);
        pmu.advance(&common::user(5));
        assert_eq!(counts(&mut pmu, model), (5, 15), "{model:?}");
    }
}

#[test]
fn an_overflow_without_interrupt_freezes_nothing() {
    for model in [Model::Haswell, Model::Skylake, Model::Zen4] {
        let mut pmu = armed(model, FREEZE_PERFMON | FREEZE_LBRS, 0);
        assert!(!pmu.advance(&common::user(10)).pmi);
        pmu.advance(&common::user(5));
        assert_eq!(counts(&mut pmu, model), (5, 15), "{model:?}");
    }
}

#[test]
fn without_the_debugctl_bits_nothing_freezes() {
    for model in [Model::Haswell, Model::Skylake, Model::Zen4] {
        let mut pmu = armed(model, 0, INT);
        assert!(pmu.advance(&common::user(10)).pmi);
        pmu.advance(&common::user(5));
        assert_eq!(counts(&mut pmu, model), (5, 15), "{model:?}");
    }
}

#[test]
fn counters_stop_at_the_overflow_even_in_the_middle_of_a_delta() {
    for model in [Model::Haswell, Model::Skylake, Model::Zen4] {
        let mut pmu = armed(model, FREEZE_PERFMON, INT);
        let outcome = pmu.advance(&common::user(1000));
        assert!(outcome.pmi);
        assert_eq!(outcome.late_instructions, 990, "{model:?}");
        assert_eq!(counts(&mut pmu, model), (0, 10), "{model:?}");
    }
}

#[test]
fn branch_records_freeze_by_themselves() {
    let mut pmu = armed(Model::Skylake, FREEZE_LBRS | LBR, INT);
    assert!(pmu.record_branch(&branch(0x2000)));
    pmu.advance(&common::user(10));
    assert_eq!(read(&mut pmu, 0x38E), 1 | LBR_FRZ);
    assert!(!pmu.record_branch(&branch(0x3000)));
    pmu.advance(&common::user(5));
    assert_eq!(counts(&mut pmu, Model::Skylake), (5, 15), "counters go on");
    write(&mut pmu, 0x390, LBR_FRZ);
    assert!(pmu.record_branch(&branch(0x3000)));
}

#[test]
fn software_can_freeze_through_the_setting_register() {
    let mut pmu = armed(Model::Skylake, 0, 0);
    write(&mut pmu, 0x391, CTR_FRZ);
    pmu.advance(&common::user(5));
    assert_eq!(counts(&mut pmu, Model::Skylake).1, 0);
    write(&mut pmu, 0x390, CTR_FRZ);
    pmu.advance(&common::user(5));
    assert_eq!(counts(&mut pmu, Model::Skylake).1, 5);
}

#[test]
fn a_debug_exception_turns_records_and_branch_stepping_off() {
    let mut pmu = pmu(Model::Skylake);
    write(&mut pmu, 0x1D9, 0x803);
    assert!(pmu.needs().branch_trap);
    pmu.debug_exception();
    assert_eq!(read(&mut pmu, 0x1D9), 0x800);
    assert!(!pmu.needs().branch_trap);
}
