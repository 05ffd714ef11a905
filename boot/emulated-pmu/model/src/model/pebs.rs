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

use super::{ArchPebs, Pebs, Sources};

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

pub(super) const CORE2: Pebs = Pebs {
    format: 0,
    enable: 1,
    data_config: 0,
    events: &[(0xC0, 0x00), (0xC5, 0x00), (0xCB, 0x01), (0xCB, 0x04), (0xCB, 0x10)],
    data: &[],
    ..NO_LATENCY
};

pub(super) const NEHALEM: Pebs = Pebs {
    format: 1,
    enable: FOUR_COUNTERS,
    data_config: 0,
    events: &[
        (0x0B, 0x01),
        (0x0B, 0x02),
        (0x0C, 0x01),
        (0xC0, 0x00),
        (0xC0, 0x01),
        (0xC2, 0x01),
        (0xC2, 0x02),
        (0xC4, 0x00),
        (0xC4, 0x01),
        (0xC4, 0x02),
        (0xC4, 0x04),
        (0xC5, 0x02),
        (0xCB, 0x01),
        (0xCB, 0x04),
        (0xCB, 0x10),
        (0xCB, 0x80),
        (0x0B, 0x10),
    ],
    data: &[],
    loads: Some((0x0B, 0x10)),
    ..NO_LATENCY
};

/// PEBS_ENABLE: records of the event of precise stores state the store.
pub(crate) const PRECISE_STORE: u64 = 1 << 63;

/// Sandy Bridge and Ivy Bridge, of which no model is: what a recorded one has in addition to its architectural events (table
/// `intel/sandybridge.csv`).
pub(crate) const SANDY_BRIDGE: Pebs = Pebs {
    format: 1,
    enable: FOUR_COUNTERS | PRECISE_STORE,
    events: &[
        (0xC0, 0x00),
        (0xC0, 0x01),
        (0xC4, 0x00),
        (0xC5, 0x00),
        (0xCD, 0x02),
        (0xD0, 0x81),
        (0xD0, 0x82),
    ],
    sources: Sources::SandyBridge,
    precise_stores: Some((0xCD, 0x02)),
    ..NO_LATENCY
};

pub(super) const HASWELL: Pebs = Pebs {
    format: 2,
    enable: FOUR_COUNTERS,
    data_config: 0,
    events: &[
        (0xC0, 0x00),
        (0xC0, 0x01),
        (0xC2, 0x01),
        (0xC2, 0x02),
        (0xC4, 0x00),
        (0xC4, 0x01),
        (0xC4, 0x02),
        (0xC4, 0x04),
        (0xC4, 0x08),
        (0xC4, 0x20),
        (0xC5, 0x00),
        (0xC5, 0x01),
        (0xC5, 0x04),
        (0xC5, 0x20),
        (0xD0, 0x11),
        (0xD0, 0x12),
        (0xD0, 0x21),
        (0xD0, 0x41),
        (0xD0, 0x42),
        (0xD0, 0x81),
        (0xD0, 0x82),
        (0xD1, 0x01),
        (0xD1, 0x04),
        (0xD1, 0x08),
        (0xD1, 0x10),
        (0xD1, 0x20),
        (0xCD, 0x01),
    ],
    data: &[0xD0, 0xD1],
    ..LOADS
};

pub(super) const SKYLAKE: Pebs = Pebs {
    format: 3,
    enable: FOUR_COUNTERS,
    data_config: 0,
    events: &[
        (0xC0, 0x00),
        (0xC0, 0x01),
        (0xC4, 0x00),
        (0xC4, 0x01),
        (0xC4, 0x02),
        (0xC4, 0x04),
        (0xC4, 0x08),
        (0xC4, 0x20),
        (0xC4, 0x40),
        (0xC5, 0x00),
        (0xC5, 0x01),
        (0xC5, 0x02),
        (0xC5, 0x04),
        (0xC5, 0x20),
        (0xD0, 0x11),
        (0xD0, 0x12),
        (0xD0, 0x21),
        (0xD0, 0x41),
        (0xD0, 0x42),
        (0xD0, 0x81),
        (0xD0, 0x82),
        (0xD0, 0x83),
        (0xD1, 0x01),
        (0xD1, 0x04),
        (0xD1, 0x08),
        (0xD1, 0x10),
        (0xD1, 0x20),
        (0xCD, 0x01),
    ],
    data: &[0xD0, 0xD1],
    ..LOADS
};

pub(super) const ICE_LAKE: Pebs = Pebs {
    format: 4,
    enable: 0xFF | 0xF << 32,
    data_config: GROUPS,
    events: &[
        (0xC0, 0x00),
        (0xC4, 0x00),
        (0xC4, 0x01),
        (0xC4, 0x02),
        (0xC4, 0x08),
        (0xC4, 0x10),
        (0xC4, 0x11),
        (0xC4, 0x20),
        (0xC4, 0x40),
        (0xC4, 0x80),
        (0xC5, 0x00),
        (0xC5, 0x01),
        (0xC5, 0x02),
        (0xC5, 0x08),
        (0xC5, 0x10),
        (0xC5, 0x11),
        (0xC5, 0x20),
        (0xC5, 0x80),
        (0xD0, 0x11),
        (0xD0, 0x12),
        (0xD0, 0x21),
        (0xD0, 0x41),
        (0xD0, 0x42),
        (0xD0, 0x81),
        (0xD0, 0x82),
        (0xD0, 0x83),
        (0xD1, 0x01),
        (0xD1, 0x02),
        (0xD1, 0x04),
        (0xD1, 0x08),
        (0xD1, 0x10),
        (0xD1, 0x20),
        (0xD1, 0x40),
        (0xCD, 0x01),
    ],
    data: &[0xD0, 0xD1],
    ..LOADS
};

/// The same format and counters, and stores that are sampled.
pub(super) const SAPPHIRE_RAPIDS: Pebs = Pebs {
    format: ICE_LAKE.format,
    enable: ICE_LAKE.enable,
    data_config: ICE_LAKE.data_config,
    events: &WITH_STORES,
    data: ICE_LAKE.data,
    ..BOTH
};

/// Ice Lake's precise events, and that of stores.
const WITH_STORES: [(u16, u16); ICE_LAKE.events.len() + 1] = {
    let mut events = [(0xCD, 0x02); ICE_LAKE.events.len() + 1];
    let mut n = 0;
    while n < ICE_LAKE.events.len() {
        events[n] = ICE_LAKE.events[n];
        n += 1;
    }
    events
};

pub(super) const ARROW_LAKE: Pebs = Pebs {
    format: 6,
    enable: 0x3FF | 0xF << 32,
    data_config: GROUPS | SNAPSHOT | 0x3FF << 32 | 0xF << 48,
    events: &[
        (0xC0, 0x00),
        (0xC4, 0x00),
        (0xC4, 0x01),
        (0xC4, 0x02),
        (0xC4, 0x08),
        (0xC4, 0x10),
        (0xC4, 0x20),
        (0xC4, 0x40),
        (0xC4, 0x80),
        (0xC4, 0x100),
        (0xC4, 0x101),
        (0xC4, 0x111),
        (0xC5, 0x00),
        (0xC5, 0x01),
        (0xC5, 0x02),
        (0xC5, 0x08),
        (0xC5, 0x10),
        (0xC5, 0x20),
        (0xC5, 0x80),
        (0xC5, 0x100),
        (0xC5, 0x101),
        (0xC5, 0x111),
        (0xD0, 0x09),
        (0xD0, 0x0A),
        (0xD0, 0x11),
        (0xD0, 0x12),
        (0xD0, 0x21),
        (0xD0, 0x41),
        (0xD0, 0x42),
        (0xD0, 0x81),
        (0xD0, 0x82),
        (0xD0, 0x87),
        (0xD1, 0x01),
        (0xD1, 0x02),
        (0xD1, 0x04),
        (0xD1, 0x08),
        (0xD1, 0x10),
        (0xD1, 0x20),
        (0xD1, 0x40),
        (0xD1, 0x100),
        (0xD1, 0x101),
        (0xE4, 0x01),
        (0xCD, 0x01),
        (0xCD, 0x02),
    ],
    data: &[0xD0, 0xD1],
    sources: Sources::LionCove,
    auxiliary: None,
    ..BOTH
};

/// Bits of CFG_C 63:32, which sub-leaf 4 of leaf 0x23 has in EBX and the header of a record in the same place (Linux,
/// `arch/x86/include/asm/msr-index.h`, `ARCH_PEBS_*`; `union arch_pebs_header` in `asm/perf_event.h`).
pub(crate) mod arch {
    /// The counter's value may be in records of others.
    pub(crate) const ALLOW: u64 = 1 << 35;
    /// Values of general-purpose counters, of fixed ones, and of PERF_METRICS with that of slots.
    pub(crate) const GENERAL: u64 = 1 << 36;
    pub(crate) const FIXED: u64 = 1 << 37;
    pub(crate) const METRICS: u64 = 1 << 38;
    /// Branch records: none, 8, 16, or as many as IA32_LBR_DEPTH says.
    pub(crate) const BRANCHES: u64 = 3 << 40;
    pub(crate) const BRANCHES_AT: u32 = 40;
    /// XMM0 to XMM15.
    pub(crate) const VECTORS: u64 = 1 << 49;
    /// General registers.
    pub(crate) const REGISTERS: u64 = 1 << 61;
    /// The data's address, source and latency.
    pub(crate) const AUXILIARY: u64 = 1 << 62;
    /// In CFG_C: the counter writes records. In a header: the basic group is there.
    pub(crate) const ENABLE: u64 = 1 << 63;
    /// What the model does. The upper halves of vector registers, bits 50 and 53 to 55, are not among it.
    pub(crate) const OFFERED: u64 =
        ALLOW | GENERAL | FIXED | METRICS | BRANCHES | VECTORS | REGISTERS | AUXILIARY;
}

/// What PERF_CAPABILITIES say of a processor with architectural records: the format alone (Linux, `intel_pebs_init`). Whether
/// they say that records are trap-like or hold the registers is not known; Linux does not look there.
pub(crate) const ARCHITECTURAL: u64 = 0xF << 8;

/// Of a processor of which no event is known to be precise.
pub(crate) const ARCHITECTURAL_ALONE: Pebs =
    Pebs { format: 0xF, events: &[], data: &[], loads: None, stores: None, ..COUGAR_COVE };

/// Sub-leaf 5 of leaf 0x23: every counter, and precise distribution on the first one of both kinds. No register dump of the
/// processor was at hand: the counters are those that have adaptive records on Lion Cove, and distribution is where Linux has it
/// from Golden Cove on (`arch/x86/events/intel/core.c`, `glc_get_event_constraints`).
pub(super) const COUGAR_COVE: Pebs = Pebs {
    format: 0xF,
    enable: ARROW_LAKE.enable,
    data_config: 0,
    events: &[
        (0xC0, 0x00),
        (0xC4, 0x00),
        (0xC4, 0x01),
        (0xC4, 0x02),
        (0xC4, 0x03),
        (0xC4, 0x04),
        (0xC4, 0x07),
        (0xC4, 0x08),
        (0xC4, 0x10),
        (0xC4, 0x20),
        (0xC4, 0x30),
        (0xC4, 0x40),
        (0xC4, 0x50),
        (0xC4, 0x80),
        (0xC4, 0xC0),
        (0xC4, 0xFB),
        (0xC4, 0x100),
        (0xC5, 0x00),
        (0xC5, 0x01),
        (0xC5, 0x02),
        (0xC5, 0x03),
        (0xC5, 0x04),
        (0xC5, 0x07),
        (0xC5, 0x08),
        (0xC5, 0x10),
        (0xC5, 0x40),
        (0xC5, 0x50),
        (0xC5, 0xFB),
        (0xD0, 0x09),
        (0xD0, 0x0A),
        (0xD0, 0x11),
        (0xD0, 0x12),
        (0xD0, 0x21),
        (0xD0, 0x41),
        (0xD0, 0x42),
        (0xD0, 0x81),
        (0xD0, 0x82),
        (0xD0, 0x87),
        (0xD1, 0x01),
        (0xD1, 0x02),
        (0xD1, 0x04),
        (0xD1, 0x08),
        (0xD1, 0x10),
        (0xD1, 0x20),
        (0xD1, 0x40),
        (0xD1, 0x100),
        (0xD1, 0x101),
        (0xE4, 0x01),
        (0xCD, 0x01),
        (0xCD, 0x02),
    ],
    architectural: Some(ArchPebs {
        groups: (arch::OFFERED >> 32) as u32,
        distribution: 1 | 1 << 32,
    }),
    ..ARROW_LAKE
};

/// Format 4, all 6 counters and 3 fixed ones.
pub(super) const GRACEMONT: Pebs = Pebs {
    format: 4,
    enable: 0x3F | 0x7 << 32,
    data_config: GROUPS,
    events: &[
        (0xC0, 0x00),
        (0xC2, 0x00),
        (0xC4, 0x00),
        (0xC4, 0x7E),
        (0xC4, 0xBF),
        (0xC4, 0xC0),
        (0xC4, 0xDF),
        (0xC4, 0xEB),
        (0xC4, 0xEF),
        (0xC4, 0xF7),
        (0xC4, 0xF9),
        (0xC4, 0xFB),
        (0xC4, 0xFD),
        (0xC4, 0xFE),
        (0xC5, 0x00),
        (0xC5, 0x7E),
        (0xC5, 0x80),
        (0xC5, 0xEB),
        (0xC5, 0xEF),
        (0xC5, 0xF7),
        (0xC5, 0xFB),
        (0xC5, 0xFE),
        (0xD0, 0x11),
        (0xD0, 0x12),
        (0xD0, 0x13),
        (0xD0, 0x21),
        (0xD0, 0x41),
        (0xD0, 0x42),
        (0xD0, 0x81),
        (0xD0, 0x82),
        (0xD0, 0x83),
        (0xD1, 0x01),
        (0xD1, 0x02),
        (0xD1, 0x04),
        (0xD1, 0x08),
        (0xD1, 0x10),
        (0xD1, 0x80),
        (0xE4, 0x01),
        (0xD0, 0x05),
        (0xD0, 0x06),
    ],
    data: &[0xD0, 0xD1, 0xD2],
    loads: Some((0xD0, 0x05)),
    stores: Some((0xD0, 0x06)),
    auxiliary: None,
    sources: Sources::Gracemont,
    ..BOTH
};
