//! Cougar Cove, the performance core of Panther Lake; table `intel/cougarcove.csv`. But for its branches it has Lion Cove's
//! events, and as there one data cache level before the last stands for three, for the innermost (L0).

use super::meaning::*;
use super::{Event, groups, joined};

/// All ten counters.
const ALL: u16 = 0x3FF;

pub(crate) const COUGAR_COVE: &[Event] = joined!(
    &groups::COVE_CORE,
    &[
        Event::new("BR_INST_RETIRED.ALL_BRANCHES", 0xC4, 0x00, BRANCHES).on(ALL),
        Event::new("BR_INST_RETIRED.COND_TAKEN_BWD", 0xC4, 0x01, BACKWARD).on(ALL),
        Event::new("BR_INST_RETIRED.COND_TAKEN_FWD", 0xC4, 0x02, FORWARD).on(ALL),
        Event::new("BR_INST_RETIRED.COND_TAKEN", 0xC4, 0x03, TAKEN_JCC).on(ALL),
        Event::new("BR_INST_RETIRED.COND_NTAKEN", 0xC4, 0x04, NOT_TAKEN).on(ALL),
        Event::new("BR_INST_RETIRED.COND", 0xC4, 0x07, JCC).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_RETURN", 0xC4, 0x08, RETURN).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_INDIRECT_CALL", 0xC4, 0x10, INDIRECT_CALL).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_DIRECT_CALL", 0xC4, 0x20, RELATIVE_CALL).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_CALL", 0xC4, 0x30, CALL).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_INDIRECT_JMP", 0xC4, 0x40, INDIRECT_JUMP).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_INDIRECT", 0xC4, 0x50, INDIRECT).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_DIRECT_JMP", 0xC4, 0x80, RELATIVE_JUMP).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_JMP", 0xC4, 0xC0, INDIRECT_JUMP.or(RELATIVE_JUMP)).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_TAKEN", 0xC4, 0xFB, TAKEN).on(ALL),
        Event::new("BR_INST_RETIRED.FAR_BRANCH", 0xC4, 0x100, FAR).on(ALL),
        Event::new("BR_MISP_RETIRED.ALL_BRANCHES", 0xC5, 0x00, MISSED).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_TAKEN_BWD", 0xC5, 0x01, MISSED_BACKWARD).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_TAKEN_FWD", 0xC5, 0x02, MISSED_FORWARD).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_TAKEN", 0xC5, 0x03, MISSED_TAKEN_JCC).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_NTAKEN", 0xC5, 0x04, MISSED_NOT_TAKEN).on(ALL),
        Event::new("BR_MISP_RETIRED.COND", 0xC5, 0x07, MISSED_JCC).on(ALL),
        Event::new("BR_MISP_RETIRED.NEAR_RETURN", 0xC5, 0x08, MISSED_RETURN).on(ALL),
        Event::new("BR_MISP_RETIRED.NEAR_INDIRECT_CALL", 0xC5, 0x10, MISSED_INDIRECT_CALL).on(ALL),
        Event::new("BR_MISP_RETIRED.NEAR_INDIRECT_JMP", 0xC5, 0x40, MISSED_INDIRECT_JUMP).on(ALL),
        Event::new("BR_MISP_RETIRED.NEAR_INDIRECT", 0xC5, 0x50, MISSED_INDIRECT).on(ALL),
        Event::new("BR_MISP_RETIRED.NEAR_TAKEN", 0xC5, 0xFB, MISSED_TAKEN).on(ALL),
    ],
    &groups::COVE_MEMORY,
);
