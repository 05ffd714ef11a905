//! Each planted fault shows: a check of one behaviour passes on the sound model and fails on the
//! other.

mod common;

use common::pebs::{AREA, Area, BASE, instruction};
use common::{EDGE, EN, INT, INV, OS, USR, read, write};
use pmu_model::{Branch, BranchKind, Delta, Host, Model, Mutation, Occurrence, Pmu, Ring, Timing};

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

/// Whether the model behaves as it should in the point that the fault is about. Skylake, unless the
/// fault needs something that it lacks.
fn sound(fault: Mutation, pmu: &mut Pmu) -> bool {
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

/// The first words of an adaptive record with these groups, of a load from memory that comes second; zeros if there is none.
fn load_record(pmu: &mut Pmu, event: u64, threshold: u64, groups: u64) -> [u64; 8] {
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

fn is_of_slots(fault: Mutation) -> bool {
    let name = format!("{fault:?}");
    name.starts_with("Slots") || name.starts_with("Metrics")
}

/// A hundred instructions, a tenth of them mispredicted branches, as slots and as PERF_METRICS.
fn slots_are_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    const METRICS: u32 = 0x329;
    let width = u64::from(pmu.spec().width);
    let count = |pmu: &mut Pmu, enable: u64| {
        write(pmu, 0x186, 0x01A4 | EN | USR);
        write(pmu, 0x38D, 0x2000);
        write(pmu, 0x38F, enable | 1 << 35 | 1);
        write(pmu, 0x30C, 0);
        write(pmu, 0xC1, 0);
        write(pmu, METRICS, 0);
        pmu.advance(&user(100).with(Occurrence::MissedReturn, 10));
        (read(pmu, 0x30C), read(pmu, 0xC1), read(pmu, METRICS))
    };
    let (slots, general, shares) = count(pmu, 1 << 48);
    let field = |index: u32| shares >> (8 * index) & 0xFF;
    // Each misprediction takes 16 cycles of its own.
    let cycles = 100 + 160;
    match fault {
        SlotsTwice => slots == width * cycles,
        SlotsEventDiffers => general == slots,
        MetricsSumTooSmall => (0..4).map(field).sum::<u64>() == 255,
        MetricsRetiringLost => field(0) == 100 * 255 / slots,
        MetricsMispredictsLost => field(1) > 150,
        MetricsSecondLevelWrong => field(7) <= field(3),
        MetricsWriteGoesOn => {
            write(pmu, METRICS, 0);
            read(pmu, METRICS) == 0
        }
        MetricsReservedAccepted => pmu.write_msr(METRICS, 1 << 32).is_err(),
        MetricsRdpmcAbsent => pmu.rdpmc(0x2000_0000) == Ok(shares),
        MetricsEnableIgnored => count(pmu, 0).2 == 0,
        MetricsStatusStuck => {
            write(pmu, 0x391, 1 << 48);
            read(pmu, 0x38E) == 1 << 48
        }
        MetricsOverflowEarly => {
            count(pmu, 1 << 48);
            read(pmu, 0x38E) & 1 << 48 == 0
        }
        _ => unreachable!("{fault:?} is none of slots"),
    }
}

/// A sample of a load by every sixteenth operation, and one of a fetch.
fn ibs_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    use common::ibs::{self, COUNTS_OPS, FETCH_CTL, FETCH_EN, FETCH_VAL, OP_CTL, VAL};
    const EN: u64 = ibs::EN | COUNTS_OPS;
    let nothing = pmu_model::CpuidResult::default();
    let features = pmu.cpuid(0x8000_001B, 0, nothing).eax;
    match fault {
        IbsRegistersAbsent => return features != 0 && pmu.read_msr(OP_CTL).is_ok(),
        IbsFeatureTooMany => {
            return pmu.read_msr(ibs::OP_DATA4).is_ok() == (features >> 10 & 1 != 0);
        }
        IbsLvtOffsetInvalid => return read(pmu, ibs::IBS_CTL) == 1 << 8,
        IbsCountWriteIgnored => {
            write(pmu, OP_CTL, EN | 1 | 10 << 32);
            return ibs::first_sample(pmu) == 7;
        }
        IbsCountControlIgnored => {
            // A misprediction takes more cycles than there are operations to the sample.
            write(pmu, OP_CTL, EN | 1);
            pmu.advance(&Delta::step(Ring::User).with(Occurrence::MissedReturn, 1));
            return ibs::first_sample(pmu) == 16;
        }
        IbsFetchOfNext | IbsFetchIncomplete => {
            write(pmu, FETCH_CTL, FETCH_EN | 1);
            let n = ibs::first_sample(pmu);
            let status = read(pmu, FETCH_CTL) & (FETCH_VAL | 1 << 50);
            let whole = status == FETCH_VAL | 1 << 50;
            return whole && read(pmu, ibs::FETCH_LINEAR) == 0x1000 + n;
        }
        _ => {}
    }
    write(pmu, OP_CTL, EN | 1);
    pmu.advance(&user(16));
    let access = pmu_model::uarch::Access {
        physical: 0x5000,
        ..pmu_model::uarch::Access::identity(0x9000, 8, pmu_model::uarch::AccessKind::Load)
    };
    let sampled = pmu_model::Sampled {
        branch: Some(jump(0x2000, BranchKind::RelativeJump, false)),
        access: Some((access, pmu_model::PageSize::Small)),
        code: None,
    };
    let missed = Delta::step(Ring::User).with(Occurrence::LoadLlcMiss, 1);
    let outcome = ibs::sample(pmu, &missed, sampled);
    match fault {
        IbsValidNeverSets => read(pmu, OP_CTL) & VAL != 0,
        IbsRipOfNext => read(pmu, ibs::OP_RIP) == 0x1000,
        IbsDataAddressLost => read(pmu, ibs::DATA_LINEAR) == 0x9000,
        IbsPhysicalIsLinear => read(pmu, ibs::DATA_PHYSICAL) == 0x5000,
        IbsBranchFlagsLost => read(pmu, ibs::OP_DATA) >> 37 & 1 == 1,
        IbsTakenLost => read(pmu, ibs::OP_DATA) >> 35 & 1 == 1,
        IbsLatencyLost => read(pmu, ibs::OP_DATA3) >> 32 & 0xFFFF == 200,
        IbsCountsOn => (0..100).all(|n| !ibs::step(pmu, n).ibs),
        IbsInterruptLost | IbsPeriodDoubled => outcome.ibs,
        _ => unreachable!("{fault:?} is none of IBS"),
    }
}

/// One update of the registers of energy.
fn energy_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    let mut moved = |msr: u32| {
        let mut at = |time: u64| {
            pmu.set_time(time << 20);
            read(pmu, msr)
        };
        [at(5000), at(5001)]
    };
    let grown = |[before, behind]: [u64; 2]| behind.wrapping_sub(before);
    match fault {
        EnergyStandsStill | EnergyRunsBackwards => grown(moved(0x611)) == 256,
        EnergyOfCoresTooLarge => grown(moved(0x639)) < grown(moved(0x611)),
        EnergyUpperHalfSet => moved(0x611)[1] >> 32 == 0,
        EnergyUnitLost => read(pmu, 0x606) >> 8 & 0x1F == 14,
        EnergyWriteAccepted => pmu.write_msr(0x611, 0).is_err(),
        EnergyRegistersAbsent => pmu.read_msr(0x611).is_ok(),
        _ => unreachable!("{fault:?} is none of energy"),
    }
}

/// Ten records, each of the second instruction, for a buffer of four with its threshold at three.
fn pebs_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
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

/// Records of every second instruction, of fixed counter 0 and of general-purpose counter 1, with a threshold of 6 KiB in a buffer of 8.
fn architectural_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
    use Mutation::*;
    use common::arch_pebs::{self, BASE, CONTINUED, FULL, GPR, ON, RECORDS};
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
        ApebsBranchesStale => words[14..16] == [0x1000, 0x3000],
        ApebsValuesReloaded => words[8..11] == [2, 0, 1],
        ApebsContinuationLost => words[0] & CONTINUED != 0,
        ApebsEnableIgnored => words[0] == 0,
        _ => unreachable!("{fault:?} is none of architectural PEBS"),
    }
}

/// Whether a fault concerns adaptive records, which the later models have.
fn is_adaptive(fault: Mutation) -> bool {
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
fn adaptive_is_sound(fault: Mutation, pmu: &mut Pmu) -> bool {
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
