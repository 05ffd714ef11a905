//! AMD; tables `amd/zen2.csv` and `amd/zen4.csv`. Family 10h: Linux' `amd_perfmon_event_map` and
//! libpfm4's `amd64_fam10h` table.
//!
//! A core counter cannot see AMD's third level, so the model's outer cache stands for the second.
//! Every page is a 4 KiB page, no line is prefetched, and instruction fetches are not modelled:
//! those unit mask bits are known and count nothing.

use super::meaning::*;
use super::{Event, joined};

/// What every processor with four counters or more counts under the same codes, from family 0Fh on: BKDGs and PPRs, PMCx076,
/// PMCx0C0, PMCx0C2 and PMCx0C3.
pub(crate) const EVERY_AMD: &[Event] = &[
    Event::new("CPU_CLK_UNHALTED", 0x76, 0x00, CYCLES),
    Event::new("RETIRED_INSTRUCTIONS", 0xC0, 0x00, INSTRUCTIONS),
    Event::new("RETIRED_BRANCH_INSTRUCTIONS", 0xC2, 0x00, BRANCHES),
    Event::new("RETIRED_MISPREDICTED_BRANCH_INSTRUCTIONS", 0xC3, 0x00, MISSED),
];

pub(crate) const K10: &[Event] = &[
    Event::new("CPU_CLK_UNHALTED", 0x76, 0x00, CYCLES),
    Event::new("RETIRED_INSTRUCTIONS", 0xC0, 0x00, INSTRUCTIONS),
    Event::new("RETIRED_UOPS", 0xC1, 0x00, UOPS),
    Event::new("RETIRED_BRANCH_INSTRUCTIONS", 0xC2, 0x00, BRANCHES),
    Event::new("RETIRED_MISPREDICTED_BRANCH_INSTRUCTIONS", 0xC3, 0x00, MISSED),
    Event::new("RETIRED_TAKEN_BRANCH_INSTRUCTIONS", 0xC4, 0x00, TAKEN_OR_FAR),
    Event::new("RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED", 0xC5, 0x00, MISSED_TAKEN),
    Event::new("RETIRED_FAR_CONTROL_TRANSFERS", 0xC6, 0x00, FAR),
    Event::new("RETIRED_NEAR_RETURNS", 0xC8, 0x00, RETURN),
    Event::new("RETIRED_NEAR_RETURNS_MISPREDICTED", 0xC9, 0x00, MISSED_RETURN),
    Event::new("RETIRED_INDIRECT_BRANCHES_MISPREDICTED", 0xCA, 0x00, MISSED_INDIRECT),
    Event::new("INTERRUPTS_TAKEN", 0xCF, 0x00, INTERRUPTS),
    Event::new("DATA_CACHE_ACCESSES", 0x40, 0x00, ACCESSES),
    Event::new("DATA_CACHE_MISSES", 0x41, 0x00, L1_MISS),
    Event::new("L1_DTLB_MISS_AND_L2_DTLB_HIT.4K", 0x45, 0x01, STLB_HITS),
    Event::new("L1_DTLB_MISS_AND_L2_DTLB_HIT.2M", 0x45, 0x02, NOTHING),
    Event::new("L1_DTLB_MISS_AND_L2_DTLB_HIT.1G", 0x45, 0x04, NOTHING),
    Event::new("L1_DTLB_AND_L2_DTLB_MISS.4K", 0x46, 0x01, WALKS),
    Event::new("L1_DTLB_AND_L2_DTLB_MISS.2M", 0x46, 0x02, NOTHING),
    Event::new("L1_DTLB_AND_L2_DTLB_MISS.1G", 0x46, 0x04, NOTHING),
    Event::new("REQUESTS_TO_L2.ALL", 0x7D, 0x07, LLC_REFERENCES),
    Event::new("L2_CACHE_MISS.ALL", 0x7E, 0x07, LLC_MISSES),
];

pub(crate) const ZEN2: &[Event] = joined!(
    &[
        Event::new("ls_not_halted_cyc", 0x76, 0x00, CYCLES).on(ALL),
        Event::new("ex_ret_instr", 0xC0, 0x00, INSTRUCTIONS).on(ALL),
        Event::new("ex_ret_cops", 0xC1, 0x00, UOPS).on(ALL),
    ],
    &RETIRED_BRANCHES,
    &[
        Event::new("ex_ret_cond", 0xD1, 0x00, JCC).on(ALL),
        Event::new("ex_ret_cond_misp", 0xD2, 0x00, MISSED_JCC).on(ALL),
        Event::new("ls_locks.bus_lock", 0x25, 0x01, NOTHING).on(ALL),
        Event::new("ls_locks.non_spec_lock", 0x25, 0x02, LOCKED).on(ALL),
        Event::new("ls_locks.spec_lock_lo_spec", 0x25, 0x04, NOTHING).on(ALL),
        Event::new("ls_locks.spec_lock_hi_spec", 0x25, 0x08, NOTHING).on(ALL),
    ],
    &RETIRED_AND_DISPATCHED,
    &[
        LS_DC_ACCESSES,
        Event::new("ls_mab_alloc.loads", 0x41, 0x01, LOAD_L1_MISS).on(ALL),
        Event::new("ls_mab_alloc.stores", 0x41, 0x02, STORE_L1_MISS).on(ALL),
        Event::new("ls_mab_alloc.dc_prefetcher", 0x41, 0x08, NOTHING).on(ALL),
        Event::new("ls_refills_from_sys.ls_mabresp_lcl_l2", 0x43, 0x01, SERVED_BY_LLC).on(ALL),
        Event::new("ls_refills_from_sys.ls_mabresp_lcl_cache", 0x43, 0x02, NOTHING).on(ALL),
        Event::new("ls_refills_from_sys.ls_mabresp_lcl_dram", 0x43, 0x08, SERVED_BY_MEMORY).on(ALL),
        Event::new("ls_refills_from_sys.ls_mabresp_rmt_cache", 0x43, 0x10, NOTHING).on(ALL),
        Event::new("ls_refills_from_sys.ls_mabresp_rmt_dram", 0x43, 0x40, NOTHING).on(ALL),
    ],
    &DTLB,
    &[
        Event::new("ls_tablewalker.dc_type0", 0x46, 0x01, WALKS).on(ALL),
        Event::new("ls_tablewalker.dc_type1", 0x46, 0x02, NOTHING).on(ALL),
        Event::new("ls_tablewalker.dside", 0x46, 0x03, WALKS).on(ALL),
    ],
    &L2_REQUESTS,
    &L2_ANSWERS,
    &[Event::new("l2_cache_misses_from_ic_miss", 0x64, 0x01, NOTHING).on(ALL)],
);

pub(crate) const ZEN4: &[Event] = joined!(
    &[
        Event::new("ls_not_halted_cyc", 0x76, 0x00, CYCLES).on(ALL),
        Event::new("ls_not_halted_p0_cyc.p0_freq_cyc", 0x120, 0x01, REFERENCE).on(ALL),
        Event::new("ex_ret_instr", 0xC0, 0x00, INSTRUCTIONS).on(ALL),
        Event::new("ex_ret_ops", 0xC1, 0x00, UOPS).on(ALL),
    ],
    &RETIRED_BRANCHES,
    &[
        Event::new("ex_ret_ind_brch_instr", 0xCC, 0x00, INDIRECT).on(ALL),
        Event::new("ex_ret_cond", 0xD1, 0x00, JCC).on(ALL),
        Event::new("ex_ret_uncond_brnch_instr_mispred", 0x1C8, 0x00, MISSED_UNCONDITIONAL).on(ALL),
        Event::new("ex_ret_uncond_brnch_instr", 0x1C9, 0x00, UNCONDITIONAL).on(ALL),
        Event::new("ls_locks.bus_lock", 0x25, 0x01, NOTHING).on(ALL),
    ],
    &RETIRED_AND_DISPATCHED,
    &[
        LS_DC_ACCESSES,
        Event::new("ls_mab_alloc.load_store_allocations", 0x41, 0x3F, L1_MISS).on(ALL),
        Event::new("ls_mab_alloc.hardware_prefetcher_allocations", 0x41, 0x40, NOTHING).on(ALL),
        Event::new("ls_mab_alloc.all_allocations", 0x41, 0x7F, L1_MISS).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.local_l2", 0x43, 0x01, SERVED_BY_LLC).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.local_ccx", 0x43, 0x02, NOTHING).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.near_cache", 0x43, 0x04, NOTHING).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.dram_io_near", 0x43, 0x08, SERVED_BY_MEMORY).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.far_cache", 0x43, 0x10, NOTHING).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.dram_io_far", 0x43, 0x40, NOTHING).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.alternate_memories", 0x43, 0x80, NOTHING).on(ALL),
        Event::new("ls_dmnd_fills_from_sys.all", 0x43, 0xFF, L1_MISS).on(ALL),
        Event::new("ls_any_fills_from_sys.local_l2", 0x44, 0x01, SERVED_BY_LLC).on(ALL),
        Event::new("ls_any_fills_from_sys.local_ccx", 0x44, 0x02, NOTHING).on(ALL),
        Event::new("ls_any_fills_from_sys.near_cache", 0x44, 0x04, NOTHING).on(ALL),
        Event::new("ls_any_fills_from_sys.dram_io_near", 0x44, 0x08, SERVED_BY_MEMORY).on(ALL),
        Event::new("ls_any_fills_from_sys.far_cache", 0x44, 0x10, NOTHING).on(ALL),
        Event::new("ls_any_fills_from_sys.dram_io_far", 0x44, 0x40, NOTHING).on(ALL),
        Event::new("ls_any_fills_from_sys.alternate_memories", 0x44, 0x80, NOTHING).on(ALL),
        Event::new("ls_any_fills_from_sys.all", 0x44, 0xFF, L1_MISS).on(ALL),
    ],
    &DTLB,
    &L2_REQUESTS,
    &[Event::new("l2_request_g1.all", 0x60, 0xFF, LLC_REFERENCES).on(ALL)],
    &L2_ANSWERS,
    &[
        Event::new("l2_cache_req_stat.ic_fill_miss", 0x64, 0x01, NOTHING).on(ALL),
        Event::new("l2_cache_req_stat.ic_fill_hit_s", 0x64, 0x02, NOTHING).on(ALL),
        Event::new("l2_cache_req_stat.ic_fill_hit_x", 0x64, 0x04, NOTHING).on(ALL),
    ],
);

/// The six core counters.
const ALL: u16 = 0x3F;

/// Not in the table of Zen 4; but Linux asks every part from family 17h on for it as "L1-dcache-loads"
/// (`amd_hw_cache_event_ids_f17h` in `arch/x86/events/amd/core.c`).
const LS_DC_ACCESSES: Event = Event::new("ls_dc_accesses", 0x40, 0x00, ACCESSES).on(ALL);

/// Misses of the first data TLB, by the page's size and by what the second TLB had.
const DTLB: [Event; 9] = [
    Event::new("ls_l1_d_tlb_miss.tlb_reload_4k_l2_hit", 0x45, 0x01, STLB_HITS).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_coalesced_page_hit", 0x45, 0x02, NOTHING).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_2m_l2_hit", 0x45, 0x04, NOTHING).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_1g_l2_hit", 0x45, 0x08, NOTHING).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss", 0x45, 0x10, WALKS).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_coalesced_page_miss", 0x45, 0x20, NOTHING).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss", 0x45, 0x40, NOTHING).on(ALL),
    Event::new("ls_l1_d_tlb_miss.tlb_reload_1g_l2_miss", 0x45, 0x80, NOTHING).on(ALL),
    Event::new("ls_l1_d_tlb_miss.all", 0x45, 0xFF, DTLB_MISSES).on(ALL),
];

/// Requests to the second-level cache.
const L2_REQUESTS: [Event; 8] = [
    Event::new("l2_request_g1.group2", 0x60, 0x01, NOTHING).on(ALL),
    Event::new("l2_request_g1.l2_hw_pf", 0x60, 0x02, NOTHING).on(ALL),
    Event::new("l2_request_g1.prefetch_l2_cmd", 0x60, 0x04, NOTHING).on(ALL),
    Event::new("l2_request_g1.change_to_x", 0x60, 0x08, NOTHING).on(ALL),
    Event::new("l2_request_g1.cacheable_ic_read", 0x60, 0x10, NOTHING).on(ALL),
    Event::new("l2_request_g1.ls_rd_blk_c_s", 0x60, 0x20, NOTHING).on(ALL),
    Event::new("l2_request_g1.rd_blk_x", 0x60, 0x40, STORE_L1_MISS).on(ALL),
    Event::new("l2_request_g1.rd_blk_l", 0x60, 0x80, LOAD_L1_MISS).on(ALL),
];

/// Branches that retired.
const RETIRED_BRANCHES: [Event; 8] = [
    Event::new("ex_ret_brn", 0xC2, 0x00, BRANCHES).on(ALL),
    Event::new("ex_ret_brn_misp", 0xC3, 0x00, MISSED).on(ALL),
    Event::new("ex_ret_brn_tkn", 0xC4, 0x00, TAKEN_OR_FAR).on(ALL),
    Event::new("ex_ret_brn_tkn_misp", 0xC5, 0x00, MISSED_TAKEN).on(ALL),
    Event::new("ex_ret_brn_far", 0xC6, 0x00, FAR).on(ALL),
    Event::new("ex_ret_near_ret", 0xC8, 0x00, RETURN).on(ALL),
    Event::new("ex_ret_near_ret_mispred", 0xC9, 0x00, MISSED_RETURN).on(ALL),
    Event::new("ex_ret_brn_ind_misp", 0xCA, 0x00, MISSED_INDIRECT).on(ALL),
];

/// What else retired, dispatched accesses and interrupts.
const RETIRED_AND_DISPATCHED: [Event; 7] = [
    Event::new("ls_ret_cl_flush", 0x26, 0x00, CLFLUSHES).on(ALL),
    Event::new("ls_ret_cpuid", 0x27, 0x00, CPUIDS).on(ALL),
    Event::new("ls_dispatch.ld_dispatch", 0x29, 0x01, LOAD_ONLY).on(ALL),
    Event::new("ls_dispatch.store_dispatch", 0x29, 0x02, STORE_ONLY).on(ALL),
    Event::new("ls_dispatch.ld_st_dispatch", 0x29, 0x04, LOAD_STORE).on(ALL),
    Event::new("ls_smi_rx", 0x2B, 0x00, NOTHING).on(ALL),
    Event::new("ls_int_taken", 0x2C, 0x00, INTERRUPTS).on(ALL),
];

/// What requests to the second-level cache found.
const L2_ANSWERS: [Event; 5] = [
    Event::new("l2_cache_req_stat.ls_rd_blk_c", 0x64, 0x08, LLC_MISSES).on(ALL),
    Event::new("l2_cache_req_stat.ls_rd_blk_x", 0x64, 0x10, STORE_LLC_HIT).on(ALL),
    Event::new("l2_cache_req_stat.ls_rd_blk_l_hit_s", 0x64, 0x20, NOTHING).on(ALL),
    Event::new("l2_cache_req_stat.ls_rd_blk_l_hit_x", 0x64, 0x40, LOAD_LLC_HIT).on(ALL),
    Event::new("l2_cache_req_stat.ls_rd_blk_cs", 0x64, 0x80, NOTHING).on(ALL),
];
