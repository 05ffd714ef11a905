//! Nehalem; table `intel/nehalemep.csv`. The model executes no wrong path, so executed branches are
//! retired branches. There is no middle cache level: what misses the first is served by the last.

use super::Event;
use super::meaning::*;

pub(crate) const NEHALEM: &[Event] = &[
    Event::new("INST_RETIRED.ANY_P", 0xC0, 0x01, INSTRUCTIONS).on(0xF),
    Event::new("INST_RETIRED.TOTAL_CYCLES", 0xC0, 0x01, INSTRUCTIONS)
        .on(0xF)
        .cmask(16)
        .inverted(),
    Event::new("CPU_CLK_UNHALTED.THREAD_P", 0x3C, 0x00, CYCLES).on(0xF),
    Event::new("CPU_CLK_UNHALTED.REF_P", 0x3C, 0x01, BUS).on(0xF),
    Event::new("UOPS_ISSUED.ANY", 0x0E, 0x01, UOPS).on(0xF),
    Event::new("UOPS_ISSUED.STALL_CYCLES", 0x0E, 0x01, UOPS)
        .on(0xF)
        .cmask(1)
        .inverted(),
    Event::new("UOPS_RETIRED.ANY", 0xC2, 0x01, UOPS).on(0xF),
    Event::new("UOPS_RETIRED.RETIRE_SLOTS", 0xC2, 0x02, UOPS).on(0xF),
    Event::new("BR_INST_RETIRED.CONDITIONAL", 0xC4, 0x01, JCC).on(0xF),
    Event::new("BR_INST_RETIRED.NEAR_CALL", 0xC4, 0x02, CALL).on(0xF),
    Event::new("BR_INST_RETIRED.ALL_BRANCHES", 0xC4, 0x04, BRANCHES).on(0xF),
    Event::new("BR_MISP_RETIRED.NEAR_CALL", 0xC5, 0x02, MISSED_CALL).on(0xF),
    Event::new("BR_INST_EXEC.COND", 0x88, 0x01, JCC).on(0xF),
    Event::new("BR_INST_EXEC.DIRECT", 0x88, 0x02, RELATIVE_JUMP).on(0xF),
    Event::new("BR_INST_EXEC.INDIRECT_NON_CALL", 0x88, 0x04, INDIRECT_JUMP).on(0xF),
    Event::new("BR_INST_EXEC.RETURN_NEAR", 0x88, 0x08, RETURN).on(0xF),
    Event::new("BR_INST_EXEC.DIRECT_NEAR_CALL", 0x88, 0x10, RELATIVE_CALL).on(0xF),
    Event::new("BR_INST_EXEC.INDIRECT_NEAR_CALL", 0x88, 0x20, INDIRECT_CALL).on(0xF),
    Event::new("BR_INST_EXEC.TAKEN", 0x88, 0x40, TAKEN).on(0xF),
    Event::new("BR_INST_EXEC.ANY", 0x88, 0x7F, BRANCHES).on(0xF),
    Event::new("BR_MISP_EXEC.COND", 0x89, 0x01, MISSED_JCC).on(0xF),
    Event::new("BR_MISP_EXEC.DIRECT", 0x89, 0x02, MISSED_RELATIVE_JUMP).on(0xF),
    Event::new(
        "BR_MISP_EXEC.INDIRECT_NON_CALL",
        0x89,
        0x04,
        MISSED_INDIRECT_JUMP,
    )
    .on(0xF),
    Event::new("BR_MISP_EXEC.RETURN_NEAR", 0x89, 0x08, MISSED_RETURN).on(0xF),
    Event::new(
        "BR_MISP_EXEC.DIRECT_NEAR_CALL",
        0x89,
        0x10,
        MISSED_RELATIVE_CALL,
    )
    .on(0xF),
    Event::new(
        "BR_MISP_EXEC.INDIRECT_NEAR_CALL",
        0x89,
        0x20,
        MISSED_INDIRECT_CALL,
    )
    .on(0xF),
    Event::new("BR_MISP_EXEC.TAKEN", 0x89, 0x40, MISSED_TAKEN).on(0xF),
    Event::new("BR_MISP_EXEC.ANY", 0x89, 0x7F, MISSED).on(0xF),
    Event::new("MEM_INST_RETIRED.LOADS", 0x0B, 0x01, LOADS).on(0xF),
    Event::new("MEM_INST_RETIRED.STORES", 0x0B, 0x02, STORES).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L1D_HIT", 0xCB, 0x01, LOAD_L1_HIT).on(0xF),
    Event::new("MEM_LOAD_RETIRED.L2_HIT", 0xCB, 0x02, NOTHING).on(0xF),
    Event::new(
        "MEM_LOAD_RETIRED.LLC_UNSHARED_HIT",
        0xCB,
        0x04,
        LOAD_LLC_HIT,
    )
    .on(0xF),
    Event::new(
        "MEM_LOAD_RETIRED.OTHER_CORE_L2_HIT_HITM",
        0xCB,
        0x08,
        NOTHING,
    )
    .on(0xF),
    Event::new("MEM_LOAD_RETIRED.LLC_MISS", 0xCB, 0x10, LOAD_LLC_MISS).on(0xF),
    Event::new("MEM_LOAD_RETIRED.HIT_LFB", 0xCB, 0x40, NOTHING).on(0xF),
    Event::new("MEM_LOAD_RETIRED.DTLB_MISS", 0xCB, 0x80, LOAD_DTLB_MISSES).on(0xF),
    Event::new("MEM_STORE_RETIRED.DTLB_MISS", 0x0C, 0x01, STORE_DTLB_MISSES).on(0xF),
    Event::new("DTLB_LOAD_MISSES.ANY", 0x08, 0x01, LOAD_DTLB_MISSES).on(0xF),
    Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x08, 0x02, LOAD_WALKS).on(0xF),
    Event::new("DTLB_LOAD_MISSES.STLB_HIT", 0x08, 0x10, LOAD_STLB_HITS).on(0xF),
    Event::new("DTLB_MISSES.ANY", 0x49, 0x01, DTLB_MISSES).on(0xF),
    Event::new("DTLB_MISSES.WALK_COMPLETED", 0x49, 0x02, WALKS).on(0xF),
    Event::new("DTLB_MISSES.STLB_HIT", 0x49, 0x10, STLB_HITS).on(0xF),
    Event::new("L1D.REPL", 0x51, 0x01, L1_FILLS).on(0x3),
    Event::new("L1D_CACHE_LD.MESI", 0x40, 0x0F, LOADS).on(0x3),
    Event::new("L1D_CACHE_LD.I_STATE", 0x40, 0x01, LOAD_L1_MISS).on(0x3),
    Event::new("L1D_ALL_REF.ANY", 0x43, 0x01, ACCESSES).on(0x3),
    Event::new("LONGEST_LAT_CACHE.REFERENCE", 0x2E, 0x4F, LLC_REFERENCES).on(0xF),
    Event::new("LONGEST_LAT_CACHE.MISS", 0x2E, 0x41, LLC_MISSES).on(0xF),
];
