//! Golden Cove, as Alder Lake's performance cores are; table `intel/goldencove.csv`. Sapphire Rapids has the same cores, and of the
//! events that are modelled one more.

use super::{Event, SAPPHIRE_RAPIDS};

pub(crate) const GOLDEN_COVE: &[Event] = match SAPPHIRE_RAPIDS.split_last() {
    Some((_interrupts, shared)) => shared,
    None => &[],
};
