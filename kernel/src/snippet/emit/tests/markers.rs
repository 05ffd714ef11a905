//! Markers in the body, where counting pauses.

use super::*;
use protocol::marker::{PAUSE, RESUME};

#[test]
fn n1_a_marker_jumps_to_the_gate_and_back_and_without_a_gate_stays_a_nop() {
    let body = [&[0x90][..], &PAUSE, &[0xf9], &RESUME].concat();
    let mut snippet = snippet(&[], &body, 0, LoopCounter::R15);
    snippet.setup.alignment_offset = 3;
    for gate in [Gate::EMPTY, Gate::EMPTY.with(Msr(0x38f), 15, 1)] {
        let mut memory = vec![0; 1 << 16];
        let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
        let emitted = emit(&mut memory, &place, &snippet, 3, &gate);
        let decode = |from: u64, to: u64| {
            let bytes = &memory[(from - place.code) as usize..(to - place.code) as usize];
            Decoder::with_ip(64, bytes, from, DecoderOptions::NONE).into_iter().collect::<Vec<_>>()
        };
        let code = decode(emitted.body.start, emitted.body.end);
        let jumps: Vec<_> = code.iter().filter(|one| one.is_jmp_short_or_near()).collect();
        if gate.on().is_empty() {
            assert_eq!((jumps.len(), code.len()), (0, 3 * 4));
            continue;
        }
        assert_eq!(jumps.len(), 6);
        for jump in jumps {
            let target = jump.near_branch_target();
            assert!((emitted.exit..emitted.function.end).contains(&target));
            let stub = decode(target, emitted.function.end);
            let back = stub.iter().find(|one| one.is_jmp_short_or_near()).unwrap();
            assert_eq!(back.near_branch_target(), jump.ip() + 8);
        }
    }
}

/// The code of a marker in its longest form, with as many writes as a gate can have, has the room that limits reckon with.
#[test]
fn n1_the_longest_code_of_a_marker_fits_where_limits_say() {
    let values = (u64::MAX - 1, u64::MAX - 2);
    let gate = (0..arch::pmu::driver::MAX_WRITES as u32)
        .fold(Gate::EMPTY, |gate, n| gate.with(Msr(0x186 + n), values.0, values.1));
    let longest = [PAUSE, RESUME].map(|marker| {
        let snippet = snippet(&[], &marker, 0, LoopCounter::R15);
        let mut memory = vec![0; 1 << 16];
        let place = Place { code: 0x20_0000, data: 0x10_0000, pointers: [0; 5] };
        let emitted = emit(&mut memory, &place, &snippet, 1, &gate);
        let begin = emitted.body.start;
        let bytes = &memory[(begin - place.code) as usize..];
        let jump = Decoder::with_ip(64, bytes, begin, DecoderOptions::NONE).into_iter().next();
        emitted.function.end - jump.unwrap().near_branch_target()
    });
    let most = longest.into_iter().max().unwrap();
    assert_eq!(most, protocol::marker::STUB_BYTES, "{longest:?}");
}
