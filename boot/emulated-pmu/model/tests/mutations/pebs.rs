//! Faults of PEBS records, the adaptive ones included.

use crate::common::pebs::{AREA, Area, BASE, instruction};
use crate::common::{EN, OS, USR, write};
use pmu_model::{Delta, Mutation, Occurrence, Pmu, Ring};

/// The first words of an adaptive record with these groups, of a load from memory that comes second; zeros if there is none.
pub(super) fn load_record(pmu: &mut Pmu, event: u64, threshold: u64, groups: u64) -> [u64; 8] {
    let mut area = Area::new(1000, 1000);
    area.set_reset(1, (1 << 48) - 1);
    write(pmu, 0x600, AREA);
    write(pmu, 0x3F1, 2);
    write(pmu, 0x3F2, groups);
    write(pmu, 0x3F6, threshold);
    write(pmu, 0x187, event | EN | USR | 1 << 34);
    write(pmu, 0x4C2, (1 << 48) - 1);
    for n in 1..=2 {
        let delta = Delta::step(Ring::User).with(Occurrence::Load, 1);
        instruction(pmu, &mut area, n, delta.with(Occurrence::LoadLlcMiss, 1));
    }
    area.buffer()[..8].try_into().unwrap()
}

/// Ten records, each of the second instruction, for a buffer of four with its threshold at three.
pub(super) fn pebs_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    let mut area = Area::new(3 * 25, 4 * 25);
    area.set_reset(1, (1 << 48) - 1);
    write(pmu, 0x600, AREA);
    write(pmu, 0x3F1, 2);
    write(pmu, 0x187, 0x1C0 | EN | USR | OS);
    write(pmu, 0x4C2, (1 << 48) - 1);
    let step = Delta::step(Ring::User);
    let pmis = (1..=20).filter(|n| instruction(pmu, &mut area, *n, step.clone()).pmi).count();
    match fault {
        PebsAddressWrong => area.buffer()[22] == 0x1002,
        PebsRecordLost => area.records(25) == 4 && area.buffer()[22 + 25] == 0x1004,
        PebsThresholdIgnored => pmis == 8,
        _ => area.beyond() == 0,
    }
}

/// Whether a fault concerns adaptive records, which the later models have.
pub(super) fn is_adaptive(fault: Mutation) -> bool {
    use Mutation::*;
    matches!(
        fault,
        PebsFixedDead
            | PebsFixedResetLost
            | PebsSizeWrong
            | PebsGroupMissing
            | PebsAdaptiveIgnored
            | PebsDataConfigUnchecked
            | PebsBranchesStale
            | PebsLatencyIgnored
            | PebsSourceWrong
            | PebsLatencyLost
    )
}

/// Records of every second instruction: general registers of fixed counter 0, or the basic group of counter 0.
pub(super) fn adaptive_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    if fault == PebsDataConfigUnchecked {
        return pmu.write_msr(0x3F2, 1 << 6).is_err();
    }
    let mut area = Area::new(1000, 1000);
    let fixed = fault != PebsAdaptiveIgnored;
    let reset = (1 << 48) - 1;
    area.set_reset(if fixed { 8 } else { 0 }, reset);
    write(pmu, 0x600, AREA);
    write(pmu, 0x3F1, if fixed { 1 << 32 } else { 1 });
    write(pmu, 0x3F2, 2);
    write(pmu, 0x38F, 1 << 32 | 1);
    write(pmu, 0x186, if fixed { 0 } else { 0xC0 | EN | USR });
    write(pmu, 0x38D, if fixed { 1 << 32 | 2 } else { 0 });
    write(pmu, 0x4C1, reset);
    write(pmu, 0x309, reset);
    for n in 1..=4 {
        instruction(pmu, &mut area, n, Delta::step(Ring::User));
    }
    let words = if fixed { 22 } else { 4 };
    let head = (8 * words) << 48 | if fixed { 2 } else { 0 };
    let records = [area.buffer()[0], area.buffer()[words as usize]];
    match fault {
        PebsFixedDead => area.index() > BASE,
        PebsFixedResetLost => records[1] != 0,
        _ => records == [head; 2],
    }
}
