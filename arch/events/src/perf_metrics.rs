//! The fields of MSR_PERF_METRICS as events: what share of the slots of fixed counter 3 went where (SDM vol. 3, 20.3.9.3).
//!
//! They have no event select. Each is the slots times the field, divided by 255, so it is known to 1/255 of the slots.

use crate::tables::{Core, fold};

/// One field of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its number, 0 to 7: bits 8n+7:8n.
    pub index: u8,
    /// Perfmon's name.
    pub name: &'static str,
    /// perf's name.
    pub perf: &'static str,
}

const fn field(index: u8, name: &'static str, perf: &'static str) -> Field {
    Field { index, name, perf }
}

/// All of them. Ice Lake has the first four, Golden Cove and Sapphire Rapids have all (Linux, `arch/x86/events/intel/core.c`,
/// `num_topdown_events`).
pub const FIELDS: [Field; 8] = [
    field(0, "PERF_METRICS.RETIRING", "topdown-retiring"),
    field(1, "PERF_METRICS.BAD_SPECULATION", "topdown-bad-spec"),
    field(2, "PERF_METRICS.FRONTEND_BOUND", "topdown-fe-bound"),
    field(3, "PERF_METRICS.BACKEND_BOUND", "topdown-be-bound"),
    field(4, "PERF_METRICS.HEAVY_OPERATIONS", "topdown-heavy-ops"),
    field(5, "PERF_METRICS.BRANCH_MISPREDICTS", "topdown-br-mispredict"),
    field(6, "PERF_METRICS.FETCH_LATENCY", "topdown-fetch-lat"),
    field(7, "PERF_METRICS.MEMORY_BOUND", "topdown-mem-bound"),
];

/// The field with either name; spelling is forgiving.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|one| fold::same(one.name, name) || fold::same(one.perf, name))
}

/// How many fields the register of a processor has that has one: eight where the table has the event of slots that waited for
/// memory, which came with the second level.
#[must_use]
pub fn fields(core: Option<&Core<'_>>) -> u8 {
    let second = core.is_some_and(|core| core.find("TOPDOWN.MEMORY_BOUND_SLOTS").is_some());
    if second { 8 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_fields_have_both_names_and_their_numbers() {
        for (index, one) in FIELDS.iter().enumerate() {
            assert_eq!(usize::from(one.index), index);
            assert_eq!((by_name(one.name), by_name(one.perf)), (Some(one), Some(one)));
        }
        assert_eq!(by_name("perf_metrics.retiring").map(|one| one.index), Some(0));
        assert_eq!(by_name("topdown"), None);
        let fields = |name: &str| fields(Some(&crate::test_support::core(name)));
        assert_eq!((fields("icelake"), fields("sapphirerapids"), super::fields(None)), (4, 8, 4));
    }
}
