//! Counters that count only what passes the qualifiers.

use pmu_model::uarch::{Access, AccessKind, Core, Llc, Parts, Retired};
use pmu_model::{
    Branch, BranchKind, Delta, Host, Model, MsrError, Occurrence, Pmu, Ring, RingMask, Timing, msr,
};

/// Instructions, loads, and instructions again, on the general-purpose counters of a Skylake.
const SELECTORS: [u64; 3] = [0x43_00C0, 0x43_81D0, 0x43_00C0];

fn pmu() -> Pmu {
    let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::DEFAULT);
    for (place, selector) in (0..).zip(SELECTORS) {
        pmu.write_msr(msr::PERFEVTSEL + place, selector).unwrap();
    }
    pmu
}

fn write(pmu: &mut Pmu, register: u32, value: u64) {
    pmu.write_msr(msr::QUALIFIERS + register, value).unwrap();
}

fn counts(pmu: &mut Pmu) -> [u64; 3] {
    [0, 1, 2].map(|place| pmu.read_msr(msr::PMC + place).unwrap())
}

#[test]
fn t8_qualified_counters_count_what_passed_and_the_others_everything() {
    let mut pmu = pmu();
    write(&mut pmu, 0, 0b011);
    let all = Delta::bulk(Ring::Kernel, 10).with(Occurrence::Load, 7);
    let passed = Delta::bulk(Ring::Kernel, 3).with(Occurrence::Load, 2);
    pmu.advance_qualified(&all, Some(&passed));
    assert_eq!(counts(&mut pmu), [3, 2, 10]);
    pmu.advance(&all);
    assert_eq!(counts(&mut pmu), [3, 2, 20], "nothing passed");
    write(&mut pmu, 0, 0);
    pmu.advance(&all);
    assert_eq!(counts(&mut pmu), [13, 9, 30], "no counter is qualified any more");
}

#[test]
fn t8_what_is_qualified_must_be_seen_and_what_may_overflow_is_stepped() {
    let mut pmu = pmu();
    assert!(!pmu.needs().qualified);
    write(&mut pmu, 0, 0b001);
    let needs = pmu.needs();
    assert!(needs.qualified && !needs.qualified_data && needs.unspread == 0);
    assert!(needs.stepping_in(Ring::Kernel), "without a plugin");
    assert_eq!(needs.bulk, 0b100);
    write(&mut pmu, 1, 0b100);
    let needs = pmu.needs();
    assert!(needs.qualified_data && needs.accesses());
    // INT: it is not known how many instructions pass.
    pmu.write_msr(msr::PERFEVTSEL, SELECTORS[0] | 1 << 20).unwrap();
    assert_eq!(pmu.needs().unspread, 0b001);
    pmu.write_msr(msr::PERFEVTSEL + 2, 0).unwrap();
    assert_eq!(pmu.until_overflow(RingMask::BOTH), None);
}

#[test]
fn t8_an_overflow_comes_with_the_instruction_that_passes() {
    let mut pmu = pmu();
    write(&mut pmu, 0, 0b001);
    pmu.write_msr(msr::PERFEVTSEL, SELECTORS[0] | 1 << 20).unwrap();
    pmu.write_msr(msr::A_PMC, (1 << 48) - 2).unwrap();
    let step = Delta::step(Ring::Kernel);
    assert!(!pmu.advance_qualified(&step, Some(&step)).pmi);
    assert!(!pmu.advance_qualified(&step, None).pmi);
    assert!(pmu.advance_qualified(&step, Some(&step)).pmi);
}

#[test]
fn t8_reserved_bits_fault_and_a_machine_without_qualifiers_has_no_such_registers() {
    let mut pmu = pmu();
    for (register, value) in [(0, 1 << 8), (0, 1 << 35), (1, 1 << 3)] {
        let refused = pmu.write_msr(msr::QUALIFIERS + register, value);
        assert!(matches!(refused, Err(MsrError::GeneralProtection(_))), "{register} {value:#x}");
    }
    for register in 0..11 {
        write(&mut pmu, register, u64::from(register > 1));
        assert_eq!(pmu.read_msr(msr::QUALIFIERS + register), Ok(u64::from(register > 1)));
    }
    assert!(matches!(pmu.read_msr(msr::QUALIFIERS + 11), Err(MsrError::NotMine { .. })));
    write(&mut pmu, 0, 1);
    pmu.reset();
    assert!(!pmu.qualifiers().is_on());
    pmu.set_qualifiers(false);
    assert!(pmu.read_msr(msr::QUALIFIERS).is_err());
    let mut none = Pmu::new(Model::None, Host::EXAMPLE, Timing::DEFAULT);
    assert!(matches!(none.read_msr(msr::QUALIFIERS), Err(MsrError::GeneralProtection(_))));
}

#[test]
fn t3_accesses_in_the_range_pass_and_with_them_their_instruction() {
    let mut pmu = pmu();
    write(&mut pmu, 1, 0b100);
    write(&mut pmu, 5, 0x1000);
    write(&mut pmu, 6, 0x1008);
    let access = |linear, kind| Access::identity(linear, 8, kind);
    let (mut core, mut llc) = (Core::default(), Box::<Llc>::default());
    let mut retire = |accesses: &[Access]| {
        let branch = Branch {
            from: 0,
            to: 0x40,
            kind: BranchKind::IndirectCall,
            taken: true,
            mispredicted: false,
            ring: Ring::Kernel,
            cycles: 0,
        };
        let retired = Retired { ring: Ring::Kernel, branch: Some(branch), next: 8, accesses };
        core.retire_qualified(&retired, &mut llc, Parts::default(), pmu.qualifiers())
    };
    let two = [access(0x1004, AccessKind::Load), access(0x2000, AccessKind::Store)];
    let (delta, _, passed) = retire(&two);
    let of = |delta: &Delta| {
        use Occurrence::*;
        let counts = [Load, Store, IndirectCall].map(|one| delta.count(one));
        (delta.instructions, counts)
    };
    assert_eq!(of(&delta), (1, [1, 1, 1]));
    assert_eq!(of(&passed), (1, [1, 0, 1]), "the store is elsewhere");
    let (delta, _, passed) = retire(&two[1..]);
    assert_eq!((of(&delta), of(&passed)), ((1, [0, 1, 1]), (0, [0, 0, 0])));
}
