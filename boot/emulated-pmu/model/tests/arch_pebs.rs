//! Architectural PEBS: the groups of its records, word by word (Linux, `struct arch_pebs_header` and those after it).

mod common;

use common::arch_pebs::*;
use common::pebs::instruction;
use common::{EN, USR, pmu as pmu_of, read, write};
use pmu_model::{Branch, BranchKind, CpuidResult, Delta, Model, Occurrence, Pmu, Retirement, Ring};

/// The basic group, bit 63, of 48 bytes after a header of 16.
const BASIC: u64 = 1 << 63 | MODE_64 | 64;

#[test]
fn s1_a_record_has_a_header_and_the_basic_group_and_the_counter_goes_on() {
    let (mut pmu, mut buffer) = machine();
    arm(&mut pmu, 7, INSTRUCTIONS, 10, 0);
    for number in 1..=25 {
        let outcome = step(&mut pmu, &mut buffer, number);
        assert_eq!((outcome.pmi, outcome.overflowed), (false, 0), "{number}");
    }
    assert_eq!(offset(&mut pmu), 128);
    for (record, number) in [(0, 10), (8, 20)] {
        // The eventing address, the counter, the time, and a valid retire latency of a cycle.
        let expected = [BASIC, 0, 0x1000 + number, 1 << 7, 5000 + number, 1 << 16 | 1, 0, 0];
        assert_eq!(buffer.words()[record..record + 8], expected);
    }
    assert_eq!(buffer.beyond(128), 0);
    // What has come since the last record.
    assert_eq!(read(&mut pmu, 0x4C8), (1 << 48) - 9 + 5);
    assert_eq!(read(&mut pmu, 0x38E), 0, "no status of its own");
    // Base and configuration are as they were.
    assert_eq!((read(&mut pmu, 0x3F4), read(&mut pmu, 0x3F5) >> 36), (BASE, 256));
    assert_eq!(read(&mut pmu, 0x191F), RECORDS | u64::from(-9i32 as u32));
}

#[test]
fn s1_the_groups_asked_for_come_in_their_order() {
    for config in 0..16u64 {
        let groups = [AUX, GPR, XMM, YMM_UPPER].into_iter().enumerate();
        let groups = groups.filter(|(bit, _)| config >> bit & 1 != 0).map(|(_, group)| group).sum();
        let (mut pmu, mut buffer) = machine();
        arm(&mut pmu, 3, 0x81D0 | EN | USR, 2, groups);
        assert_eq!(pmu.records_vectors(), groups & XMM != 0);
        assert_eq!(pmu.records_upper_halves(), groups & YMM_UPPER != 0);
        for number in 1..=2 {
            let load = Delta::step(Ring::User).with(Occurrence::Load, 1);
            instruction(&mut pmu, &mut buffer, number, load);
        }
        let mut expected = vec![0, 0, 0x1002, 1 << 3, 5002, 1 << 16 | 1, 0, 0];
        if groups & AUX != 0 {
            // The address; four reserved; source, latencies, transactions.
            expected.extend([0x10_0000, 0, 0, 0, 0, 0, 0, 0]);
        }
        if groups & GPR != 0 {
            // Flags, the address after, RAX (the instruction's number), RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15, SSP.
            expected.extend([2, 0x1003, 2, 1, 2, 3, 0x8000, 5, 6, 7]);
            expected.extend(8..16);
            expected.extend([0, 0]);
        }
        if groups & (XMM | YMM_UPPER) != 0 {
            // The components of XSAVE that follow: SSE is 1, AVX 2.
            let states = (groups & XMM) >> 48 | (groups & YMM_UPPER) >> 48;
            expected.extend([states, 0]);
        }
        if groups & XMM != 0 {
            expected.extend(0x7000..0x7020);
        }
        if groups & YMM_UPPER != 0 {
            expected.extend(0x8000..0x8020);
        }
        let bytes = 8 * expected.len() as u64;
        let sizes = [64, 128, 224, 288, 336, 400, 496, 560];
        let (half, both) = ([336, 400, 496, 560], [592, 656, 752, 816]);
        let sizes = [&sizes[..], &half, &both].concat();
        assert_eq!(bytes, sizes[config as usize]);
        expected[0] = 1 << 63 | groups | MODE_64 | bytes;
        assert_eq!(buffer.words()[..expected.len()], expected, "{config:#b}");
        assert_eq!((offset(&mut pmu), buffer.beyond(bytes as usize)), (bytes, 0), "{config:#b}");
    }
}

/// Without AVX in XCR0 there is no such state, and the group is 0; without AVX in the machine there is no such group.
#[test]
fn s1_upper_halves_are_0_or_no_group_where_there_is_no_avx() {
    let (mut pmu, mut buffer) = machine();
    arm(&mut pmu, 0, INSTRUCTIONS, 2, XMM | YMM_UPPER);
    let mut outcome = pmu.advance(&Delta::step(Ring::User));
    while outcome.due == 0 {
        outcome = pmu.advance(&Delta::step(Ring::User));
    }
    let retired = Retirement { vectors: [7; 32], ymm_upper: None, ..Retirement::default() };
    pmu.write_record(outcome.due, &retired, &mut buffer);
    let words = buffer.words();
    assert_eq!(words[0], 1 << 63 | XMM | YMM_UPPER | MODE_64 | 592);
    assert_eq!(words[8..10], [2, 0], "SSE alone");
    assert_eq!((&words[10..42], &words[42..74]), (&[7; 32][..], &[0; 32][..]));

    let mut pmu = pmu_of(Model::CougarCove);
    pmu.withhold_upper_halves();
    pmu.reset();
    assert_eq!(pmu.cpuid(0x23, 4, CpuidResult::default()).ebx, 0x6002_0378);
    assert!(pmu.write_msr(0x1903, YMM_UPPER).is_err());
    assert!(pmu.write_msr(0x1903, XMM).is_ok());
}

/// Forty branches, in all rings, with a depth.
fn branches(pmu: &mut Pmu, depth: u64) {
    write(pmu, 0x14CF, depth);
    write(pmu, 0x14CE, 0x7F_0007);
    for n in 0..40 {
        let (from, to, kind) = (0x100 + n, 0x200 + n, BranchKind::RelativeJump);
        let (ring, taken, mispredicted) = (Ring::User, true, false);
        let branch = Branch { from, to, kind, taken, mispredicted, ring, cycles: 1 };
        assert!(pmu.record_branch(&branch));
    }
}

#[test]
fn s1_branch_records_are_8_or_16_or_as_many_as_the_depth_says() {
    for (field, depth, written) in
        [(1, 32, 8), (2, 32, 16), (3, 32, 32), (3, 16, 16), (3, 8, 8), (2, 8, 16), (1, 16, 8)]
    {
        let (mut pmu, mut buffer) = machine();
        branches(&mut pmu, depth);
        pmu.record_event_delivery();
        arm(&mut pmu, 0, INSTRUCTIONS, 2, field << 40);
        run(&mut pmu, &mut buffer, 1..=2);
        let words = 8 + 6 + 3 * written;
        let head = 1 << 63 | field << 40 | MODE_64 | (8 * words);
        assert_eq!(buffer.words()[0], head, "{field} {depth}");
        // A reserved word, ARCH_LBR_CTL, ARCH_LBR_DEPTH, and the last branch before the interrupt.
        assert_eq!(buffer.words()[8..13], [0, 0x7F_0007, depth, 0x127, 0x227], "{field} {depth}");
        assert_eq!(buffer.words()[13], read(&mut pmu, 0x1E0), "{field} {depth}");
        for (older, record) in (0..).zip(buffer.words()[14..words as usize].chunks(3)) {
            let there = older < depth;
            let expected = if there { [0x127 - older, 0x227 - older] } else { [0; 2] };
            assert_eq!(record[..2], expected, "{field} {depth} {older}");
            let info = if there { read(&mut pmu, 0x1200 + older as u32) } else { 0 };
            assert_eq!(record[2], info, "{field} {depth} {older}");
        }
        assert_eq!(offset(&mut pmu), 8 * words, "{field} {depth}");
    }
}

/// Only those that let theirs be read, as they are before the reload; general-purpose counters first, and slots with the metrics.
#[test]
fn s1_values_of_counters_are_those_that_allow_it() {
    const ALLOW: u64 = 1 << 35;
    for values in 1..8u64 {
        let (mut pmu, mut buffer) = machine();
        // 77, 5 and 33 on general-purpose counters 1, 2 and 9, of which 2 does not let its value be read.
        for (n, value) in [(1, 77), (2, 5), (9, 33)] {
            write(&mut pmu, 0xC1 + n, value);
            write(&mut pmu, 0x1903 + 4 * n, if n == 2 { 0 } else { ALLOW });
        }
        for n in [0, 3] {
            write(&mut pmu, 0x1983 + 4 * n, ALLOW);
        }
        write(&mut pmu, 0x38D, 0x2002);
        write(&mut pmu, 0x38F, 0x1_0009_0000_0001);
        arm(&mut pmu, 0, INSTRUCTIONS, 10, ALLOW | values << 36);
        run(&mut pmu, &mut buffer, 1..=10);
        let [general, fixed, metrics] = [0, 1, 2].map(|bit| values >> bit & 1 != 0);
        let mut expected = vec![0, if metrics { 3 } else { 0 }];
        if general {
            expected[0] |= 1 << 9 | 0b11;
            expected.extend([1, 77, 33]);
        }
        if fixed {
            expected[0] |= 0b1001 << 32;
            expected.extend([10, 80]);
        }
        if metrics {
            expected.extend([80, read(&mut pmu, 0x329)]);
        }
        // To a multiple of 16 bytes.
        expected.resize(expected.len().next_multiple_of(2), 0);
        let words = 8 + expected.len();
        assert_eq!(buffer.words()[0], 1 << 63 | values << 36 | MODE_64 | (8 * words as u64));
        assert_eq!(buffer.words()[8..words], expected, "{values:#b}");
        assert_eq!(offset(&mut pmu), 8 * words as u64, "{values:#b}");
    }
}

/// The first one has the basic group, and says that it is continued; each has its own header.
#[test]
fn s1_a_large_record_comes_in_fragments() {
    let (mut pmu, mut buffer) = machine();
    branches(&mut pmu, 32);
    arm(&mut pmu, 0, INSTRUCTIONS, 2, AUX | GPR | XMM | 3 << 40 | 0b111 << 36);
    run(&mut pmu, &mut buffer, 1..=4);
    // Header, basic, AUX, GPR, XMM; header, branches, the counters' header without any, slots and metrics.
    let sizes = [16 + 48 + 64 + 160 + 272, 16 + 48 + 32 * 24 + 16 + 16];
    for record in 0..2 {
        let first = record * (sizes[0] + sizes[1]) / 8;
        let head = 1 << 63 | AUX | GPR | XMM | CONTINUED | MODE_64 | sizes[0] as u64;
        assert_eq!(buffer.words()[first], head);
        assert_eq!(buffer.words()[first + 2], 0x1002 + 2 * record as u64);
        let second = first + sizes[0] / 8;
        let head = 3 << 40 | 0b111 << 36 | MODE_64 | sizes[1] as u64;
        assert_eq!(buffer.words()[second..second + 3], [head, 0, 0]);
        assert_eq!(buffer.words()[second + 8..second + 10], [0x127, 0x227], "{record}");
        assert_eq!(buffer.words()[second + 8 + 96..][..2], [0, 3]);
    }
    assert_eq!(offset(&mut pmu), 2 * (560 + 864));
}

#[test]
fn s1_source_and_latencies_are_in_the_auxiliary_group() {
    let (mut pmu, mut buffer) = machine();
    write(&mut pmu, 0x3F6, 3);
    arm(&mut pmu, 2, 0x1CD | EN | USR, 2, AUX);
    for number in 1..=2 {
        let load = Delta::step(Ring::User).with(Occurrence::Load, 1);
        let load = load.with(Occurrence::LoadLlcMiss, 1).with(Occurrence::LlcMiss, 1);
        instruction(&mut pmu, &mut buffer, number, load);
    }
    // A cycle, and 200 to memory.
    assert_eq!(buffer.words()[5], 1 << 16 | 201);
    // Memory; the data's latency at 47:32, the instruction's at 15:0.
    let expected = [0x10_0000, 0, 0, 0, 0, 0x11, 204 << 32 | 205, 0];
    assert_eq!(buffer.words()[8..16], expected);
}
