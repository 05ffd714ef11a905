//! Faults of architectural PEBS.

use super::{INSTRUCTIONS, jump};
use crate::common::{read, write};
use pmu_model::{BranchKind, Mutation, Pmu};

/// Records of every second instruction, of fixed counter 0 and of general-purpose counter 1, with a threshold of 6 KiB in a buffer of 8.
pub(super) fn architectural_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use crate::common::arch_pebs::{self, BASE, CONTINUED, FULL, GPR, ON, RECORDS, YMM_UPPER};
    use Mutation::*;
    const REACHED: u64 = 1 << 54;
    const VALUES: u64 = 1 << 35 | 0b11 << 36;
    if fault == ApebsBaseAbsent {
        return pmu.write_msr(0x3F4, BASE).is_ok();
    }
    if fault == ApebsReservedAccepted {
        return pmu.write_msr(0x3F5, 1).is_err() && pmu.write_msr(0x1903, 1 << 39).is_err();
    }
    let mut buffer = arch_pebs::Buffer::new();
    let of_fixed = matches!(fault, ApebsFixedDead | ApebsGroupsOfFirst);
    write(pmu, 0x14CE, 0x7F_0007);
    pmu.record_branch(&jump(0x2000, BranchKind::RelativeJump, false));
    pmu.record_branch(&jump(0x3000, BranchKind::RelativeJump, false));
    write(pmu, 0x3F4, BASE | 1);
    let on = if fault == ApebsEnableIgnored { 0 } else { ON };
    write(pmu, 0x3F5, on | (6 * 64) << 36);
    let reload = u64::from(-1i32 as u32);
    let groups = match fault {
        ApebsContinuationLost => GPR | 1 << 49 | 3 << 40,
        ApebsBranchesStale => 1 << 40,
        ApebsUpperHalvesLost => GPR | YMM_UPPER,
        ApebsValuesReloaded => VALUES,
        _ => GPR,
    };
    if of_fixed {
        write(pmu, 0x1983, RECORDS | groups | reload);
        write(pmu, 0x38D, 2);
        write(pmu, 0x38F, 1 << 32);
        write(pmu, 0x309, (1 << 48) - 1);
    } else {
        arch_pebs::arm(pmu, 1, INSTRUCTIONS, 2, groups);
    }
    let pmis = (1..=100).filter(|n| arch_pebs::step(pmu, &mut buffer, *n).pmi).count();
    let (words, index) = (buffer.words(), read(pmu, 0x3F5));
    match fault {
        ApebsAddressWrong => words[2] == 0x1002,
        ApebsCountersLost => words[3] == 2,
        ApebsRecordLost => index & 0x7FF_FFF0 == 36 * 224,
        // Records of 224 bytes: from the 28th on.
        ApebsThresholdIgnored => pmis == 23,
        ApebsThresholdInOldBit => read(pmu, 0x38E) == REACHED,
        ApebsFullIgnored => index & FULL != 0 && buffer.beyond(8192) == 0,
        ApebsReloadLost => words[28 + 2] == 0x1004,
        ApebsFixedDead => words[3] == 1 << 32,
        ApebsSizeWrong => words[0] & 0xFFFF == 224,
        ApebsGroupMissing | ApebsGroupsOfFirst => words[0] & GPR != 0,
        ApebsUpperHalvesLost => words[0] & YMM_UPPER != 0 && words[28] == 4,
        ApebsBranchesStale => words[14..16] == [0x1000, 0x3000],
        ApebsValuesReloaded => words[8..11] == [2, 0, 1],
        ApebsContinuationLost => words[0] & CONTINUED != 0,
        ApebsEnableIgnored => words[0] == 0,
        _ => unreachable!("{fault:?} is none of architectural PEBS"),
    }
}
