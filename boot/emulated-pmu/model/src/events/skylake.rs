//! Skylake; table `intel/skylake.csv`. No wrong path is executed, and there is no middle cache
//! level.

use super::meaning::*;
use super::{Event, groups, joined};

pub(crate) const SKYLAKE: &[Event] = joined!(
    &[
        Event::new("INST_RETIRED.ANY_P", 0xC0, 0x00, INSTRUCTIONS).on(0xFF),
        Event::new("INST_RETIRED.PREC_DIST", 0xC0, 0x01, INSTRUCTIONS).on(0x2),
        Event::new("CPU_CLK_UNHALTED.THREAD_P", 0x3C, 0x00, CYCLES).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.RING0_TRANS", 0x3C, 0x00, CYCLES).on(0xFF).cmask(1).edges(),
        Event::new("CPU_CLK_UNHALTED.REF_XCLK", 0x3C, 0x01, BUS).on(0xFF),
        Event::new("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 0x3C, 0x02, BUS).on(0xFF),
        Event::new("UOPS_ISSUED.ANY", 0x0E, 0x01, UOPS).on(0xFF),
        Event::new("UOPS_ISSUED.STALL_CYCLES", 0x0E, 0x01, UOPS).on(0xFF).cmask(1).inverted(),
        Event::new("UOPS_EXECUTED.THREAD", 0xB1, 0x01, UOPS).on(0xFF),
        Event::new("UOPS_RETIRED.RETIRE_SLOTS", 0xC2, 0x02, UOPS).on(0xFF),
        Event::new("UOPS_RETIRED.STALL_CYCLES", 0xC2, 0x02, UOPS).on(0xFF).cmask(1).inverted(),
        Event::new("IDQ_UOPS_NOT_DELIVERED.CORE", 0x9C, 0x01, NOTHING).on(0xFF),
    ],
    &groups::HASWELL_BRANCHES,
    &[
        Event::new("BR_MISP_RETIRED.NEAR_CALL", 0xC5, 0x02, MISSED_CALL).on(0xFF),
        Event::new("BR_MISP_RETIRED.ALL_BRANCHES_PEBS", 0xC5, 0x04, MISSED).on(0xF),
        Event::new("BR_MISP_RETIRED.NEAR_TAKEN", 0xC5, 0x20, MISSED_TAKEN).on(0xFF),
        Event::new("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4", 0xCD, 0x01, LOADS).on(0xF),
    ],
    &groups::RETIRED_ACCESSES,
    &[
        Event::new("L1D.REPLACEMENT", 0x51, 0x01, L1_FILLS).on(0xFF),
        Event::new("DTLB_LOAD_MISSES.MISS_CAUSES_A_WALK", 0x08, 0x01, LOAD_WALKS).on(0xFF),
        Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED_4K", 0x08, 0x02, LOAD_WALKS).on(0xFF),
        Event::new("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x08, 0x0E, LOAD_WALKS).on(0xFF),
        Event::new("DTLB_LOAD_MISSES.STLB_HIT", 0x08, 0x20, LOAD_STLB_HITS).on(0xFF),
        Event::new("DTLB_STORE_MISSES.MISS_CAUSES_A_WALK", 0x49, 0x01, STORE_WALKS).on(0xFF),
        Event::new("DTLB_STORE_MISSES.WALK_COMPLETED_4K", 0x49, 0x02, STORE_WALKS).on(0xFF),
        Event::new("DTLB_STORE_MISSES.WALK_COMPLETED", 0x49, 0x0E, STORE_WALKS).on(0xFF),
        Event::new("DTLB_STORE_MISSES.STLB_HIT", 0x49, 0x20, STORE_STLB_HITS).on(0xFF),
        Event::new("HW_INTERRUPTS.RECEIVED", 0xCB, 0x01, INTERRUPTS).on(0xFF),
        Event::new("LONGEST_LAT_CACHE.REFERENCE", 0x2E, 0x4F, LLC_REFERENCES).on(0xFF),
        Event::new("LONGEST_LAT_CACHE.MISS", 0x2E, 0x41, LLC_MISSES).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_0", 0xA1, 0x01, PORT_0).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_1", 0xA1, 0x02, PORT_1).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_2", 0xA1, 0x04, PORT_2).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_3", 0xA1, 0x08, PORT_3).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_4", 0xA1, 0x10, PORT_4).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_5", 0xA1, 0x20, PORT_5).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_6", 0xA1, 0x40, PORT_6).on(0xFF),
        Event::new("UOPS_DISPATCHED_PORT.PORT_7", 0xA1, 0x80, PORT_7).on(0xFF),
    ],
);
