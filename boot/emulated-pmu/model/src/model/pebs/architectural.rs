//! Architectural PEBS: Cougar Cove, and a processor of which no event is known.

use super::arch;
use super::groups::ARROW_LAKE;
use crate::model::{ArchPebs, Pebs};

/// What PERF_CAPABILITIES say of a processor with architectural records: the format alone (Linux, `intel_pebs_init`). Whether
/// they say that records are trap-like or hold the registers is not known; Linux does not look there.
pub(crate) const ARCHITECTURAL: u64 = 0xF << 8;

/// Of a processor of which no event is known to be precise.
pub(crate) const ARCHITECTURAL_ALONE: Pebs =
    Pebs { format: 0xF, events: &[], data: &[], loads: None, stores: None, ..COUGAR_COVE };

/// Sub-leaf 5 of leaf 0x23: every counter, and precise distribution on the first one of both kinds. No register dump of the
/// processor was at hand: the counters are those that have adaptive records on Lion Cove, and distribution is where Linux has it
/// from Golden Cove on (`arch/x86/events/intel/core.c`, `glc_get_event_constraints`).
pub(in crate::model) const COUGAR_COVE: Pebs = Pebs {
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
