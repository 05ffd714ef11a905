//! What the events mean in terms of the model, by short names that the tables use.

use crate::occurrence::Bulk;
use crate::occurrence::Occurrence::*;
use crate::selection::Selection;

const fn of(list: &[crate::occurrence::Occurrence]) -> Selection {
    Selection::of(list)
}

/// An event that the model knows and that never happens in it.
pub(super) const NOTHING: Selection = Selection::NOTHING;
pub(super) const INSTRUCTIONS: Selection = Selection::bulk(Bulk::Instructions);
pub(super) const UOPS: Selection = Selection::bulk(Bulk::Uops);
pub(super) const PORT_0: Selection = of(&[Port0]);
pub(super) const PORT_1: Selection = of(&[Port1]);
pub(super) const PORT_2: Selection = of(&[Port2]);
pub(super) const PORT_3: Selection = of(&[Port3]);
pub(super) const PORT_4: Selection = of(&[Port4]);
pub(super) const PORT_5: Selection = of(&[Port5]);
pub(super) const PORT_6: Selection = of(&[Port6]);
pub(super) const PORT_7: Selection = of(&[Port7]);
pub(super) const PORT_2_3: Selection = PORT_2.or(PORT_3);
pub(super) const PORT_4_9: Selection = of(&[Port4, Port9]);
pub(super) const PORT_7_8: Selection = of(&[Port7, Port8]);
pub(super) const PORT_2_3_10: Selection = PORT_2_3.or(of(&[PortA]));
pub(super) const PORT_5_11: Selection = of(&[Port5, PortB]);
pub(super) const CYCLES: Selection = Selection::bulk(Bulk::Cycles);
pub(super) const USER_CYCLES: Selection = Selection::bulk(Bulk::UserCycles);
pub(super) const KERNEL_CYCLES: Selection = Selection::bulk(Bulk::KernelCycles);
pub(super) const REFERENCE: Selection = Selection::bulk(Bulk::ReferenceClock);
pub(super) const BUS: Selection = Selection::bulk(Bulk::BusClock);
pub(super) const SLOTS: Selection = Selection::bulk(Bulk::Slots);
pub(super) const BAD_SPECULATION_SLOTS: Selection = Selection::bulk(Bulk::BadSpeculationSlots);
pub(super) const BACKEND_SLOTS: Selection = Selection::bulk(Bulk::BackendSlots);
pub(super) const MEMORY_SLOTS: Selection = Selection::bulk(Bulk::MemorySlots);

pub(super) const MISSED_NOT_TAKEN: Selection = of(&[MissedJccNotTaken]);
pub(super) const MISSED_FORWARD: Selection = of(&[MissedJccTakenForward]);
pub(super) const MISSED_BACKWARD: Selection = of(&[MissedJccTakenBackward]);
pub(super) const MISSED_TAKEN_JCC: Selection = MISSED_FORWARD.or(MISSED_BACKWARD);
pub(super) const MISSED_JCC: Selection = MISSED_TAKEN_JCC.or(MISSED_NOT_TAKEN);
pub(super) const MISSED_RELATIVE_CALL: Selection = of(&[MissedRelativeCall]);
pub(super) const MISSED_INDIRECT_CALL: Selection = of(&[MissedIndirectCall]);
pub(super) const MISSED_CALL: Selection = MISSED_RELATIVE_CALL.or(MISSED_INDIRECT_CALL);
pub(super) const MISSED_RETURN: Selection = of(&[MissedReturn]);
pub(super) const MISSED_RELATIVE_JUMP: Selection = of(&[MissedRelativeJump]);
pub(super) const MISSED_INDIRECT_JUMP: Selection = of(&[MissedIndirectJump]);
pub(super) const MISSED_INDIRECT: Selection = MISSED_INDIRECT_CALL.or(MISSED_INDIRECT_JUMP);
pub(super) const MISSED_UNCONDITIONAL: Selection =
    MISSED_CALL.or(MISSED_RETURN).or(MISSED_RELATIVE_JUMP).or(MISSED_INDIRECT_JUMP);
pub(super) const MISSED_TAKEN: Selection = MISSED_TAKEN_JCC.or(MISSED_UNCONDITIONAL);
pub(super) const MISSED: Selection = MISSED_TAKEN.or(MISSED_NOT_TAKEN);

pub(super) const HIT_NOT_TAKEN: Selection = of(&[JccNotTaken]);
pub(super) const NOT_TAKEN: Selection = HIT_NOT_TAKEN.or(MISSED_NOT_TAKEN);
pub(super) const FORWARD: Selection = of(&[JccTakenForward]).or(MISSED_FORWARD);
pub(super) const BACKWARD: Selection = of(&[JccTakenBackward]).or(MISSED_BACKWARD);
pub(super) const TAKEN_JCC: Selection = FORWARD.or(BACKWARD);
pub(super) const JCC: Selection = TAKEN_JCC.or(NOT_TAKEN);
pub(super) const RELATIVE_CALL: Selection = of(&[RelativeCall]).or(MISSED_RELATIVE_CALL);
pub(super) const INDIRECT_CALL: Selection = of(&[IndirectCall]).or(MISSED_INDIRECT_CALL);
pub(super) const CALL: Selection = RELATIVE_CALL.or(INDIRECT_CALL);
pub(super) const RETURN: Selection = of(&[Return]).or(MISSED_RETURN);
pub(super) const RELATIVE_JUMP: Selection = of(&[RelativeJump]).or(MISSED_RELATIVE_JUMP);
pub(super) const INDIRECT_JUMP: Selection = of(&[IndirectJump]).or(MISSED_INDIRECT_JUMP);
pub(super) const INDIRECT: Selection = INDIRECT_CALL.or(INDIRECT_JUMP);
pub(super) const FAR: Selection = of(&[FarBranch]);
pub(super) const UNCONDITIONAL: Selection = CALL.or(RETURN).or(RELATIVE_JUMP).or(INDIRECT_JUMP);
/// Near branches that went somewhere.
pub(super) const TAKEN: Selection = TAKEN_JCC.or(UNCONDITIONAL);
pub(super) const TAKEN_OR_FAR: Selection = TAKEN.or(FAR);
pub(super) const BRANCHES: Selection = TAKEN_OR_FAR.or(NOT_TAKEN);
pub(super) const HIT_TAKEN: Selection = BRANCHES.without(NOT_TAKEN).without(MISSED);

/// Instructions that load, whether they store as well or not.
pub(super) const LOADS: Selection = of(&[Load, LoadStore]);
pub(super) const STORES: Selection = of(&[Store, LoadStore]);
pub(super) const ACCESSES: Selection = LOADS.or(STORES);
pub(super) const LOAD_ONLY: Selection = of(&[Load]);
pub(super) const STORE_ONLY: Selection = of(&[Store]);
pub(super) const LOAD_STORE: Selection = of(&[LoadStore]);
pub(super) const LOCKED: Selection = of(&[Locked]);
pub(super) const SPLIT_LOADS: Selection = of(&[SplitLoad]);
pub(super) const SPLIT_STORES: Selection = of(&[SplitStore]);

pub(super) const LOAD_L1_HIT: Selection = of(&[LoadL1Hit]);
pub(super) const LOAD_LLC_HIT: Selection = of(&[LoadLlcHit]);
pub(super) const LOAD_LLC_MISS: Selection = of(&[LoadLlcMiss]);
pub(super) const LOAD_L1_MISS: Selection = LOAD_LLC_HIT.or(LOAD_LLC_MISS);
pub(super) const STORE_LLC_HIT: Selection = of(&[StoreLlcHit]);
pub(super) const STORE_LLC_MISS: Selection = of(&[StoreLlcMiss]);
pub(super) const STORE_L1_MISS: Selection = STORE_LLC_HIT.or(STORE_LLC_MISS);
pub(super) const L1_MISS: Selection = LOAD_L1_MISS.or(STORE_L1_MISS);
pub(super) const SERVED_BY_LLC: Selection = LOAD_LLC_HIT.or(STORE_LLC_HIT);
pub(super) const SERVED_BY_MEMORY: Selection = LOAD_LLC_MISS.or(STORE_LLC_MISS);
pub(super) const L1_FILLS: Selection = of(&[L1Fill]);
pub(super) const LLC_REFERENCES: Selection = of(&[LlcReference]);
pub(super) const LLC_MISSES: Selection = of(&[LlcMiss]);

pub(super) const LOAD_STLB_HITS: Selection = of(&[LoadStlbHit]);
pub(super) const STORE_STLB_HITS: Selection = of(&[StoreStlbHit]);
pub(super) const STLB_HITS: Selection = LOAD_STLB_HITS.or(STORE_STLB_HITS);
pub(super) const LOAD_WALKS: Selection = of(&[LoadWalk]);
pub(super) const STORE_WALKS: Selection = of(&[StoreWalk]);
pub(super) const WALKS: Selection = LOAD_WALKS.or(STORE_WALKS);
pub(super) const LOAD_DTLB_MISSES: Selection = LOAD_STLB_HITS.or(LOAD_WALKS);
pub(super) const STORE_DTLB_MISSES: Selection = STORE_STLB_HITS.or(STORE_WALKS);
pub(super) const DTLB_MISSES: Selection = LOAD_DTLB_MISSES.or(STORE_DTLB_MISSES);

pub(super) const INTERRUPTS: Selection = of(&[Interrupt]);
pub(super) const LBR_INSERTS: Selection = of(&[LbrInsert]);
pub(super) const CLFLUSHES: Selection = of(&[ClFlush]);
pub(super) const CPUIDS: Selection = of(&[Cpuid]);
