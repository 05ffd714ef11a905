//! Whether a model is sound in the point of a fault: of counters, their registers and branch records; the other parts are asked.

use super::arch_pebs::architectural_is_sound;
use super::energy::energy_is_sound;
use super::ibs::ibs_is_sound;
use super::pebs::{adaptive_is_sound, load_record, pebs_is_sound};
use super::slots::{is_of_slots, slots_are_sound};
use super::{INSTRUCTIONS, after_freeze, arm, counts, jump, kernel, user};
use crate::common::{EDGE, EN, INT, INV, OS, USR, read, write};
use pmu_model::{BranchKind, Delta, Mutation, Occurrence, Pmu, Ring};

/// Whether the model behaves as it should in the point that the fault is about. Skylake, unless the
/// fault needs something that it lacks.
pub(super) fn sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    match fault {
        _ if format!("{fault:?}").starts_with("Energy") => energy_is_sound(fault, pmu),
        _ if format!("{fault:?}").starts_with("Apebs") => architectural_is_sound(fault, pmu),
        StatusBitNeverSets => {
            arm(pmu, INSTRUCTIONS, 1);
            pmu.advance(&user(1));
            read(pmu, 0x38E) == 1
        }
        FixedStatusNeverSets => {
            write(pmu, 0x38D, 3);
            write(pmu, 0x38F, 1 << 32);
            write(pmu, 0x309, (1 << 48) - 1);
            pmu.advance(&user(1));
            read(pmu, 0x38E) == 1 << 32
        }
        StatusReadClears => {
            arm(pmu, INSTRUCTIONS, 1);
            pmu.advance(&user(1));
            read(pmu, 0x38E) == read(pmu, 0x38E)
        }
        StatusClearStuck => {
            arm(pmu, INSTRUCTIONS, 1);
            pmu.advance(&user(1));
            write(pmu, 0x390, 1);
            read(pmu, 0x38E) == 0
        }
        StatusClearsAll => {
            write(pmu, 0x391, 0b11);
            write(pmu, 0x390, 0b01);
            read(pmu, 0x38E) == 0b10
        }
        StatusSetIgnored => {
            write(pmu, 0x391, 1);
            read(pmu, 0x38E) == 1
        }
        LegacyWriteZeroExtends => {
            write(pmu, 0xC1, 0x8000_0000);
            read(pmu, 0xC1) == 0xFFFF_8000_0000
        }
        FullWidthTruncates => {
            write(pmu, 0x4C1, 1 << 40);
            read(pmu, 0x4C1) == 1 << 40
        }
        CounterTooNarrow => {
            arm(pmu, INSTRUCTIONS, (1 << 47) + 1);
            pmu.advance(&user(1)).overflowed == 0 && read(pmu, 0xC1) == 1 << 47
        }
        FixedWidthUnchecked => pmu.write_msr(0x309, 1 << 48).is_err(),
        SelectorReservedBitAccepted => pmu.write_msr(0x186, 1 << 40).is_err(),
        GlobalReservedBitAccepted => pmu.write_msr(0x38F, 1 << 20).is_err(),
        StatusWriteAccepted => pmu.write_msr(0x38E, 0).is_err(),
        GlobalControlResetsToZero | GlobalControlResetsToAll => read(pmu, 0x38F) == 0xFF,
        GlobalEnableIgnored => {
            write(pmu, 0x38F, 0);
            write(pmu, 0x187, INSTRUCTIONS);
            pmu.advance(&user(1));
            read(pmu, 0xC2) == 0
        }
        EnableBitIgnored => counts(pmu, INSTRUCTIONS & !EN, &user(5)) == 0,
        UserFilterIgnored => counts(pmu, 0xC0 | EN | OS, &user(5)) == 0,
        KernelFilterIgnored => counts(pmu, 0xC0 | EN | USR, &kernel(5)) == 0,
        CmaskIgnored => counts(pmu, INSTRUCTIONS | 2 << 24, &user(5)) == 0,
        InvertIgnored => counts(pmu, INSTRUCTIONS | INV | 2 << 24, &user(5)) == 5,
        EdgeIgnored => counts(pmu, INSTRUCTIONS | EDGE | 1 << 24, &user(5)) == 1,
        Fixed2Dead => {
            write(pmu, 0x38D, 0x300);
            write(pmu, 0x38F, 4 << 32);
            pmu.advance(&user(3));
            read(pmu, 0x30B) == 2
        }
        FixedFieldsSwapped => {
            write(pmu, 0x38D, 0x03);
            write(pmu, 0x38F, 3 << 32);
            pmu.advance(&user(5));
            (read(pmu, 0x309), read(pmu, 0x30A)) == (5, 0)
        }
        InstructionsOffByOne => counts(pmu, INSTRUCTIONS, &user(5)) == 5,
        NotTakenLost => {
            let branch = Delta::step(Ring::User).with(Occurrence::JccNotTaken, 1);
            counts(pmu, 0x1C4 | EN | USR, &branch) == 1
        }
        ReferenceClockFollowsCore => {
            write(pmu, 0x38D, 0x300);
            write(pmu, 0x38F, 4 << 32);
            pmu.advance(&user(300));
            read(pmu, 0x30B) == 200
        }
        OverflowOneEarly => {
            arm(pmu, INSTRUCTIONS, 5);
            pmu.advance(&user(4)).overflowed == 0
        }
        StopsAtOverflow => {
            arm(pmu, INSTRUCTIONS, 5);
            pmu.advance(&user(8));
            read(pmu, 0xC1) == 3
        }
        LostPmi => {
            arm(pmu, INSTRUCTIONS | INT, 1);
            pmu.advance(&user(1)).pmi
        }
        PmiWithoutInt => {
            arm(pmu, INSTRUCTIONS, 1);
            !pmu.advance(&user(1)).pmi
        }
        FreezeIgnored => {
            after_freeze(pmu);
            pmu.advance(&user(9));
            read(pmu, 0xC1) == 0
        }
        LbrFreezeIgnored => {
            after_freeze(pmu);
            !pmu.record_branch(&jump(0x2000, BranchKind::RelativeJump, false))
        }
        NeverUnfreezes => {
            after_freeze(pmu);
            write(pmu, 0x390, 1 | 3 << 58);
            pmu.advance(&user(9));
            read(pmu, 0xC1) == 9
        }
        RdpmcIndexWraps => pmu.rdpmc(8).is_err(),
        RdpmcTruncates => {
            write(pmu, 0x4C1, 1 << 40);
            pmu.rdpmc(0) == Ok(1 << 40)
        }
        RdpmcPrivilegeIgnored => pmu.rdpmc_at(0, 3, false).is_err(),
        LbrOrderReversed => {
            write(pmu, 0x1D9, 1);
            pmu.record_branch(&jump(0x2000, BranchKind::RelativeJump, false));
            pmu.record_branch(&jump(0x3000, BranchKind::RelativeJump, false));
            let top = read(pmu, 0x1C9) as u32;
            read(pmu, 0x6C0 + top) == 0x3000 && read(pmu, 0x6C0 + (top + 31) % 32) == 0x2000
        }
        LbrNeverRecords => {
            write(pmu, 0x1D9, 1);
            pmu.record_branch(&jump(0x2000, BranchKind::RelativeJump, false))
        }
        LbrFilterIgnored => {
            write(pmu, 0x1C8, 1 << 7);
            write(pmu, 0x1D9, 1);
            !pmu.record_branch(&jump(0x2000, BranchKind::RelativeJump, false))
        }
        LbrMispredictLost => {
            write(pmu, 0x1D9, 1);
            pmu.record_branch(&jump(0x2000, BranchKind::Conditional, true));
            let top = read(pmu, 0x1C9) as u32;
            read(pmu, 0xDC0 + top) >> 63 == 1
        }
        LbrReturnsStay => {
            write(pmu, 0x1C8, 1 << 9);
            write(pmu, 0x1D9, 1);
            pmu.record_branch(&jump(0x2000, BranchKind::RelativeCall, false));
            pmu.record_branch(&jump(0x1005, BranchKind::Return, false));
            let top = read(pmu, 0x1C9) as u32;
            read(pmu, 0x680 + top) == 0
        }
        PebsBranchesStale => {
            write(pmu, 0x1D9, 1);
            pmu.record_branch(&jump(0x2000, BranchKind::RelativeJump, false));
            load_record(pmu, 0xC0, 0, 8)[4..6] == [0x1000, 0x2000]
        }
        PebsLatencyIgnored => load_record(pmu, 0x1CD, 204, 1) == [0; 8],
        PebsAuxiliaryIgnored => load_record(pmu, 0x1CD, 3, 1) == [0; 8],
        PebsSourceWrong => load_record(pmu, 0x1CD, 3, 1)[5] == 0xA,
        PebsLatencyLost => load_record(pmu, 0x1CD, 3, 1)[6] == 204,
        PebsAddressWrong | PebsRecordLost | PebsThresholdIgnored | PebsMaximumIgnored => {
            pebs_is_sound(fault, pmu)
        }
        PebsFixedDead
        | PebsFixedResetLost
        | PebsSizeWrong
        | PebsGroupMissing
        | PebsAdaptiveIgnored
        | PebsDataConfigUnchecked => adaptive_is_sound(fault, pmu),
        OneCounterTooManyEnumerated => {
            let host = pmu_model::CpuidResult::default();
            let claimed = pmu.cpuid(0xA, 0, host).eax >> 8 & 0xFF;
            pmu.read_msr(0x186 + claimed - 1).is_ok()
        }
        CounterStandsStill | AllStandStill | CountsTwice | RunsBackwards => {
            counts(pmu, INSTRUCTIONS, &user(5)) == 5
        }
        StuckAtMaximum => {
            write(pmu, 0x4C2, 5);
            read(pmu, 0xC2) == 5 && pmu.rdpmc(1) == Ok(5)
        }
        ClocksStandStill => counts(pmu, 0x3C | EN | USR, &user(5)) == 5,
        ReferenceStandsStill => {
            write(pmu, 0x38D, 0x330);
            write(pmu, 0x38F, 6 << 32);
            pmu.advance(&user(3));
            assert_eq!(read(pmu, 0x30A), 3, "core cycles are counted");
            read(pmu, 0x30B) == 2
        }
        FreezeRefused => pmu.write_msr(0x1D9, 0x1000).is_ok() && read(pmu, 0x1D9) == 0x1000,
        FreezeLate => {
            after_freeze(pmu);
            let late = [300, 200, 100].map(|count| {
                pmu.advance(&user(count));
                read(pmu, 0xC1)
            });
            // Frozen at last.
            assert_eq!(late[1], late[2]);
            late == [0; 3]
        }
        PmiNeverStops => {
            arm(pmu, INSTRUCTIONS | INT, 1);
            assert!(pmu.advance(&user(1)).pmi);
            !pmu.advance(&user(1)).pmi
        }
        PmiWrongVector => !pmu.has_wrong_vector(),
        RdpmcDiffers => {
            write(pmu, 0x4C1, 5);
            pmu.rdpmc(0) == Ok(5)
        }
        PebsEnableAbsent => pmu.read_msr(0x3F1).is_ok(),
        DebugControlAbsent => pmu.read_msr(0x1D9).is_ok(),
        GlobalStatusAbsent => pmu.read_msr(0x38E).is_ok(),
        LosesATenth | Shared => {
            write(pmu, 0x186, 0xC4 | EN | USR);
            for _ in 0..1000 {
                pmu.advance(&Delta::step(Ring::User).with(Occurrence::JccTakenBackward, 1));
            }
            read(pmu, 0xC1) == 1000
        }
        PmiDropped => (0..3).all(|_| {
            arm(pmu, INSTRUCTIONS | INT, 1);
            pmu.advance(&user(1)).pmi
        }),
        _ if is_of_slots(fault) => slots_are_sound(fault, pmu),
        _ => ibs_is_sound(fault, pmu),
    }
}
