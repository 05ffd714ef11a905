//! Processors that run at once and share what they must.

use super::emulated::emulated;
use super::*;
use protocol::record::ContentionRounds;

fn contention(ran: &Ran) -> Vec<ContentionRounds> {
    ran.ends_with(0);
    together(ran).processors.iter().map(|one| one.contention.unwrap()).collect()
}

/// With a host thread for each processor they run at the same time: calls, a lock, interrupts from one to the other, and PMIs
/// whose control blocks come and go, while all others do the same.
#[test]
fn i7_m10_four_processors_that_run_at_once_share_what_they_must_for_thousands_of_rounds() {
    let job = r#"
[[processors]]
name = "at once"
asm = "nop"
contention = 2000
"#;
    let guest = Guest { cpus: Cpus::Many(4), ..Guest::new(Boot::Direct, job) };
    let seen = contention(&Guest { icount: Icount::Off, ..guest }.run());
    let rounds = 2000;
    let each = ContentionRounds {
        rounds,
        locked: rounds,
        interrupts: rounds,
        pmis: rounds,
        counted: None,
    };
    assert_eq!(seen, [each; 4]);
}

/// Where counters are started and stopped in each round as well. One processor of them is its own neighbour.
#[test]
fn i7_m10_counters_that_start_and_stop_in_rounds_count_alike_in_each() {
    let job = r#"
[[processors]]
name = "all"
asm = "nop"
contention = 40
[[processors]]
name = "one"
asm = "nop"
cpu = 1
contention = 3
"#;
    for model in [Model::Skylake, Model::SapphireRapids, Model::Haswell, Model::Zen2, Model::Zen4] {
        let ran = emulated(model, Cpus::Many(3), job);
        let seen = contention(&ran);
        let counted = seen[0].counted.unwrap();
        // A loop of two instructions, 50 turns, and what stands around it.
        assert!((40 * 100..40 * 120).contains(&counted), "{counted}");
        let (rounds, counted) = (40, Some(counted));
        let each =
            ContentionRounds { rounds, locked: rounds, interrupts: rounds, pmis: rounds, counted };
        assert_eq!(seen, [each; 3], "{model:?}");
        let one = ran.report.processors().nth(1).unwrap().processors[0].contention.unwrap();
        assert_eq!((one.rounds, one.counted), (3, counted.map(|counted| counted / 40 * 3)));
    }
}
