//! Sapphire Rapids; table `intel/sapphirerapids.csv`. No wrong path is executed, and there is no
//! middle cache level.

use super::meaning::*;
use super::{Event, groups, joined};

pub(crate) const SAPPHIRE_RAPIDS: &[Event] = joined!(
    &[
        Event::new("INST_RETIRED.ANY_P", 0xC0, 0x00, INSTRUCTIONS).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.THREAD_P", 0x3C, 0x00, CYCLES).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.REF_TSC_P", 0x3C, 0x01, REFERENCE).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 0x3C, 0x02, BUS).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.REF_DISTRIBUTED", 0x3C, 0x08, REFERENCE).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.DISTRIBUTED", 0xEC, 0x02, CYCLES).on(0xFF),
        Event::new("UOPS_ISSUED.ANY", 0xAE, 0x01, UOPS).on(0xFF),
        Event::new("UOPS_EXECUTED.THREAD", 0xB1, 0x01, UOPS).on(0xFF),
        Event::new("UOPS_RETIRED.SLOTS", 0xC2, 0x02, UOPS).on(0xFF),
        Event::new("UOPS_RETIRED.STALLS", 0xC2, 0x02, UOPS).on(0xFF).cmask(1).inverted(),
        Event::new("IDQ_UOPS_NOT_DELIVERED.CORE", 0x9C, 0x01, NOTHING).on(0xFF),
        Event::new("TOPDOWN.SLOTS_P", 0xA4, 0x01, SLOTS).on(0xFF),
        Event::new("TOPDOWN.BACKEND_BOUND_SLOTS", 0xA4, 0x02, BACKEND_SLOTS).on(0xFF),
        Event::new("TOPDOWN.BAD_SPEC_SLOTS", 0xA4, 0x04, BAD_SPECULATION_SLOTS).on(0x1),
        Event::new("TOPDOWN.BR_MISPREDICT_SLOTS", 0xA4, 0x08, BAD_SPECULATION_SLOTS).on(0x1),
        Event::new("TOPDOWN.MEMORY_BOUND_SLOTS", 0xA4, 0x10, MEMORY_SLOTS).on(0xFF),
    ],
    &groups::ICE_LAKE_BRANCHES,
    &[
        // Which also must be counted together with the event of load latency.
        Event::new("LD_BLOCKS.STORE_FORWARD", 0x03, 0x82, NOTHING).on(0xF),
        Event::new("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4", 0xCD, 0x01, LOADS).on(0xFE),
        Event::new("MEM_TRANS_RETIRED.STORE_SAMPLE", 0xCD, 0x02, STORES).on(0x1),
    ],
    &groups::RETIRED_ACCESSES,
    &[
        Event::new("L1D.REPLACEMENT", 0x51, 0x01, L1_FILLS).on(0xF),
        // What Linux counts as "L1-dcache-load-misses".
        Event::new("L2_RQSTS.ALL_DEMAND_DATA_RD", 0x24, 0xE1, LOAD_L1_MISS).on(0xF),
        Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED_4K", 0x12, 0x02, LOAD_WALKS).on(0xF),
        Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x12, 0x0E, LOAD_WALKS).on(0xF),
        Event::new("DTLB_LOAD_MISSES.STLB_HIT", 0x12, 0x20, LOAD_STLB_HITS).on(0xF),
        Event::new("DTLB_STORE_MISSES.WALK_COMPLETED_4K", 0x13, 0x02, STORE_WALKS).on(0xF),
        Event::new("DTLB_STORE_MISSES.WALK_COMPLETED", 0x13, 0x0E, STORE_WALKS).on(0xF),
        Event::new("DTLB_STORE_MISSES.STLB_HIT", 0x13, 0x20, STORE_STLB_HITS).on(0xF),
        Event::new("MISC_RETIRED.LBR_INSERTS", 0xCC, 0x20, LBR_INSERTS).on(0xFF),
        Event::new("LONGEST_LAT_CACHE.REFERENCE", 0x2E, 0x4F, LLC_REFERENCES).on(0xFF),
        Event::new("LONGEST_LAT_CACHE.MISS", 0x2E, 0x41, LLC_MISSES).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_0", 0xB2, 0x01, PORT_0).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_1", 0xB2, 0x02, PORT_1).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_2_3_10", 0xB2, 0x04, PORT_2_3_10).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_4_9", 0xB2, 0x10, PORT_4_9).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_5_11", 0xB2, 0x20, PORT_5_11).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_6", 0xB2, 0x40, PORT_6).on(0xFF),
        Event::new("UOPS_DISPATCHED.PORT_7_8", 0xB2, 0x80, PORT_7_8).on(0xFF),
        // The last one, as Golden Cove's table lacks it.
        Event::new("HW_INTERRUPTS.RECEIVED", 0xCB, 0x01, INTERRUPTS).on(0xFF),
    ],
);
