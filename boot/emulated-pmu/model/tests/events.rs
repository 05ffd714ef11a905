//! The event tables: against lines of the public tables, and against what each event should count.

mod common;

use common::{EN, OS, USR, counter, pmu, read, write};
use pmu_model::events::{self, Event};
use pmu_model::{Delta, Host, Model, Occurrence, Pmu, Ring, Silence, Timing};

/// Lines copied from the project's normalised event tables, by the name of the table: perfmon's for
/// Intel, the Linux kernel's for AMD.
const FACTS: [(Model, &str, &str); 11] = [
    (Model::Nehalem, "intel/nehalemep.csv", include_str!("facts/nehalemep.csv")),
    (Model::Haswell, "intel/haswell.csv", include_str!("facts/haswell.csv")),
    (Model::Skylake, "intel/skylake.csv", include_str!("facts/skylake.csv")),
    (Model::IceLake, "intel/icelake.csv", include_str!("facts/icelake.csv")),
    (Model::SapphireRapids, "intel/sapphirerapids.csv", include_str!("facts/sapphirerapids.csv")),
    (Model::ArrowLake, "intel/lioncove_arl.csv", include_str!("facts/lioncove_arl.csv")),
    (Model::CougarCove, "intel/cougarcove.csv", include_str!("facts/cougarcove.csv")),
    (Model::GoldenCove, "intel/goldencove.csv", include_str!("facts/goldencove.csv")),
    (Model::Gracemont, "intel/gracemont.csv", include_str!("facts/gracemont.csv")),
    (Model::Zen2, "amd/zen2.csv", include_str!("facts/zen2.csv")),
    (Model::Zen4, "amd/zen4.csv", include_str!("facts/zen4.csv")),
];

fn number(text: &str) -> u16 {
    match text.strip_prefix("0x") {
        Some(hex) => u16::from_str_radix(hex, 16),
        None => text.parse(),
    }
    .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether the table has it. Linux asks Zen 4 for one that only the tables of its forerunners have.
fn is_in_table(model: Model, event: &Event) -> bool {
    model != Model::Zen4 || event.name != "ls_dc_accesses"
}

#[test]
fn events_match_the_public_tables() {
    for (model, table, facts) in FACTS {
        let own: Vec<&Event> =
            model.spec().events.iter().filter(|event| is_in_table(model, event)).collect();
        let lines: Vec<&str> = facts.lines().skip(1).collect();
        assert_eq!(lines.len(), own.len(), "{table}: every event has its line");
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let [name, code, umask, cmask, inv, edge, counters] = fields[..] else {
                panic!("{table}: {line}");
            };
            let event = own
                .iter()
                .find(|event| event.name == name)
                .unwrap_or_else(|| panic!("{table}: {name}"));
            let expected = (
                number(code),
                number(umask),
                number(cmask),
                number(inv) == 1,
                number(edge) == 1,
                number(counters),
            );
            let ours = (
                event.code,
                event.umask,
                u16::from(event.cmask),
                event.invert,
                event.edge,
                event.counters,
            );
            assert_eq!(ours, expected, "{table}: {name}");
        }
    }
}

/// The selector of an event, as its table has it.
fn selector(model: Model, event: &Event) -> u64 {
    let amd = matches!(model, Model::K10 | Model::Zen2 | Model::Zen4);
    let (code, umask) = (u64::from(event.code), u64::from(event.umask));
    let encoded = if amd {
        code & 0xFF | code >> 8 << 32 | umask << 8
    } else {
        code | (umask & 0xFF) << 8 | umask >> 8 << 40
    };
    encoded
        | u64::from(event.cmask) << 24
        | u64::from(event.invert) << 23
        | u64::from(event.edge) << 18
}

/// Counts one event, on the first counter that can, over some deltas.
fn count(model: Model, event: &Event, deltas: &[Delta]) -> u64 {
    let n = event.counters.trailing_zeros();
    let mut pmu = pmu(model);
    let registers = counter(model, n);
    write(&mut pmu, registers.selector, selector(model, event) | EN | USR | OS);
    let named = |why| matches!(why, Silence::Never | Silence::Alone);
    assert!(pmu.unknown_events().all(|one| named(one.why)), "{model:?} {}", event.name);
    for delta in deltas {
        pmu.advance(delta);
    }
    read(&mut pmu, registers.counter)
}

fn by_name(model: Model, name: &str) -> &'static Event {
    events::all(model)
        .find(|event| event.name == name)
        .unwrap_or_else(|| panic!("{model:?} {name}"))
}

#[test]
fn every_event_can_be_programmed_and_counts_no_less_for_more() {
    for model in common::with_counters() {
        for event in events::all(model) {
            let step = Occurrence::ALL
                .into_iter()
                .fold(Delta::step(Ring::User), |delta, occurrence| delta.with(occurrence, 1));
            let kernel = Delta::bulk(Ring::Kernel, 100);
            let nothing = count(model, event, &[]);
            let something = count(model, event, &[step.clone(), kernel.clone()]);
            assert_eq!(nothing, 0, "{model:?} {}", event.name);
            let counts = event.selection.has_occurrences() || event.selection.has_any_bulk();
            // Ports are there with a map alone.
            let counts = counts && !event.selection.has_ports();
            let plain = !event.invert && event.cmask <= 1;
            // Golden Cove counts slow loads only together with another event.
            let alone = (event.code, event.umask) != (0xCD, 0x01)
                || !matches!(model, Model::SapphireRapids | Model::GoldenCove);
            if counts && plain && alone {
                assert!(something > 0, "{model:?} {}", event.name);
            }
            if !counts && !event.invert {
                assert_eq!(something, 0, "{model:?} {}", event.name);
            }
        }
    }
}

#[test]
fn the_branch_events_of_a_small_program() {
    use Occurrence::*;
    // Two taken jumps back (one mispredicted), one forward, one that falls through mispredicted, a
    // call, an indirect call, two returns, a direct jump, an indirect jump, a far transfer.
    let deltas: Vec<Delta> = [
        JccTakenBackward,
        MissedJccTakenBackward,
        JccTakenForward,
        MissedJccNotTaken,
        RelativeCall,
        MissedIndirectCall,
        Return,
        Return,
        RelativeJump,
        IndirectJump,
        FarBranch,
    ]
    .into_iter()
    .map(|occurrence| Delta::step(Ring::User).with(occurrence, 1))
    .collect();
    for (model, name, expected) in [
        (Model::Skylake, "BR_INST_RETIRED.ALL_BRANCHES", 11),
        (Model::Skylake, "BR_INST_RETIRED.CONDITIONAL", 4),
        (Model::Skylake, "BR_INST_RETIRED.NOT_TAKEN", 1),
        (Model::Skylake, "BR_INST_RETIRED.NEAR_TAKEN", 9),
        (Model::Skylake, "BR_INST_RETIRED.NEAR_CALL", 2),
        (Model::Skylake, "BR_INST_RETIRED.NEAR_RETURN", 2),
        (Model::Skylake, "BR_INST_RETIRED.FAR_BRANCH", 1),
        (Model::Skylake, "BR_MISP_RETIRED.ALL_BRANCHES", 3),
        (Model::Skylake, "BR_MISP_RETIRED.CONDITIONAL", 2),
        (Model::IceLake, "BR_INST_RETIRED.COND", 4),
        (Model::IceLake, "BR_INST_RETIRED.COND_TAKEN", 3),
        (Model::IceLake, "BR_INST_RETIRED.INDIRECT", 2),
        (Model::IceLake, "BR_MISP_RETIRED.INDIRECT_CALL", 1),
        (Model::ArrowLake, "BR_INST_RETIRED.COND_TAKEN_BWD", 2),
        (Model::ArrowLake, "BR_INST_RETIRED.COND_TAKEN_FWD", 1),
        (Model::ArrowLake, "BR_INST_RETIRED.COND", 4),
        (Model::CougarCove, "BR_INST_RETIRED.COND_TAKEN_BWD", 2),
        (Model::CougarCove, "BR_INST_RETIRED.COND_TAKEN_FWD", 1),
        (Model::CougarCove, "BR_INST_RETIRED.COND", 4),
        (Model::Nehalem, "BR_MISP_EXEC.ANY", 3),
        (Model::Core2, "BR_INST_RETIRED.PRED_TAKEN", 8),
        (Model::Core2, "BR_INST_RETIRED.MISPRED_TAKEN", 2),
        (Model::Zen2, "ex_ret_brn", 11),
        (Model::Zen2, "ex_ret_brn_tkn", 10),
        (Model::Zen2, "ex_ret_cond", 4),
        (Model::Zen2, "ex_ret_brn_ind_misp", 1),
        (Model::Zen4, "ex_ret_uncond_brnch_instr", 6),
        (Model::K10, "RETIRED_NEAR_RETURNS", 2),
    ] {
        assert_eq!(count(model, by_name(model, name), &deltas), expected, "{model:?} {name}");
    }
}

#[test]
fn thresholds_that_belong_to_a_name() {
    // One instruction that waits 200 cycles for memory: its retirement is one cycle of 201.
    let slow = [Delta::step(Ring::User).with(Occurrence::Load, 1).with(Occurrence::LoadLlcMiss, 1)];
    for (model, name, expected) in [
        (Model::Skylake, "UOPS_RETIRED.STALL_CYCLES", 200),
        (Model::IceLake, "INST_RETIRED.STALL_CYCLES", 200),
        (Model::Nehalem, "INST_RETIRED.TOTAL_CYCLES", 201),
        (Model::Skylake, "CPU_CLK_UNHALTED.THREAD_P", 201),
    ] {
        assert_eq!(count(model, by_name(model, name), &slow), expected, "{model:?} {name}");
    }
}

#[test]
fn top_down_slots_add_up() {
    let deltas = [
        Delta::bulk(Ring::User, 10),
        Delta::step(Ring::User).with(Occurrence::MissedJccNotTaken, 1),
        Delta::step(Ring::User).with(Occurrence::LoadLlcMiss, 1),
    ];
    let of = |name| count(Model::SapphireRapids, by_name(Model::SapphireRapids, name), &deltas);
    // 12 instructions, 16 cycles of recovery, 200 of waiting; six slots each.
    assert_eq!(of("TOPDOWN.SLOTS_P"), 6 * 228);
    assert_eq!(of("TOPDOWN.BAD_SPEC_SLOTS"), 6 * 16);
    assert_eq!(of("TOPDOWN.MEMORY_BOUND_SLOTS"), 6 * 200);
    assert_eq!(of("UOPS_RETIRED.SLOTS"), 12);
    assert_eq!(
        of("TOPDOWN.BACKEND_BOUND_SLOTS"),
        of("TOPDOWN.SLOTS_P") - of("TOPDOWN.BAD_SPEC_SLOTS") - of("UOPS_RETIRED.SLOTS")
    );
}

#[test]
fn architectural_events_are_those_that_the_leaf_shows() {
    for model in common::with_counters() {
        let Some(intel) = model.spec().intel() else {
            continue;
        };
        let available = intel.architectural_events();
        // Bits 0 to 6: event code and unit mask of the manual's table.
        let pairs =
            [(0x3C, 0), (0xC0, 0), (0x3C, 1), (0x2E, 0x4F), (0x2E, 0x41), (0xC4, 0), (0xC5, 0)];
        for (bit, pair) in pairs.into_iter().enumerate() {
            if available & 1 << bit != 0 {
                assert!(
                    events::all(model).any(|event| (event.code, event.umask) == pair),
                    "{model:?} bit {bit}"
                );
            }
        }
    }
    // AAJ80: Nehalem has no C5/00, and Linux counts 89/7F instead.
    let mut nehalem = pmu(Model::Nehalem);
    write(&mut nehalem, 0x186, 0xC5 | EN | USR);
    assert_eq!(nehalem.unknown_events().count(), 1);
}

#[test]
fn rr_s_selectors_count_conditional_branches() {
    let deltas = [
        Delta::step(Ring::User).with(Occurrence::JccTakenBackward, 1),
        Delta::step(Ring::User).with(Occurrence::JccNotTaken, 1),
        Delta::step(Ring::User).with(Occurrence::Return, 1),
        Delta::step(Ring::Kernel).with(Occurrence::JccNotTaken, 1),
    ];
    for (model, selector) in [
        (Model::Haswell, 0x51_01C4),
        (Model::Skylake, 0x51_01C4),
        (Model::IceLake, 0x51_11C4),
        (Model::SapphireRapids, 0x51_11C4),
        (Model::ArrowLake, 0x100_0051_11C4),
        (Model::Zen2, 0x51_00D1),
        (Model::Zen4, 0x51_00D1),
    ] {
        let mut pmu = pmu(model);
        write(&mut pmu, counter(model, 0).selector, selector);
        for delta in &deltas {
            pmu.advance(delta);
        }
        assert_eq!(read(&mut pmu, counter(model, 0).counter), 2, "{model:?}");
    }
}

/// Without a port map an instruction is a micro-operation and takes its cycle; with one both are those of the map.
#[test]
fn d2_micro_operations_and_cycles_are_those_of_a_port_map() {
    let delta = Delta::bulk(Ring::User, 10)
        .with(Occurrence::Port0, 4)
        .with(Occurrence::Port9, 5)
        .with(Occurrence::PortCycle, 3);
    for (model, name, without, with) in [
        (Model::Skylake, "UOPS_DISPATCHED_PORT.PORT_0", 0, 4),
        (Model::Skylake, "UOPS_DISPATCHED_PORT.PORT_1", 0, 0),
        (Model::Haswell, "UOPS_EXECUTED_PORT.PORT_0", 0, 4),
        (Model::IceLake, "UOPS_DISPATCHED.PORT_4_9", 0, 5),
        (Model::SapphireRapids, "UOPS_DISPATCHED.PORT_4_9", 0, 5),
        (Model::Skylake, "UOPS_ISSUED.ANY", 10, 9),
        (Model::Skylake, "CPU_CLK_UNHALTED.THREAD_P", 10, 3),
        (Model::Skylake, "INST_RETIRED.ANY_P", 10, 10),
        (Model::Zen4, "ex_ret_ops", 10, 9),
    ] {
        for (ports, expected) in [(false, without), (true, with)] {
            let timing = Timing { ports, ..Timing::of_tsc(0) };
            let mut pmu = Pmu::new(model, Host::EXAMPLE, timing);
            let event = by_name(model, name);
            let registers = counter(model, 0);
            write(&mut pmu, registers.selector, selector(model, event) | EN | USR | OS);
            let silent = pmu.unknown_events().any(|one| one.why == Silence::Never);
            assert_eq!(silent, !ports && event.selection.has_ports(), "{name}");
            let by_ports = ports && name != "INST_RETIRED.ANY_P";
            assert_eq!(pmu.needs().ports(), by_ports, "{name}");
            pmu.advance(&delta);
            assert_eq!(read(&mut pmu, registers.counter), expected, "{model:?} {name} {ports}");
        }
    }
}
