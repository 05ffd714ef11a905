//! Limits that errata put on counting. Ids as in the vendors' specification updates and Linux'
//! `arch/x86/events/intel/core.c`.

use crate::tables::Core;

/// Tables of the parts where events D0H to D3H (`MEM_*`) can corrupt the counter of the same number
/// of the other hyper-thread: BJ122 (Sandy Bridge), BV98 (Ivy Bridge), HSD29 (Haswell).
const SIBLING: [&str; 6] =
    ["sandybridge", "jaketown", "ivybridge", "ivytown", "haswell", "haswellx"];

/// Whether the event may corrupt the other hyper-thread's counter.
pub(crate) fn corrupts_sibling(core: Option<&Core<'_>>, event: u16) -> bool {
    matches!(event, 0xd0..=0xd3) && core.is_some_and(|core| SIBLING.contains(&core.name()))
}

/// Tables of the parts whose load latencies need event 03H/82H in addition to them
/// (`PMU_FL_MEM_LOADS_AUX`).
const AUXILIARY: [&str; 3] = ["sapphirerapids", "emeraldrapids", "goldencove"];

/// Whether a load-latency event needs its auxiliary event.
pub(crate) fn needs_auxiliary(core: Option<&Core<'_>>, event: u16, umask: u16) -> bool {
    (event, umask) == (0xcd, 0x01) && core.is_some_and(|core| AUXILIARY.contains(&core.name()))
}

/// The only counter that can drop what aborted transactions counted: IN_TXCP works on counter 2
/// (SDM 3B, "Performance Monitoring and Intel TSX").
pub(crate) const CHECKPOINTED_COUNTERS: u64 = 1 << 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 3, "Performance Monitoring and Intel TSX".
    #[test]
    fn checkpointed_events_have_counter_2() {
        assert_eq!(CHECKPOINTED_COUNTERS, 4);
    }
}
