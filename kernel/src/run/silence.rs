//! How long an item may give no sign of life by what its job allows: the machine's own watchdog waits at least as long.

use protocol::job::Item;

/// Milliseconds; `None`: as long as it likes. What snippets may take, they say themselves before they run.
#[must_use]
pub fn of(item: &Item) -> Option<u64> {
    match item {
        // Without ticks nothing comes between the tasks' begin and their end.
        Item::Tasks(tasks) => Some(tasks.limit_us / 1000),
        Item::Count(count) => Some(count.limit_us / 1000),
        Item::Sample(sampling) if sampling.is_scheduled() => Some(sampling.limit_us / 1000),
        // A single code runs to its end.
        Item::Sample(_) => None,
        // A processor that is watched does nothing else.
        Item::Facts(facts) => Some(facts.watch.ms.into()),
        Item::Processors(processors) => match processors.snippet.setup.control.time_limit_ms {
            0 => None,
            ms => Some(ms.into()),
        },
        Item::Snippet(_)
        | Item::Exact(_)
        | Item::History(_)
        | Item::Conformance(_)
        | Item::BringUp(_) => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::Cow;
    use alloc::vec::Vec;
    use protocol::job::facts::{Parts, Watch};
    use protocol::job::workload::Workload;
    use protocol::job::{Conformance, Facts, Tasks};

    #[test]
    fn x1_x9_the_machines_watchdog_waits_as_long_as_an_item_may_take() {
        let name = || Cow::Borrowed("one");
        let tasks = Tasks {
            name: name(),
            workload: Workload::default(),
            limit_us: 90_000_000,
            energy: Vec::new(),
            uncore: Vec::new(),
        };
        assert_eq!(of(&Item::Tasks(tasks)), Some(90_000));
        let parts = Parts { memory: false, core: false, cores: false, noise: true };
        let watch = Watch { ms: 60_000, ..Watch::default() };
        let facts = Facts { name: name(), bytes: 0, parts, watch };
        assert_eq!(of(&Item::Facts(facts)), Some(60_000));
        let suite = Conformance { name: name(), checks: Vec::new() };
        assert_eq!(of(&Item::Conformance(suite)), Some(0));
    }
}
