//! Planted faults. A suite that claims to check a PMU has to notice each of them.
//!
//! They exist only with the feature `mutations`; without it the model cannot be told to err.

use strum::{EnumCount, VariantArray};

/// A fault to plant, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, VariantArray)]
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub))]
pub enum Mutation {
    /// The status bit of counter 0 never sets.
    StatusBitNeverSets,
    /// The status bits of the fixed counters never set.
    FixedStatusNeverSets,
    /// Reading the status clears it.
    StatusReadClears,
    /// A write to the clearing register clears nothing.
    StatusClearStuck,
    /// A write to the clearing register clears everything.
    StatusClearsAll,
    /// A write to the setting register is ignored.
    StatusSetIgnored,
    /// A legacy write is zero-extended instead of sign-extended.
    LegacyWriteZeroExtends,
    /// A full-width write keeps 32 bits.
    FullWidthTruncates,
    /// General-purpose counters are one bit narrower than enumerated.
    CounterTooNarrow,
    /// A fixed counter takes bits above its width instead of raising #GP.
    FixedWidthUnchecked,
    /// A reserved bit of an event selector is taken.
    SelectorReservedBitAccepted,
    /// A reserved bit of the global control is taken.
    GlobalReservedBitAccepted,
    /// A write to the read-only status register is taken for good.
    StatusWriteAccepted,
    /// The global control comes out of reset as 0.
    GlobalControlResetsToZero,
    /// The global control comes out of reset with the fixed counters on as well.
    GlobalControlResetsToAll,
    /// The global enable bit of counter 1 is ignored.
    GlobalEnableIgnored,
    /// The enable bit of the selectors is ignored.
    EnableBitIgnored,
    /// The USR bit is taken as set.
    UserFilterIgnored,
    /// The OS bit is taken as set.
    KernelFilterIgnored,
    /// CMASK is taken as 0.
    CmaskIgnored,
    /// INV is ignored.
    InvertIgnored,
    /// EDGE is ignored.
    EdgeIgnored,
    /// Fixed counter 2 does not count.
    Fixed2Dead,
    /// Fixed counters 0 and 1 take each other's control field.
    FixedFieldsSwapped,
    /// Every report of instructions counts one too many.
    InstructionsOffByOne,
    /// Conditional branches that are not taken are lost.
    NotTakenLost,
    /// The reference clock ticks with the core.
    ReferenceClockFollowsCore,
    /// A counter overflows one event early.
    OverflowOneEarly,
    /// A counter stops when it overflows.
    StopsAtOverflow,
    /// An overflow requests no interrupt.
    LostPmi,
    /// An overflow requests an interrupt although INT is clear.
    PmiWithoutInt,
    /// A PMI freezes no counter.
    FreezeIgnored,
    /// A PMI does not freeze the branch records.
    LbrFreezeIgnored,
    /// Clearing the frozen bit does not let the counters continue.
    NeverUnfreezes,
    /// RDPMC takes the index modulo the number of counters.
    RdpmcIndexWraps,
    /// RDPMC returns 32 bits.
    RdpmcTruncates,
    /// RDPMC is allowed at every privilege level.
    RdpmcPrivilegeIgnored,
    /// No branch is ever recorded.
    LbrNeverRecords,
    /// The branch records fill in the wrong direction.
    LbrOrderReversed,
    /// The filter of the branch records is ignored.
    LbrFilterIgnored,
    /// The misprediction flag of a branch record is never set.
    LbrMispredictLost,
    /// In call-stack mode a return takes no record away.
    LbrReturnsStay,
    /// A PEBS record names the next instruction instead of its own, or the other way round.
    PebsAddressWrong,
    /// Every second PEBS record is written over by the next one.
    PebsRecordLost,
    /// The threshold of the PEBS buffer sets no status bit and requests no interrupt.
    PebsThresholdIgnored,
    /// PEBS records are written beyond the end of their buffer.
    PebsMaximumIgnored,
    /// IA32_PEBS_ENABLE's bits of fixed counters do nothing: they overflow as ever.
    PebsFixedDead,
    /// A fixed counter does not get its reset value after a record.
    PebsFixedResetLost,
    /// Adaptive PEBS records state 8 bytes less than they have.
    PebsSizeWrong,
    /// Adaptive PEBS records never have the group of general registers.
    PebsGroupMissing,
    /// Adaptive PEBS records have the groups of MSR_PEBS_DATA_CFG whether the counter's adaptive bit is set or not.
    PebsAdaptiveIgnored,
    /// MSR_PEBS_DATA_CFG takes reserved bits, and drops them.
    PebsDataConfigUnchecked,
    /// The branch records of an adaptive PEBS record begin with the second one.
    PebsBranchesStale,
    /// Loads that are faster than the threshold of their latency have records as well.
    PebsLatencyIgnored,
    /// The event of load latency has records without the one that has to run together with it.
    PebsAuxiliaryIgnored,
    /// A record says that the first level had the data, wherever it was.
    PebsSourceWrong,
    /// The latency of a record is 0.
    PebsLatencyLost,
    /// The basic group of an architectural PEBS record names the next instruction.
    ApebsAddressWrong,
    /// An architectural PEBS record says that no counter requested it.
    ApebsCountersLost,
    /// Every second architectural PEBS record is written over by the next one: IA32_PEBS_INDEX does not move.
    ApebsRecordLost,
    /// The threshold of IA32_PEBS_INDEX sets no status bit and requests no interrupt.
    ApebsThresholdIgnored,
    /// The threshold of IA32_PEBS_INDEX shows in status bit 62, that of the debug store, instead of 54.
    ApebsThresholdInOldBit,
    /// Architectural PEBS records are written beyond the end of their buffer, and IA32_PEBS_INDEX never says that it is full.
    ApebsFullIgnored,
    /// A counter does not get the reload value of its CFG_C after an architectural PEBS record.
    ApebsReloadLost,
    /// The enable bit in CFG_C of fixed counters does nothing: they overflow as ever.
    ApebsFixedDead,
    /// The header of an architectural PEBS record states 16 bytes less than it has.
    ApebsSizeWrong,
    /// Architectural PEBS records never have the group of general registers.
    ApebsGroupMissing,
    /// Architectural PEBS records never have the group of the upper halves of YMM registers.
    ApebsUpperHalvesLost,
    /// Architectural PEBS records of every counter have the groups that CFG_C of general-purpose counter 0 requests.
    ApebsGroupsOfFirst,
    /// The branch records of an architectural PEBS record begin with the second one.
    ApebsBranchesStale,
    /// The counters' group of an architectural PEBS record has the counter's value after the reload.
    ApebsValuesReloaded,
    /// A fragment of an architectural PEBS record never says that another one follows.
    ApebsContinuationLost,
    /// CFG_C and IA32_PEBS_INDEX take reserved bits, and drop them.
    ApebsReservedAccepted,
    /// Architectural PEBS records are written although IA32_PEBS_INDEX has them switched off.
    ApebsEnableIgnored,
    /// IA32_PEBS_BASE does not exist, although CPUID says so.
    ApebsBaseAbsent,
    /// Leaf 0xA and 0x80000022 claim one counter more than there is.
    OneCounterTooManyEnumerated,
    /// General-purpose counter 0 stands still.
    CounterStandsStill,
    /// Every counter stands still, and holds what is written.
    AllStandStill,
    /// Core cycles and reference cycles are never counted, neither by events nor by fixed counters 1 and 2.
    ClocksStandStill,
    /// Reference cycles are never counted, neither by their event nor by fixed counter 2.
    ReferenceStandsStill,
    /// General-purpose counter 0 counts everything twice.
    CountsTwice,
    /// General-purpose counter 0 counts downwards.
    RunsBackwards,
    /// General-purpose counter 1 reads its greatest value.
    StuckAtMaximum,
    /// A write that sets FREEZE_PERFMON_ON_PMI raises #GP, as under KVM.
    FreezeRefused,
    /// A PMI freezes the counters 400 instructions after the overflow.
    FreezeLate,
    /// From the first PMI on, interrupts are requested for ever.
    PmiNeverStops,
    /// The PMI comes as an interrupt of vector 0, whatever LVTPC says. Acts where a PMI is delivered.
    PmiWrongVector,
    /// RDPMC returns 7 more than RDMSR.
    RdpmcDiffers,
    /// IA32_PEBS_ENABLE does not exist.
    PebsEnableAbsent,
    /// IA32_DEBUGCTL does not exist.
    DebugControlAbsent,
    /// The global status does not exist.
    GlobalStatusAbsent,
    /// Of ten retired branches each counter counts nine.
    LosesATenth,
    /// Somebody else has the counters of retired branches during 32 of every 256 instructions.
    Shared,
    /// Of three overflows that are to interrupt, the third one does not.
    PmiDropped,
    /// A sample of IBS does not set its valid bit, and the count starts over.
    IbsValidNeverSets,
    /// IBS_OP_RIP is the address of the next instruction.
    IbsRipOfNext,
    /// The linear address of the data is 0 although it is said to be valid.
    IbsDataAddressLost,
    /// A unit of IBS counts on, and samples, while its valid bit is set.
    IbsCountsOn,
    /// A sample of IBS requests no interrupt.
    IbsInterruptLost,
    /// A unit of IBS takes its maximum count twice.
    IbsPeriodDoubled,
    /// IBS counts cycles whatever IBS_OP_CTL\[19\] says.
    IbsCountControlIgnored,
    /// The registers of IBS do not exist, although CPUID says so.
    IbsRegistersAbsent,
    /// A sample of IBS never says that the instruction is a branch.
    IbsBranchFlagsLost,
    /// A sample of IBS never says that a branch was taken.
    IbsTakenLost,
    /// The latency of a load that missed is 0 in a sample of IBS.
    IbsLatencyLost,
    /// The linear address of a fetch is that of the next instruction.
    IbsFetchOfNext,
    /// A sampled fetch is said not to have been completed.
    IbsFetchIncomplete,
    /// The physical address of the data is the linear one.
    IbsPhysicalIsLinear,
    /// CPUID claims IBS_OP_DATA4, which does not exist.
    IbsFeatureTooMany,
    /// What is written to the current count of IBS_OP_CTL is taken as 0.
    IbsCountWriteIgnored,
    /// IBS_CTL says that its entry of the local vector table is not valid.
    IbsLvtOffsetInvalid,
    /// The fields of PERF_METRICS do not add up to 255: the back end lacks a quarter of its slots.
    MetricsSumTooSmall,
    /// PERF_METRICS takes slots that retire for ones in which the back end took nothing.
    MetricsRetiringLost,
    /// PERF_METRICS takes slots of mispredictions for ones in which the back end took nothing.
    MetricsMispredictsLost,
    /// PERF_METRICS has the whole of its slots as waiting for memory.
    MetricsSecondLevelWrong,
    /// A write to PERF_METRICS does not start its fractions over.
    MetricsWriteGoesOn,
    /// PERF_METRICS takes reserved bits, and drops them.
    MetricsReservedAccepted,
    /// RDPMC does not know PERF_METRICS.
    MetricsRdpmcAbsent,
    /// PERF_METRICS counts while its bit of the global control is clear.
    MetricsEnableIgnored,
    /// Status bit 48 (PERF_METRICS) cannot be set by software.
    MetricsStatusStuck,
    /// PERF_METRICS overflows with its 256th slot.
    MetricsOverflowEarly,
    /// Fixed counter 3 counts every slot twice.
    SlotsTwice,
    /// The event of slots on general-purpose counters counts a slot less a cycle than fixed counter 3.
    SlotsEventDiffers,
    /// The registers of energy do not exist, although CPUID says so.
    EnergyRegistersAbsent,
    /// The register with the unit of energy reads 0.
    EnergyUnitLost,
    /// The registers of energy stand still.
    EnergyStandsStill,
    /// The registers of energy count downwards.
    EnergyRunsBackwards,
    /// A register of energy has a bit above its 32.
    EnergyUpperHalfSet,
    /// The cores use twice as much energy as their package.
    EnergyOfCoresTooLarge,
    /// A write to a register of energy is dropped instead of raising #GP.
    EnergyWriteAccepted,
}

#[cfg(feature = "mutations")]
impl Mutation {
    /// Every fault.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The fault with a name as a command line has it: the variant's, in lower case, with a hyphen between words or
    /// without.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.is_called(name))
    }

    fn is_called(self, name: &str) -> bool {
        use core::fmt::Write;
        /// What of the name is still to come.
        struct Rest<'a>(core::str::Chars<'a>);
        impl Write for Rest<'_> {
            fn write_str(&mut self, text: &str) -> core::fmt::Result {
                for wanted in text.chars() {
                    let next = self.0.find(|&letter| letter != '-').ok_or(core::fmt::Error)?;
                    if next != wanted.to_ascii_lowercase() {
                        return Err(core::fmt::Error);
                    }
                }
                Ok(())
            }
        }
        let mut rest = Rest(name.chars());
        write!(rest, "{self:?}").is_ok() && rest.0.next().is_none()
    }
}

#[cfg(all(test, feature = "mutations"))]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_its_fault_and_no_other() {
        for fault in Mutation::ALL {
            let name = format!("{fault:?}").to_lowercase();
            assert_eq!(Mutation::by_name(&name), Some(fault));
        }
        assert_eq!(Mutation::by_name("freeze-ignored"), Some(Mutation::FreezeIgnored));
        for wrong in ["", "freeze", "freeze-ignored-", "freeze-ignoredx", "Freeze"] {
            assert_eq!(Mutation::by_name(wrong), None, "{wrong}");
        }
    }
}

/// The fault planted at the moment. Without the feature it has no size and is never anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted(#[cfg(feature = "mutations")] Option<Mutation>);

impl Planted {
    #[cfg(feature = "mutations")]
    pub(crate) const fn new(mutation: Option<Mutation>) -> Self {
        Self(mutation)
    }

    /// Whether this fault is planted.
    #[cfg(feature = "mutations")]
    pub(crate) fn is(self, mutation: Mutation) -> bool {
        self.0 == Some(mutation)
    }

    /// Whether any fault is.
    pub(crate) const fn any(self) -> bool {
        #[cfg(feature = "mutations")]
        return self.0.is_some();
        #[cfg(not(feature = "mutations"))]
        false
    }

    /// Whether this fault is planted: never.
    #[cfg(not(feature = "mutations"))]
    pub(crate) const fn is(self, _: Mutation) -> bool {
        false
    }
}
