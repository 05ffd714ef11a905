//! PEBS records: when they are written, of which instruction, and what a full buffer does.

mod common;

use common::pebs::{AREA, Area, BASE, instruction};
use common::{EN, INT, OS, USR, fault, pmu, read, write};
use pmu_model::{Delta, Fault, Host, Model, Occurrence, Pmu, Ring, Timing};

/// The model, an event of it that every instruction is, the counter for that, and the words of a record.
const MODELS: [(Model, u64, u32, usize); 4] = [
    (Model::Core2, 0x00C0, 0, 18),
    (Model::Nehalem, 0x01C0, 0, 22),
    (Model::Haswell, 0x01C0, 1, 24),
    (Model::Skylake, 0x01C0, 1, 25),
];

/// Counts `event` on counter `n` from `reset` on, with PEBS.
fn arm(pmu: &mut Pmu, area: &mut Area, (event, n): (u64, u32), reset: u64) {
    write(pmu, 0x600, AREA);
    write(pmu, 0x3F1, 1 << n);
    write(pmu, 0x186 + n, event | EN | USR | OS);
    write(pmu, 0xC1 + n, reset);
    area.set_reset(n as usize, reset);
}

#[test]
fn every_nth_instruction_is_in_a_record_and_none_is_lost() {
    for (model, event, n, words) in MODELS {
        let (mut pmu, mut area) = (pmu(model), Area::new(40 * words, 40 * words));
        // A record of the event after the overflow: each tenth.
        arm(&mut pmu, &mut area, (event, n), 0u64.wrapping_sub(9));
        for number in 1..=105 {
            let outcome = instruction(&mut pmu, &mut area, number, Delta::step(Ring::User));
            assert!(!outcome.pmi && outcome.overflowed == 0, "{model:?}: {number}");
            // Each ninth has overflowed, and the next one is awaited.
            assert_eq!(pmu.awaits_record(Ring::User), number % 10 == 9, "{model:?}: {number}");
        }
        write(&mut pmu, 0x186 + n, event | EN | OS);
        assert!(!pmu.awaits_record(Ring::User), "{model:?}: it does not run there");
        assert_eq!(area.records(words), 10, "{model:?}");
        assert_eq!(read(&mut pmu, 0x38E), 0, "{model:?}: no status without a threshold");
        for (index, record) in area.buffer().chunks(words).take(10).enumerate() {
            let number = 10 * (index as u64 + 1);
            // Flags, the address after it, RAX, RBX.
            assert_eq!(record[..4], [2, 0x1000 + number + 1, number, 3], "{model:?}");
            assert_eq!(record[10..18], [8, 9, 10, 11, 12, 13, 14, 15], "{model:?}");
            if words > 18 {
                assert_eq!(record[18..22], [1 << n, 0, 0, 0], "{model:?}");
            }
            if words > 22 {
                assert_eq!(record[22..24], [0x1000 + number, 0], "{model:?}");
            }
            if words > 24 {
                assert_eq!(record[24], 5000 + number, "{model:?}");
            }
        }
        // What has come since the last record.
        assert_eq!(read(&mut pmu, 0xC1 + n) as u32, (-9i32 + 5) as u32, "{model:?}");
    }
}

#[test]
fn the_threshold_interrupts_and_freezes_and_the_end_keeps_what_is_there() {
    for (model, event, n, words) in MODELS {
        let (mut pmu, mut area) = (pmu(model), Area::new(2 * words, 3 * words));
        arm(&mut pmu, &mut area, (event, n), 0u64.wrapping_sub(1));
        let mut pmis = Vec::new();
        for number in 1..=12 {
            let outcome = instruction(&mut pmu, &mut area, number, Delta::step(Ring::Kernel));
            if outcome.pmi {
                assert_eq!(outcome.overflowed, 1 << 62, "{model:?}");
                pmis.push(number);
            }
        }
        // From the second record on, also those that found no room.
        assert_eq!(pmis, [4, 6, 8, 10, 12], "{model:?}");
        assert_eq!((area.records(words), area.beyond()), (3, 0), "{model:?}");
        assert_eq!(read(&mut pmu, 0x38E), 1 << 62, "{model:?}");
        write(&mut pmu, 0x390, 1 << 62);
        assert_eq!(read(&mut pmu, 0x38E), 0, "{model:?}");
        // With a freeze the counters stand from the threshold on.
        write(&mut pmu, 0x1D9, 1 << 12);
        instruction(&mut pmu, &mut area, 1, Delta::step(Ring::Kernel));
        instruction(&mut pmu, &mut area, 2, Delta::step(Ring::Kernel));
        let stands = read(&mut pmu, 0xC1 + n);
        instruction(&mut pmu, &mut area, 3, Delta::step(Ring::Kernel));
        assert_eq!(read(&mut pmu, 0xC1 + n), stands, "{model:?}");
    }
}

#[test]
fn loads_and_stores_have_their_own_address() {
    for (model, load, expected) in [
        (Model::Skylake, 0x81D0, 0x10_0000),
        (Model::Skylake, 0x82D0, 0x20_0000),
        (Model::Skylake, 0x83D0, 0x10_0000),
        (Model::Haswell, 0x82D0, 0x20_0000),
        (Model::Nehalem, 0x010B, 0),
    ] {
        let (mut pmu, mut area) = (pmu(model), Area::new(1000, 1000));
        arm(&mut pmu, &mut area, (load, 0), 0u64.wrapping_sub(1));
        for number in 1..=2 {
            let copies =
                Delta::step(Ring::User).with(Occurrence::Load, 1).with(Occurrence::Store, 1);
            instruction(&mut pmu, &mut area, number, copies);
        }
        assert_eq!(area.buffer()[19], expected, "{model:?} {load:#x}");
    }
}

#[test]
fn an_event_that_is_not_precise_overflows_as_ever() {
    // CPU_CLK_UNHALTED.THREAD_P, in place of which Linux takes an event of retirement.
    let (mut pmu, mut area) = (pmu(Model::Skylake), Area::new(100, 100));
    arm(&mut pmu, &mut area, (0x3C, 0), 0u64.wrapping_sub(1));
    instruction(&mut pmu, &mut area, 1, Delta::step(Ring::User));
    instruction(&mut pmu, &mut area, 2, Delta::step(Ring::User));
    assert_eq!((read(&mut pmu, 0x38E), area.records(25)), (1, 0));
}

/// What Linux writes for `cycles:p`, `instructions:pp`, `branches:pp` and `branch-misses:pp` on each part with PEBS
/// (`arch/x86/events/intel/core.c`, `intel_perfmon_event_map` and `intel_pebs_aliases_*`).
#[test]
fn what_linux_samples_precisely_is_precise() {
    const EVERY_CYCLE: u64 = 16 << 24 | common::INV;
    const WANTED: [(Model, &[u64]); 4] = [
        (Model::Core2, &[0xC0 | EVERY_CYCLE, 0xC0, 0xC5]),
        (Model::Nehalem, &[0xC0 | EVERY_CYCLE, 0xC0, 0xC4]),
        (Model::Haswell, &[0x1C2 | EVERY_CYCLE, 0xC0, 0xC4, 0xC5]),
        (Model::Skylake, &[0xC0 | EVERY_CYCLE, 0xC0, 0xC4, 0xC5]),
    ];
    for (model, events) in WANTED {
        for &event in events {
            let words = MODELS.iter().find(|entry| entry.0 == model).map(|entry| entry.3).unwrap();
            let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::FLAT);
            let mut area = Area::new(words, 10 * words);
            arm(&mut pmu, &mut area, (event, 0), 0u64.wrapping_sub(4));
            let missed = Delta::step(Ring::User).with(Occurrence::MissedReturn, 1);
            let outcomes: Vec<_> = (1..=5)
                .map(|number| instruction(&mut pmu, &mut area, number, missed.clone()))
                .collect();
            assert_eq!(area.records(words), 1, "{model:?} {event:#x}");
            assert!(outcomes[4].pmi, "{model:?} {event:#x}: at the threshold");
            assert_eq!(
                read(&mut pmu, 0x38E),
                1 << 62,
                "{model:?} {event:#x}: its own bit is not set"
            );
        }
    }
}

#[test]
fn the_next_instruction_has_to_be_seen_once_a_counter_is_armed() {
    let (mut pmu, mut area) = (pmu(Model::Core2), Area::new(100, 100));
    arm(&mut pmu, &mut area, (0xC0, 0), 0u64.wrapping_sub(500));
    let rings = pmu_model::RingMask::BOTH;
    assert!(pmu.needs().precise && !pmu.needs().stepping());
    assert_eq!(pmu.until_overflow(rings), Some(500));
    assert_eq!(pmu.advance(&Delta::bulk(Ring::User, 500)).due, 0);
    assert_eq!(pmu.until_overflow(rings), Some(1));
    // Several at once are never in a record: it would name a wrong one.
    assert_eq!(pmu.advance(&Delta::bulk(Ring::User, 2)).due, 0);
    assert_eq!(pmu.advance(&Delta::bulk(Ring::User, 1)).due, 1);
}

#[test]
fn an_area_that_is_not_mapped_takes_no_record() {
    let (mut pmu, mut area) = (pmu(Model::Skylake), Area::new(100, 100));
    arm(&mut pmu, &mut area, (0x01C0, 1), 0u64.wrapping_sub(1));
    write(&mut pmu, 0x600, 0x7000);
    for number in 1..=4 {
        assert!(!instruction(&mut pmu, &mut area, number, Delta::step(Ring::User)).pmi);
    }
    assert_eq!(area.records(25), 0);
    assert_eq!(area.index(), BASE);
}

#[test]
fn its_registers_keep_what_is_theirs_and_refuse_the_rest() {
    for (model, enable) in
        [(Model::Core2, 1u64), (Model::Nehalem, 0xF_0000_000F), (Model::Skylake, 0xF_0000_000F)]
    {
        let mut pmu = pmu(model);
        for bit in 0..64 {
            let taken = pmu.write_msr(0x3F1, 1 << bit).is_ok();
            assert_eq!(taken, enable & 1 << bit != 0, "{model:?} {bit}");
        }
        write(&mut pmu, 0x600, 0xFFFF_8000_0000_1000);
        assert_eq!(read(&mut pmu, 0x600), 0xFFFF_8000_0000_1000);
        let refused = fault(pmu.write_msr(0x600, 1 << 47));
        assert!(matches!(refused, Fault::Reserved { msr: 0x600, .. }), "{refused:?}");
        // PEBS is not unavailable, BTS is; neither bit can be changed.
        assert_eq!(read(&mut pmu, 0x1A0) & 3 << 11, 1 << 11, "{model:?}");
        assert!(pmu.write_msr(0x1A0, 1 | 1 << 7 | 3 << 11).is_err(), "{model:?}");
        pmu.reset();
        assert_eq!((read(&mut pmu, 0x600), read(&mut pmu, 0x3F1)), (0, 0));
    }
}

#[test]
fn an_interrupt_bit_beside_pebs_changes_nothing() {
    let (mut pmu, mut area) = (pmu(Model::Core2), Area::new(100, 100));
    arm(&mut pmu, &mut area, (0xC0 | INT, 0), 0u64.wrapping_sub(1));
    for number in 1..=2 {
        assert!(!instruction(&mut pmu, &mut area, number, Delta::step(Ring::User)).pmi);
    }
    assert_eq!(area.records(18), 1);
}
