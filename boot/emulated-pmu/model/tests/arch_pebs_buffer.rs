//! Architectural PEBS: its buffer, the registers, and which counters write records.

mod common;

use common::arch_pebs::*;
use common::pebs::instruction;
use common::{EN, USR, fault, read, write};
use pmu_model::{Delta, Fault, GuestMemory as _, Model, Retirement, Ring};

/// Status bit 54.
const REACHED: u64 = 1 << 54;

#[test]
fn s1_each_record_at_the_threshold_requests_an_interrupt_and_freezes() {
    let (mut pmu, mut buffer) = machine();
    // Three records of 64 bytes.
    write(&mut pmu, 0x3F5, ON | 12 << 36);
    arm(&mut pmu, 0, INSTRUCTIONS, 2, 0);
    for number in 1..=8 {
        let outcome = step(&mut pmu, &mut buffer, number);
        let reached = number >= 6 && number % 2 == 0;
        let overflowed = if reached { REACHED } else { 0 };
        assert_eq!((outcome.pmi, outcome.overflowed), (reached, overflowed), "{number}");
    }
    assert_eq!((offset(&mut pmu), read(&mut pmu, 0x38E)), (256, REACHED), "not bit 62");
    // It is cleared as others are, and what was read is given back.
    write(&mut pmu, 0x390, REACHED);
    write(&mut pmu, 0x3F5, ON | 4 << 36);
    write(&mut pmu, 0x1D9, 1 << 12 | 1 << 11);
    run(&mut pmu, &mut buffer, 9..=10);
    assert_eq!(read(&mut pmu, 0x38E), REACHED | 0b11 << 58);
    assert_eq!((offset(&mut pmu), buffer.words()[2]), (64, 0x100A));
    run(&mut pmu, &mut buffer, 11..=20);
    assert_eq!(offset(&mut pmu), 64, "frozen");
    write(&mut pmu, 0x390, REACHED | 0b11 << 58);
    run(&mut pmu, &mut buffer, 21..=22);
    assert_eq!(offset(&mut pmu), 128);
}

#[test]
fn s1_a_buffer_without_room_is_full_until_software_says_otherwise() {
    for (size, groups, bytes) in [(0, 0, 64), (0, GPR, 224), (1, GPR, 224), (2, GPR | XMM, 496)] {
        let (mut pmu, mut buffer) = machine();
        let whole = 4096u64 << size;
        write(&mut pmu, 0x3F4, BASE | size);
        write(&mut pmu, 0x3F5, ON | (whole / 16) << 36);
        arm(&mut pmu, 0, INSTRUCTIONS, 2, groups);
        let fit = whole / bytes;
        for record in 1..=fit + 3 {
            assert!(!step(&mut pmu, &mut buffer, 2 * record - 1).pmi);
            let outcome = step(&mut pmu, &mut buffer, 2 * record);
            let index = read(&mut pmu, 0x3F5);
            let filled = record == fit && whole.is_multiple_of(bytes);
            assert_eq!(outcome.pmi, record > fit || filled, "{size} {record}");
            assert_eq!(index & FULL != 0, record > fit, "{size} {record}");
            assert_eq!(index & 0x7FF_FFF0, record.min(fit) * bytes, "{size} {record}");
            // It counts on as if there were a record.
            assert_eq!(read(&mut pmu, 0x4C1), (1 << 48) - 1, "{size} {record}");
        }
        assert_eq!(buffer.beyond((fit * bytes) as usize), 0, "{size}");
        let last = ((fit - 1) * bytes) as usize / 8;
        assert_eq!(buffer.words()[last + 2], 0x1000 + 2 * fit, "{size}");
        assert_eq!(read(&mut pmu, 0x38E), REACHED, "{size}");
        // The bit alone keeps records out.
        write(&mut pmu, 0x3F5, ON | FULL | (whole / 16) << 36);
        run(&mut pmu, &mut buffer, 1..=2);
        assert_eq!((offset(&mut pmu), buffer.words()[2]), (0, 0x1002), "{size}: the first one");
        write(&mut pmu, 0x3F5, ON | (whole / 16) << 36);
        run(&mut pmu, &mut buffer, 9..=10);
        assert_eq!((offset(&mut pmu), buffer.words()[2]), (bytes, 0x100A), "{size}");
    }
}

#[test]
fn s1_without_both_switches_a_counter_overflows_as_ever() {
    const INT: u64 = 1 << 20;
    for (index, config) in [(0, RECORDS), (ON, 0)] {
        let (mut pmu, mut buffer) = machine();
        arm(&mut pmu, 1, INSTRUCTIONS | INT, 3, 0);
        write(&mut pmu, 0x3F5, index | 256 << 36);
        write(&mut pmu, 0x1907, config | u64::from(-2i32 as u32));
        assert!(!pmu.needs().precise);
        step(&mut pmu, &mut buffer, 1);
        let outcome = step(&mut pmu, &mut buffer, 2);
        assert_eq!((outcome.pmi, outcome.overflowed, outcome.due), (true, 2, 0));
        step(&mut pmu, &mut buffer, 3);
        assert_eq!((read(&mut pmu, 0x38E), read(&mut pmu, 0x4C2)), (2, 1), "and is not reloaded");
        assert_eq!((offset(&mut pmu), buffer.beyond(0)), (0, 0));
    }
}

/// What is armed when either switch goes off has no record.
#[test]
fn s1_an_armed_counter_is_disarmed_by_its_switches() {
    for (msr, value) in [(0x3F5, 0), (0x1903, 0), (0x1901, INSTRUCTIONS), (0x4C1, 0)] {
        let (mut pmu, mut buffer) = machine();
        arm(&mut pmu, 0, INSTRUCTIONS, 2, 0);
        step(&mut pmu, &mut buffer, 1);
        assert!(pmu.awaits_record(Ring::User));
        write(&mut pmu, msr, value);
        assert!(!pmu.awaits_record(Ring::User), "{msr:#x}");
        assert_eq!(step(&mut pmu, &mut buffer, 2).due, 0, "{msr:#x}");
    }
    // Writing the index again, as a handler does, loses none.
    let (mut pmu, mut buffer) = machine();
    arm(&mut pmu, 0, INSTRUCTIONS, 2, 0);
    step(&mut pmu, &mut buffer, 1);
    write(&mut pmu, 0x3F5, ON | 256 << 36);
    step(&mut pmu, &mut buffer, 2);
    assert_eq!(offset(&mut pmu), 64);
}

/// Fixed counter 0 is INST_RETIRED.PREC_DIST; the others' events are not precise, and a record is of the next instruction.
#[test]
fn s1_fixed_counters_write_records_by_their_own_configuration() {
    // But for the reference clock, which does not tick once an instruction.
    for n in [0, 1, 3] {
        let (mut pmu, mut buffer) = machine();
        let slots = if n == 3 { 8 } else { 1 };
        let reload = -9 * slots;
        write(&mut pmu, 0x1983 + 4 * n, RECORDS | GPR | u64::from(reload as u32));
        write(&mut pmu, 0x38D, 2 << (4 * n));
        write(&mut pmu, 0x38F, 1 << (32 + n));
        write(&mut pmu, 0x1980 + 4 * n, reload as u64 & ((1 << 48) - 1));
        run(&mut pmu, &mut buffer, 1..=25);
        assert_eq!(offset(&mut pmu), 2 * 224, "{n}");
        assert_eq!(buffer.words()[2..5], [0x1000 + 10, 1 << (32 + n), 5010], "{n}");
        assert_eq!(buffer.words()[28 + 2], 0x1000 + 20, "{n}");
        assert_eq!(buffer.words()[0], 1 << 63 | GPR | MODE_64 | 224, "{n}");
        assert_eq!(read(&mut pmu, 0x38E), 0, "{n}: no status of its own");
    }
}

#[test]
fn s1_counters_have_groups_of_their_own_and_share_a_record() {
    let (mut pmu, mut buffer) = machine();
    arm(&mut pmu, 9, INSTRUCTIONS, 4, GPR);
    arm(&mut pmu, 0, INSTRUCTIONS, 6, 0);
    run(&mut pmu, &mut buffer, 1..=12);
    // Counter 9 at 4 and 8, counter 0 at 6, both at 12: then with the groups of either.
    let mut seen = Vec::new();
    let mut at = 0;
    while at < offset(&mut pmu) as usize {
        let record = &buffer.words()[at / 8..];
        seen.push((record[0] & 0xFFFF, record[0] & GPR != 0, record[2] - 0x1000, record[3]));
        at += (record[0] & 0xFFFF) as usize;
    }
    let expected = [
        (224, true, 4, 1 << 9),
        (64, false, 6, 1),
        (224, true, 8, 1 << 9),
        (224, true, 12, 1 << 9 | 1),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn s1_an_event_that_is_not_precise_has_a_record_of_the_next_instruction() {
    let (mut pmu, mut buffer) = machine();
    // CPU_CLK_UNHALTED.THREAD_P: a cycle an instruction.
    arm(&mut pmu, 0, 0x3C | EN | USR, 10, 0);
    assert!(pmu.needs().precise);
    assert_eq!(pmu.advance(&Delta::bulk(Ring::User, 9)).due, 0);
    assert_eq!(pmu.until_overflow(pmu_model::RingMask::BOTH), Some(1));
    assert_eq!(pmu.advance(&Delta::step(Ring::Kernel)).due, 0, "it does not run there");
    step(&mut pmu, &mut buffer, 1);
    assert_eq!((offset(&mut pmu), buffer.words()[2]), (64, 0x1001));
}

#[test]
fn s1_the_header_tells_64_bit_mode_from_others() {
    let (mut pmu, mut buffer) = machine();
    arm(&mut pmu, 0, INSTRUCTIONS, 2, 0);
    pmu.advance(&Delta::step(Ring::User));
    let due = pmu.advance(&Delta::step(Ring::User)).due;
    let retired = Retirement { outside_64_bit_mode: true, ..Retirement::default() };
    pmu.write_record(due, &retired, &mut buffer);
    assert_eq!(buffer.words()[0], 1 << 63 | 64);
}

/// A reload value has 32 bits and is sign-extended to the counter's 48.
#[test]
fn s1_the_reload_value_is_sign_extended() {
    for (reload, value) in [(0, 0), (7, 7), (0x7FFF_FFFF, 0x7FFF_FFFF), (1 << 31, 0xFFFF_8000_0000)]
    {
        let (mut pmu, mut buffer) = machine();
        arm(&mut pmu, 4, INSTRUCTIONS, 2, 0);
        write(&mut pmu, 0x1913, RECORDS | reload);
        run(&mut pmu, &mut buffer, 1..=2);
        assert_eq!((offset(&mut pmu), read(&mut pmu, 0x4C5)), (64, value), "{reload:#x}");
    }
}

#[test]
fn s1_its_registers_refuse_reserved_bits_and_are_0_after_reset() {
    let (mut pmu, _) = machine();
    let valid = [
        (0x3F4, 0x000F_FFFF_FFFF_F00F),
        (0x3F5, 0x07FF_FFF1_87FF_FFF0),
        (0x1903, 0xE006_0378_FFFF_FFFF),
        (0x1927, 0xE006_0378_FFFF_FFFF),
        (0x1983, 0xE006_0378_FFFF_FFFF),
        (0x198F, 0xE006_0378_FFFF_FFFFu64),
    ];
    for (msr, valid) in valid {
        for bit in 0..64 {
            let value = 1u64 << bit;
            if valid & value != 0 {
                write(&mut pmu, msr, value);
                assert_eq!(read(&mut pmu, msr), value, "{msr:#x} {bit}");
            } else {
                let refused = fault(pmu.write_msr(msr, value));
                assert_eq!(refused, Fault::Reserved { msr, value, reserved: value });
            }
        }
        write(&mut pmu, msr, valid);
    }
    // The bits of adaptive records and of the debug store are not there.
    for (msr, value) in [(0x186, 1 << 34), (0x38D, 1 << 32)] {
        let refused = fault(pmu.write_msr(msr, value));
        assert_eq!(refused, Fault::Reserved { msr, value, reserved: value });
    }
    pmu.reset();
    for (msr, _) in valid {
        assert_eq!(read(&mut pmu, msr), 0, "{msr:#x}");
    }
    assert_eq!(read(&mut pmu, 0x1A0) & 1 << 12, 0, "PEBS is there");
}

/// A debug store's machine writes by linear addresses, as ever.
#[test]
fn s1_other_models_have_a_debug_store_alone() {
    let (mut pmu, mut area) = (common::pmu(Model::ArrowLake), common::pebs::Area::new(8, 8));
    assert!(pmu.write_msr(0x391, REACHED).is_err());
    write(&mut pmu, 0x600, common::pebs::AREA);
    write(&mut pmu, 0x3F1, 1);
    write(&mut pmu, 0x186, INSTRUCTIONS);
    write(&mut pmu, 0xC1, u64::MAX);
    for number in 1..=2 {
        instruction(&mut pmu, &mut area, number, Delta::step(Ring::User));
    }
    assert_eq!(area.records(4), 1);
    assert!(area.read(common::pebs::BASE).is_some());
}
