//! Last-branch records of each generation: order, filters, call stacks.

mod common;

use common::lbr::{branch, recording, records, stack};
use common::{pmu, read, write};
use pmu_model::{Branch, BranchKind, Model, Pmu, Ring};

const KINDS: [BranchKind; 7] = [
    BranchKind::Conditional,
    BranchKind::RelativeCall,
    BranchKind::IndirectCall,
    BranchKind::Return,
    BranchKind::IndirectJump,
    BranchKind::RelativeJump,
    BranchKind::Far,
];

#[test]
fn the_newest_come_first_and_the_oldest_are_pushed_out() {
    for model in common::with_counters() {
        let mut pmu = recording(model);
        let stack = stack(model);
        let total = u64::from(stack.entries) + 3;
        for n in 0..total {
            let jump = branch(0x1000 + n, 0x2000 + n, BranchKind::RelativeJump);
            assert!(pmu.record_branch(&jump), "{model:?}");
        }
        let expected: Vec<(u64, u64)> = (0..total)
            .rev()
            .take(stack.entries as usize)
            .map(|n| (0x1000 + n, (0x2000 + n) | stack.to_flags))
            .collect();
        assert_eq!(records(&mut pmu, model), expected, "{model:?}");
    }
}

#[test]
fn what_is_skipped_moves_the_records_and_leaves_what_follows() {
    for model in common::with_counters() {
        let entries = u64::from(stack(model).entries);
        for skipped in [1, entries - 1, 7 * entries + 3] {
            let (mut all, mut last) = (recording(model), recording(model));
            let jump = |n| branch(0x1000 + n, 0x2000 + n, BranchKind::RelativeJump);
            last.skip_branches(skipped);
            for n in 0..skipped + entries {
                all.record_branch(&jump(n));
                if n >= skipped {
                    last.record_branch(&jump(n));
                }
            }
            let place = |pmu: &mut Pmu| stack(model).top.map(|top| read(pmu, top));
            assert_eq!(place(&mut all), place(&mut last), "{model:?} {skipped}");
            assert_eq!(records(&mut all, model), records(&mut last, model), "{model:?} {skipped}");
        }
    }
}

#[test]
fn nothing_is_recorded_while_off_or_not_taken() {
    for model in Model::ALL {
        let jump = branch(0x1000, 0x2000, BranchKind::Conditional);
        assert!(!pmu(model).record_branch(&jump), "{model:?}");
        if model == Model::None {
            continue;
        }
        let fell_through = Branch { taken: false, ..jump };
        assert!(!recording(model).record_branch(&fell_through), "{model:?}");
    }
}

#[test]
fn each_bit_of_a_select_register_suppresses_one_kind() {
    // Bits 2 to 8, in this order; 0 and 1 are the rings.
    for (model, select) in
        [(Model::Haswell, 0x1C8), (Model::Skylake, 0x1C8), (Model::Zen4, 0xC000_010E)]
    {
        for (bit, kind) in KINDS.into_iter().enumerate() {
            for other in KINDS {
                let mut pmu = recording(model);
                write(&mut pmu, select, 1 << (bit + 2));
                let recorded = pmu.record_branch(&branch(0x1000, 0x2000, other));
                assert_eq!(recorded, other != kind, "{model:?} bit {} {other:?}", bit + 2);
            }
        }
        for (bit, ring) in [(0, Ring::Kernel), (1, Ring::User)] {
            for other in [Ring::Kernel, Ring::User] {
                let mut pmu = recording(model);
                write(&mut pmu, select, 1 << bit);
                let jump = Branch { ring: other, ..branch(0x1000, 0x2000, BranchKind::Far) };
                assert_eq!(pmu.record_branch(&jump), other != ring, "{model:?} {other:?}");
            }
        }
    }
}

#[test]
fn each_bit_of_the_architectural_control_records_one_kind() {
    let bits = [
        (16, BranchKind::Conditional),
        (17, BranchKind::RelativeJump),
        (18, BranchKind::IndirectJump),
        (19, BranchKind::RelativeCall),
        (20, BranchKind::IndirectCall),
        (21, BranchKind::Return),
        (22, BranchKind::Far),
    ];
    for (bit, kind) in bits {
        for other in KINDS {
            let mut pmu = pmu(Model::SapphireRapids);
            write(&mut pmu, 0x14CE, 1 | 2 | 4 | 1 << bit);
            let recorded = pmu.record_branch(&branch(0x1000, 0x2000, other));
            assert_eq!(recorded, other == kind, "bit {bit} {other:?}");
        }
    }
    for (rings, expected) in [(0, false), (2, false), (4, true), (6, true)] {
        let mut pmu = pmu(Model::SapphireRapids);
        write(&mut pmu, 0x14CE, 1 | rings | 0x7F_0000);
        let recorded = pmu.record_branch(&branch(0x1000, 0x2000, BranchKind::Return));
        assert_eq!(recorded, expected, "OS is bit 1, USR bit 2: {rings}");
    }
}

#[test]
fn nehalem_records_calls_only_with_jumps() {
    let (indirect, relative) = (1 << 6, 1 << 7);
    for (select, kind, expected) in [
        (0, BranchKind::RelativeCall, true),
        (indirect, BranchKind::RelativeCall, false),
        (relative, BranchKind::RelativeCall, false),
        (relative, BranchKind::IndirectCall, true),
        (indirect, BranchKind::IndirectCall, false),
    ] {
        let mut pmu = recording(Model::Nehalem);
        write(&mut pmu, 0x1C8, select);
        assert_eq!(pmu.record_branch(&branch(1, 2, kind)), expected, "{select:#x} {kind:?}");
    }
}

#[test]
fn call_stacks_pop_on_return() {
    for (model, msr, value) in [
        (Model::Haswell, 0x1C8, 1 << 9),
        (Model::Skylake, 0x1C8, 1 << 9),
        (Model::SapphireRapids, 0x14CE, 0x7F_000F),
    ] {
        let mut pmu = recording(model);
        write(&mut pmu, msr, value);
        pmu.record_branch(&branch(0x10, 0x100, BranchKind::RelativeCall));
        pmu.record_branch(&branch(0x20, 0x200, BranchKind::IndirectCall));
        assert!(!pmu.record_branch(&branch(0x30, 0x300, BranchKind::RelativeJump)));
        pmu.record_branch(&branch(0x40, 0x400, BranchKind::RelativeCall));
        assert!(!pmu.record_branch(&branch(0x400, 0x45, BranchKind::Return)));
        let all = records(&mut pmu, model);
        assert_eq!(all[..3], [(0x20, 0x200), (0x10, 0x100), (0, 0)], "{model:?}");
    }
}

#[test]
fn the_kinds_that_would_be_recorded_are_told_beforehand() {
    for (model, select, all) in [
        (Model::Nehalem, 0x1C8, 0),
        (Model::Skylake, 0x1C8, 0),
        (Model::Zen4, 0xC000_010E, 0),
        (Model::SapphireRapids, 0x14CE, 0x7F_0007),
    ] {
        for filter in [0u64, 1 << 1, 1 << 2, 1 << 4, 1 << 6, 1 << 7, 1 << 8, 1 << 17] {
            let mut pmu = recording(model);
            write(&mut pmu, select, all ^ if all == 0 { filter & 0x1FF } else { filter & all });
            for ring in [Ring::User, Ring::Kernel] {
                let Some(told) = pmu.recorded_kinds(ring) else { panic!("{model:?} {filter:#x}") };
                for (place, kind) in BranchKind::ALL.into_iter().enumerate() {
                    let jump = Branch { ring, ..branch(0x1000, 0x2000, kind) };
                    assert_eq!(
                        pmu.record_branch(&jump),
                        told >> place & 1 != 0,
                        "{model:?} {filter:#x} {kind:?} {ring:?}"
                    );
                }
            }
        }
    }
    let mut stack = recording(Model::Skylake);
    write(&mut stack, 0x1C8, 1 << 9);
    assert_eq!(stack.recorded_kinds(Ring::User), None);
    // A ring that is kept out changes no stack.
    write(&mut stack, 0x1C8, 1 << 9 | 1);
    assert_eq!([Ring::User, Ring::Kernel].map(|ring| stack.recorded_kinds(ring)), [None, Some(0)]);
    assert_eq!(pmu(Model::Skylake).recorded_kinds(Ring::User), Some(0));
}
