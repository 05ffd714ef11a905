//! Lists of events that several of Intel's processors have alike.

use super::Event;
use super::meaning::*;

/// Branches by kind, of Haswell and Skylake.
pub(super) const HASWELL_BRANCHES: [Event; 10] = [
    Event::new("BR_INST_RETIRED.ALL_BRANCHES", 0xC4, 0x00, BRANCHES).on(0xFF),
    Event::new("BR_INST_RETIRED.CONDITIONAL", 0xC4, 0x01, JCC).on(0xFF),
    Event::new("BR_INST_RETIRED.NEAR_CALL", 0xC4, 0x02, CALL).on(0xFF),
    Event::new("BR_INST_RETIRED.ALL_BRANCHES_PEBS", 0xC4, 0x04, BRANCHES).on(0xF),
    Event::new("BR_INST_RETIRED.NEAR_RETURN", 0xC4, 0x08, RETURN).on(0xFF),
    Event::new("BR_INST_RETIRED.NOT_TAKEN", 0xC4, 0x10, NOT_TAKEN).on(0xFF),
    Event::new("BR_INST_RETIRED.NEAR_TAKEN", 0xC4, 0x20, TAKEN).on(0xFF),
    Event::new("BR_INST_RETIRED.FAR_BRANCH", 0xC4, 0x40, FAR).on(0xFF),
    Event::new("BR_MISP_RETIRED.ALL_BRANCHES", 0xC5, 0x00, MISSED).on(0xFF),
    Event::new("BR_MISP_RETIRED.CONDITIONAL", 0xC5, 0x01, MISSED_JCC).on(0xFF),
];

/// Branches by kind, from Ice Lake to Golden Cove.
pub(super) const ICE_LAKE_BRANCHES: [Event; 17] = [
    Event::new("BR_INST_RETIRED.ALL_BRANCHES", 0xC4, 0x00, BRANCHES).on(0xFF),
    Event::new("BR_INST_RETIRED.COND_TAKEN", 0xC4, 0x01, TAKEN_JCC).on(0xFF),
    Event::new("BR_INST_RETIRED.NEAR_CALL", 0xC4, 0x02, CALL).on(0xFF),
    Event::new("BR_INST_RETIRED.NEAR_RETURN", 0xC4, 0x08, RETURN).on(0xFF),
    Event::new("BR_INST_RETIRED.COND_NTAKEN", 0xC4, 0x10, NOT_TAKEN).on(0xFF),
    Event::new("BR_INST_RETIRED.COND", 0xC4, 0x11, JCC).on(0xFF),
    Event::new("BR_INST_RETIRED.NEAR_TAKEN", 0xC4, 0x20, TAKEN).on(0xFF),
    Event::new("BR_INST_RETIRED.FAR_BRANCH", 0xC4, 0x40, FAR).on(0xFF),
    Event::new("BR_INST_RETIRED.INDIRECT", 0xC4, 0x80, INDIRECT).on(0xFF),
    Event::new("BR_MISP_RETIRED.ALL_BRANCHES", 0xC5, 0x00, MISSED).on(0xFF),
    Event::new("BR_MISP_RETIRED.COND_TAKEN", 0xC5, 0x01, MISSED_TAKEN_JCC).on(0xFF),
    Event::new("BR_MISP_RETIRED.INDIRECT_CALL", 0xC5, 0x02, MISSED_INDIRECT_CALL).on(0xFF),
    Event::new("BR_MISP_RETIRED.RET", 0xC5, 0x08, MISSED_RETURN).on(0xFF),
    Event::new("BR_MISP_RETIRED.COND_NTAKEN", 0xC5, 0x10, MISSED_NOT_TAKEN).on(0xFF),
    Event::new("BR_MISP_RETIRED.COND", 0xC5, 0x11, MISSED_JCC).on(0xFF),
    Event::new("BR_MISP_RETIRED.NEAR_TAKEN", 0xC5, 0x20, MISSED_TAKEN).on(0xFF),
    Event::new("BR_MISP_RETIRED.INDIRECT", 0xC5, 0x80, MISSED_INDIRECT).on(0xFF),
];

/// Loads and stores that retired, and what served the loads, from Skylake to Golden Cove.
pub(super) const RETIRED_ACCESSES: [Event; 15] = [
    Event::new("MEM_INST_RETIRED.STLB_MISS_LOADS", 0xD0, 0x11, LOAD_WALKS).on(0xF),
    Event::new("MEM_INST_RETIRED.STLB_MISS_STORES", 0xD0, 0x12, STORE_WALKS).on(0xF),
    Event::new("MEM_INST_RETIRED.LOCK_LOADS", 0xD0, 0x21, LOCKED).on(0xF),
    Event::new("MEM_INST_RETIRED.SPLIT_LOADS", 0xD0, 0x41, SPLIT_LOADS).on(0xF),
    Event::new("MEM_INST_RETIRED.SPLIT_STORES", 0xD0, 0x42, SPLIT_STORES).on(0xF),
    Event::new("MEM_INST_RETIRED.ALL_LOADS", 0xD0, 0x81, LOADS).on(0xF),
    Event::new("MEM_INST_RETIRED.ALL_STORES", 0xD0, 0x82, STORES).on(0xF),
    Event::new("MEM_INST_RETIRED.ANY", 0xD0, 0x83, ACCESSES).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L1_HIT", 0xD1, 0x01, LOAD_L1_HIT).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L2_HIT", 0xD1, 0x02, NOTHING).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L3_HIT", 0xD1, 0x04, LOAD_LLC_HIT).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L1_MISS", 0xD1, 0x08, LOAD_L1_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L2_MISS", 0xD1, 0x10, LOAD_L1_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L3_MISS", 0xD1, 0x20, LOAD_LLC_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.FB_HIT", 0xD1, 0x40, NOTHING).on(0xF),
];

/// Instructions, cycles and slots, from Lion Cove on.
pub(super) const COVE_CORE: [Event; 12] = [
    Event::new("INST_RETIRED.ANY_P", 0xC0, 0x00, INSTRUCTIONS).on(0x3FF),
    Event::new("CPU_CLK_UNHALTED.THREAD_P", 0x3C, 0x00, CYCLES).on(0x3FF),
    Event::new("CPU_CLK_UNHALTED.REF_TSC_P", 0x3C, 0x01, REFERENCE).on(0x3FF),
    Event::new("UOPS_ISSUED.ANY", 0xAE, 0x01, UOPS).on(0x3FF),
    Event::new("UOPS_EXECUTED.THREAD", 0xB1, 0x01, UOPS).on(0x8),
    Event::new("UOPS_RETIRED.SLOTS", 0xC2, 0x02, UOPS).on(0x3FF),
    Event::new("UOPS_RETIRED.STALLS", 0xC2, 0x02, UOPS).on(0x3FF).cmask(1).inverted(),
    Event::new("TOPDOWN.SLOTS_P", 0xA4, 0x01, SLOTS).on(0x3FF),
    Event::new("TOPDOWN.BACKEND_BOUND_SLOTS", 0xA4, 0x02, BACKEND_SLOTS).on(0x3FF),
    Event::new("TOPDOWN.BAD_SPEC_SLOTS", 0xA4, 0x04, BAD_SPECULATION_SLOTS).on(0x1),
    Event::new("TOPDOWN.BR_MISPREDICT_SLOTS", 0xA4, 0x08, BAD_SPECULATION_SLOTS).on(0x1),
    Event::new("TOPDOWN.MEMORY_BOUND_SLOTS", 0xA4, 0x10, MEMORY_SLOTS).on(0x8),
];

/// Accesses, caches and TLBs, from Lion Cove on.
pub(super) const COVE_MEMORY: [Event; 33] = [
    Event::new("MEM_INST_RETIRED.STLB_HIT_LOADS", 0xD0, 0x09, LOAD_STLB_HITS).on(0xF),
    Event::new("MEM_INST_RETIRED.STLB_HIT_STORES", 0xD0, 0x0A, STORE_STLB_HITS).on(0xF),
    Event::new("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4", 0xCD, 0x01, LOADS).on(0x3FC),
    Event::new("MEM_TRANS_RETIRED.STORE_SAMPLE", 0xCD, 0x02, STORES).on(0x3),
    Event::new("MEM_INST_RETIRED.STLB_MISS_LOADS", 0xD0, 0x11, LOAD_WALKS).on(0xF),
    Event::new("MEM_INST_RETIRED.STLB_MISS_STORES", 0xD0, 0x12, STORE_WALKS).on(0xF),
    Event::new("MEM_INST_RETIRED.LOCK_LOADS", 0xD0, 0x21, LOCKED).on(0xF),
    Event::new("MEM_INST_RETIRED.SPLIT_LOADS", 0xD0, 0x41, SPLIT_LOADS).on(0xF),
    Event::new("MEM_INST_RETIRED.SPLIT_STORES", 0xD0, 0x42, SPLIT_STORES).on(0xF),
    Event::new("MEM_INST_RETIRED.ALL_LOADS", 0xD0, 0x81, LOADS).on(0xF),
    Event::new("MEM_INST_RETIRED.ALL_STORES", 0xD0, 0x82, STORES).on(0xF),
    Event::new("MEM_INST_RETIRED.ANY", 0xD0, 0x87, ACCESSES).on(0x3FF),
    Event::new("MEM_LOAD_RETIRED.L1_HIT_L0", 0xD1, 0x01, LOAD_L1_HIT).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L1_HIT_L1", 0xD1, 0x100, NOTHING).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L1_HIT", 0xD1, 0x101, LOAD_L1_HIT).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L2_HIT", 0xD1, 0x02, NOTHING).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L3_HIT", 0xD1, 0x04, LOAD_LLC_HIT).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L1_MISS", 0xD1, 0x08, LOAD_L1_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L2_MISS", 0xD1, 0x10, LOAD_L1_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L3_MISS", 0xD1, 0x20, LOAD_LLC_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.FB_HIT", 0xD1, 0x40, NOTHING).on(0xF),
    Event::new("L1D.L0_REPLACEMENT", 0x51, 0x01, L1_FILLS).on(0x3FF),
    Event::new("L1D.L1_REPLACEMENT", 0x51, 0x04, NOTHING).on(0x3FF),
    Event::new("L1D.REPLACEMENT", 0x51, 0x05, L1_FILLS).on(0x3FF),
    Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED_4K", 0x12, 0x02, LOAD_WALKS).on(0x3FF),
    Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x12, 0x0E, LOAD_WALKS).on(0x3FF),
    Event::new("DTLB_LOAD_MISSES.STLB_HIT", 0x12, 0x320, LOAD_STLB_HITS).on(0x3FF),
    Event::new("DTLB_STORE_MISSES.WALK_COMPLETED_4K", 0x13, 0x02, STORE_WALKS).on(0x3FF),
    Event::new("DTLB_STORE_MISSES.WALK_COMPLETED", 0x13, 0x0E, STORE_WALKS).on(0x3FF),
    Event::new("DTLB_STORE_MISSES.STLB_HIT", 0x13, 0x320, STORE_STLB_HITS).on(0x3FF),
    Event::new("MISC_RETIRED.LBR_INSERTS", 0xE4, 0x01, LBR_INSERTS).on(0x3FF),
    Event::new("LONGEST_LAT_CACHE.REFERENCE", 0x2E, 0x4F, LLC_REFERENCES).on(0x3FF),
    Event::new("LONGEST_LAT_CACHE.MISS", 0x2E, 0x41, LLC_MISSES).on(0x3FF),
];
