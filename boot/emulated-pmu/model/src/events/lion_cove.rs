//! Lion Cove, the performance core of Arrow Lake; table `intel/lioncove_arl.csv`. Of its three data
//! cache levels before the last the model has one, which stands for the innermost (L0).

use super::meaning::*;
use super::{Event, groups, joined};

/// All ten counters.
const ALL: u16 = 0x3FF;

pub(crate) const LION_COVE: &[Event] = joined!(
    &groups::COVE_CORE,
    &[
        Event::new("BR_INST_RETIRED.ALL_BRANCHES", 0xC4, 0x00, BRANCHES).on(ALL),
        Event::new("BR_INST_RETIRED.COND_TAKEN_BWD", 0xC4, 0x01, BACKWARD).on(ALL),
        Event::new("BR_INST_RETIRED.COND_TAKEN_FWD", 0xC4, 0x100, FORWARD).on(ALL),
        Event::new("BR_INST_RETIRED.COND_TAKEN", 0xC4, 0x101, TAKEN_JCC).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_CALL", 0xC4, 0x02, CALL).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_RETURN", 0xC4, 0x08, RETURN).on(ALL),
        Event::new("BR_INST_RETIRED.COND_NTAKEN", 0xC4, 0x10, NOT_TAKEN).on(ALL),
        Event::new("BR_INST_RETIRED.COND", 0xC4, 0x111, JCC).on(ALL),
        Event::new("BR_INST_RETIRED.NEAR_TAKEN", 0xC4, 0x20, TAKEN).on(ALL),
        Event::new("BR_INST_RETIRED.FAR_BRANCH", 0xC4, 0x40, FAR).on(ALL),
        Event::new("BR_INST_RETIRED.INDIRECT", 0xC4, 0x80, INDIRECT).on(ALL),
        Event::new("BR_MISP_RETIRED.ALL_BRANCHES", 0xC5, 0x00, MISSED).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_TAKEN_BWD", 0xC5, 0x01, MISSED_BACKWARD).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_TAKEN_FWD", 0xC5, 0x100, MISSED_FORWARD).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_TAKEN", 0xC5, 0x101, MISSED_TAKEN_JCC).on(ALL),
        Event::new("BR_MISP_RETIRED.INDIRECT_CALL", 0xC5, 0x02, MISSED_INDIRECT_CALL).on(ALL),
        Event::new("BR_MISP_RETIRED.RET", 0xC5, 0x08, MISSED_RETURN).on(ALL),
        Event::new("BR_MISP_RETIRED.COND_NTAKEN", 0xC5, 0x10, MISSED_NOT_TAKEN).on(ALL),
        Event::new("BR_MISP_RETIRED.COND", 0xC5, 0x111, MISSED_JCC).on(ALL),
        Event::new("BR_MISP_RETIRED.NEAR_TAKEN", 0xC5, 0x20, MISSED_TAKEN).on(ALL),
        Event::new("BR_MISP_RETIRED.INDIRECT", 0xC5, 0x80, MISSED_INDIRECT).on(ALL),
    ],
    &groups::COVE_MEMORY,
);
