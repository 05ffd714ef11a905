//! What recorded processors of Sandy Bridge and Ivy Bridge have beside the architectural events; table `intel/sandybridge.csv`.

use super::Event;
use super::meaning::STORES;

pub(crate) const SANDY_BRIDGE: &[Event] =
    &[Event::new("MEM_TRANS_RETIRED.PRECISE_STORE", 0xCD, 0x02, STORES).on(0x8)];
