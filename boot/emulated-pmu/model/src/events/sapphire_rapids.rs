//! Sapphire Rapids; table `intel/sapphirerapids.csv`. No wrong path is executed, and there is no
//! middle cache level.

use super::Event;
use super::meaning::*;

pub(crate) const SAPPHIRE_RAPIDS: &[Event] = &[
    Event::new("INST_RETIRED.ANY_P", 0xC0, 0x00, INSTRUCTIONS).on(0xFF),
    Event::new("CPU_CLK_UNHALTED.THREAD_P", 0x3C, 0x00, CYCLES).on(0xFF),
    Event::new("CPU_CLK_UNHALTED.REF_TSC_P", 0x3C, 0x01, REFERENCE).on(0xFF),
    Event::new("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 0x3C, 0x02, BUS).on(0xFF),
    Event::new("CPU_CLK_UNHALTED.REF_DISTRIBUTED", 0x3C, 0x08, REFERENCE).on(0xFF),
    Event::new("CPU_CLK_UNHALTED.DISTRIBUTED", 0xEC, 0x02, CYCLES).on(0xFF),
    Event::new("UOPS_ISSUED.ANY", 0xAE, 0x01, UOPS).on(0xFF),
    Event::new("UOPS_EXECUTED.THREAD", 0xB1, 0x01, UOPS).on(0xFF),
    Event::new("UOPS_RETIRED.SLOTS", 0xC2, 0x02, UOPS).on(0xFF),
    Event::new("UOPS_RETIRED.STALLS", 0xC2, 0x02, UOPS)
        .on(0xFF)
        .cmask(1)
        .inverted(),
    Event::new("IDQ_UOPS_NOT_DELIVERED.CORE", 0x9C, 0x01, NOTHING).on(0xFF),
    Event::new("TOPDOWN.SLOTS_P", 0xA4, 0x01, SLOTS).on(0xFF),
    Event::new("TOPDOWN.BACKEND_BOUND_SLOTS", 0xA4, 0x02, BACKEND_SLOTS).on(0xFF),
    Event::new("TOPDOWN.BAD_SPEC_SLOTS", 0xA4, 0x04, BAD_SPECULATION_SLOTS).on(0x1),
    Event::new(
        "TOPDOWN.BR_MISPREDICT_SLOTS",
        0xA4,
        0x08,
        BAD_SPECULATION_SLOTS,
    )
    .on(0x1),
    Event::new("TOPDOWN.MEMORY_BOUND_SLOTS", 0xA4, 0x10, MEMORY_SLOTS).on(0xFF),
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
    Event::new(
        "BR_MISP_RETIRED.INDIRECT_CALL",
        0xC5,
        0x02,
        MISSED_INDIRECT_CALL,
    )
    .on(0xFF),
    Event::new("BR_MISP_RETIRED.RET", 0xC5, 0x08, MISSED_RETURN).on(0xFF),
    Event::new("BR_MISP_RETIRED.COND_NTAKEN", 0xC5, 0x10, MISSED_NOT_TAKEN).on(0xFF),
    Event::new("BR_MISP_RETIRED.COND", 0xC5, 0x11, MISSED_JCC).on(0xFF),
    Event::new("BR_MISP_RETIRED.NEAR_TAKEN", 0xC5, 0x20, MISSED_TAKEN).on(0xFF),
    Event::new("BR_MISP_RETIRED.INDIRECT", 0xC5, 0x80, MISSED_INDIRECT).on(0xFF),
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
    Event::new("L1D.REPLACEMENT", 0x51, 0x01, L1_FILLS).on(0xF),
    Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED_4K", 0x12, 0x02, LOAD_WALKS).on(0xF),
    Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x12, 0x0E, LOAD_WALKS).on(0xF),
    Event::new("DTLB_LOAD_MISSES.STLB_HIT", 0x12, 0x20, LOAD_STLB_HITS).on(0xF),
    Event::new(
        "DTLB_STORE_MISSES.WALK_COMPLETED_4K",
        0x13,
        0x02,
        STORE_WALKS,
    )
    .on(0xF),
    Event::new("DTLB_STORE_MISSES.WALK_COMPLETED", 0x13, 0x0E, STORE_WALKS).on(0xF),
    Event::new("DTLB_STORE_MISSES.STLB_HIT", 0x13, 0x20, STORE_STLB_HITS).on(0xF),
    Event::new("HW_INTERRUPTS.RECEIVED", 0xCB, 0x01, INTERRUPTS).on(0xFF),
    Event::new("MISC_RETIRED.LBR_INSERTS", 0xCC, 0x20, LBR_INSERTS).on(0xFF),
    Event::new("LONGEST_LAT_CACHE.REFERENCE", 0x2E, 0x4F, LLC_REFERENCES).on(0xFF),
    Event::new("LONGEST_LAT_CACHE.MISS", 0x2E, 0x41, LLC_MISSES).on(0xFF),
];
