//! Real processors on the host: the recorded CPUID of 444 cores goes through the firmware's own identity, capabilities,
//! driver, event tables and planning.

mod bits;
mod emulated;
mod identity;
mod outcome;
mod page;
mod registers;
mod thirty;

use outcome::Outcome;
use recorded::cores;
use std::sync::OnceLock;

/// What every recorded core comes to, in the order of their names.
fn outcomes() -> &'static [(&'static str, Outcome)] {
    static ALL: OnceLock<Vec<(&'static str, Outcome)>> = OnceLock::new();
    ALL.get_or_init(|| {
        cores::all().iter().map(|core| (core.name.as_str(), Outcome::of(&core.leaves))).collect()
    })
}

#[test]
fn c6_each_of_444_recorded_cores_has_counters_and_events_or_a_reason() {
    let all = outcomes();
    assert_eq!(all.len(), 444);
    for (name, outcome) in all {
        match &outcome.pmu {
            Ok(pmu) => {
                assert!(pmu.counters > 0 && pmu.bits >= 32, "{name}: {pmu:?}");
                assert_eq!(pmu.table.is_ok(), pmu.events > 0, "{name}: {pmu:?}");
                // Without a table there are the architectural events, and the reason is told.
                assert!(pmu.architectural >= 2, "{name}: {pmu:?}");
                let told = pmu.table.as_ref().map_or_else(String::len, String::len);
                assert!(told > 0 && pmu.passes > 0, "{name}: {pmu:?}");
            }
            Err(why) => assert!(why.contains("no performance counters"), "{name}: {why}"),
        }
    }
}

/// CPUID says how many there are; what cannot count must not be missed in silence.
#[test]
fn c6_every_recorded_leaf_0xa_with_counters_is_a_pmu() {
    for (core, (_, outcome)) in cores::all().iter().zip(outcomes()) {
        let [highest, vendor, ..] = core.leaves.answer(0, 0);
        let leaf = core.leaves.answer(0xa, 0);
        let announces = highest >= 0xa && leaf[0] & 0xff != 0 && leaf[0] >> 8 & 0xff != 0;
        // Leaf 0xA is not AMD's.
        let amd = [0x6874_7541, 0x6f67_7948].contains(&vendor);
        if !amd {
            assert_eq!(outcome.pmu.is_ok(), announces, "{}: {outcome:?}", core.name);
        } else {
            assert_eq!(outcome.pmu.is_ok(), outcome.identity.family >= 0xf, "{}", core.name);
        }
    }
}
