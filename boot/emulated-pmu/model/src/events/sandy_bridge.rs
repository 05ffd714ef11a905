//! What recorded processors of Sandy Bridge and Ivy Bridge have in addition to the architectural events: events that are precise; table
//! `intel/sandybridge.csv`.

use super::Event;
use super::meaning::{INSTRUCTIONS, LOADS, STORES};

pub(crate) const SANDY_BRIDGE: &[Event] = &[
    Event::new("INST_RETIRED.PREC_DIST", 0xC0, 0x01, INSTRUCTIONS).on(0x2),
    Event::new("MEM_TRANS_RETIRED.PRECISE_STORE", 0xCD, 0x02, STORES).on(0x8),
    Event::new("MEM_UOPS_RETIRED.ALL_LOADS", 0xD0, 0x81, LOADS).on(0xF),
    Event::new("MEM_UOPS_RETIRED.ALL_STORES", 0xD0, 0x82, STORES).on(0xF),
];
