//! Precise event-based sampling of the Intel processors.
//!
//! Which events are precise, and which records hold the data's address: the public tables, columns `PEBS` and `Data_LA`,
//! of the events that the models know; of Core 2, which has no table, Linux, `arch/x86/events/intel/ds.c`. Counters:
//! the first one on Core 2, the first four later (Intel SDM volume 4, IA32_PEBS_ENABLE); bit 32 + n goes with load
//! latency. From Ice Lake on all, and bit 32 + n is fixed counter n's. Formats: Linux names them at its start, 4 on Ice Lake
//! and Sapphire Rapids, 6 on Lunar Lake, whose performance cores Arrow Lake has.
//!
//! The tables name one encoding where the processor takes several. Linux requests the architectural ones, C0/00, C4/00 and
//! C5/00, on every part that has PEBS (`intel_*_pebs_event_constraints` in the same file: on Nehalem all of C0 and C4, from
//! Haswell on all events), and takes C0/00 with counter mask 16, inverted, for cycles on Core 2, Nehalem and Skylake
//! (`intel_pebs_aliases_core2` and `_skl` in `arch/x86/events/intel/core.c`), C2/01 on Haswell (`_snb`, by `_ivb`). These
//! are listed as well. From Ice Lake on the tables have them. Counter mask, INV and EDGE play no part in whether an event is precise.

pub(crate) mod arch;
mod architectural;
mod groups;
mod registers;

pub(crate) use architectural::{ARCHITECTURAL, ARCHITECTURAL_ALONE};
pub(crate) use registers::{PRECISE_STORE, SANDY_BRIDGE};

pub(super) use architectural::COUGAR_COVE;
pub(super) use groups::{ARROW_LAKE, GRACEMONT, ICE_LAKE, SAPPHIRE_RAPIDS};
pub(super) use registers::{CORE2, HASWELL, NEHALEM, SKYLAKE};

use super::{Pebs, Sources};

/// PERF_CAPABILITIES\[14\]: adaptive records, on every counter.
const BASELINE: u64 = 1 << 14;
/// PERF_CAPABILITIES\[17\]: basic groups have the retire latency (Linux, `PERF_CAP_PEBS_TIMING_INFO`).
const TIMING: u64 = 1 << 17;
/// The adaptive bit of an event select.
pub(crate) const ADAPTIVE_SELECT: u64 = 1 << 34;

/// MSR_PEBS_DATA_CFG: memory, general registers, vector registers, branches; how many of those.
const GROUPS: u64 = 0xF | 0xFF << 24;
/// And from format 6 on values of counters, metrics; which counters.
const SNAPSHOT: u64 = 0b11 << 4;

/// What PERF_CAPABILITIES say of a processor with adaptive records of this format.
pub(super) const fn adaptive(format: u64) -> u64 {
    capabilities(format) | BASELINE
}

/// The same where records state how long after the instruction before theirs retired.
pub(super) const fn timed(format: u64) -> u64 {
    adaptive(format) | TIMING
}

/// What PERF_CAPABILITIES say of a processor with records of this format, which are trap-like and hold the registers.
pub(crate) const fn capabilities(format: u64) -> u64 {
    format << 8 | 1 << 7 | 1 << 6
}

const FOUR_COUNTERS: u64 = 0xF | 0xF << 32;

/// No event states where data came from.
const NO_LATENCY: Pebs = Pebs {
    format: 0,
    enable: 0,
    data_config: 0,
    events: &[],
    data: &[],
    sources: Sources::Nehalem,
    loads: None,
    stores: None,
    precise_stores: None,
    auxiliary: None,
    splits_latency: false,
    architectural: None,
};

/// MEM_TRANS_RETIRED.LOAD_LATENCY.
const LOADS: Pebs = Pebs { sources: Sources::SandyBridge, loads: Some((0xCD, 0x01)), ..NO_LATENCY };

/// And MEM_TRANS_RETIRED.STORE_SAMPLE, from Golden Cove on, with both latencies. There an event has to run together with that of
/// loads: 03/82 (Linux, `PMU_FL_MEM_LOADS_AUX`).
const BOTH: Pebs = Pebs {
    stores: Some((0xCD, 0x02)),
    auxiliary: Some((0x03, 0x82)),
    splits_latency: true,
    ..LOADS
};
