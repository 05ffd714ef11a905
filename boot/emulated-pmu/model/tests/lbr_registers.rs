//! The registers of the last-branch records: formats, depth, what a write may hold.

mod common;

use common::lbr::{branch, recording, records};
use common::{fault, pmu, read, write};
use pmu_model::{Branch, BranchKind, Fault, Model};

#[test]
fn formats() {
    let kernel = 0xFFFF_FFFF_8100_1234u64;
    let jump = Branch {
        mispredicted: true,
        cycles: 100_000,
        ..branch(kernel, kernel + 0x100, BranchKind::IndirectCall)
    };
    let clean = Branch { mispredicted: false, ..jump };
    // Nehalem: bit 63 of FROM is the flag, whatever the sign of the address.
    let mut nehalem = recording(Model::Nehalem);
    nehalem.record_branch(&jump);
    nehalem.record_branch(&clean);
    let from: Vec<u64> = records(&mut nehalem, Model::Nehalem).iter().map(|r| r.0).collect();
    assert_eq!(from[..2], [kernel & !(1 << 63), kernel]);
    // Haswell without TSX: the flags in bits 62 and 61 are 0.
    let mut haswell = recording(Model::Haswell);
    haswell.record_branch(&jump);
    assert_eq!(records(&mut haswell, Model::Haswell)[0].0, kernel & !(7 << 61) | 1 << 63);
    // Skylake: plain addresses, and INFO with the flag and saturated cycles.
    let mut skylake = recording(Model::Skylake);
    skylake.record_branch(&jump);
    assert_eq!(records(&mut skylake, Model::Skylake)[0], (kernel, kernel + 0x100));
    assert_eq!(read(&mut skylake, 0xDC1), 1 << 63 | 0xFFFF);
    // Architectural: also the valid bit of the cycles and the type, 3 for an indirect call.
    let mut sapphire = recording(Model::SapphireRapids);
    sapphire.record_branch(&jump);
    assert_eq!(read(&mut sapphire, 0x1200), 1 << 63 | 1 << 60 | 3 << 56 | 0xFFFF);
    // AMD: 58 bits of address, misprediction in FROM, valid in TO.
    let mut zen = recording(Model::Zen4);
    zen.record_branch(&jump);
    let address = |value: u64| value & ((1 << 58) - 1);
    assert_eq!(
        records(&mut zen, Model::Zen4)[0],
        (address(kernel) | 1 << 63, address(kernel + 0x100) | 1 << 63)
    );
}

#[test]
fn depth_takes_listed_values_and_clears() {
    let mut pmu = recording(Model::SapphireRapids);
    pmu.record_branch(&branch(0x10, 0x20, BranchKind::Return));
    for value in [0, 1, 4, 9, 24, 40, 64, u64::MAX] {
        assert_eq!(fault(pmu.write_msr(0x14CF, value)), Fault::Depth { msr: 0x14CF, value });
    }
    assert_eq!(read(&mut pmu, 0x1500), 0x10, "a fault clears nothing");
    write(&mut pmu, 0x14CF, 8);
    assert_eq!(read(&mut pmu, 0x14CF), 8);
    assert_eq!(read(&mut pmu, 0x1500), 0);
    for n in 0..20 {
        pmu.record_branch(&branch(0x100 + n, 0x200, BranchKind::Return));
    }
    assert_eq!(read(&mut pmu, 0x1500), 0x113);
    assert_eq!(read(&mut pmu, 0x1507), 0x10C);
    assert_eq!(read(&mut pmu, 0x1508), 0, "nothing beyond the depth");
    write(&mut pmu, 0x1508, 0x99);
    assert_eq!(read(&mut pmu, 0x1508), 0);
}

#[test]
fn addresses_have_to_be_canonical() {
    for (model, msr) in [
        (Model::Core2, 0x40),
        (Model::Core2, 0x63),
        (Model::Nehalem, 0x6C0),
        (Model::Skylake, 0x680),
        (Model::Skylake, 0x6DF),
        (Model::SapphireRapids, 0x1500),
        (Model::SapphireRapids, 0x161F),
        (Model::Skylake, 0x1DE),
    ] {
        let mut pmu = pmu(model);
        for value in [0, 0x7FFF_FFFF_FFFF, 0xFFFF_8000_0000_0000, u64::MAX] {
            write(&mut pmu, msr, value);
            assert_eq!(read(&mut pmu, msr), value, "{model:?} {msr:#x}");
        }
        for value in [0x8000_0000_0000, 0xFFFF_7FFF_FFFF_FFFF, 1 << 63] {
            let expected = Fault::NotCanonical { msr, value };
            assert_eq!(fault(pmu.write_msr(msr, value)), expected, "{model:?}");
        }
    }
}

#[test]
fn from_with_flags_wants_the_sign_up_to_bit_62() {
    // Haswell without TSX: what was read back must have bits 62:61 filled in before it is written.
    for model in [Model::Nehalem, Model::Haswell] {
        let mut pmu = pmu(model);
        let kernel = 0xFFFF_FFFF_8100_1234u64;
        assert!(pmu.write_msr(0x680, kernel & !(7 << 61)).is_err(), "{model:?}");
        assert!(pmu.write_msr(0x680, kernel & !(1 << 63)).is_ok(), "{model:?}");
        assert!(pmu.write_msr(0x680, kernel).is_ok(), "{model:?}");
        assert!(pmu.write_msr(0x680, 1 << 63 | 0x1234).is_ok(), "a mispredicted user branch");
    }
}

#[test]
fn the_top_of_stack_can_be_set() {
    let mut skylake = pmu(Model::Skylake);
    write(&mut skylake, 0x1C9, 31);
    assert_eq!(read(&mut skylake, 0x1C9), 31);
    assert!(skylake.write_msr(0x1C9, 32).is_err());
    let mut core2 = pmu(Model::Core2);
    write(&mut core2, 0x1C9, 0xFFFF_FFF7);
    assert_eq!(read(&mut core2, 0x1C9), 3);
}

#[test]
fn the_last_branch_before_an_event_is_kept() {
    for model in common::with_counters() {
        let mut pmu = recording(model);
        pmu.record_branch(&branch(0x1000, 0x2000, BranchKind::RelativeJump));
        pmu.record_event_delivery();
        pmu.record_branch(&branch(0x2004, 0x8000, BranchKind::Far));
        assert_eq!(read(&mut pmu, 0x1DD), 0x1000, "{model:?}");
        assert_eq!(read(&mut pmu, 0x1DE), 0x2000, "{model:?}");
        if pmu.owns(0x1DB) && pmu.read_msr(0x1DB).is_ok() {
            // The copy of the newest.
            assert_eq!(read(&mut pmu, 0x1DB), 0x2004, "{model:?}");
            assert_eq!(read(&mut pmu, 0x1DC), 0x8000, "{model:?}");
        }
    }
}
