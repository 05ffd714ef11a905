//! Intel's architectural events, in the order of their bits in leaf 0xA EBX and leaf 0x23.3 EAX.
//! Codes: Intel SDM volume 3, "Pre-defined Architectural Performance Events"; bits 8 to 12 came
//! with version 6 (bit 9, bad speculation, has no counter event on any model here).

use super::Event;
use super::meaning::*;

pub(super) const EVENTS: &[Event] = &[
    Event::new("Core Cycles", 0x3C, 0x00, CYCLES),
    Event::new("Instructions Retired", 0xC0, 0x00, INSTRUCTIONS),
    Event::new("Reference Cycles", 0x3C, 0x01, BUS),
    Event::new("LLC References", 0x2E, 0x4F, LLC_REFERENCES),
    Event::new("LLC Misses", 0x2E, 0x41, LLC_MISSES),
    Event::new("Branch Instructions Retired", 0xC4, 0x00, BRANCHES),
    Event::new("Branch Misses Retired", 0xC5, 0x00, MISSED),
    Event::new("Topdown Slots", 0xA4, 0x01, SLOTS),
    Event::new("Topdown Backend Bound", 0xA4, 0x02, BACKEND_SLOTS),
    Event::new("Topdown Bad Speculation", 0x73, 0x00, BAD_SPECULATION_SLOTS),
    Event::new("Topdown Frontend Bound", 0x9C, 0x01, NOTHING),
    Event::new("Topdown Retiring", 0xC2, 0x02, UOPS),
    Event::new("LBR Inserts", 0xE4, 0x01, LBR_INSERTS),
];
