//! Each planted fault shows: a check of one behaviour passes on the sound model and fails on the
//! other.

mod arch_pebs;
#[path = "../common/mod.rs"]
mod common;
mod energy;
mod ibs;
mod pebs;
mod slots;
mod sound;

use common::{EN, INT, OS, USR, read, write};
use pebs::is_adaptive;
use pmu_model::{Branch, BranchKind, Delta, Host, Model, Mutation, Pmu, Ring, Timing};
use slots::is_of_slots;
use sound::sound;

fn planted(model: Model, mutation: Option<Mutation>) -> Pmu {
    let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT);
    pmu.set_mutation(mutation);
    pmu.reset();
    pmu
}

const INSTRUCTIONS: u64 = 0xC0 | EN | USR | OS;

/// Counter 0 wraps after `left` more events.
fn arm(pmu: &mut Pmu, selector: u64, left: u64) {
    write(pmu, 0x186, selector);
    write(pmu, 0x4C1, (1 << 48) - left);
}

/// What counter 0 counts of a delta.
fn counts(pmu: &mut Pmu, selector: u64, delta: &Delta) -> u64 {
    write(pmu, 0x186, selector);
    pmu.advance(delta);
    read(pmu, 0xC1)
}

fn user(instructions: u64) -> Delta {
    Delta::bulk(Ring::User, instructions)
}

fn kernel(instructions: u64) -> Delta {
    Delta::bulk(Ring::Kernel, instructions)
}

fn jump(to: u64, kind: BranchKind, mispredicted: bool) -> Branch {
    Branch { from: 0x1000, to, kind, taken: true, mispredicted, ring: Ring::User, cycles: 1 }
}

/// Counter 0 has overflowed with an interrupt while both kinds of freeze were on.
fn after_freeze(pmu: &mut Pmu) {
    write(pmu, 0x1D9, 0x1801);
    arm(pmu, INSTRUCTIONS | INT, 1);
    pmu.advance(&user(1));
}

#[test]
fn each_planted_fault_is_seen_and_only_when_planted() {
    for fault in Mutation::ALL {
        let model = match fault {
            _ if is_adaptive(fault) => Model::IceLake,
            _ if format!("{fault:?}").starts_with("Apebs") => Model::CougarCove,
            Mutation::PebsAuxiliaryIgnored => Model::SapphireRapids,
            _ if format!("{fault:?}").starts_with("Ibs") => Model::Zen4,
            Mutation::MetricsSecondLevelWrong => Model::SapphireRapids,
            _ if is_of_slots(fault) => Model::IceLake,
            _ => Model::Skylake,
        };
        let mut pmu = planted(model, None);
        assert!(sound(fault, &mut pmu), "{fault:?}: the sound model fails the check");
        let mut pmu = planted(model, Some(fault));
        assert!(!sound(fault, &mut pmu), "{fault:?}: nothing shows");
    }
}

#[test]
fn a_fault_can_be_taken_out_again() {
    let mut pmu = planted(Model::Skylake, Some(Mutation::LostPmi));
    pmu.set_mutation(None);
    arm(&mut pmu, INSTRUCTIONS | INT, 1);
    assert!(pmu.advance(&user(1)).pmi);
}

#[test]
fn faults_show_on_amd_too() {
    // The global registers of PerfMonV2 and the leaf that announces them.
    let mut pmu = planted(Model::Zen4, Some(Mutation::GlobalControlResetsToZero));
    assert_eq!(read(&mut pmu, 0xC000_0301), 0);
    let mut pmu = planted(Model::Zen4, Some(Mutation::StatusClearStuck));
    write(&mut pmu, 0xC000_0303, 1);
    write(&mut pmu, 0xC000_0302, 1);
    assert_eq!(read(&mut pmu, 0xC000_0300), 1);
    let pmu = planted(Model::Zen4, Some(Mutation::OneCounterTooManyEnumerated));
    let leaf = pmu.cpuid(0x8000_0022, 0, pmu_model::CpuidResult::default());
    assert_eq!(leaf.ebx & 0xF, 7);
}
