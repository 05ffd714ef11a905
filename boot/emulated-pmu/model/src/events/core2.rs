//! Core 2. Codes: Linux' `core2_hw_cache_event_ids` and libpfm4's `core` table. Its last-level
//! cache is the second level. Memory events of retired loads count on counter 0 only (Linux'
//! constraints).

use super::Event;
use super::meaning::*;

pub(crate) const CORE2: &[Event] = &[
    Event::new("CPU_CLK_UNHALTED.NO_OTHER", 0x3C, 0x02, BUS),
    Event::new("INST_RETIRED.LOADS", 0xC0, 0x01, LOADS),
    Event::new("INST_RETIRED.STORES", 0xC0, 0x02, STORES),
    Event::new("UOPS_RETIRED.ANY", 0xC2, 0x0F, UOPS),
    Event::new("BR_INST_RETIRED.PRED_NOT_TAKEN", 0xC4, 0x01, HIT_NOT_TAKEN),
    Event::new("BR_INST_RETIRED.MISPRED_NOT_TAKEN", 0xC4, 0x02, MISSED_NOT_TAKEN),
    Event::new("BR_INST_RETIRED.PRED_TAKEN", 0xC4, 0x04, HIT_TAKEN),
    Event::new("BR_INST_RETIRED.MISPRED_TAKEN", 0xC4, 0x08, MISSED_TAKEN),
    Event::new("HW_INT_RCV", 0xC8, 0x00, INTERRUPTS),
    Event::new("DTLB_MISSES.ANY", 0x08, 0x01, DTLB_MISSES),
    Event::new("DTLB_MISSES.MISS_LD", 0x08, 0x02, LOAD_DTLB_MISSES),
    Event::new("DTLB_MISSES.MISS_ST", 0x08, 0x08, STORE_DTLB_MISSES),
    Event::new("L1D_CACHE_LD.MESI", 0x40, 0x0F, LOADS),
    Event::new("L1D_CACHE_LD.I_STATE", 0x40, 0x01, LOAD_L1_MISS),
    Event::new("L1D_CACHE_ST.MESI", 0x41, 0x0F, STORES),
    Event::new("L1D_CACHE_ST.I_STATE", 0x41, 0x01, STORE_L1_MISS),
    Event::new("L2_LD.SELF.ANY.MESI", 0x29, 0x4F, LOAD_L1_MISS),
    Event::new("L2_LD.SELF.ANY.I_STATE", 0x29, 0x41, LOAD_LLC_MISS),
    Event::new("L2_ST.SELF.MESI", 0x2A, 0x4F, STORE_L1_MISS),
    Event::new("L2_ST.SELF.I_STATE", 0x2A, 0x41, STORE_LLC_MISS),
    Event::new("MEM_LOAD_RETIRED.L1D_MISS", 0xCB, 0x01, LOAD_L1_MISS).on(0x1),
    Event::new("MEM_LOAD_RETIRED.L2_MISS", 0xCB, 0x04, LOAD_LLC_MISS).on(0x1),
    Event::new("MEM_LOAD_RETIRED.DTLB_MISS", 0xCB, 0x10, LOAD_DTLB_MISSES).on(0x1),
];
