//! Which check notices which fault.

use super::*;

/// Every fault that the model knows, on which processor, and the check that must notice it.
pub(super) const TABLE: &[(Mutation, Model, &str)] = {
    use Model::{ArrowLake, Core2, Haswell, IceLake, K10, SapphireRapids, Skylake, Zen2, Zen4};
    use Mutation::*;
    &[
        (StatusBitNeverSets, Skylake, "overflow.status_bit"),
        (FixedStatusNeverSets, Skylake, "overflow.fixed_status_bit"),
        (StatusReadClears, Skylake, "status.stays_when_read"),
        (StatusClearStuck, Skylake, "status.cleared_bit_by_bit"),
        (StatusClearsAll, Skylake, "status.cleared_bit_by_bit"),
        (StatusSetIgnored, Skylake, "status.set"),
        (LegacyWriteZeroExtends, Haswell, "registers.sign_extension"),
        (FullWidthTruncates, Skylake, "registers.full_width"),
        (CounterTooNarrow, Skylake, "registers.counter_width"),
        (FixedWidthUnchecked, Skylake, "registers.fixed_reserved"),
        (SelectorReservedBitAccepted, Skylake, "registers.select_reserved"),
        (GlobalReservedBitAccepted, Skylake, "registers.global_control_reserved"),
        (StatusWriteAccepted, Skylake, "status.read_only"),
        (GlobalControlResetsToZero, Skylake, "reset.global_control"),
        (GlobalControlResetsToAll, Skylake, "reset.global_control"),
        (GlobalEnableIgnored, Skylake, "counting.global_enable"),
        (EnableBitIgnored, Skylake, "counting.enable_bit"),
        (UserFilterIgnored, Skylake, "privilege.kernel"),
        (KernelFilterIgnored, Skylake, "privilege.user"),
        (CmaskIgnored, Skylake, "modifiers.counter_mask"),
        (InvertIgnored, Skylake, "modifiers.invert"),
        (EdgeIgnored, Skylake, "modifiers.edge"),
        (Fixed2Dead, Skylake, "fixed.each_counts"),
        (FixedFieldsSwapped, Skylake, "fixed.control_fields"),
        (InstructionsOffByOne, Skylake, "counting.instructions"),
        (NotTakenLost, Skylake, "counting.branches"),
        (ReferenceClockFollowsCore, Skylake, "events.reference_rate"),
        (OverflowOneEarly, Skylake, "overflow.exact"),
        (StopsAtOverflow, Skylake, "overflow.goes_on"),
        (LostPmi, Skylake, "pmi.each_counter"),
        (PmiWithoutInt, Skylake, "pmi.only_with_int"),
        (FreezeIgnored, Skylake, "freeze.counters"),
        (LbrFreezeIgnored, Skylake, "freeze.branch_records"),
        (NeverUnfreezes, Skylake, "freeze.resume"),
        (RdpmcIndexWraps, Skylake, "rdpmc.bad_index"),
        (RdpmcTruncates, Skylake, "rdpmc.equals_rdmsr"),
        (RdpmcPrivilegeIgnored, Skylake, "rdpmc.ring_3_forbidden"),
        (LbrNeverRecords, Skylake, "lbr.ring_filter"),
        (LbrNeverRecords, Skylake, "lbr.order"),
        (LbrOrderReversed, Skylake, "lbr.order"),
        (LbrFilterIgnored, Skylake, "lbr.filter"),
        (LbrMispredictLost, Skylake, "lbr.mispredicted"),
        (PebsAddressWrong, Skylake, "pebs.address"),
        (PebsRecordLost, Skylake, "pebs.count"),
        (PebsThresholdIgnored, Skylake, "pebs.threshold"),
        (PebsMaximumIgnored, Skylake, "pebs.maximum"),
        (PebsAddressWrong, Core2, "pebs.address"),
        (PebsRecordLost, Core2, "pebs.interrupt"),
        (PebsThresholdIgnored, Haswell, "pebs.interrupt"),
        (PebsMaximumIgnored, Core2, "pebs.maximum"),
        (PebsAddressWrong, IceLake, "pebs.address"),
        (PebsRecordLost, SapphireRapids, "pebs.count"),
        (PebsThresholdIgnored, ArrowLake, "pebs.interrupt"),
        (PebsMaximumIgnored, ArrowLake, "pebs.maximum"),
        (PebsFixedDead, IceLake, "pebs.fixed"),
        (PebsFixedResetLost, IceLake, "pebs.fixed"),
        (PebsFixedResetLost, ArrowLake, "pebs.fixed"),
        (PebsSizeWrong, IceLake, "pebs.groups"),
        (PebsGroupMissing, SapphireRapids, "pebs.groups"),
        (PebsAdaptiveIgnored, ArrowLake, "pebs.basic"),
        (PebsDataConfigUnchecked, IceLake, "pebs.data_config"),
        (OneCounterTooManyEnumerated, Skylake, "enumeration.counters_exist"),
        (StatusClearStuck, Zen4, "status.cleared_bit_by_bit"),
        (GlobalControlResetsToZero, Zen4, "reset.global_control"),
        (FreezeIgnored, Zen4, "freeze.counters"),
        (LbrOrderReversed, Zen4, "lbr.order"),
        (OneCounterTooManyEnumerated, Zen4, "enumeration.counters_exist"),
        (FreezeIgnored, Haswell, "freeze.counters"),
        (LbrFreezeIgnored, Haswell, "freeze.branch_records"),
        (CounterStandsStill, Skylake, "counting.instructions"),
        (AllStandStill, Skylake, "counting.instructions"),
        (ClocksStandStill, Skylake, "events.cycles"),
        (ClocksStandStill, Skylake, "events.cycles_fixed_and_general"),
        (AllStandStill, Skylake, "events.mispredictions"),
        (AllStandStill, Skylake, "freeze.skew"),
        (AllStandStill, Skylake, "freeze.form"),
        (AllStandStill, Haswell, "freeze.form"),
        (FreezeIgnored, Skylake, "freeze.skew"),
        (FreezeIgnored, Haswell, "freeze.form"),
        (ReferenceStandsStill, Skylake, "events.reference_rate"),
        (ReferenceStandsStill, Skylake, "events.reference_general"),
        (CountsTwice, Skylake, "counting.instructions"),
        (RunsBackwards, Skylake, "counting.instructions"),
        (StuckAtMaximum, Skylake, "registers.full_width"),
        (FreezeRefused, Skylake, "freeze.counters"),
        (FreezeRefused, Zen4, "freeze.counters"),
        (FreezeLate, Skylake, "freeze.counters"),
        (PmiNeverStops, Skylake, "pmi.count"),
        (PmiWrongVector, Skylake, "pmi.each_counter"),
        (RdpmcDiffers, Skylake, "rdpmc.equals_rdmsr"),
        (PebsEnableAbsent, Skylake, "enumeration.registers_exist"),
        (DebugControlAbsent, Skylake, "enumeration.registers_exist"),
        (GlobalStatusAbsent, Skylake, "enumeration.registers_exist"),
        (LosesATenth, Skylake, "counting.branches"),
        (Shared, Skylake, "counting.branches"),
        (PmiDropped, Skylake, "pmi.each_counter"),
        (IbsRegistersAbsent, Zen4, "ibs.registers"),
        (IbsFeatureTooMany, Zen4, "ibs.registers"),
        (IbsCountControlIgnored, Zen4, "ibs.count"),
        (IbsCountWriteIgnored, K10, "ibs.count"),
        (IbsPeriodDoubled, Zen4, "ibs.period"),
        (IbsPeriodDoubled, K10, "ibs.period"),
        (IbsValidNeverSets, Zen4, "ibs.valid"),
        (IbsCountsOn, Zen2, "ibs.valid"),
        (IbsRipOfNext, Zen4, "ibs.address"),
        (IbsBranchFlagsLost, Zen2, "ibs.address"),
        (IbsDataAddressLost, Zen4, "ibs.data_address"),
        (IbsPhysicalIsLinear, K10, "ibs.data_address"),
        (IbsFetchOfNext, Zen4, "ibs.fetch"),
        (IbsFetchIncomplete, K10, "ibs.fetch"),
        (IbsInterruptLost, Zen4, "ibs.interrupt"),
        (IbsLvtOffsetInvalid, Zen2, "ibs.interrupt"),
    ]
};

/// Runs the one check: it passes on the sound processor and fails on the other.
#[test]
fn k1_each_planted_fault_is_noticed_by_its_check() {
    for &(fault, model, name) in TABLE {
        let job = Conformance { checks: vec![Cow::Borrowed(name)], ..all() };
        let (made, _) = suite(model, None, &job);
        assert_eq!(made[0].verdict, CheckVerdict::Pass, "{name} on a sound {model:?}: {made:?}");
        let (made, _) = suite(model, Some(fault), &job);
        assert_eq!(made[0].verdict, CheckVerdict::Fail, "{fault:?} on {model:?}: {made:?}");
    }
}

#[test]
fn the_table_has_every_fault() {
    for fault in Mutation::ALL {
        assert!(TABLE.iter().any(|(listed, ..)| *listed == fault), "{fault:?}");
    }
}
